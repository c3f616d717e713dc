"""Results that depend on the batch, as text: the verdict, then a line for each mode with its
classes of sizes.
"""

from __future__ import annotations

from collections.abc import Iterator

from envlock.runtime.report import Report, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.numerics.invariance import InvarianceEvidence, ModeBits


def render_lines(report: Report[InvarianceEvidence]) -> Iterator[tuple[str, str]]:
    """Yield (style, line)."""
    yield "title", clean(report.headline)
    for bits in report.evidence.modes:
        yield "plain", f"  {clean(bits.mode):<8} {describe_mode(bits)}"
    for _, block in report.blocks():
        yield from block
    versions = report.evidence.environment.items()
    computed = ", ".join(f"{package} {version}" for package, version in versions)
    yield "note", f"computed by {clean(computed)}"


def describe_mode(bits: ModeBits) -> str:
    """Return how many classes of equal bits a mode has."""
    if bits.failed is not None:
        return "not measured"
    if bits.unstable is not None:
        return "varies by itself"
    if bits.is_invariant:
        return f"invariant: {len(bits.sizes)} sizes have the same bits"
    if len(bits.classes) == 1:
        return "depends on the place or on the other rows"
    return f"{len(bits.classes)} classes of bits"
