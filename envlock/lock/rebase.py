"""Apply the changes of one command to a lockfile that another command has changed in the meantime.

Pure: values in, values out.
"""

from __future__ import annotations

from collections.abc import Mapping

BY_KEY = ("", "policy", "policy.overrides", "identity", "identity.packages", "project")
"""Sections that are merged key by key.

Any other section is taken as a whole from one command, so that facts of two machines are never
mixed.
"""

MADE_OF_FACTS = ("numerics", "image")
"""Sections that hold for one set of facts only."""

GONE = object()
"""The value of a key that a document does not have."""


def apply_changes(
    read: Mapping[str, object], ours: Mapping[str, object], theirs: Mapping[str, object]
) -> dict[str, object]:
    """Return the present content of the file with the changes that a command has made since it read
    the file.

    Args:
        read: the lockfile as the command read it.
        ours: the lockfile as the command wants to write it.
        theirs: the present content of the file. If both have changed the same value, ours is used.
    """
    if ours == read:
        merged = dict(theirs)
    elif theirs == read:
        merged = dict(ours)
    else:
        merged = _merge_keys("", read, ours, theirs)
    # Such a section was made from the facts that another command had: unless this one has made it
    # as well, it says nothing about the new ones.
    if merged["facts"] != theirs["facts"]:
        for name in MADE_OF_FACTS:
            if ours.get(name) == read.get(name):
                merged.pop(name, None)
    return merged


def _merge(path: str, read: object, ours: object, theirs: object) -> object:
    if ours == read:
        return theirs
    if theirs == read or path not in BY_KEY:
        return ours
    if not (
        isinstance(read, Mapping) and isinstance(ours, Mapping) and isinstance(theirs, Mapping)
    ):
        return ours
    return _merge_keys(path, read, ours, theirs)


def _merge_keys(
    path: str, read: Mapping[str, object], ours: Mapping[str, object], theirs: Mapping[str, object]
) -> dict[str, object]:
    merged = {}
    for key in dict.fromkeys([*theirs, *ours]):
        place = f"{path}.{key}" if path else key
        value = _merge(place, read.get(key, GONE), ours.get(key, GONE), theirs.get(key, GONE))
        if value is not GONE:
            merged[key] = value
    return merged
