"""The canary as text: a heading for each group with its conditions, a line for each operation."""

from __future__ import annotations

from collections.abc import Iterator

from envlock.lock.lock_text import describe_conditions, render_coverage
from envlock.runtime.report import Report, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.evidence.canary.canary_comparison import CanaryEvidence
    from envlock.lock.numerics import Numerics, Operation


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
        conditions = describe_conditions(documents[name]["conditions"])
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


def _render_result(name: str, result: Operation) -> tuple[str, str]:
    if result.failed is not None:
        return "unknown", f"  {name:<22} failed: {clean(result.failed)}"
    shape = "x".join(map(str, result.shape or ())) or "scalar"
    if result.unstable:
        return "unknown", f"  {name:<22} {shape:<14} unstable: different bits from call to call"
    return "plain", f"  {name:<22} {shape:<14} {(result.sha256 or '')[:SHORT]}"
