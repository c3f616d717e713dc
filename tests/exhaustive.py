"""What `make testall` and CI run beyond `make test`: five seconds and longer, or more of what another test shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

exhaustive = pytest.mark.exhaustive


def first(count: int, cases: Iterable[Any]) -> list[Any]:
    """Return parameters of a test; those after the first `count` are exhaustive."""
    return [
        case if number < count else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=exhaustive)
        for number, case in enumerate(cases)
    ]
