"""Repeated runs as text: the verdict, then a matrix of distances for each quantity that differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envlock.evidence.repeat.repeat_summary import summarize_quantities
from envlock.runtime.report import MARKS, Finding, Report, clean, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.evidence.failure import Failure
    from envlock.evidence.repeat.outcome import DistanceMatrix, RepeatEvidence

SHOWN = 20
"""The number of quantities that are listed."""
COLUMNS = 10
"""The number of runs that fit on a line of a terminal; if there are more, the first are shown."""
UNITS = {
    "sum": "sum of the absolute differences",
    "max": "largest difference",
    "norm": "epsilons of the largest magnitude",
}
Line = tuple[str, str]


def render_lines(report: Report[RepeatEvidence]) -> Iterator[Line]:
    """Yield (style, line)."""
    evidence = report.evidence
    for line in evidence.about:
        yield "plain", clean(line)
    style = "plain" if report.match else "title"
    yield style, report.headline
    for finding in report.findings:
        yield finding.severity, f"  {MARKS[finding.severity]} {finding.message}"
        if finding.rule == "runs-differ":
            yield from _render_difference(finding, evidence)
    for failure in evidence.failures:
        yield from render_traceback(failure, evidence.failures)
    if evidence.first is None and len(evidence.labels) > 1:
        yield from _render_recorded(evidence)
    elif len(evidence.steps) > 1:
        yield from _render_summary(evidence)
    yield from _render_steps(evidence)
    following = render_next(evidence)
    if following is not None:
        yield "plain", clean(following)


def _render_steps(evidence: RepeatEvidence) -> Iterator[Line]:
    for step in list_compared_steps(evidence):
        yield "title", f"step {step}"
        equal = [clean(each.quantity) for each in evidence.equal if each.step == step]
        if equal:
            yield "plain", f"  all zero: {', '.join(equal)}"
        for matrix in evidence.matrices:
            if matrix.step == step:
                yield from _render_matrix(matrix)


def _render_recorded(evidence: RepeatEvidence) -> Iterator[Line]:
    """Yield what is the same in all runs: a verdict on nothing would look alike."""
    head = ("quantity", "shape", "type", "steps", "digest")
    yield from _render_table(
        head,
        [
            (clean(each.quantity), each.shape, each.kind, f"{each.steps:,}", each.digest)
            for each in evidence.recorded
        ],
    )


def _render_summary(evidence: RepeatEvidence) -> Iterator[Line]:
    """Yield how far each quantity that differs goes over the steps."""
    steps = count(len(evidence.steps), "step")
    rows = [
        (clean(each.name), f"step {each.first}", f"{each.often:,} of {steps}", each.largest)
        for each in summarize_quantities(evidence)
        if each.first is not None
    ]
    yield from _render_table(("quantity", "first", "differs at", "largest distance"), rows)


def _render_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[Line]:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows[:SHOWN]) if rows else ():
        cells = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "note" if row is head else "plain", f"  {cells.rstrip()}"
    if len(rows) > SHOWN:
        yield "note", f"  {len(rows) - SHOWN} more: see `--format json` or `--html`"


def render_next(evidence: RepeatEvidence) -> str | None:
    """Return what to type next where runs differ; None where nothing is to be run again."""
    program = evidence.circumstances.get("program")
    if evidence.first is None or program is None:
        return None
    found = f"`envlock diverge {program}` names the operation that differs first, and its line"
    if evidence.circumstances.get("seed", "").isdigit():
        return f"next: {found}"
    return f"next: `envlock repeat {program} --seed 1` shows whether seeds are the cause; {found}"


def list_compared_steps(evidence: RepeatEvidence) -> list[int]:
    """Return the numbers of the steps that are shown."""
    equal = {quantity.step for quantity in evidence.equal}
    return sorted(equal.union(matrix.step for matrix in evidence.matrices))


def render_traceback(failure: Failure, failures: Sequence[Failure]) -> Iterator[Line]:
    """Return the traceback of a failure, with the numbers of its runs if there are several
    failures.
    """
    if not failure.traceback:
        return
    title = "traceback"
    if len(failures) > 1:
        title += f" of run {', '.join(map(clean, failure.runs))}"
    yield "title", title
    for line in failure.traceback.split("\n"):
        yield "plain", f"  {clean(line)}"


def _render_difference(finding: Finding, evidence: RepeatEvidence) -> Iterator[Line]:
    # What `envlock diverge` does is known; what a checkpoint lacks is not.
    for fix in finding.fix.split("\n")[:-1]:
        yield "note", f"      {fix}"
    yield from _render_groups(evidence.groups)


def _name_groups(groups: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the labels of each group of several runs."""
    for group in groups:
        if len(group) > 1:
            more = f" ... ({len(group)})" if len(group) > COLUMNS else ""
            yield " ".join(group[:COLUMNS]) + more


