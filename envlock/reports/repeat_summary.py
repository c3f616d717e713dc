"""Each quantity of repeated runs in one line: where it differs first, how often, and how far."""

from __future__ import annotations

from dataclasses import dataclass

from envlock.reports.repeat_text import find_largest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.numerics.outcome import RepeatEvidence


@dataclass(frozen=True)
class Summary:
    """A quantity over all steps.

    Attributes:
        first: the first step at which it differs; None where it never does.
        often: at how many steps it differs.
        largest: the largest distance at the steps whose distances were computed, and at which of them.
    """

    name: str
    first: int | None
    often: int
    largest: str


def summarize_quantities(evidence: RepeatEvidence) -> list[Summary]:
    """Return every quantity that differs somewhere or was compared, in the order in which they differ."""
    steps: dict[str, list[int]] = {}
    for each in evidence.differing:
        steps.setdefault(each.quantity, []).append(each.step)
    for name in [each.quantity for each in evidence.equal] + [
        each.quantity for each in evidence.recorded
    ]:
        steps.setdefault(name, [])
    summaries = []
    for name, differing in steps.items():
        first = differing[0] if differing else None
        summaries.append(Summary(name, first, len(differing), _find_largest(evidence, name)))
    return summaries


def _find_largest(evidence: RepeatEvidence, name: str) -> str:
    largest, step = -1.0, 0
    for matrix in evidence.matrices:
        distance = find_largest(matrix.cells["sum"])
        if matrix.quantity == name and distance > largest:
            largest, step = distance, matrix.step
    if largest >= 0:
        return f"{largest:.2e} at step {step}"
    # What is equal where it was compared, and differs elsewhere, has no distance that is known.
    if all(each.quantity != name for each in evidence.differing):
        return "0"
    return "not computed"
