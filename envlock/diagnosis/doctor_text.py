"""What the doctor saw, as text."""

from __future__ import annotations

from collections.abc import Iterator

from envlock.runtime.report import Report, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.diagnosis.doctor_evidence import DoctorEvidence


def render_lines(report: Report[DoctorEvidence]) -> Iterator[tuple[str, str]]:
    """Yield the states that TensorFlow has shown, if it was examined, then the findings."""
    for shown in report.evidence.states or ():
        yield "plain", f"{shown.what}: {shown.state} ({clean(shown.evidence)})"
    yield from report.lines()