def _render_groups(groups: Sequence[Sequence[str]]) -> Iterator[Line]:
    several = list(_name_groups(groups))
    if several:
        yield "note", f"      alike: {'; '.join(several)}"


def list_representatives(results: Sequence[int]) -> list[int]:
    """Return the place of the first run of each result: runs of one result have the same distances."""
    return [results.index(number) for number in dict.fromkeys(results)]


def describe_equal(labels: Sequence[str], results: Sequence[int]) -> str | None:
    """Return which runs share a row of a matrix; None where each has its own."""
    groups: dict[int, list[str]] = {}
    for label, number in zip(labels, results, strict=True):
        groups.setdefault(number, []).append(label)
    several = list(_name_groups(list(groups.values())))
    return f"the same bits: {'; '.join(several)}" if several else None


def _render_matrix(matrix: DistanceMatrix) -> Iterator[Line]:
    """Yield one matrix with a row for each result, and a line with its other measures."""
    labels, results = matrix.runs, matrix.results
    shown = list_representatives(results)[:COLUMNS]
    names = [labels[a] for a in shown]
    title = (
        f"{clean(matrix.quantity)}: {UNITS['sum']} ({len(set(results))} different of {len(labels)}"
    )
    arrays = len(matrix.members)
    if arrays > 1:
        title += f", {len(matrix.differing)} of {arrays} arrays"
    yield "plain", f"  {title})"
    width = max(8, 1 + max(map(len, names)))
    yield "note", " " * (4 + width) + "".join(f"{name:>{width}}" for name in names)
    for a, name in zip(shown, names, strict=True):
        row = f"    {name:>{width}}"
        for b in shown:
            cell = _render_cell(matrix.cells["sum"][a][b], same=results[a] == results[b])
            row += f"{cell:>{width}}"
        yield "plain", row
    hidden = len(set(results)) - len(shown)
    if hidden:
        yield "note", f"    {count(hidden, 'more result')}: see `--format json` or `--html`"
    equal = describe_equal(labels, results)
    if equal is not None:
        yield "note", f"    {equal}"
    most, norm = find_largest(matrix.cells["max"]), find_largest(matrix.cells["norm"])
    if most > 0:
        measures = f"{UNITS['max']} {most:.1e}"
        if norm > 0:
            measures += f", {norm:.1e} {UNITS['norm']}"
        yield "note", f"    {measures}"
    for note in matrix.notes:
        yield "note", f"    {clean(note)}"


def _render_cell(cell: float | None, *, same: bool) -> str:
    """Return a distance; `0`: the same bits, `0*`: bits differ and no value shows it, `-`: no
    distance.
    """
    if cell is None:
        return "-"
    if cell == 0:
        if same:
            return "0"
        return "0*"
    return f"{cell:.1e}"


def find_largest(cells: Sequence[Sequence[float | None]]) -> float:
    """Return the largest distance; 0 if there are no distances."""
    largest = 0.0
    for row in cells:
        for cell in row:
            if cell is not None:
                largest = max(largest, cell)
    return largest
