"""Let a child process show in which state TensorFlow is, with a bounded wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envlock.guest import launch
from envlock.runtime.errors import FactError, UsageError

TIMEOUT = 300.0  # seconds: 4 are usual, half of that is `import tensorflow`


def observe(python: Path | None, setup: str | None, timeout: float = TIMEOUT) -> dict[str, Any]:
    """Return what `guest/proof.py` sees in the interpreter `python`, after running the lines of `setup`.

    Raises:
        UsageError: there is no such interpreter, or the lines themselves fail.
        FactError: TensorFlow died, or did not answer in time; the message holds its last words.
    """
    ended = launch.ask(launch.text(launch.read("proof"), {"setup": setup}), python, timeout=timeout)
    if ended.code is None:
        raise FactError(f"TensorFlow did not show its state within {timeout:g} s", hint="try again")
    if not ended.answers:
        raise FactError(
            f"TensorFlow {ended.ending} before it could show its state: {ended.last_words}",
            hint="`envlock doctor` without --prove tells which variable or flag it is",
        )
    seen = ended.answers[-1]
    if "failed" in seen and setup is not None:
        raise UsageError(f"the lines given with --with, or TensorFlow's import, fail: {seen['failed']}")
    if "failed" in seen:
        hint = "name the interpreter of an environment with TensorFlow: --python .venv/bin/python"
        raise FactError(f"TensorFlow cannot be imported: {seen['failed']}", hint=hint)
    return seen
