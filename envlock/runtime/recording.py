"""`record()` and `@recorded`: a script passes its results to `envlock repeat`.

Outside of `envlock repeat` they do nothing and cost nothing.
"""

from __future__ import annotations

from functools import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Optional, TypeVar

    Function = TypeVar("Function", bound=Callable[..., object])

_taker: Optional[Callable[..., None]] = None
"""Receives (step, named values); None if nothing is recorded. `envlock repeat` sets it in the
process that it starts.
"""


def record(step: Optional[int] = None, **quantities: object) -> None:
    """Record named values of one step of the run: arrays, tensors, numbers, or lists and dicts of
    these.

    Without `step`, a name that is repeated begins the next step. The values are not changed, and
    outside of `envlock repeat` nothing is done.

    Raises:
        ValueError: only under `envlock repeat`: the step already has this name, or the value
            contains no numbers.
    """
    if _taker is not None:
        _taker(step, quantities)


def recorded(function: Function) -> Function:
    """Return the function with its results recorded, one call for each step.

    A dict is recorded by its keys, anything else by the name of the function.
    """

    @wraps(function)
    def call_and_record(*args: object, **kwargs: object) -> object:
        result = function(*args, **kwargs)
        if _taker is not None:
            quantities = result if isinstance(result, dict) else {function.__name__: result}
            _taker(None, quantities)
        return result

    return call_and_record  # type: ignore[return-value]


def listen(taker: Optional[Callable[..., None]]) -> None:
    """Pass everything that is recorded from now on to `taker`; None stops that."""
    global _taker
    _taker = taker
