"""What answers and traces show: threads, suspects, pipelines, lines of the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from envlock.evidence.diverge.comparison import COLLECTIVES, Comparison, Difference, Entry
from envlock.evidence.diverge.evidence import Level, Mode, Suspect
from envlock.evidence.diverge.known_causes import look_up
from envlock.evidence.diverge.makers import Maker, find_candidates
from envlock.evidence.diverge.observed_runs import Observed, read_until_damage
from envlock.evidence.diverge.pipeline import Graph, findings, graph_of
from envlock.evidence.diverge.threads import (
    OpenTrace,
    ThreadEvidence,
    ThreadInput,
    examine,
    find_thread_input,
)
from envlock.evidence.diverge.trace import Place, Record, Value
from envlock.runtime.report import ERROR, INFO, WARNING, Finding, clean

SOURCE_LINES = 1
"""How many lines are shown before and after the line that is named."""
LONGEST_LINE = 160
"""Characters of a shown line: a program may have its data in one."""
KERAS_SEEDS = frozenset({"int32[2]", "uint32[2]", "int64[2]"})
"""What a seed of Keras's looks like: a pair of integers."""


def describe_idle(comparison: Comparison) -> str:
    """Return a note on the differences, if they have no consequences."""
    # A dictionary for a set: it keeps the order.
    lines: dict[str, None] = {}
    for difference in (comparison.first, *comparison.others):
        if difference is not None and isinstance(difference.entry, Record):
            place = difference.entry.place
            if place is not None:
                kind = difference.entry.operation.type
                lines[f"{kind} at {place.file}:{place.line}"] = None
    what = ", ".join(lines) or "an operation"
    if comparison.reordered:
        order = "the same operations ran in another order in each run, with the same results"
        return f"{order}: {what}"
    consequence = "nothing that the runs show or compute follows from it"
    return f"not the same in every run, and {consequence}: {what}"


def describe_passing(comparison: Comparison) -> str:
    """Return a note where the runs are the same again after what differs; empty where they are not.

    A random input that only builds a model does so. What a program prints is not compared, so the
    note does not prove that the difference is harmless.
    """
    first, last = comparison.first, comparison.last
    if first is None or last is None:
        return ""
    after = comparison.entries - 1 - last
    # Most of what is left: the last operations of any program may have nothing to do with it.
    if after <= last - first.index:
        return ""
    return (
        f"entries {first.index} to {last} differ: the {after:,} after them are the same in all runs"
    )


def describe_branches(seen: Observed) -> str:
    """Return what each run went on with where they ran other operations; empty where they did not."""
    first = seen.comparison.first
    if first is None or first.kind != "sequence":
        return ""
    runs: dict[str, list[str]] = {}
    for number, entry in zip(seen.compared_runs, first.entries, strict=False):
        what = "nothing"
        if isinstance(entry, Record):
            what = entry.title
            if entry.place is not None:
                what += f" at {entry.place.file}:{entry.place.line}"
        elif entry is not None:
            what = entry.name
        runs.setdefault(clean(what), []).append(str(number + 1))
    parts = []
    for what, numbers in runs.items():
        word = "run" if len(numbers) == 1 else "runs"
        parts.append(f"{word} {', '.join(numbers)} went on with {what}")
    return "; ".join(parts)


def list_shown(entries: Iterable[Entry]) -> list[tuple[str, int | None]]:
    """Return the values that a run showed of itself, by name and fingerprint, in their order."""
    values = [entry for entry in entries if isinstance(entry, Value)]
    # What a graph left in variables is written by the tracer.
    return [
        (value.name, value.fingerprint)
        for value in values
        if not value.name.startswith("variable ")
    ]


def examine_threads(seen: Observed) -> ThreadEvidence:
    """Return what is known of other threads."""
    if seen.failures:
        return ThreadEvidence()
    index = seen.comparison.first.index if seen.comparison.first is not None else None
    return examine(seen.compared_ends, open_traces(seen), index)


def open_traces(seen: Observed) -> OpenTrace:
    """Return a function that opens the trace of a run's thread, both by number."""

    def open_trace(number: int, thread: str) -> Iterator[Entry] | None:
        name = f"{seen.compared_runs[number]}.trace"
        if thread:
            name += f".{thread}"
        path = seen.folder / name
        if not path.exists():
            return None
        return read_until_damage(path)

    return open_trace


def describe_other_workers(seen: Observed, threads: ThreadEvidence) -> str | None:
    """Return why a difference can come from another process of the training; None where it cannot.

    That is where devices are combined, or inside of a graph, which can do so.
    """
    comparison = threads.comparison or seen.comparison
    first = comparison.first
    workers = max([1, *(end.get("workers", 1) for end in seen.answers["ends"].values())])
    if workers == 1 or first is None:
        return None
    combines = isinstance(first.entry, Record) and first.entry.operation.type in COLLECTIVES
    if not combines and not is_inside_graph(first):
        return None
    return f"the program is one of {workers} that TF_CONFIG names, and the others are not traced"


def is_inside_graph(first: Difference) -> bool:
    """Return whether the cause can be inside a graph, where the program's own mode does not show it."""
    entry = first.entry
    if isinstance(entry, Record):
        return first.kind in ("call", "variable")
    return True


