"""Run a script or function several times, in one process or in new ones, and store its results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from envlock.guest import launch
from envlock.guest.target import Target
from envlock.guest.training.store import LOG
from envlock.numerics.results import FORMAT, Results, read
from envlock.runtime.errors import UsageError
from envlock.runtime.version import __version__

PROGRAM = "training.repeat_program"
OUTPUT = "output.txt"
LOOK = 0.1
"""Seconds between two checks of the progress of the runs."""
TAIL = 20_000
"""Bytes at the end of the output that are searched for its last lines."""


@dataclass(frozen=True)
class Plan:
    """What to run, how often and how."""

    target: Target
    runs: int
    fresh: bool = False
    seed: int | None = None
    python: Path | None = None
    limit: int = 8_000_000_000
    """Bytes of arrays that are stored."""
    shown: bool = False
    """Show the script's own output, on stderr."""
    hash_seed: str | None = None
    """The lockfile's hash seed, if it has one and this process was started without one."""
    environ: Mapping[str, str] | None = None
    """The variables to start with; those of this process when not given."""
    emulator: tuple[str, ...] = ()
    """The command that runs it on an emulated processor; empty for this machine's."""


def repeat(
    plan: Plan, folder: Path, advance: Callable[[int], None] = lambda _: None
) -> tuple[Results, bool]:
    """Return the results of all runs, and whether Ctrl-C interrupted them.

    Args:
        plan: what to run.
        folder: an empty one, which gets a folder `results` and the output of the script.
        advance: called with the number of runs that have ended since the last call.

    Raises:
        UsageError: there is no such interpreter, or the target cannot be run or records nothing.
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
    _append_line(folder, header)
    batches = [list(range(plan.runs))]
    if plan.fresh:
        batches = [[number] for number in range(plan.runs)]
    interrupted = False
    try:
        while batches:
            numbers = batches.pop(0)
            if not _run_batch(plan, numbers, folder, advance):
                break
            # Only of the process that was given several: one of its own is not started twice.
            if len(numbers) > 1:
                batches += _list_runs_left(numbers, read(folder))
            # Runs that record nothing are refused below; the others are not worth waiting for.
            if numbers == [0] and _has_nothing(read(folder)):
                break
    except KeyboardInterrupt:
        interrupted = True
    results = read(folder)
    _check_results(results, plan.target, interrupted=interrupted)
    return results, interrupted


def _list_runs_left(numbers: list[int], results: Results) -> list[list[int]]:
    """Return the runs that a process has left to others, each for one of its own.

    It does so where a run has changed variables that the next one would have been judged by, as a
    program does that imports DeepXDE after its `assert_locked()`.
    """
    if not any(run.changed for run in results.runs):
        return []
    made = {run.label for run in results.runs if run.end is not None}
    return [[number] for number in numbers if str(number) not in made]


def _run_batch(
    plan: Plan, numbers: list[int], folder: Path, advance: Callable[[int], None]
) -> bool:
    """Make some of the runs in one process, and return whether more of them can be made.

    If it crashes, that run and its last lines are recorded.
    """
    request = {
        "folder": str(folder),
        **plan.target.to_json(),
        "runs": numbers,
        "seed": plan.seed,
        "limit": plan.limit,
    }
    environ = dict(os.environ)
    if plan.environ is not None:
        environ = dict(plan.environ)
    # It has an effect only when an interpreter starts.
    if plan.hash_seed is not None:
        environ["PYTHONHASHSEED"] = plan.hash_seed
    elif plan.seed is not None:
        # Python takes 32 bits: https://docs.python.org/3/using/cmdline.html#envvar-PYTHONHASHSEED
        environ.setdefault("PYTHONHASHSEED", str(plan.seed % 2**32))
    words = launch.bind_to_parent(launch.build_module_arguments(PROGRAM, request))
    program = plan.python
    if plan.emulator:
        words = launch.build_emulated_arguments(plan.emulator, words, plan.python)
        program = Path(plan.emulator[0])
    with folder.with_name(OUTPUT).open("ab") as log:
        child = launch.start(
            words,
            program,
            output=_choose_output(plan, log),
            errors=subprocess.STDOUT,
            environ=environ,
        )
        try:
            ends = _watch(child, folder, advance)
        finally:
            launch.kill(child)
    missing: set[object] = set(numbers)
    for line in ends:
        if "unusable" in line:
            return False
        missing.discard(line["run"])
    if child.returncode != 0 and missing:
        # In the order of their numbers: the first missing one is the run in which it crashed.
        first = next(number for number in numbers if number in missing)
        _record_crash(child.returncode or 0, first, folder)
    return True


def _choose_output(plan: Plan, log: BinaryIO) -> BinaryIO | int:
    if plan.shown and sys.stderr is not None:
        return sys.stderr.fileno()
    return log


def _watch(
    child: subprocess.Popen[bytes], folder: Path, advance: Callable[[int], None]
) -> list[dict[str, object]]:
    """Wait for the child, report how many runs have ended, and return the last lines of their log."""
    ends: list[dict[str, object]] = []
    with (folder / LOG).open("rb") as log:
        log.seek(0, os.SEEK_END)
        rest, is_running = b"", True
        while is_running:
            # Read once more after its end: it may have written since the last check.
            with suppress(subprocess.TimeoutExpired):
                child.wait(LOOK)
                is_running = False
            *lines, rest = (rest + log.read()).split(b"\n")
            found = [json.loads(line) for line in lines if _says_end(line)]
            ends += found
            if found:
                advance(len(found))
    return ends


def _says_end(line: bytes) -> bool:
    # Checked as text: a line with the values of a step can be long, and slow to parse.
    return b'"end": "' in line or line.startswith(b'{"unusable"')


def _record_crash(code: int, run: int, folder: Path) -> None:
    """Record the run in which the process crashed, with its last lines."""
    output = folder.with_name(OUTPUT)
    with output.open("rb") as file:
        file.seek(max(0, output.stat().st_size - TAIL))
        text = file.read().decode("utf-8", "replace")
    message = (
        f"the process {launch.describe_exit(code)}; its last output: {launch.pick_error_line(text)}"
    )
    _append_line(folder, {"run": run, "end": "failed", "message": message})


def _append_line(folder: Path, line: dict[str, object]) -> None:
    with (folder / LOG).open("ab") as log:
        log.write((json.dumps(line) + "\n").encode("ascii"))


def _has_nothing(results: Results) -> bool:
    """Return whether runs have finished and recorded no value."""
    return bool(results.finished) and not any(run.steps for run in results.runs)


def _check_results(results: Results, target: Target, *, interrupted: bool) -> None:
    """Raise if runs cannot be compared for a reason that is not about a single run.

    Raises:
        UsageError: the target cannot be run, or records nothing.
    """
    if results.unusable is not None:
        raise target.unusable(results.unusable, "repeat")
    if not interrupted and _has_nothing(results):
        values = "call envlock.record(loss=...) at every step"
        hint = f"{values}, or name a function that returns its values"
        raise UsageError(f"{target} recorded nothing", hint=hint)
