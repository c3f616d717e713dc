"""Do runs give the same bits? Run a training several times and compare, or compare results that were saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from envlock.lock.drafts import draft_folder
from envlock.numerics import results
from envlock.numerics.matrices import matrices, size
from envlock.numerics.outcome import Outcome, RepeatEvidence, report
from envlock.numerics.repeat import Plan
from envlock.numerics.repeat import repeat as run
from envlock.numerics.results import Quantity, Results, Run
from envlock.numerics.target import RELATIVE_IMPORT, Target, target
from envlock.runtime.errors import LockfileError, UsageError, WriteError
from envlock.runtime.report import Report
from envlock.runtime.variables import NAME as HASH_SEED
from envlock.runtime.variables import is_number
from envlock.workflows.locks import plain
from envlock.workflows.progress import SILENT, Progress

KEPT = 8_000_000_000
"""Bytes of arrays that are kept; beyond that only their hashes are."""


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
    """Run a script or a function several times, and return how far every run is from every other.

    The attachments are those of docs/reference/repeat.md; `interrupted` says whether Ctrl-C cut it short.

    Args:
        script: `SCRIPT[:FUNCTION]`, or `PACKAGE.MODULE:FUNCTION`.
        args: for the script.
        module: it is the name of a module even without a function.
        runs: how often.
        fresh: each run in a process of its own.
        seed: set all seeds to this before each run.
        python: the interpreter; this one when not given.
        save: keep the results in this new folder.
        steps: the steps to show; the first that differs and the last when not given.
        limit: bytes of arrays that are kept.
        output: let the script's own output through, on stderr.
        progress: shows what is going on.

    Raises:
        UsageError: there is no such script or interpreter, it records nothing, or `save` exists.
        WriteError: the results cannot be kept.
        FactError: distances cannot be computed.
    """
    if runs < 2 and save is None:
        raise UsageError(
            "a single run cannot be compared",
            hint="use `--runs 2`, or `--save DIR` to compare later",
        )
    _need_free(save)
    wanted = target(script, tuple(args), module=module)
    plan = Plan(wanted, runs, fresh, seed, python, limit, output, _locked_hash_seed())
    with draft_folder(
        None if save is None else save.absolute().parent
    ) as folder:  # beside: it is renamed
        found, interrupted = _made(plan, folder, save, progress)
        kept = _outcome({"": found}, runs, steps, python, progress, interrupted=interrupted)
        return report(_helped(kept, plan.target), str(plan.target.script))


def _locked_hash_seed() -> str | None:
    """Return the hash seed of the nearest lockfile, where it has one and this process has none."""
    if is_number(os.environ.get(HASH_SEED, "")):
        return None
    try:
        locked = (plain(None)[0]["facts"].get("environ") or {}).get(HASH_SEED, "")
    except LockfileError:  # none is near: nothing has locked a seed
        return None
    return locked if isinstance(locked, str) and is_number(locked) else None


def _helped(outcome: Outcome, wanted: Target) -> Outcome:
    """Return an outcome that says how to run a file of a package, where runs failed for that."""
    relative = any(RELATIVE_IMPORT in (run.message or "") for run in outcome.failed)
    return replace(outcome, help=wanted.by_module("repeat")) if relative else outcome


def _made(plan: Plan, folder: Path, save: Path | None, progress: Progress) -> tuple[Results, bool]:
    """Make the runs, keep them in `save`, and return their results and whether Ctrl-C cut them short."""
    try:
        with progress.bar(f"running {plan.target.name}", plan.runs) as advance:
            found, interrupted = run(plan, folder, advance)
        if save is not None and found.finished:
            found.folder = found.folder.rename(save)
    except OSError as error:
        where = save or "the temporary folder"
        raise WriteError(
            f"cannot keep the results in {where}: {error.strerror}", hint="check its disk"
        ) from None
    if save is not None and found.finished:
        progress.say(f"saved {len(found.finished)} of {plan.runs} runs in {save}")
    return found, interrupted


def compare_saved(
    a: Path,
    b: Path,
    *,
    steps: Sequence[int] = (),
    python: Path | None = None,
    progress: Progress = SILENT,
) -> Report[RepeatEvidence]:
    """Return how far the runs in two folders are from each other; they are called A0, A1 ... and B0, B1 ...

    Raises:
        UsageError: one is no folder that `save` made, or is damaged.
        FactError: distances cannot be computed.
    """
    sets = {name: results.read(folder, name) for name, folder in (("A", a), ("B", b))}
    wanted = sum(max(len(each.runs), each.wanted) for each in sets.values())
    about = tuple(_about(name, each) for name, each in sets.items())
    return report(_outcome(sets, wanted, steps, python, progress, about=about), str(b))


def need_folder_of(*paths: Path | None) -> None:
    """Do nothing where the folder of each path is there.

    Raises:
        UsageError: one is not.
    """
    for path in paths:
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"folder not found: {path.absolute().parent}", hint="create it first")


def _need_free(save: Path | None) -> None:
    """Refuse a folder that is there, or whose parent is not."""
    if save is not None and (save.exists() or save.is_symlink()):
        raise UsageError(f"{save} exists already", hint="name a new folder")
    need_folder_of(save)


def _about(name: str, found: Results) -> str:
    """Return which runs a set is made of, and whether they are the same among themselves."""
    number = len(results.groups(found.finished))
    inside = "" if number < 2 else f", {number} different results"
    versions = ", ".join(f"{package} {version}" for package, version in found.environment.items())
    runs = f"{len(found.finished)} run{'' if len(found.finished) == 1 else 's'}"
    return f"{name}: {runs} of {found.target} in {found.folder.name}{inside} ({versions or 'versions unknown'})"


def _outcome(
    sets: dict[str, Results],
    wanted: int,
    steps: Sequence[int],
    python: Path | None,
    progress: Progress,
    *,
    interrupted: bool = False,
    about: tuple[str, ...] = (),
) -> Outcome:
    """Compare the finished runs, and where they tell nothing the steps of those that failed."""
    runs, cut = results.comparable([run for found in sets.values() for run in found.runs])
    first = results.first(runs) if len(runs) > 1 else None
    shown = [quantity for step in _shown(runs, steps, first) for quantity in results.at(runs, step)]
    apart = [quantity for quantity in shown if quantity.distinct > 1]
    with progress.bar("comparing", size(apart), in_bytes=True) as advance:
        found = matrices(apart, [each.arrays for each in sets.values()], python, advance)
    return Outcome(
        runs=runs,
        failed=[run for found in sets.values() for run in found.failed],
        wanted=wanted,
        first=first,
        shown=shown,
        matrices=found,
        environments={name or "runs": found.environment for name, found in sets.items()},
        interrupted=interrupted,
        about=about,
        cut=cut,
    )


def _shown(runs: Sequence[Run], asked: Sequence[int], first: Quantity | None) -> list[int]:
    there = results.steps(runs)
    unknown = [step for step in asked if step not in there]
    if unknown:
        hint = (
            f"choose a step from {there[0]} to {there[-1]}"
            if there
            else "run it again: no run finished"
        )
        raise UsageError(f"no run recorded step {unknown[0]}", hint=hint)
    if asked:
        return sorted(set(asked))
    return [] if first is None else sorted({first.step, there[-1]})
