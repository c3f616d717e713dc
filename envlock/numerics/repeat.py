"""Run a script or function several times, in one process or each time in a fresh one, and keep what it computes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envlock.guest import launch
from envlock.guest.training.store import LOG
from envlock.numerics.results import FORMAT, Results, read
from envlock.numerics.target import Target
from envlock.runtime.errors import UsageError
from envlock.runtime.version import __version__

PROGRAM = "training.repeat_program"
OUTPUT = "output.txt"
LOOK = 0.1  # seconds between two looks at how far the runs are


@dataclass(frozen=True)
class Plan:
    """What is to be run, how often and how."""

    target: Target
    runs: int
    fresh: bool = False
    seed: int | None = None
    python: Path | None = None
    limit: int = 8_000_000_000
    """Bytes of arrays that are kept."""
    shown: bool = False
    """Let the script's own output through, on stderr."""
    hash_seed: str | None = None
    """The lockfile's hash seed, where it has one and this process was started without one."""


def repeat(
    plan: Plan, folder: Path, advance: Callable[[int], None] = lambda _: None
) -> tuple[Results, bool]:
    """Return the results of all runs, and whether Ctrl-C cut them short.

    Args:
        plan: what to run.
        folder: an empty one; the results come to lie in a folder in it, beside what the script said.
        advance: is called with the number of runs that have come to an end since the last call.

    Raises:
        UsageError: there is no such interpreter, or the script or function cannot be run so, or recorded nothing.
    """
    header = {
        "envlock_repeat": FORMAT,
        "created_by": f"envlock {__version__}",
        "target": plan.target.title,
        "runs": plan.runs,
        "fresh": plan.fresh,
        "seed": plan.seed,
    }
    folder = folder / "results"
    folder.mkdir()
    _append(folder, header)
    numbers = list(range(plan.runs))
    interrupted = False
    try:
        for some in [[number] for number in numbers] if plan.fresh else [numbers]:
            if not _run(plan, some, folder, advance) or (
                some == [0] and _recorded_nothing(read(folder))
            ):
                break
    except KeyboardInterrupt:
        interrupted = True
    results = read(folder)
    _check(results, plan.target, interrupted=interrupted)
    return results, interrupted


def _run(plan: Plan, numbers: list[int], folder: Path, advance: Callable[[int], None]) -> bool:
    """Let one process do some of the runs, and return whether there is a point in others.

    Where it dies, which run that was and its last words are written down.
    """
    asked = {
        "folder": str(folder),
        **plan.target.to_json(),
        "runs": numbers,
        "seed": plan.seed,
        "limit": plan.limit,
    }
    environ = dict(os.environ)
    if plan.hash_seed is not None:
        environ["PYTHONHASHSEED"] = plan.hash_seed
    elif plan.seed is not None:
        environ.setdefault("PYTHONHASHSEED", str(plan.seed % 2**32))  # later it has no effect
    with folder.with_name(OUTPUT).open("ab") as log:
        output = sys.stderr.fileno() if plan.shown and sys.stderr is not None else log
        words = launch.module(PROGRAM, asked)
        child = launch.start(
            words, plan.python, output=output, errors=subprocess.STDOUT, environ=environ
        )
        try:
            ends = _watch(child, folder, advance)
        finally:
            launch.end(child)
    if any("unusable" in line for line in ends):
        return False
    _bury(
        child.returncode,
        [number for number in numbers if number not in {line["run"] for line in ends}],
        folder,
    )
    return True


def _watch(
    child: subprocess.Popen[bytes], folder: Path, advance: Callable[[int], None]
) -> list[dict[str, Any]]:
    """Wait for the child, tell how many runs are over, and return the lines of the log that say how."""
    ends: list[dict[str, Any]] = []
    with (folder / LOG).open("rb") as log:
        log.seek(0, os.SEEK_END)
        rest, running = b"", True
        while running:
            try:
                child.wait(LOOK)
                running = False
            except subprocess.TimeoutExpired:
                pass
            *lines, rest = (rest + log.read()).split(b"\n")
            found = [
                json.loads(line)
                for line in lines
                if b'"end": "' in line or line.startswith(b'{"unusable"')
            ]
            ends += found
            if found:
                advance(len(found))
    return ends


def _bury(code: int | None, missing: list[int], folder: Path) -> None:
    """Write down the run in which the process died, if it did."""
    if code == 0 or not missing:
        return
    words = launch.last_words(_tail(folder.with_name(OUTPUT)))
    message = f"the process {launch.ending(code or 0)}; its last output: {words}"
    _append(folder, {"run": missing[0], "end": "failed", "message": message})


def _tail(output: Path) -> str:
    """Return the end of what the script said."""
    size = output.stat().st_size
    with output.open("rb") as file:
        file.seek(max(0, size - 20_000))
        return file.read().decode("utf-8", "replace")


def _append(folder: Path, line: dict[str, object]) -> None:
    with (folder / LOG).open("ab") as log:
        log.write((json.dumps(line) + "\n").encode("ascii"))


def _recorded_nothing(results: Results) -> bool:
    return bool(results.finished) and not any(run.steps for run in results.runs)


def _check(results: Results, target: Target, *, interrupted: bool) -> None:
    """Refuse what cannot be compared for a reason that has nothing to do with a run."""
    if results.unusable is not None:
        raise target.unusable(results.unusable, "repeat")
    if not interrupted and _recorded_nothing(results):
        raise UsageError(
            f"{target} recorded nothing",
            hint="call envlock.record(loss=...) at every step, or name a function that returns its values",
        )
