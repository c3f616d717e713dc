"""Lockfiles of uv, Poetry, PDM, pip and Pipenv, also cut off. Pure.

They hold what every platform needs, so a package in one need not be installed anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from envlock.lock.pastes.statement import NAME, VERSION, Line, Statement, state_package

_TABLE = re.compile(r"\[.*\]", re.ASCII)
_PACKAGE = re.compile(r"\[\[packages?\]\]", re.ASCII)
_FIELD = re.compile(rf'(name|version) = "({NAME}|{VERSION})"', re.ASCII)
_KEY = re.compile(rf'"({NAME})": \{{', re.ASCII)
_PIN = re.compile(rf'"version": "==({VERSION})",?', re.ASCII)


def read_toml(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what the tables `[[package]]` of uv.lock, poetry.lock, pdm.lock and pylock.toml state."""
    name = None
    is_package = False
    for number, text in lines:
        if _TABLE.fullmatch(text):
            name, is_package = None, _PACKAGE.fullmatch(text) is not None
        field = _FIELD.fullmatch(text)
        if field is None or not is_package:
            continue
        if field[1] == "name":
            name = field[2]
        elif name is not None:
            yield from state_package(name, field[2], number, is_guess=True)


def read_json(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what the packages of Pipfile.lock state."""
    name = None
    for number, text in lines:
        key = _KEY.fullmatch(text.strip())
        pin = _PIN.fullmatch(text.strip())
        if key is not None:
            name = key[1]
        elif pin is not None and name is not None:
            yield from state_package(name, pin[1], number, is_guess=True)
            name = None
