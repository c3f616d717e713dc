"""Run a training several times and compare the bits, or compare results that were saved."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from envlock.evidence import repeated_runs as numerics
from envlock.evidence import results
from envlock.evidence.conditions import describe_conditions
from envlock.evidence.program import Program
from envlock.evidence.repeat.matrices import compute_matrices, count_bytes
from envlock.evidence.repeat.outcome import Outcome, RepeatEvidence, report
from envlock.evidence.repeated_runs import Plan
from envlock.evidence.results import Quantity, Results, Run
from envlock.guest.target import RELATIVE_IMPORT, Target
from envlock.guest.training.run_values import PACKAGES
from envlock.lock.locks import load_document
from envlock.lock.temporary import open_draft_folder
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.assertion import locate
from envlock.runtime.errors import LockfileError, UsageError, WriteError
from envlock.runtime.report import Report, count
from envlock.runtime.variable_plan import NAME as HASH_SEED
from envlock.runtime.variable_plan import is_number
from envlock.runtime.version import __version__

NAMED = ("python", *PACKAGES)
"""What the line on a set of runs tells of its environment."""
CHEAP = 256_000_000
"""Bytes of arrays that are read for the distances at the steps that are not shown."""
CELL = 100
"""As many bytes as the distance of two runs costs, besides the reading."""
KEPT = 8_000_000_000
"""Bytes of arrays that are stored; for what exceeds it, only hashes are stored."""


def repeat(
    program: Program | str,
    *,
    runs: int = 7,
    fresh: bool = False,
    save: Path | None = None,
    output: bool = False,
    progress: Progress = SILENT,
) -> Report[RepeatEvidence]:
    """Run a script or a function several times, and return the distance of every run from every
    other.

    The attachments are those of docs/reference/repeat.md; `interrupted` says whether Ctrl-C cut it
    short.

    Args:
        program: what is run; a text is its script.
        runs: how often it is run.
        fresh: each run in a process of its own.
        save: keep the results in this new folder.
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
    program = Program.of(program)
    seed, python = program.seed, program.python
    plan = Plan(program.target, runs, fresh, seed, python, KEPT, output, _read_locked_hash_seed())
    # In the same folder as its final place, because it is renamed to that.
    parent = save.absolute().parent if save is not None else None
    with open_draft_folder(parent) as folder:
        found, interrupted = _make_runs(plan, folder, save, progress)
        outcome = _compare_runs({"": found}, runs, python, progress)
        about = tuple(_explain_processes(found))
        circumstances = _describe_plan(plan)
        outcome = replace(
            outcome, interrupted=interrupted, about=about, circumstances=circumstances
        )
        made = report(_add_help(outcome, plan.target), str(plan.target.script))
        variables = {}
        if plan.hash_seed is not None:
            variables[HASH_SEED] = plan.hash_seed
        elif plan.seed is not None and HASH_SEED not in os.environ:
            variables[HASH_SEED] = str(plan.seed % 2**32)
        made.headline += describe_conditions(plan.seed, variables)
        return made


def _describe_plan(plan: Plan) -> dict[str, str]:
    """Return what is run, and how, as a page shows it: no folder is named."""
    words = ["envlock", "repeat"]
    words += [plan.target.title, "--runs", str(plan.runs)]
    seed = "none set by envlock"
    if plan.fresh:
        words.append("--fresh")
    if plan.seed is not None:
        seed = str(plan.seed)
        words += ["--seed", seed]
    if plan.target.args:
        words += ["--", *plan.target.args]
    return {
        "program": plan.target.title,
        "command": shlex.join(words),
        "seed": seed,
        "lockfile": _describe_lock(),
        "envlock": __version__,
    }


def _describe_lock() -> str:
    """Return the digest of the nearest lockfile's bytes; `none` without a lockfile."""
    try:
        path = Path(locate(None))
        data = path.read_bytes()
    except (LockfileError, OSError):
        return "none"
    return f"{path.name}, SHA-256 {hashlib.sha256(data).hexdigest()}"


def _explain_processes(found: Results) -> Iterator[str]:
    """Yield why runs that were asked for in one process had one each, where they had."""
    changed: set[str] = set()
    for run in found.runs:
        changed.update(run.changed)
    names = sorted(changed)
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
    python: Path | None = None,
    progress: Progress = SILENT,
) -> Report[RepeatEvidence]:
    """Return the distances between the runs in two folders: A0, A1 and so on, and B0, B1 and so on.

    Raises:
        UsageError: a folder was not written by `save`, or is damaged; or both are one folder.
        FactError: distances cannot be computed.
    """
    refuse_one_source(a, b)
    sets = {"A": results.read(a, "A"), "B": results.read(b, "B")}
    wanted = 0
    about = []
    for name, found in sets.items():
        wanted += max(len(found.runs), found.wanted)
        about.append(_describe_set(name, found))
    outcome = _compare_runs(sets, wanted, python, progress)
    circumstances = {}
    for name, found in sets.items():
        circumstances[f"runs {name}"] = f"{found.target} in {found.folder.name}"
        seed = found.header.get("seed")
        circumstances[f"seed {name}"] = str(seed) if seed is not None else "none set by envlock"
    circumstances["envlock"] = __version__
    outcome = replace(outcome, about=tuple(about), circumstances=circumstances)
    return report(outcome, str(b))


def refuse_one_source(a: Path, b: Path) -> None:
    """Refuse to compare results with themselves, which are the same whatever they hold.

    Raises:
        UsageError: both paths lead to one file or folder.
    """
    if a.exists() and b.exists() and a.samefile(b):
        raise UsageError(f"{a} and {b} are the same", hint="name the results of two runs")


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
    named = [
        f"{package} {found.environment[package]}"
        for package in NAMED
        if package in found.environment
    ]
    versions = ", ".join(named)
    return f"{text} ({versions or 'versions unknown'})"


def _compare_runs(
    sets: dict[str, Results],
    wanted: int,
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
    first = results.find_first(runs) if len(runs) > 1 else None
    shown: list[Quantity] = []
    if first is not None:
        for step in sorted({first.step, results.list_steps(runs)[-1]}):
            shown += results.collect_quantities(runs, step)
    differing = [quantity for quantity in shown if quantity.distinct > 1]
    places = {(quantity.step, quantity.name) for quantity in differing}
    further = [
        quantity
        for quantity in results.iter_differing(runs)
        if (quantity.step, quantity.name) not in places
    ]
    wanted_matrices = [*differing, *_choose_cheap(further)]
    with progress.bar("comparing", count_bytes(wanted_matrices), in_bytes=True) as advance:
        arrays = [found.arrays for found in sets.values()]
        compared = compute_matrices(wanted_matrices, arrays, python, advance)
    return Outcome(
        runs=runs,
        failed=failed,
        wanted=wanted,
        first=first,
        shown=shown,
        matrices=compared[: len(differing)],
        further=compared[len(differing) :],
        environments={name or "runs": found.environment for name, found in sets.items()},
        cut=cut,
    )


def _choose_cheap(quantities: Sequence[Quantity]) -> list[Quantity]:
    """Return what is cheap to compare, the smallest first: losses, then the weights of a small model."""

    def measure(quantity: Quantity) -> int:
        cells = len(quantity.values) ** 2 * len(quantity.members)
        return count_bytes([quantity]) + CELL * cells

    costs = sorted(((measure(each), number) for number, each in enumerate(quantities)))
    chosen = []
    left = CHEAP
    for cost, number in costs:
        left -= cost
        if left < 0:
            break
        chosen.append(quantities[number])
    return chosen
