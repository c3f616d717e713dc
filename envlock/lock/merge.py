"""One lockfile from several: accept some of a new one's facts, or merge what two sides have changed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.lock.document import validate
from envlock.lock.machines import united
from envlock.lock.models import Lockfile
from envlock.lock.rebase import GONE, MADE_OF_FACTS
from envlock.runtime.facts import Unavailable, leaves, same, split
from envlock.runtime.policy import matches, names
from envlock.runtime.report import count

Flat = dict[str, Any]
"""What lies under each dotted path."""

OF_COMMIT = ("commit", "dirty")
"""Of the section `project`: at which commit the lock was captured."""


@dataclass(frozen=True)
class Merged:
    """A lockfile of two sides.

    Attributes:
        lock: it.
        conflicts: the paths that both have changed, each to something else.
        exempt: the rules by which it lets more differ than the base did, in words.
    """

    lock: Lockfile
    conflicts: tuple[str, ...]
    exempt: tuple[str, ...] = ()


def accept(old: Lockfile, new: Lockfile, patterns: Iterable[str]) -> Lockfile:
    """Return the old lockfile, with the new one's facts where a path fits one of the patterns.

    The canary and the image are dropped when a fact has changed, and so is the wheel of a changed package.

    Raises:
        LockfileError: the facts do not fit together.
    """
    wanted = tuple(patterns)
    before, after = old.to_document(), new.to_document()

    def choose(path: str, was: Any, now: Any) -> Any:
        return now if any(fits(pattern, path) for pattern in wanted) else was

    facts = _combined(flat(before), flat(after), choose)
    return _whole({**before, "created_by": after["created_by"]}, facts, [before])


def unmatched(patterns: Iterable[str], *locks: Lockfile) -> list[str]:
    """Return the patterns that fit no fact of any of the lockfiles."""
    paths = {path for lock in locks for path in flat(lock.to_document())}
    return [pattern for pattern in patterns if not any(fits(pattern, path) for path in paths)]


def merge(base: Lockfile, ours: Lockfile, theirs: Lockfile) -> Merged:
    """Return what both sides have changed since the base; where they disagree, ours stays and the path is named.

    Raises:
        LockfileError: the facts do not fit together.
    """
    old, left, right = (each.to_document() for each in (base, ours, theirs))
    if _commit(left) != _commit(right) and _commit(old) not in (_commit(left), _commit(right)):
        # what is merged was captured at neither
        for each in (old, left, right):
            for key in OF_COMMIT:
                each.get("project", {}).pop(key, None)
    conflicts: list[str] = []

    def merged(before: Flat) -> Callable[[str, Any, Any], Any]:
        def choose(path: str, mine: Any, other: Any) -> Any:
            was = before.get(path, GONE)
            if not same(mine, other) and not same(mine, was) and not same(other, was):
                conflicts.append(path)
            return other if same(mine, was) else mine

        return choose

    facts = _combined(flat(left), flat(right), merged(flat(old)))
    sections = _combined(_sections(left), _sections(right), merged(_sections(old)))
    own = {"project", *(path.partition(".")[0] for path in _sections(left))}
    document = {**{key: left[key] for key in left if key not in own}, **_grown(sections)}
    document["machines"] = united(old, left, right)
    if not document["machines"]:
        del document["machines"]
    lock = _whole(document, facts, [left, right])
    dropped = [name for name in MADE_OF_FACTS if name not in lock.to_document()]
    disputed = tuple(path for path in dict.fromkeys(conflicts) if path not in dropped)
    return Merged(lock, disputed, tuple(_added_exemptions(base, lock)))


def _added_exemptions(base: Lockfile, merged: Lockfile) -> list[str]:
    """Return each rule by which the merged lockfile lets more differ than its base says, in words."""
    old, new = base.to_document(), merged.to_document()
    found = []
    was, now = old["policy"]["name"], new["policy"]["name"]
    if names().index(now) > names().index(was):  # strictest first
        found.append(f"policy {now} instead of {was}")
    before = old["policy"]["overrides"]
    overrides = sorted(new["policy"]["overrides"].items())
    found += [
        f'override "{path}" = "{rule}"' for path, rule in overrides if before.get(path) != rule
    ]
    known, project = old.get("project", {}), new.get("project", {})
    for name in ("name", "entry", "held", "tooling"):
        if name in project and project[name] != known.get(name):
            found.append(f"project.{name}, by which packages may differ")
    more = len(new.get("machines", ())) - len(old.get("machines", ()))
    if more > 0:
        found.append(f"{count(more, 'more machine')}")
    return found


def flat(document: Mapping[str, Any]) -> Flat:
    """Return the facts of a lockfile by path, and what was unavailable."""
    untold = {
        path: Unavailable(entry["reason"], entry["code"])
        for path, entry in document["unavailable"].items()
    }
    return {**dict(leaves(document["facts"])), **untold}


def _sections(document: Mapping[str, Any]) -> Flat:
    """Return the sections beside the facts: each whole, but identity and project by what is in them, and by package."""
    whole = {
        name: document[name]
        for name in ("policy", "base_image", *MADE_OF_FACTS)
        if name in document
    }
    packages = document.get("identity", {}).get("packages", {})
    project = dict(leaves({"project": document["project"]})) if document.get("project") else {}
    return {
        **whole,
        **{f"identity.packages.{name}": entry for name, entry in packages.items()},
        **project,
    }


def _commit(document: Mapping[str, Any]) -> list[Any]:
    return [document.get("project", {}).get(key) for key in OF_COMMIT]


def _combined(left: Flat, right: Flat, choose: Callable[[str, Any, Any], Any]) -> Flat:
    chosen = {
        path: choose(path, left.get(path, GONE), right.get(path, GONE))
        for path in {**left, **right}
    }
    return {path: value for path, value in chosen.items() if value is not GONE}


def _grown(flat: Flat) -> dict[str, Any]:
    """Return nested objects again; an empty one gives way to what another side has in it."""
    tree: dict[str, Any] = {}
    for path, value in sorted(flat.items()):
        *folders, name = path.split(".")
        node = tree
        for folder in folders:
            if not isinstance(
                node.get(folder), dict
            ):  # one side has nothing there, the other has facts below it
                node[folder] = {}
            node = node[folder]
        if value != {} or name not in node:
            node[name] = value
    return tree


def _whole(document: dict[str, Any], chosen: Flat, sides: Sequence[Mapping[str, Any]]) -> Lockfile:
    """Return a lockfile of these facts, without the sections that no side has made of just these facts."""
    facts, unavailable = split(_grown(chosen))
    alike = [
        side
        for side in sides
        if same(facts, side["facts"]) and same(unavailable, side["unavailable"])
    ]
    holds = {
        key for key, value in document.items() if any(side.get(key) == value for side in alike)
    }
    kept = {
        key: value for key, value in document.items() if key not in MADE_OF_FACTS or key in holds
    }
    packages = facts.get("packages") or {}
    proven = {
        name: entry
        for name, entry in kept.pop("identity", {}).get("packages", {}).items()
        if packages.get(name, {}).get("version") == entry["version"]
    }
    identity = {"identity": {"packages": proven}} if proven else {}
    return validate(
        {**kept, **identity, "facts": facts, "unavailable": unavailable}, "to be written"
    )


def fits(pattern: str, path: str) -> bool:
    """Return whether a pattern names a fact, or what the fact lies below."""
    return matches(pattern, path) or matches(f"{pattern}.**", path)
