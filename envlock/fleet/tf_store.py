"""Ranks meet at the key-value store of TensorFlow's coordination service.

A strategy with several workers starts it.

This is the only file that knows these private names. They exist in TensorFlow 2.15 to 2.21; each is
checked before it is used. The strategy waits for all workers without a limit, so a worker that
never starts must be found before that: with `files`.
"""

from __future__ import annotations

import sys

from envlock.fleet.statement import canonical
from envlock.runtime import strict_json
from envlock.runtime.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, List, Optional, Sequence

CONTEXT = "tensorflow.python.eager.context"
NEEDED = ("set_config_key_value", "get_config_key_value", "delete_config_key_value")
HINT = "call it after the strategy is created, or use engine `files`"
WAIT, LONGEST_WAIT = 50, 1000
"""Milliseconds to wait for a value that is not there yet, doubled each time: on a busy machine the
service takes longer to answer. 0 would wait for ever.
"""

_calls: List[int] = []


class Store:
    """The board. A value cannot be replaced there, so each call of `assert_fleet()` has its own
    names.
    """

    is_mortal = True  # the service runs in the process of rank 0

    def __init__(self, context: Any, number: int) -> None:
        self._context = context
        self._start = f"envlock/{number}/"
        self._wait = WAIT

    def post(self, name: str, value: object) -> None:
        """Set a value; facts that another rank has already set are kept."""
        self.settle(name, value)

    def hand(self, name: str, value: object, ranks: Sequence[int]) -> str:
        """Set a value that some ranks read."""
        if ranks:
            self.settle(name, value)
        return ""

    def settle(self, name: str, value: object) -> bool:
        """Set a value unless there is one; return whether this one counts.

        Raises:
            UsageError: the service does not answer.
        """
        try:
            self._context.set_config_key_value(self._start + name, canonical(value))
            return True
        except Exception as error:
            if type(error).__name__ != "AlreadyExistsError":
                raise UsageError(
                    f"TensorFlow's coordination service refused: {error}", hint=HINT
                ) from None
            return False

    def peek(self, name: str) -> object:
        """Return a value; None if it is not there in time, or the service does not answer."""
        wait, self._wait = self._wait, WAIT
        try:
            text = self._context.get_config_key_value(self._start + name, wait)
            value: object = strict_json.parse(text.encode("utf-8"))
            return value
        except Exception:
            # A service that has ended raises the same error as one without the value: the caller
            # has the time limit.
            self._wait = min(2 * wait, LONGEST_WAIT)
            return None

    def names(self, folder: str = "") -> Optional[Collection[str]]:
        """Return None: the service cannot list values."""
        return None

    def give_up(self) -> None:
        """Do nothing: the strategy decides how a worker ends."""


def open_board() -> Store:
    """Return the board of this process's cluster.

    Raises:
        UsageError: TensorFlow is not imported or lacks these functions, or there is no cluster.
    """
    module: Any = sys.modules.get(CONTEXT)
    if module is None:
        raise UsageError("TensorFlow is not imported, so no ranks can meet by it", hint=HINT)
    context = module.context()
    missing = [name for name in NEEDED if not callable(getattr(context, name, None))]
    if missing or getattr(context, "coordination_service", None) is None:
        what = missing[0] if missing else "cluster with a coordination service"
        raise UsageError(f"TensorFlow has no {what}", hint=HINT)
    # All ranks call equally often, so they agree on the number.
    _calls.append(len(_calls))
    return Store(context, len(_calls))
