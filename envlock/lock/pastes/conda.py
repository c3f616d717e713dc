"""conda's environment.yml, and the table of `conda list`. Pure.

A package of conda's need not be a distribution of Python, and can have another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from envlock.lock.pastes.pip_lists import read_pins
from envlock.lock.pastes.statement import NAME, VERSION, Line, Statement, match_lines, state_package

_BEGIN = re.compile(r"dependencies:\s*", re.ASCII)
_ITEM = re.compile(
    rf"- +[\"']?(?:[\w/-]+::)?({NAME})(={{1,2}})({VERSION}?)(\.\*)?(?:=(\S+?))?[\"']?(?: *#.*)?",
    re.ASCII,
)
_PIP = re.compile(r"- +pip: *", re.ASCII)
_ROW = re.compile(rf"({NAME}|_\w+) +({VERSION}) +(\S+)(?: +(?:\[\S+\] +)?(\S+))?", re.ASCII)
_HEAD = re.compile(r"# Name +Version +Build\b.*|# packages in environment at .*", re.ASCII)
_BUILD = re.compile(
    r"(?:\w+_)?(?:py[0-9]{2,3})?h[0-9a-f]{7}_[0-9]+|py[0-9]{2,3}_[0-9]+|pyh\w+_[0-9]+|pypi_0",
    re.ASCII,
)
"""Builds that only conda names so: they tell its rows where the head was cut off."""
_FROM_PIP = ("pypi_0", "<pip>")


def read_environments(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what `dependencies:` of an environment.yml states."""
    begun, of_pip = False, None
    for number, text in lines:
        indent = len(text) - len(text.lstrip())
        if _BEGIN.fullmatch(text.strip()):
            begun = True
        elif begun and _PIP.fullmatch(text.strip()):
            of_pip = indent
        elif begun and text.strip():
            if of_pip is not None and indent > of_pip:
                yield from read_pins([(number, text.strip().removeprefix("-").strip(" \"'"))])
                continue
            of_pip = None
            begun = text.lstrip().startswith(("-", "#"))
            for _, found in match_lines(_ITEM, [(number, text)]):
                name, equals, version, star, build = found.groups()
                is_loose = star is not None or (equals == "=" and build is None)
                yield from _state(name, version, build, number, is_loose=is_loose)


def read_tables(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what the table of `conda list` states."""
    is_table = False
    for number, text in lines:
        if _HEAD.fullmatch(text.strip()):
            is_table = True
        elif text.strip() not in ("", "#"):
            found = _ROW.fullmatch(text.strip())
            is_table = found is not None and (is_table or _BUILD.fullmatch(found[3]) is not None)
            if found is not None and is_table:
                yield from _state(found[1], found[2], found[3], number, is_loose=False)


def _state(
    name: str, version: str, build: str | None, line: int, *, is_loose: bool
) -> Iterator[Statement]:
    """Yield what a package of conda's states."""
    if name == "python":
        yield Statement("python.version", version, line, is_loose)
    elif not name.startswith("_"):
        is_guess = build not in _FROM_PIP
        yield from state_package(name, version, line, is_loose=is_loose, is_guess=is_guess)
