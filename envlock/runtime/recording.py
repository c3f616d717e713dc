"""`record()` and `@recorded`: what a script shows to `envlock repeat`. Without it they do nothing and cost nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

_taker: Optional[Callable[..., None]] = None
"""Takes (step, named values) where somebody listens; `envlock repeat` sets it in the process that it starts."""


def record(step: Optional[int] = None, **quantities: Any) -> None:
    """Show named values of one step of the run: arrays, tensors, numbers, or lists and dicts of these.

    Without `step`, a name that comes again begins the next step. Nothing is changed, and outside of `envlock repeat`
    nothing is done.

    Raises:
        ValueError: only under `envlock repeat`: a name came at this step before, or its value holds no numbers.
    """
    if _taker is not None:
        _taker(step, quantities)


def recorded(function: Function) -> Function:
    """Return the function, whose results are recorded, a call a step: a dict by its keys, all else by its name."""
    from functools import wraps

    @wraps(function)
    def shown(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if _taker is not None:
            _taker(None, result if isinstance(result, dict) else {function.__name__: result})
        return result

    return shown  # type: ignore[return-value]


def listen(taker: Optional[Callable[..., None]]) -> None:
    """Let `taker` have everything that is recorded from now on; None: nobody."""
    global _taker
    _taker = taker
