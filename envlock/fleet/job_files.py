"""Which files in the folder of a job were written by envlock. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from envlock.fleet.folder import END
from envlock.fleet.statement import is_document, is_statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    Check = Callable[[object], bool]

NONCE = re.compile("[0-9a-f]{16}")
DRAFT = re.compile(r"\.[0-9]{1,10}\.[0-9a-f]{8}")


def _make_check(*keys: str) -> Check:
    """Return a function that tells whether a value is an object with these keys."""
    return lambda value: isinstance(value, dict) and all(key in value for key in keys)


AT_TOP: dict[str, Check] = {
    "call": _make_check("nonce", "root", "node"),
    "rank-[0-9]+": is_statement,
    "facts[.][0-9a-f]{64}": is_document,
    "printed": _make_check("sha256"),
    "absent[.][0-9]+": lambda value: type(value) is int,
    "report[.][0-9a-f]{16}": _make_check("report_version", "command", "findings"),
    "[0-9a-f]{16}[.]decision": _make_check("by"),
}
IN_ATTEMPT: dict[str, Check] = {
    "[0-9]+": is_statement,
    "of[.][0-9a-f]{1,64}": _make_check("ranks", "differs"),
}
"""How to check the content of a file, by the pattern of its name without `.json`: for files of a
job, and for those of an attempt in a folder of its own.
"""


def is_draft(name: str, *, in_attempt: bool) -> bool:
    """Return whether a file has the name of a draft, which a process was writing when it ended."""
    stem, dot, end = name.partition(END)
    return bool(dot and DRAFT.fullmatch(end) and _find_check(stem, in_attempt))


def could_be_ours(name: str, *, in_attempt: bool) -> bool:
    """Return whether a file has a name that envlock uses."""
    return name.endswith(END) and _find_check(name[: -len(END)], in_attempt) is not None


def is_ours(name: str, value: object, *, in_attempt: bool) -> bool:
    """Return whether a file with this name and these JSON values was written by envlock."""
    stem = name
    if name.endswith(END):
        stem = name[: -len(END)]
    check = _find_check(stem, in_attempt)
    return check is not None and check(value)


def _find_check(stem: str, in_attempt: bool) -> Check | None:
    """Return the function that checks the content of a file with this name; None for a file that is
    not envlock's.
    """
    checks = AT_TOP
    if in_attempt:
        checks = IN_ATTEMPT
    for pattern, check in checks.items():
        if re.fullmatch(pattern, stem):
            return check
    return None
