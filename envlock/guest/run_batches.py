"""Measure whether a model's result for a sample depends on its batch.

The first row of the inputs is the sample. It is computed in batches of other sizes, at other places
in a batch, and with other rows; only the result for the sample is digested. Needs TensorFlow and
NumPy.
"""

from __future__ import annotations

from envlock.guest.session import SingleRun
from envlock.guest.training import contract
from envlock.guest.training.failures import describe_failure
from envlock.guest.training.run_values import read_versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Tuple

SOFTWARE = ("tensorflow", "keras", "numpy")
"""Packages whose versions the evidence has."""


class Batches(SingleRun):
    """Measures a model.

    model: the path of a saved model, or null where the user's function returns one; inputs: a file
    with arrays, or null; sizes: batch sizes by mode; seed: that of generated inputs.
    """

    def run(self, number: int) -> Dict[str, object]:
        """Return what was measured of each batch in each mode.

        Raises:
            Misuse: there is no such model, or it needs inputs that are not given.
        """
        asked = self.asked
        found, given = None, None
        self.program.set_seeds()
        if asked["model"] is None:
            found, given = self._call_function()
        # Only now: the user's program may have variables to set before it imports TensorFlow.
        from envlock.guest import model_batches

        if asked["model"] is not None:
            found = model_batches.load_model(asked["model"])
        subject = model_batches.make_subject(asked, found, given)
        answers: List[Dict[str, object]] = []

        def answer(**values: object) -> None:
            answers.append(values)

        for mode, sizes in asked["sizes"].items():
            if mode not in subject.calls:
                continue
            try:
                model_batches.measure_mode(subject, mode, sizes, answer)
            except Exception as error:
                answer(mode=mode, failed=describe_failure(error))
        versions = {name: text for name, text in read_versions().items() if name in SOFTWARE}
        return {"environment": versions, "batches": answers}

    def _call_function(self) -> Tuple[Any, Any]:
        """Return the model or function that the user's function returns, and the inputs beside it; None without any.

        Raises:
            Misuse: there is no such function, it cannot be called, or the user's function failed.
        """
        call = self.program.load()
        try:
            found = call()
        except contract.Misuse:
            raise
        except Exception as error:
            raise contract.Misuse(
                f"{self.program.function} failed: {describe_failure(error)}"
            ) from error
        given = None
        if isinstance(found, tuple) and len(found) == 2:
            found, given = found
        if not callable(found):
            raise contract.Misuse(f"{type(found).__name__} is not a model: it cannot be called")
        return found, given
