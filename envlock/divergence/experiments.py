"""Experiments that find the line of Python or NumPy that made a value, and their outcome. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from envlock.divergence.comparison import Difference
from envlock.divergence.known_causes import Known
from envlock.divergence.makers import Maker
from envlock.divergence.observed_runs import Observed, Request
from envlock.divergence.readings import get_label, has_keras_seed
from envlock.divergence.trace import Place, Record

LINES = 3
"""How many lines of Python or NumPy are tried as the maker of a value."""
SEED_FIRST = (
    "the program calls `set_random_seed`, and draws before that call or in threads that share a "
    "generator: call it first, and give each thread its own generator"
)
BY_TENSORFLOW = ("operation", "data", "call")
"""Kinds of differences that no value of Python's or NumPy's makes."""


@dataclass(frozen=True)
class Experiment:
    """One set of runs with one thing held the same.

    Attributes:
        what: what is held, as it stands after "with".
        request: the runs.
        row: the row of divergence.toml that explains the cause if the difference is gone, or None.
        maker: the line that is shown to be the cause then; None where no line is.
    """

    what: str
    request: Request
    row: str | None
    maker: Maker | None


def plan_experiments(
    seen: Observed, base: Request, first: Difference, makers: Sequence[Maker]
) -> list[Experiment]:
    """Return the experiments on a value that came from Python, the most telling first.

    Args:
        seen: the runs that differ.
        base: how a run is repeated.
        first: where they differ.
        makers: lines of the program that gave something else, the latest first.
    """
    drawn = "unseeded-random-ops"
    if has_keras_seed(seen):
        drawn = "keras-seeds-from-python-random"
    planned = []
    # Runs in one process share their hash seed, so that the order of a set cannot differ between them.
    if base.fresh and first.kind != "data":
        hashing = replace(base, environ={**base.environ, "PYTHONHASHSEED": "0"})
        planned.append(Experiment("PYTHONHASHSEED=0", hashing, "python-hash-randomization", None))
    for maker in makers[:LINES]:
        if maker.row.hold == "nothing":
            continue
        row = None
        if maker.row.row:
            row = drawn
        held = replace(base, held=maker.held)
        planned.append(Experiment(f"the same from {maker.title} in every run", held, row, maker))
    # Seeds change nothing for lines that draw from no generator (a clock, a file).
    if first.kind != "data" and (not makers or any(maker.row.row for maker in makers)):
        seeded = replace(base, generators=1)
        planned.append(Experiment("seeds for Python's and NumPy's generators", seeded, drawn, None))
    return planned


def is_later(found: Difference, here: Difference) -> bool:
    """Return whether a difference is gone, and another one left.

    The same line in a later turn is the same cause. Only what TensorFlow gave for equal inputs is another
    one even on the same line: `Model.fit` is one line.
    """
    if found.index <= here.index or get_label(found) == get_label(here):
        return False
    return _get_line(found) != _get_line(here) or found.kind in BY_TENSORFLOW


def _get_line(difference: Difference) -> Place | None:
    if not isinstance(difference.entry, Record):
        return None
    return difference.entry.operation.place


def drop_known_advice(known: Known | None, seen: Observed) -> Known | None:
    """Return what is known without the advice to set all seeds, where the program does."""
    if known is None or not any(end.get("seeded") for end in seen.answers["ends"].values()):
        return known
    # A dictionary for a set: two fixes can become one.
    fixes: dict[str, None] = {}
    for fix in known.fixes:
        if "set_random_seed" in fix:
            fix = SEED_FIRST
        fixes[fix] = None
    return replace(known, fixes=tuple(fixes))
