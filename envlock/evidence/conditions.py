"""What envlock has set for an experiment, as the end of a headline: a verdict that holds under a seed must
not be read as one on the program without it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from envlock.runtime.report import clean

SEED = 7
"""Of runs whose values do not count: any number, but initial weights and batches have to be the same in all."""


def describe_conditions(seed: int | None, variables: Mapping[str, str] = {}) -> str:
    """Return the seed and the variables that envlock has set, as the end of a sentence; empty without any."""
    words = []
    if seed is not None:
        words.append(f"all seeds set to {seed}")
    words += [f"{name}={clean(value)}" for name, value in sorted(variables.items())]
    if not words:
        return ""
    return f", with {' and '.join(words)} by envlock"
