"""What the doctor attaches to its report; apart from the proof, which is loaded only where it is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from envlock.runtime.report import Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.diagnosis.tensorflow_state import ObservedState


@dataclass(frozen=True)
class DoctorEvidence(Evidence):
    """The states that TensorFlow has shown by what it does; None where nobody asked for that."""

    states: tuple[ObservedState, ...] | None = None

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        if self.states is None:
            return {}
        return {"states": [shown.to_json() for shown in self.states]}
