"""What a pasted text states: facts, each with the line that it was read from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from envlock.runtime.distributions import normalise

Line = tuple[int, str]
"""The number of a line, from 1, and its text without quotation marks and blanks at its end."""

VERSION = r"[0-9][0-9A-Za-z.!+_-]{0,60}"
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,80}[A-Za-z0-9])?"

TENSORFLOWS = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel")
"""The distributions whose version is that of TensorFlow."""


class Statement(NamedTuple):
    """A fact that a line states.

    Attributes:
        path: where a lockfile has the fact.
        value: as a lockfile would have it.
        line: the number of the line.
        is_loose: whether it is only the beginning of the value, as in `python=3.11`.
        is_guess: whether it counts only where the other side has the fact: another package manager has
            names of its own.
    """

    path: str
    value: object
    line: int
    is_loose: bool = False
    is_guess: bool = False


def state_package(
    name: str, version: str, line: int, *, is_loose: bool = False, is_guess: bool = False
) -> Iterator[Statement]:
    """Yield what the version of a package states; that of TensorFlow is a fact of its own, too."""
    distribution = normalise(name)
    if distribution in TENSORFLOWS:
        yield Statement("tensorflow.version", version, line, is_loose)
        if is_guess:
            return  # conda has other names for its parts
    yield Statement(f"packages.{distribution}.version", version, line, is_loose, is_guess)


def do_agree(one: Statement, other: Statement) -> bool:
    """Return whether two statements of one fact can both be true: the value of a loose one is the
    beginning of the other.
    """
    if one.value == other.value:
        return True
    if not isinstance(one.value, str) or not isinstance(other.value, str):
        return False
    if other.is_loose and is_beginning(other.value, one.value):
        return True
    return one.is_loose and is_beginning(one.value, other.value)


def is_beginning(short: str, whole: str) -> bool:
    """Return whether a value is the beginning of another: 3.1 is not that of 3.11."""
    rest = whole[len(short) :]
    return whole.startswith(short) and not (short[-1:].isdigit() and rest[:1].isdigit())


def match_lines(
    pattern: re.Pattern[str], lines: Iterable[Line]
) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the lines that match as a whole, with their numbers."""
    for number, text in lines:
        found = pattern.fullmatch(text.strip())
        if found is not None:
            yield number, found
