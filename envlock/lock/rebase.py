"""What a command has changed in a lockfile, applied to what another one has made of that file meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BY_KEY = ("", "policy", "policy.overrides", "identity", "identity.packages", "project")
"""What is taken apart; any other section is of one command as a whole, so that no facts of two machines are mixed."""

MADE_OF_FACTS = ("numerics", "image")
"""Sections that hold for one set of facts only."""

GONE = object()


def rebased(
    read: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what is in the file now, with what a command has changed since it read it.

    Args:
        read: the lockfile as the command read it.
        ours: as it wants to write it.
        theirs: as it is in the file now. Where both have changed something, ours is taken.
    """
    document: dict[str, Any] = _merged("", read, ours, theirs)
    if document["facts"] != theirs["facts"]:
        for name in MADE_OF_FACTS:
            if ours.get(name) == read.get(name):
                document.pop(name, None)
    return document


def _merged(path: str, read: Any, ours: Any, theirs: Any) -> Any:
    if ours == read:
        return theirs
    if (
        theirs == read
        or path not in BY_KEY
        or not all(isinstance(each, Mapping) for each in (read, ours, theirs))
    ):
        return ours
    merged = {}
    for key in dict.fromkeys([*theirs, *ours]):
        place = f"{path}.{key}" if path else key
        value = _merged(place, *(each.get(key, GONE) for each in (read, ours, theirs)))
        if value is not GONE:
            merged[key] = value
    return merged
