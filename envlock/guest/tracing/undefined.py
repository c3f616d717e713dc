"""Outputs that a kernel leaves as it found the memory: they hold no result, so nothing is compared by them."""

from __future__ import annotations

from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, FrozenSet, List, Optional, Tuple

_ROWS: Dict[str, List[Tuple[Optional[str], FrozenSet[int]]]] = {}
for _row in table("replay")["undefined"]:
    _ROWS.setdefault(_row["operation"], []).append((_row["where"], frozenset(_row["outputs"])))
_NONE: FrozenSet[int] = frozenset()


def outputs(kind: str, switch: Callable[[str], Any]) -> FrozenSet[int]:
    """Return the numbers of an operation's outputs that hold no result; `switch` gives the value of an attribute."""
    rows = _ROWS.get(kind)
    if rows is None:
        return _NONE
    return _NONE.union(*(numbers for where, numbers in rows if where is None or not switch(where)))
