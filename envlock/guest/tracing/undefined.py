"""Outputs that a kernel does not write: they contain old memory instead of a result, so they are
not compared.
"""

from __future__ import annotations

from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, FrozenSet, List, Optional, Tuple

_ROWS: Dict[str, List[Tuple[Optional[str], FrozenSet[int]]]] = {}
for _row in table("replay")["undefined"]:
    _ROWS.setdefault(_row["operation"], []).append((_row["where"], frozenset(_row["outputs"])))
_NONE: FrozenSet[int] = frozenset()


def find_undefined(kind: str, get_attribute: Callable[[str], object]) -> FrozenSet[int]:
    """Return the numbers of an operation's outputs that are not written.

    Some are not written only if an attribute, which `get_attribute` reads, is false.
    """
    rows = _ROWS.get(kind)
    if rows is None:
        return _NONE
    found = _NONE
    for attribute, numbers in rows:
        if attribute is None or not get_attribute(attribute):
            found = found.union(numbers)
    return found
