"""Accept some facts of a new lockfile in an old one. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from envlock.lock.rebase import GONE, MADE_OF_FACTS
from envlock.runtime.causes import list_patterns
from envlock.runtime.facts import Unavailable, is_same, iter_leaves, matches, split

Document: TypeAlias = "Mapping[str, object]"
"""A lockfile as JSON values."""

Flat: TypeAlias = "dict[str, object]"
"""The value at each dotted path."""

_FILES = "loaded.packages."

Choose = Callable[[str, object, object], object]
"""A function of a path and the values of two sides (`GONE` for a missing one) that returns the
value to keep.
"""


def accept(old: Lockfile, new: Lockfile, patterns: Iterable[str]) -> Lockfile:
    """Return the old lockfile, with the facts of the new one whose paths match a pattern.

    If a fact has changed, the canary and the image are dropped, and so is the wheel of a changed
    package.

    Raises:
        LockfileError: the facts do not fit together.
    """
    wanted = tuple(patterns)
    before, after = old.to_document(), new.to_document()

    def choose(path: str, old_value: object, new_value: object) -> object:
        if _is_wanted(path, wanted):
            return new_value
        return old_value

    facts = _combine(flatten(before), flatten(after), choose)
    return _assemble({**before, "created_by": after["created_by"]}, facts, [before])


def add_moved(pattern: str, *locks: Lockfile) -> list[str]:
    """Return a pattern; if it names a cause, such as a package, also those of all facts that it
    changes.
    """
    packages = {name for lock in locks for name in lock.facts.packages or {}}
    return [pattern, *list_patterns(pattern, packages)]


def find_unmatched(patterns: Iterable[str], *locks: Lockfile) -> list[str]:
    """Return the patterns that match no fact of any of the lockfiles."""
    paths: set[str] = set()
    for lock in locks:
        paths.update(flatten(lock.to_document()))
    return [pattern for pattern in patterns if not _matches_any(pattern, paths)]


def flatten(document: Document) -> Flat:
    """Return the facts of a lockfile, and its unavailable facts, by path."""
    flat: Flat = dict(iter_leaves(_get_table(document, "facts")))
    for path, entry in _get_table(document, "unavailable").items():
        if isinstance(entry, Mapping):
            flat[path] = Unavailable(entry["reason"], entry["code"])
    return flat


def _get_table(document: Document, name: str) -> Mapping[str, object]:
    """Return a section; empty if the document does not have it."""
    table = document.get(name)
    if not isinstance(table, Mapping):
        return {}
    return table


def _get_packages(document: Document) -> Mapping[str, object]:
    return _get_table(_get_table(document, "identity"), "packages")


def _combine(left: Flat, right: Flat, choose: Choose) -> Flat:
    combined: Flat = {}
    for path in {**left, **right}:
        value = choose(path, left.get(path, GONE), right.get(path, GONE))
        if value is not GONE:
            combined[path] = value
    return combined


def _nest(flat: Flat) -> Flat:
    """Return nested objects again; an empty one is replaced by the content of another side."""
    tree: Flat = {}
    for path, value in sorted(flat.items()):
        *folders, name = path.split(".")
        node = tree
        for folder in folders:
            child = node.get(folder)
            # One side may have a plain value at a path below which the other one has facts.
            if not isinstance(child, dict):
                child = node[folder] = {}
            node = child
        if value != {} or name not in node:
            node[name] = value
    return tree


def _assemble(document: Document, chosen: Flat, sides: Sequence[Document]) -> Lockfile:
    """Return a lockfile with these facts.

    Sections that hold for one set of facts only are left out, unless a side has made them from
    exactly these facts, and so are the wheels of packages in another version.
    """
    facts, unavailable = split(_nest(chosen))
    equal_sides = [
        side
        for side in sides
        if is_same(facts, side["facts"]) and is_same(unavailable, side["unavailable"])
    ]
    merged: dict[str, object] = {}
    for key, value in document.items():
        is_valid = any(side.get(key) == value for side in equal_sides)
        if key not in MADE_OF_FACTS or is_valid:
            merged[key] = value
    merged.pop("identity", None)
    versions = facts.get("packages") or {}
    packages = {}
    for name, entry in _get_packages(document).items():
        version = versions.get(name, {}).get("version")
        if isinstance(entry, Mapping) and version == entry["version"]:
            packages[name] = entry
    if packages:
        merged["identity"] = {"packages": packages}
    merged["facts"] = facts
    merged["unavailable"] = unavailable
    return validate(merged, "to be written")


def _is_wanted(path: str, patterns: Iterable[str]) -> bool:
    paths = [path]
    if path.startswith(_FILES):
        # Another version has other files.
        paths.append(f"packages.{path.removeprefix(_FILES)}.version")
    return any(matches_fact(pattern, each) for pattern in patterns for each in paths)


def _matches_any(pattern: str, paths: Iterable[str]) -> bool:
    return any(matches_fact(pattern, path) for path in paths)


def matches_fact(pattern: str, path: str) -> bool:
    """Return whether a pattern matches the path of a fact, or a section that contains it."""
    return matches(pattern, path) or matches(f"{pattern}.**", path)
