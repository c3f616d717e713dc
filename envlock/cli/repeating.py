"""What `envlock repeat` does: make the runs or read them, compare, show."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from envlock.cli.output import color, emit, talk
from envlock.cli.progress import bar
from envlock.lock.writer import write_atomically
from envlock.numerics import results as comparison
from envlock.numerics.matrices import matrices, size
from envlock.numerics.repeat import Plan, repeat
from envlock.numerics.results import Results, Run, read
from envlock.numerics.story import UNITS, Story
from envlock.reports import heatmap
from envlock.reports.json import dump
from envlock.reports.text import paint
from envlock.runtime.errors import FactError, UsageError

INTERRUPTED = 130


@dataclass(frozen=True)
class Made:
    """One set of runs or two, in their folders."""

    sets: dict[str, Results]
    wanted: int
    interrupted: bool = False
    about: tuple[str, ...] = ()


def check(
    script: str | None,
    *,
    runs: int,
    save: Path | None,
    compare: tuple[Path, Path] | None,
    html: Path | None,
    png: Path | None,
) -> None:
    """Refuse, before anything is run, what cannot come to an end.

    Raises:
        UsageError: the options contradict each other, or what they name is there already, or is missing.
    """
    if (script is None) == (compare is None):
        raise UsageError(
            "there is nothing to run or to compare"
            if script is None
            else "--compare runs nothing, and a script is named",
            hint="`envlock repeat SCRIPT[:FUNCTION]`, or `envlock repeat --compare A B`",
        )
    if compare is not None and save is not None:
        raise UsageError("--save keeps runs, and --compare makes none", hint="leave one of them out")
    if runs < 2 and save is None and compare is None:
        raise UsageError("one run has nothing to be compared with", hint="--runs 2, or --save DIR to compare it later")
    if save is not None and (save.exists() or save.is_symlink()):
        raise UsageError(f"{save} is there already", hint="name a new folder")
    for path in (save, html, png):
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"there is no folder {path.absolute().parent}", hint="make it first")
    if png is not None:
        heatmap.need_png()


@contextmanager
def run(plan: Plan, save: Path | None, *, quiet: bool) -> Iterator[Made]:
    """Make the runs; their folder becomes `save`, or is gone in the end."""
    parent = None if save is None else save.absolute().parent
    try:
        folder = Path(tempfile.mkdtemp(prefix=".envlock.", dir=parent))
    except OSError as error:
        raise UsageError(
            f"cannot make a folder in {parent}: {error.strerror}", hint="look at its permissions"
        ) from None
    try:
        with bar(f"running {plan.target.script.name}", plan.runs, quiet=quiet) as advance:
            results, interrupted = repeat(plan, folder, advance)
        if save is not None and results.finished:
            results.folder = results.folder.rename(save)
            talk(f"saved {len(results.finished)} of {plan.runs} runs in {save}", quiet=quiet)
        yield Made({"": results}, plan.runs, interrupted)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def saved(a: Path, b: Path) -> Iterator[Made]:
    """Read two folders that --save wrote; their runs are called A0, A1 ... and B0, B1 ...

    Raises:
        UsageError: one is no such folder, or damaged.
    """
    sets = {name: read(folder, name) for name, folder in (("A", a), ("B", b))}
    wanted = sum(max(len(results.runs), results.wanted) for results in sets.values())
    about = tuple(_about(name, results) for name, results in sets.items())
    yield Made(sets, wanted, about=about)


def _about(name: str, results: Results) -> str:
    """Return which runs a set is made of, and whether they are the same among themselves."""
    number = len(comparison.groups(results.finished))
    inside = "" if number < 2 else f", {number} different results among themselves"
    versions = ", ".join(f"{package} {version}" for package, version in results.environment.items())
    runs = f"{len(results.finished)} run{'' if len(results.finished) == 1 else 's'}"
    return f"{name}: {runs} of {results.target} in {results.folder.name}{inside} ({versions or 'versions unknown'})"


def tell(made: Made, steps: Sequence[int], python: Path | None, *, quiet: bool) -> Story:
    """Compare the finished runs.

    Raises:
        UsageError: a step that is to be shown was not recorded, or there is no numpy to compute distances with.
    """
    runs = [run for results in made.sets.values() for run in results.finished]
    first = comparison.first(runs) if len(runs) > 1 else None
    shown = [quantity for step in _shown(runs, steps, first) for quantity in comparison.at(runs, step)]
    apart = [quantity for quantity in shown if quantity.distinct > 1]
    with bar("comparing", size(apart), quiet=quiet or not apart, in_bytes=True) as advance:
        found = matrices(apart, [results.arrays for results in made.sets.values()], python, advance)
    return Story(
        runs=runs,
        failed=[run for results in made.sets.values() for run in results.failed],
        wanted=made.wanted,
        first=first,
        shown=shown,
        matrices=found,
        environments={name or "runs": results.environment for name, results in made.sets.items()},
        interrupted=made.interrupted,
        about=made.about,
    )


def _shown(runs: Sequence[Run], asked: Sequence[int], first: comparison.Quantity | None) -> list[int]:
    there = comparison.steps(runs)
    unknown = [step for step in asked if step not in there]
    if unknown:
        hint = f"there are the steps {there[0]} to {there[-1]}" if there else "no run came to an end"
        raise UsageError(f"no run recorded a step {unknown[0]}", hint=hint)
    if asked:
        return sorted(set(asked))
    return [] if first is None else sorted({first.step, there[-1]})


def write(story: Story, html: Path | None, png: Path | None) -> None:
    """Write the page and the picture that are asked for.

    Raises:
        LockfileError: a file cannot be written.
    """
    maps = [
        heatmap.Heatmap(
            f"step {matrix.quantity.step}, {matrix.quantity.name}: {UNITS['sum']}",
            [run.label for run in story.runs],
            matrix.cells["sum"],
            matrix.notes,
        )
        for matrix in story.matrices
    ]
    if html is not None:
        text = paint(story.lines(), color=False)
        write_atomically(html, heatmap.page("envlock repeat", text, maps).encode("utf-8"), "page")
    if png is not None:
        write_atomically(png, heatmap.png(maps), "picture")


def show(story: Story, format: str) -> None:  # noqa: A002 (the option's name)
    """Print what the runs say together."""
    emit(dump(story.to_json()) if format == "json" else paint(story.lines(), color=color()))


def code(story: Story) -> int:
    """Return the exit code.

    Raises:
        FactError: too few runs came to an end to be compared.
    """
    if story.interrupted:
        return INTERRUPTED
    if len(story.runs) < 2 and not story.alone:
        raise FactError("too few runs came to an end to be compared", hint="--output shows what the script says")
    return 0 if story.match else 1
