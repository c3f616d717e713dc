"""The evidence in the doctor's report; separate from the proof, which is loaded only on request."""

from __future__ import annotations

from dataclasses import dataclass

from envlock.runtime.report import Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.diagnosis.tensorflow_state import ObservedState


@dataclass(frozen=True)
class DoctorEvidence(Evidence):
    """The states of TensorFlow that were observed; None if no proof was requested."""

    states: tuple[ObservedState, ...] | None = None

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        if self.states is None:
            return {}
        return {"states": [shown.to_json() for shown in self.states]}
