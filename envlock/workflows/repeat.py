"""Run a training several times and compare the bits, or compare results that were saved."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from envlock.guest.target import RELATIVE_IMPORT, Target, parse_target
from envlock.lock.temporary import open_draft_folder
from envlock.numerics import repeated_runs as numerics
from envlock.numerics import results
from envlock.numerics.matrices import compute_matrices, count_bytes
from envlock.numerics.outcome import Outcome, RepeatEvidence, report
from envlock.numerics.repeated_runs import Plan
from envlock.numerics.results import Quantity, Results, Run
from envlock.runtime.errors import LockfileError, UsageError, WriteError
from envlock.runtime.report import Report, count
from envlock.runtime.variable_plan import NAME as HASH_SEED
from envlock.runtime.variable_plan import is_number
from envlock.workflows.locks import load_document
from envlock.workflows.progress import SILENT, Progress

KEPT = 8_000_000_000
"""Bytes of arrays that are stored; for what exceeds it, only hashes are stored."""


def repeat(
    script: str,
    args: Sequence[str] = (),
    *,
    module: bool = False,
    runs: int = 7,
    fresh: bool = False,
    seed: int | None = None,
    python: Path | None = None,
    save: Path | None = None,
    steps: Sequence[int] = (),
    limit: int = KEPT,
    output: bool = False,
    progress: Progress = SILENT,
) -> Report[RepeatEvidence]:
    """Run a script or a function several times, and return the distance of every run from every
    other.

    The attachments are those of docs/reference/repeat.md; `interrupted` says whether Ctrl-C cut it
    short.

    Args:
        script: `SCRIPT[:FUNCTION]`, or `PACKAGE.MODULE:FUNCTION`.
        args: for the script.
        module: `script` is the name of a module, also without a function.
        runs: how often it is run.
        fresh: each run in a process of its own.
        seed: set all seeds to this before each run.
        python: the interpreter; this one when not given.
        save: keep the results in this new folder.
        steps: the steps to show; the first that differs and the last when not given.
        limit: bytes of arrays that are stored.
        output: show the script's own output, on stderr.
        progress: shows what is being done.

    Raises:
        UsageError: there is no such script or interpreter, it records nothing, or `save` exists.
        WriteError: the results cannot be stored.
        FactError: distances cannot be computed.
    """
    if runs < 2 and save is None:
        raise UsageError(
            "a single run cannot be compared",
            hint="use `--runs 2`, or `--save DIR` to compare later",
        )
    _need_free(save)
    wanted = parse_target(script, tuple(args), module=module)
    plan = Plan(wanted, runs, fresh, seed, python, limit, output, _read_locked_hash_seed())
    parent = None
    if save is not None:
        # In the same folder as its final place, because it is renamed to that.
        parent = save.absolute().parent
    with open_draft_folder(parent) as folder:
        found, interrupted = _make_runs(plan, folder, save, progress)
        outcome = _compare_runs({"": found}, runs, steps, python, progress)
        about = tuple(_explain_processes(found))
        outcome = replace(outcome, interrupted=interrupted, about=about)
        return report(_add_help(outcome, plan.target), str(plan.target.script))


def _explain_processes(found: Results) -> Iterator[str]:
    """Yield why runs that were asked for in one process had one each, where they had."""
    names = sorted({name for run in found.runs for name in run.changed})
    if names and not found.header.get("fresh"):
        yield (
            f"The program changes {', '.join(names)} after it was verified, "
            "so each run had a process of its own."
        )


def _read_locked_hash_seed() -> str | None:
    """Return the hash seed of the nearest lockfile; None if it has none, or this process has one
    already.
    """
    if is_number(os.environ.get(HASH_SEED, "")):
        return None
    try:
        document, _ = load_document(None)
    except LockfileError:
        # No lockfile is near, so no seed is locked.
        return None
    environ = document["facts"].get("environ") or {}
    locked = environ.get(HASH_SEED)
    if isinstance(locked, str) and is_number(locked):
        return locked
    return None


def _add_help(outcome: Outcome, wanted: Target) -> Outcome:
    """Return an outcome with a hint on how to run a file of a package, if runs failed for that
    reason.
    """
    for run in outcome.failed:
        if run.message is not None and RELATIVE_IMPORT in run.message:
            return replace(outcome, help=wanted.by_module("repeat"))
    return outcome


def _make_runs(
    plan: Plan, folder: Path, save: Path | None, progress: Progress
) -> tuple[Results, bool]:
    """Make the runs, store them in `save`, and return their results and whether Ctrl-C interrupted
    them.
    """
    try:
        with progress.bar(f"running {plan.target.name}", plan.runs) as advance:
            found, interrupted = numerics.repeat(plan, folder, advance)
        if save is not None and found.finished:
            found.folder = found.folder.rename(save)
    except OSError as error:
        where = save or "the temporary folder"
        raise WriteError(
            f"cannot keep the results in {where}: {error.strerror}", hint="check its disk"
        ) from None
    if save is not None and found.finished:
        progress.say(f"saved {len(found.finished):,} of {plan.runs:,} runs in {save}")
    return found, interrupted


def compare_saved(
    a: Path,
    b: Path,
    *,
    steps: Sequence[int] = (),
    python: Path | None = None,
    progress: Progress = SILENT,
) -> Report[RepeatEvidence]:
    """Return the distances between the runs in two folders, which are named A0, A1 ... and B0, B1
    ...

    Raises:
        UsageError: a folder was not written by `save`, or is damaged.
        FactError: distances cannot be computed.
    """
    sets = {"A": results.read(a, "A"), "B": results.read(b, "B")}
    wanted = 0
    about = []
    for name, found in sets.items():
        wanted += max(len(found.runs), found.wanted)
        about.append(_describe_set(name, found))
    outcome = _compare_runs(sets, wanted, steps, python, progress)
    return report(replace(outcome, about=tuple(about)), str(b))


def need_folder_of(*paths: Path | None) -> None:
    """Check that the folder of each path exists.

    Raises:
        UsageError: one does not exist.
    """
    for path in paths:
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"folder not found: {path.absolute().parent}", hint="create it first")


def _need_free(save: Path | None) -> None:
    """Refuse a folder that exists already, or whose parent does not exist."""
    if save is not None and (save.exists() or save.is_symlink()):
        raise UsageError(f"{save} exists already", hint="name a new folder")
    need_folder_of(save)


def _describe_set(name: str, found: Results) -> str:
    """Return which runs a set is made of, and whether they are the same among themselves."""
    text = f"{name}: {count(len(found.finished), 'run')} of {found.target} in {found.folder.name}"
    number = len(results.group_runs(found.finished))
    if number > 1:
        text += f", {number:,} different results"
    versions = ", ".join(f"{package} {version}" for package, version in found.environment.items())
    return f"{text} ({versions or 'versions unknown'})"


def _compare_runs(
    sets: dict[str, Results],
    wanted: int,
    steps: Sequence[int],
    python: Path | None,
    progress: Progress,
) -> Outcome:
    """Compare the finished runs; if they show no difference, compare the steps of those that
    failed.
    """
    all_runs: list[Run] = []
    failed: list[Run] = []
    for found in sets.values():
        all_runs += found.runs
        failed += found.failed
    runs, cut = results.select_comparable(all_runs)
    first = None
    if len(runs) > 1:
        first = results.find_first(runs)
    shown: list[Quantity] = []
    for step in _choose_steps(runs, steps, first):
        shown += results.collect_quantities(runs, step)
    differing = [quantity for quantity in shown if quantity.distinct > 1]
    with progress.bar("comparing", count_bytes(differing), in_bytes=True) as advance:
        arrays = [found.arrays for found in sets.values()]
        compared = compute_matrices(differing, arrays, python, advance)
    return Outcome(
        runs=runs,
        failed=failed,
        wanted=wanted,
        first=first,
        shown=shown,
        matrices=compared,
        environments={name or "runs": found.environment for name, found in sets.items()},
        cut=cut,
    )


def _choose_steps(runs: Sequence[Run], asked: Sequence[int], first: Quantity | None) -> list[int]:
    """Return the steps to show: the requested ones, else the first that differs and the last.

    Raises:
        UsageError: no run recorded a requested step.
    """
    recorded = results.list_steps(runs)
    for step in asked:
        if step not in recorded:
            hint = "run it again: no run finished"
            if recorded:
                hint = f"choose a step from {recorded[0]} to {recorded[-1]}"
            raise UsageError(f"no run recorded step {step}", hint=hint)
    if asked:
        return sorted(set(asked))
    if first is None:
        return []
    return sorted({first.step, recorded[-1]})
