"""What the answers and traces of observed runs tell: threads, suspects, pipelines, lines of the program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from envlock.divergence.comparison import CALL, COLLECTIVES, Comparison, Difference, Entry
from envlock.divergence.evidence import Level, Mode, Suspect
from envlock.divergence.known import about
from envlock.divergence.makers import Maker, candidates
from envlock.divergence.observe import Observed, readable
from envlock.divergence.threads import Handed, Open, examine, handed
from envlock.divergence.threads import Seen as Threads
from envlock.divergence.trace import Place, Record
from envlock.linter.pipeline import findings, graph_of
from envlock.runtime.report import INFO, Finding, clean

SOURCE_LINES = 1
"""How many lines are shown before and after the line that is named."""
LONGEST_LINE = 160
"""Characters of a shown line: a program may have its data in one."""
KERAS_SEEDS = frozenset({"int32[2]", "uint32[2]", "int64[2]"})
"""What a seed of Keras's looks like: a pair of integers."""


def describe_idle(comparison: Comparison) -> str:
    """Return a note on what differs, where nothing comes of it."""
    found = [each.entry for each in (comparison.first, *comparison.others) if each is not None]
    places = [
        (each.operation.type, each.operation.place) for each in found if isinstance(each, Record)
    ]
    named = dict.fromkeys(
        f"{kind} at {place.file}:{place.line}" for kind, place in places if place is not None
    )
    what = ", ".join(named) or "an operation"
    if comparison.reordered:
        return (
            f"the same operations ran in another order in each run, with the same results: {what}"
        )
    return f"not the same in every run, and nothing that the runs show or compute follows from it: {what}"


def threads_of(seen: Observed) -> Threads:
    """Return what is known of other threads."""
    ends = seen.answers["ends"]
    if seen.failures:
        return Threads()
    numbers = sorted(ends)[-seen.comparison.runs :]  # without the first run where that is left out
    index = None
    if seen.comparison.first is not None:
        index = seen.comparison.first.index
    return examine([ends[each] for each in numbers], trace_of(seen), index)


def trace_of(seen: Observed) -> Open:
    """Return what gives the trace of a run's thread, both by number."""
    numbers = sorted(seen.answers["ends"])[-seen.comparison.runs :]

    def entries(number: int, thread: str) -> Iterator[Entry] | None:
        name = f"{numbers[number]}.trace"
        if thread:
            name += f".{thread}"
        path = seen.folder / name
        if not path.exists():
            return None
        return readable(path)

    return entries


def other_workers(seen: Observed, threads: Threads) -> str | None:
    """Return why a difference can come from another process of the same training; None where it cannot.

    That is where devices are combined, or inside of a graph, which can do so.
    """
    comparison = threads.comparison or seen.comparison
    first = comparison.first
    workers = max((end.get("workers", 1) for end in seen.answers["ends"].values()), default=1)
    if workers == 1 or first is None:
        return None
    combines = isinstance(first.entry, Record) and first.entry.operation.type in COLLECTIVES
    if not combines and not inside_graph(first):
        return None
    return f"the program is one of {workers} that TF_CONFIG names, and the others are not traced"


def first_inside(seen: Observed) -> list[Suspect]:
    """Return the first operation inside of a graph that gave something else."""
    first = seen.comparison.first
    if (
        first is None
        or not isinstance(first.entry, Record)
        or first.kind not in ("operation", "data", "outside")
    ):
        return []
    operation = first.entry.operation
    if operation.type == CALL:
        return []
    suspects = seen.answers.get("suspects") or {}
    holds = "loop"
    if suspects.get("xla"):
        holds = "xla"
    known = about(operation.type, frozenset({holds}), seen.header.tensorflow)
    return [Suspect(operation.type, operation.name or "", operation.place, known)]


def inside_graph(first: Difference) -> bool:
    """Return whether the cause can stand inside of a graph, where the program's own mode does not show it."""
    entry = first.entry
    if isinstance(entry, Record):
        return first.kind in ("call", "variable")
    return True


