"""The canary as text: a heading for each group with its conditions, a line for each operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envlock.runtime.report import Report, clean, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    from envlock.lock.numerics import Numerics, Operation
    from envlock.numerics.canary.canary_comparison import CanaryEvidence

    class ConditionsDocument(TypedDict):
        """The conditions under which operations were computed, in the form of a lockfile."""

        device: str
        execution: str
        intra_op_threads: int | str
        inter_op_threads: int | str
        determinism: str

    class CoverageDocument(TypedDict):
        """How much of a program is computed again, in the form of a lockfile."""

        distinct: int
        covered: int
        left_out: Mapping[str, Mapping[str, int]]
        cut: NotRequired[bool]


LEFT_OUT = {
    "state": "reads or changes a variable, an iterator or a table",
    "text": "takes text",
    "random": "draws from a generator of its own",
    "control": "a function whose operations TensorFlow does not show",
    "unlisted": "not in the table of operations that are safe to run from a lockfile",
    "large": "tensors of more than 512 MiB",
    "shape": "the shape of its result depends on data",
    "empty": "its result has no numbers",
    "failed": "does not compute on inputs that are made up",
    "unstable": "its bits differ from call to call",
    "ended": "ends the process",
    "time": "the time for computing was up",
    "room": "more than 500 operations",
}
"""Why an operation of a program is not computed again, by its word in the lockfile."""
SHORT = 16
"""Hexadecimal digits of a digest that are shown."""


def render_lines(report: Report[CanaryEvidence]) -> Iterator[tuple[str, str]]:
    """Yield (style, line): the differences from the lockfile's canary or, without one, the canary
    itself.
    """
    canary = report.evidence.canary
    if report.policy is None and canary is not None:
        yield from _render_section(canary.numerics)
    else:
        yield from report.lines()


def _render_section(numerics: Numerics) -> Iterator[tuple[str, str]]:
    versions = f"TensorFlow {clean(numerics.tensorflow)}, NumPy {clean(numerics.numpy)}"
    yield "plain", f"{versions}, battery {numerics.battery}"
    documents = numerics.model_dump(include={"groups"})["groups"]
    for name, group in numerics.groups.items():
        conditions = _describe_conditions(documents[name]["conditions"])
        yield "title", f"{clean(name)}: {conditions}"
        for operation, result in group.operations.items():
            yield _render_result(clean(operation), result)
        if group.ended:
            yield "error", f"  TensorFlow crashed: {clean(group.ended)}"
    if numerics.program is not None:
        document = numerics.program.model_dump(exclude_unset=True)
        yield from render_coverage(document["targets"], document["conditions"])
        for name, replayed in numerics.program.operations.items():
            yield _render_result(clean(name), replayed.result)


def render_coverage(
    targets: Mapping[str, CoverageDocument], conditions: ConditionsDocument
) -> Iterator[tuple[str, str]]:
    """Yield (style, line): how many operations of each program are covered, and why the others are
    not.
    """
    for name, target in targets.items():
        operations = count(target["distinct"], "distinct operation")
        covered = f"{target['covered']} of {operations} covered"
        yield "title", f"{clean(name)}: {covered}; {_describe_conditions(conditions)}"
        for reason, kinds in target["left_out"].items():
            names = []
            for kind, number in kinds.items():
                text = clean(kind)
                if number > 1:
                    text = f"{number} {text}"
                names.append(text)
            yield "unknown", f"  not covered: {', '.join(names)} ({LEFT_OUT[reason]})"
        if target.get("cut"):
            why = "the time for noting operations was up"
            yield "unknown", f"  not covered: what it runs later ({why})"


def _describe_conditions(head: ConditionsDocument) -> str:
    threads = f"{head['intra_op_threads']} intra-op and {head['inter_op_threads']} inter-op threads"
    determinism = f"op determinism {head['determinism']}"
    return f"{clean(head['device'])}, {head['execution']}, {threads}, {determinism}"


def _render_result(name: str, result: Operation) -> tuple[str, str]:
    if result.failed is not None:
        return "unknown", f"  {name:<22} failed: {clean(result.failed)}"
    shape = "x".join(map(str, result.shape or ())) or "scalar"
    if result.unstable:
        return "unknown", f"  {name:<22} {shape:<14} unstable: different bits from call to call"
    return "plain", f"  {name:<22} {shape:<14} {(result.sha256 or '')[:SHORT]}"
