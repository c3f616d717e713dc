"""Run a script or function several times, in one process or in new ones, and store its results."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from envlock.evidence.results import FORMAT, Results, Run, read
from envlock.evidence.session import OUTPUT, Host, Session
from envlock.guest.target import Target
from envlock.guest.training.store import LOG
from envlock.lock.temporary import open_draft_folder
from envlock.runtime.errors import FactError, UsageError
from envlock.runtime.version import __version__


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
    (folder / LOG).write_text(json.dumps(header) + "\n", encoding="ascii")
    numbers = list(range(plan.runs))
    batches = [[number] for number in numbers] if plan.fresh else [numbers]
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
            if plan.fresh and read(folder).failed:
                break
    except KeyboardInterrupt:
        interrupted = True
    results = read(folder)
    _check_results(results, plan.target, interrupted=interrupted)
    return results, interrupted


def make_runs(plan: Plan) -> list[Run]:
    """Return what each run recorded; the arrays are not kept.

    Raises:
        UsageError: there is no such interpreter, or the target cannot be run or records nothing.
        FactError: a run failed.
    """
    with open_draft_folder(None) as folder:
        results, interrupted = repeat(plan, folder)
    if interrupted:
        raise KeyboardInterrupt
    if len(results.finished) < plan.runs:
        reason = results.failed[0].message if results.failed else "no result"
        raise FactError(
            f"{plan.target.title} failed: {reason}", hint=f"try `envlock repeat {plan.target}`"
        )
    return results.finished


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
    """Make some of the runs in one process, and return whether more of them can be made."""
    asked = {
        "observer": "values",
        "folder": str(folder),
        **plan.target.to_json(),
        "runs": numbers,
        "seed": plan.seed,
        "limit": plan.limit,
    }
    environ = dict(os.environ if plan.environ is None else plan.environ)
    # It has an effect only when an interpreter starts.
    if plan.hash_seed is not None:
        environ["PYTHONHASHSEED"] = plan.hash_seed
    elif plan.seed is not None:
        # Python takes 32 bits: https://docs.python.org/3/using/cmdline.html#envvar-PYTHONHASHSEED
        environ.setdefault("PYTHONHASHSEED", str(plan.seed % 2**32))
    stream = sys.stderr.fileno() if plan.shown and sys.stderr is not None else None
    host = Host(plan.python, environ, stream)
    with closing(Session()) as session:
        # Not beside the log, which may be kept.
        said = session.make_runs(asked, host, output=folder.with_name(OUTPUT), advance=advance)
    return "unusable" not in said


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
