"""`record()` and `@recorded`: what a script shows to `envlock repeat`.

Without it they do nothing and cost nothing.
"""

from __future__ import annotations

from functools import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Optional, TypeVar

    Function = TypeVar("Function", bound=Callable[..., object])

_taker: Optional[Callable[..., None]] = None
"""Takes (step, named values) where somebody listens; `envlock repeat` sets it in the process that
it starts."""


def record(step: Optional[int] = None, **quantities: object) -> None:
    """Show named values of one step of the run: arrays, tensors, numbers, or lists and dicts of these.

    Without `step`, a name that comes again begins the next step. Nothing is changed, and outside of
    `envlock repeat` nothing is done.

    Raises:
        ValueError: only under `envlock repeat`: a name came at this step before, or its value holds
            no numbers.
    """
    if _taker is not None:
        _taker(step, quantities)


def recorded(function: Function) -> Function:
    """Return the function, whose results are recorded, a call a step.

    A dict is recorded by its keys, all else by the name of the function.
    """

    @wraps(function)
    def call_and_record(*args: object, **kwargs: object) -> object:
        result = function(*args, **kwargs)
        if _taker is not None:
            quantities = {function.__name__: result}
            if isinstance(result, dict):
                quantities = result
            _taker(None, quantities)
        return result

    return call_and_record  # type: ignore[return-value]


def listen(taker: Optional[Callable[..., None]]) -> None:
    """Let `taker` have everything that is recorded from now on; None: nobody."""
    global _taker
    _taker = taker
