"""Make one lockfile of several: accept some facts of a new one, or merge the changes of two sides.

Pure: values in, values out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from envlock.lock.document import validate
from envlock.lock.machine_profiles import merge_machines
from envlock.lock.models import Lockfile
from envlock.lock.rebase import GONE, MADE_OF_FACTS
from envlock.runtime.causes import list_patterns
from envlock.runtime.facts import Unavailable, is_same, iter_leaves, matches, split
from envlock.runtime.policies import names
from envlock.runtime.report import count

Document: TypeAlias = "Mapping[str, object]"
"""A lockfile as JSON values."""

Flat: TypeAlias = "dict[str, object]"
"""The value at each dotted path."""

Choose = Callable[[str, object, object], object]
"""A function of a path and the values of two sides (`GONE` for a missing one) that returns the
value to keep.
"""

OF_COMMIT = ("commit", "dirty")
"""The keys of the section `project` about the commit at the time of the capture."""


@dataclass(frozen=True)
class Merged:
    """A lockfile merged from two sides.

    Attributes:
        lock: the lockfile.
        conflicts: the paths that both sides have changed to different values.
        exempt: the rules that allow more differences than the base did, in words.
    """

    lock: Lockfile
    conflicts: tuple[str, ...]
    exempt: tuple[str, ...] = ()


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


def merge(base: Lockfile, ours: Lockfile, theirs: Lockfile) -> Merged:
    """Return a lockfile with what both sides have changed since the base.

    If they disagree, the value of our side is kept, and the path is a conflict.

    Raises:
        LockfileError: the facts do not fit together.
    """
    old, left, right = base.to_document(), ours.to_document(), theirs.to_document()
    commits = (_get_commit(left), _get_commit(right))
    if commits[0] != commits[1] and _get_commit(old) not in commits:
        # The merged lockfile was not captured at either commit.
        for document in (old, left, right):
            for key in OF_COMMIT:
                document.get("project", {}).pop(key, None)
    facts_merge = _ThreeWayMerge(flatten(old))
    sections_merge = _ThreeWayMerge(_flatten_sections(old))
    facts = _combine(flatten(left), flatten(right), facts_merge.choose)
    sections = _combine(_flatten_sections(left), _flatten_sections(right), sections_merge.choose)
    own = {"project"}
    for path in _flatten_sections(left):
        own.add(path.partition(".")[0])
    document = {key: value for key, value in left.items() if key not in own}
    document.update(_nest(sections))
    document["machines"] = merge_machines(old, left, right)
    if not document["machines"]:
        del document["machines"]
    lock = _assemble(document, facts, [left, right])
    dropped = [name for name in MADE_OF_FACTS if name not in lock.to_document()]
    conflicts = dict.fromkeys([*facts_merge.conflicts, *sections_merge.conflicts])
    disputed = tuple(path for path in conflicts if path not in dropped)
    return Merged(lock, disputed, tuple(_list_new_exemptions(base, lock)))


class _ThreeWayMerge:
    """Chooses between the values of two sides, given those of their base, and collects the
    conflicts.
    """

    def __init__(self, base: Flat) -> None:
        self.base = base
        self.conflicts: list[str] = []

    def choose(self, path: str, ours: object, theirs: object) -> object:
        base = self.base.get(path, GONE)
        if is_same(ours, base):
            return theirs
        if not is_same(theirs, base) and not is_same(ours, theirs):
            self.conflicts.append(path)
        return ours


def _list_new_exemptions(base: Lockfile, merged: Lockfile) -> list[str]:
    """Return each rule of the merged lockfile that allows more differences than its base, in words."""
    old, new = base.to_document(), merged.to_document()
    found = []
    old_policy, new_policy = old["policy"]["name"], new["policy"]["name"]
    # The list of names begins with the strictest policy.
    if names().index(new_policy) > names().index(old_policy):
        found.append(f"policy {new_policy} instead of {old_policy}")
    old_overrides = old["policy"]["overrides"]
    for path, rule in sorted(new["policy"]["overrides"].items()):
        if old_overrides.get(path) != rule:
            found.append(f'override "{path}" = "{rule}"')
    old_project, project = old.get("project", {}), new.get("project", {})
    for name in ("name", "entry", "held", "tooling"):
        is_changed = name in project and project[name] != old_project.get(name)
        if is_changed:
            found.append(f"project.{name}, by which packages may differ")
    more = len(new.get("machines", ())) - len(old.get("machines", ()))
    if more > 0:
        found.append(f"{count(more, 'more machine')}")
    return found


def flatten(document: Document) -> Flat:
    """Return the facts of a lockfile, and its unavailable facts, by path."""
    flat: Flat = dict(iter_leaves(_get_table(document, "facts")))
    for path, entry in _get_table(document, "unavailable").items():
        if isinstance(entry, Mapping):
            flat[path] = Unavailable(entry["reason"], entry["code"])
    return flat


def _flatten_sections(document: Document) -> Flat:
    """Return the sections other than the facts, by path.

    Each is one value, except the identity, which is divided by package, and the project, which is
    divided by key.
    """
    flat: Flat = {}
    for name in ("policy", "base_image", "data", *MADE_OF_FACTS):
        if name in document:
            flat[name] = document[name]
    for name, entry in _get_packages(document).items():
        flat[f"identity.packages.{name}"] = entry
    if document.get("project"):
        flat.update(iter_leaves({"project": document["project"]}))
    return flat


def _get_table(document: Document, name: str) -> Mapping[str, object]:
    """Return a section; empty if the document does not have it."""
    table = document.get(name)
    if not isinstance(table, Mapping):
        return {}
    return table


def _get_packages(document: Document) -> Mapping[str, object]:
    return _get_table(_get_table(document, "identity"), "packages")


def _get_commit(document: Document) -> list[object]:
    project = _get_table(document, "project")
    return [project.get(key) for key in OF_COMMIT]


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
    return any(matches_fact(pattern, path) for pattern in patterns)


def _matches_any(pattern: str, paths: Iterable[str]) -> bool:
    return any(matches_fact(pattern, path) for path in paths)


def matches_fact(pattern: str, path: str) -> bool:
    """Return whether a pattern matches the path of a fact, or a section that contains it."""
    return matches(pattern, path) or matches(f"{pattern}.**", path)
