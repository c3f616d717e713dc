"""Files that were written for Python 2."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from envlock.linter.module import Hit, Module


def find_python2(module: Module, _tensorflow: str) -> Iterator[Hit]:
    """ENV112: the first line that Python 3 cannot read."""
    if module.python2 is not None:
        place = ast.Pass(
            lineno=module.python2, col_offset=0, end_lineno=module.python2, end_col_offset=0
        )
        yield Hit(place, "this is Python 2: the other findings are those of its translation")
