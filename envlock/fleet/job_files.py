"""Which files in the folder of a job envlock has written. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from envlock.fleet.statement import is_document, is_statement

NONCE = re.compile("[0-9a-f]{16}")
DRAFT = re.compile(r"\.[0-9]{1,10}\.[0-9a-f]{8}")


def _has(*keys: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(key in value for key in keys)


AT_TOP: dict[str, Callable[[Any], bool]] = {
    "call": _has("nonce", "root", "node"),
    "rank-[0-9]+": is_statement,
    "facts[.][0-9a-f]{64}": is_document,
    "absent[.][0-9]+": lambda value: type(value) is int,
    "report[.][0-9a-f]{16}": _has("report_version", "command", "findings"),
    "[0-9a-f]{16}[.]decision": _has("by"),
}
IN_ATTEMPT: dict[str, Callable[[Any], bool]] = {
    "[0-9]+": is_statement,
    "of[.][0-9a-f]{1,64}": _has("ranks", "differs"),
}
"""What a file holds, by the pattern of its name without `.json`: of a job, and of an attempt in a folder of its own."""


def is_draft(name: str, *, in_attempt: bool) -> bool:
    """Return whether a file has the name of one that a process was writing when it ended."""
    stem, dot, end = name.partition(".json")
    return bool(dot and DRAFT.fullmatch(end) and _kind(stem, in_attempt))


def could_be_ours(name: str, *, in_attempt: bool) -> bool:
    """Return whether a file has the name of one that envlock writes."""
    return name.endswith(".json") and _kind(name.removesuffix(".json"), in_attempt) is not None


def is_ours(name: str, value: Any, *, in_attempt: bool) -> bool:
    """Return whether a file with this name and these JSON values is one that envlock has written."""
    kind = _kind(name.removesuffix(".json"), in_attempt)
    return kind is not None and kind(value)


def _kind(stem: str, in_attempt: bool) -> Callable[[Any], bool] | None:
    kinds = IN_ATTEMPT if in_attempt else AT_TOP
    return next((kind for pattern, kind in kinds.items() if re.fullmatch(pattern, stem)), None)
