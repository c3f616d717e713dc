"""`pip freeze`, a file of requirements, and the table of `pip list`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from envlock.lock.pastes.statement import NAME, VERSION, Line, Statement, match_lines, state_package
from envlock.runtime.distributions import normalise

_PIN = re.compile(
    rf"({NAME})(?:\[[\w, .-]*\])? ?={{2,3}} ?({VERSION}?)(\.\*)?(?: *;.*| *#.*| *\\| +--hash=.*)?",
    re.ASCII,
)
_NO_PACKAGES = ("cuda", "cudatoolkit", "cudnn", "python", "tf", "ubuntu")
"""What people write as pins, too, and no index has as what they mean."""
_PLACE = re.compile(
    rf"({NAME})(?:\[[\w, .-]*\])? ?@ ?\S+(?: *;.*)?|(?:(?:-e|--editable)[ =]*)?(?:git|hg|svn|bzr)\+\S+#egg=({NAME})(?:&\S*)?",
    re.ASCII,
)
_ROW = re.compile(rf"({NAME})(?: +({VERSION})| \(({VERSION})\))(?: +\S.*)?", re.ASCII)
_HEAD = re.compile(r"Package +Version\b|(?:[\w./-]+ -m |uv )?pip[\w.]* list\b", re.ASCII)
_PROMPT = re.compile(r"[$%#>] *")
_INSTALLED = re.compile(
    rf"Requirement already satisfied: ({NAME})\S* in .*\(({VERSION})\)|Successfully installed (.+)",
    re.ASCII,
)
_WHEEL = re.compile(rf"({NAME})-({VERSION})", re.ASCII)


def read_pins(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what the lines `name==version` state; other requirements name no one version."""
    for number, found in match_lines(_PIN, lines):
        name, version, is_loose = found.groups()
        if name.lower() in _NO_PACKAGES:
            continue
        yield from state_package(name, version, number, is_loose=is_loose is not None)


def list_unversioned(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the packages of which a freeze states where they came from, such as a commit, and no version."""
    for _, found in match_lines(_PLACE, lines):
        yield normalise(found[1] or found[2])


def read_tables(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what the tables below `Package Version` state."""
    is_table = False
    for number, text in lines:
        if any(map(_HEAD.match, _PROMPT.split(text.strip()))):
            is_table = True
        elif is_table and not set(text) <= set("- "):
            rows = list(read_rows([(number, text)]))
            is_table = bool(rows)
            yield from rows


def read_logs(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what `pip install` says that it has installed, or has found."""
    for number, found in match_lines(_INSTALLED, lines):
        if found[1]:
            yield from state_package(found[1], found[2], number)
        for word in (found[3] or "").split():
            wheel = _WHEEL.fullmatch(word)
            if wheel is not None:
                yield from state_package(wheel[1], wheel[2], number)


def read_rows(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what the rows `name version`, or `name (version)` of an older pip, state."""
    for number, found in match_lines(_ROW, lines):
        yield from state_package(found[1], found[2] or found[3], number)