def level_of(seen: Observed) -> Level:
    """Return what one way of running showed, for the report."""
    comparison = seen.comparison
    first = comparison.first
    modes: dict[str, Mode] = {"graph": "as it is", "eager": "eager", "in-graph": "in graphs"}
    mode = modes[seen.request.mode]
    if first is None:
        return Level(mode, (0,) * comparison.runs, None, None, comparison.entries, comparison.steps)
    return Level(
        mode, first.groups, first.entry.step, label_of(first), comparison.entries, comparison.steps
    )


def label_of(difference: Difference) -> str:
    """Return the type and the name of what differs."""
    entry = difference.entry
    if not isinstance(entry, Record):
        return entry.name
    if not entry.operation.name:
        return entry.operation.type
    return f"{entry.operation.type} {entry.operation.name}"


def keras_draws(seen: Observed) -> bool:
    """Return whether the value that differs is a seed of Keras's: two integers, or what a random operation reads."""
    first = seen.comparison.first
    if (
        seen.header.keras is None
        or first is None
        or not isinstance(first.entry, Record)
        or first.kind != "outside"
    ):
        return False
    if "Random" in first.entry.operation.type:
        return True
    specs = {first.entry.operation.inputs[number] for number in first.inputs}
    return not specs.isdisjoint(KERAS_SEEDS)


def pipelines_of(seen: Observed) -> tuple[Finding, ...]:
    """Return what the dataset linter says of the pipelines that were read."""
    found: dict[tuple[str, str], Finding] = {}
    switched_on = bool(seen.answers.get("determinism"))
    for each in seen.answers.get("datasets", []):
        place = each["place"]
        for finding in findings(graph_of(each["graph"]), switched_on=switched_on):
            if place:
                finding.where.file, finding.where.line = place[0], place[1]
            if finding.severity != INFO:
                found.setdefault((finding.rule, f"{finding.message} {finding.where}"), finding)
    return tuple(found.values())


def suspects_of(own: Observed, *, racing: bool) -> list[Suspect]:
    """Return the operations of the graphs that fit what was seen, the likeliest first."""
    listed: dict[str, Any] = own.answers.get("suspects") or {}
    # The likeliest stands first. Sums can differ only where operations race; where they do not, what is left is
    # numbers that are drawn: by a loop that runs its turns at once, or by XLA, which draws in its own way.
    if racing:
        wanted = [("random in a loop", "loop"), ("sum", "loop")]
    elif listed.get("xla"):
        wanted = [("random", "xla"), ("random in a loop", "xla")]
    else:
        wanted = [("random in a loop", "loop")]
    found = []
    for why, holds in wanted:
        for each in listed.get("operations", []):
            known = about(each["type"], frozenset({holds}), own.header.tensorflow)
            if each["why"] == why and known is not None:
                place = None
                if each["place"]:
                    place = Place(*each["place"])
                found.append(Suspect(each["type"], each["name"], place, known))
    return found


def lines_around(seen: Observed, place: Place | None) -> tuple[tuple[str, ...], int]:
    """Return the lines around a place in the user's file; nothing where it cannot be read."""
    if place is None:
        return (), 0
    path = Path(seen.answers.get("folder") or seen.request.target.folder) / place.file
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return (), 0
    start = max(place.line - SOURCE_LINES, 1)
    shown = lines[start - 1 : place.line + SOURCE_LINES]
    return tuple(clean(line.expandtabs(4))[:LONGEST_LINE] for line in shown), start


def makers_of(seen: Observed, first: Difference) -> list[Maker]:
    """Return what Python and NumPy made differently before the first difference, the latest first."""
    ends = seen.answers["ends"]
    numbers = sorted(ends)[-seen.comparison.runs :]
    return candidates([ends[each] for each in numbers], first.index)


def with_text(seen: Observed, maker: Maker) -> Maker:
    """Return a maker with its line's text, where the file can be read."""
    source, start = lines_around(seen, maker.place)
    if not source:
        return replace(maker, text="")
    return replace(maker, text=source[maker.place.line - start].strip())


def made_in_thread(seen: Observed, first: Difference) -> Handed | None:
    """Return which operations of other threads made the value that the runs read from outside."""
    if seen.failures:
        return None
    ends = seen.answers["ends"]
    numbers = sorted(ends)[-seen.comparison.runs :]
    return handed(first, [ends[each] for each in numbers], trace_of(seen))
