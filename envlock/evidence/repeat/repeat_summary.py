"""Each quantity of repeated runs in one line: where it differs first, how often, and how far."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.evidence.repeat.outcome import RepeatEvidence


@dataclass(frozen=True)
class Summary:
    """A quantity over all steps.

    Attributes:
        first: the first step at which it differs; None where it never does.
        often: at how many steps it differs.
        largest: the largest distance, and at which step; at how many steps it is known, unless at all.
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
    differing = sum(each.quantity == name for each in evidence.differing)
    if not differing:
        return "0"
    known = [
        (each.largest, -each.step)
        for each in evidence.distances
        if each.quantity == name and each.largest is not None
    ]
    if not known:
        return "not computed"
    largest, step = max(known)
    text = f"{largest:.2e} at step {-step}" if largest else "0*"
    if len(known) < differing:
        text += f", known at {len(known)} of {differing} steps"
    return text