def make_level(seen: Observed) -> Level:
    """Return what one way of running showed, for the report."""
    comparison = seen.comparison
    first = comparison.first
    modes: dict[str, Mode] = {"graph": "as it is", "eager": "eager"}
    mode = modes[seen.request.mode]
    if first is None:
        return Level(mode, (0,) * comparison.runs, None, None, comparison.entries, comparison.steps)
    return Level(
        mode, first.groups, first.entry.step, get_label(first), comparison.entries, comparison.steps
    )


def get_label(difference: Difference) -> str:
    """Return the type and the name of what differs."""
    if isinstance(difference.entry, Record):
        return difference.entry.title
    return difference.entry.name


def has_keras_seed(seen: Observed) -> bool:
    """Return whether the value that differs is a seed of Keras: two integers, or what draws read."""
    first = seen.comparison.first
    if seen.header.keras is None or first is None:
        return False
    if not isinstance(first.entry, Record) or first.kind != "outside":
        return False
    if "Random" in first.entry.operation.type:
        return True
    specs = {first.entry.operation.inputs[number] for number in first.inputs}
    return not specs.isdisjoint(KERAS_SEEDS)


def check_pipelines(seen: Observed) -> tuple[Finding, ...]:
    """Return what the dataset linter says of the pipelines that were read."""
    found: dict[tuple[str, str], Finding] = {}
    for dataset, _, finding in _iter_findings(seen):
        place = dataset["place"]
        if place:
            finding.where.file, finding.where.line = place[0], place[1]
        if finding.severity != INFO:
            found.setdefault((finding.rule, f"{finding.message} {finding.where}"), finding)
    return tuple(found.values())


def _iter_findings(seen: Observed) -> Iterator[tuple[dict[str, Any], Graph, Finding]]:
    """Yield what the dataset linter says, with the dataset and its graph."""
    switched_on = bool(seen.answers.get("determinism"))
    for dataset in seen.answers.get("datasets", []):
        graph = graph_of(dataset["graph"])
        for finding in findings(graph, switched_on=switched_on):
            yield dataset, graph, finding


def find_pipeline_maker(seen: Observed, first: Difference) -> Maker | None:
    """Return the line that made the dataset of which the dataset linter says what lets its elements
    differ; None where it says nothing, or another line made one of the kind.
    """
    fixes: dict[str, str] = {}
    for _, graph, finding in _iter_findings(seen):
        for node in graph.main.nodes:
            if finding.severity == ERROR and node.name == finding.where.operation:
                fixes.setdefault(node.op, finding.fix)
    made: dict[str, set[Place]] = {}
    for entry in islice(read_until_damage(seen.traces[0]), first.index):
        if isinstance(entry, Record) and entry.place is not None:
            made.setdefault(entry.operation.type, set()).add(entry.place)
    for operation, fix in fixes.items():
        places = list(made.get(operation, ()))
        if len(places) == 1:
            return Maker(operation, places[0], None, fix=fix, is_shown=False)
    return None


def warn_of_pipelines(seen: Observed) -> tuple[Finding, ...]:
    """Return as warnings what the dataset linter calls errors, of runs that were equal.

    Equal runs prove no order: under the tracer, threads that are free to finish in any order may
    come in the same one each time.
    """
    warnings = []
    for finding in check_pipelines(seen):
        if finding.severity == ERROR:
            finding.severity = WARNING
            finding.message += ": these runs happened to agree"
            warnings.append(finding)
    return tuple(warnings)


def list_suspects(own: Observed, *, racing: bool) -> list[Suspect]:
    """Return the operations of the graphs that fit what was seen, the likeliest first."""
    listed: dict[str, Any] = own.answers.get("suspects") or {}
    # The likeliest stands first. Sums can differ only where operations race; what is left otherwise are
    # numbers that are drawn: by a loop that runs its turns at once, or by XLA, which draws in its own way.
    if racing:
        wanted = [("random in a loop", "loop"), ("sum", "loop")]
    elif listed.get("xla"):
        wanted = [("random", "xla"), ("random in a loop", "xla")]
    else:
        wanted = [("random in a loop", "loop")]
    found = []
    for why, holds in wanted:
        for operation in listed.get("operations", []):
            known = look_up(operation["type"], frozenset({holds}), own.header.tensorflow)
            if operation["why"] == why and known is not None:
                place = Place(*operation["place"]) if operation["place"] else None
                found.append(Suspect(operation["type"], operation["name"], place, known))
    return found


def read_lines(seen: Observed, place: Place | None) -> tuple[tuple[str, ...], int]:
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


def find_makers(seen: Observed, first: Difference) -> list[Maker]:
    """Return what Python and NumPy made otherwise before the first difference, the latest first."""
    return find_candidates(seen.compared_ends, first.index)


def add_text(seen: Observed, maker: Maker) -> Maker:
    """Return a maker with its line's text, where the file can be read."""
    source, start = read_lines(seen, maker.place)
    if not source:
        return replace(maker, text="")
    return replace(maker, text=source[maker.place.line - start].strip())


def find_thread_maker(seen: Observed, first: Difference) -> ThreadInput | None:
    """Return which operations of other threads made the value that the runs read from outside."""
    if seen.failures:
        return None
    return find_thread_input(first, seen.compared_ends, open_traces(seen))
