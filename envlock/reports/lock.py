"""A lockfile for people: a heading a section, a line a fact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from envlock.reports.canary import coverage
from envlock.runtime.facts import Unavailable, leaves, same
from envlock.runtime.machines import profiles, title
from envlock.runtime.report import clean, count, show


def lines(document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield (style, line) for the document of a lockfile."""
    policy, facts = document["policy"], document["facts"]
    exceptions = "".join(f", {clean(path)}: {clean(rule)}" for path, rule in policy["overrides"].items())
    writer = f"lock_version {document['lock_version']}, {clean(document['created_by'])}"
    yield "plain", f"{writer}, policy {policy['name']}{exceptions}"
    project = document.get("project", {})
    about = [clean(project["name"])] if project.get("name") else []
    about += [described(project)] if "commit" in project else []
    yield from [("plain", f"project: {', '.join(about)}")] if about else []
    yield from (("plain", clean(line)) for line in held(document))
    for name in facts:
        if name == "cuda":
            yield from _cuda(facts[name])
        elif name not in ("packages", "environ"):
            yield from _section(name, facts[name])
    yield from _machines(document)
    if "environ" in facts:
        yield from _variables(facts["environ"] or {})
    if "packages" in facts:
        yield from _packages(facts["packages"] or {})
    if "program" in document.get("numerics", {}):
        yield from coverage(document["numerics"]["program"])
    if document["unavailable"]:
        yield "title", "could not be collected"
    for path, entry in document["unavailable"].items():
        yield "unknown", f"  {clean(path)}: {clean(entry['reason'])}"


def held(document: Mapping[str, Any]) -> list[str]:
    """Return how many of a lock's packages are held, and how that is known, as a line; nothing without entry points."""
    project = document.get("project", {})
    if "held" not in project:
        return []
    every, seen = set(document["facts"].get("packages") or ()), set(project.get("observed", ()))
    counted = len(every & ({*project["held"]} | seen))
    known = f"{', '.join(project['entry'])} can import them"
    known += f"; runs have used {len(every & seen)}" if seen else ""
    return [f"held: {counted} of {count(len(every), 'package')} ({known})"]


def described(project: Mapping[str, Any]) -> str:
    """Return the commit of a project as people read it."""
    return f"commit {project['commit'][:12]}{' with changes' if project.get('dirty') else ''}"


def _machines(document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """The machines beside the first, whose facts stand above: what each has otherwise, or more, or not."""
    first, *others = profiles(document)
    for number, machine in enumerate(others, 2):
        yield "title", f"machine {number} of {1 + len(others)}: {title(machine)}"
        left, right = ({**dict(leaves(each["facts"])), **_untold(each)} for each in (first, machine))
        for path in sorted({**left, **right}):
            if path not in right:
                yield "plain", f"  {clean(path):<26} absent"
            elif path not in left or not same(left[path], right[path]):
                yield "plain", f"  {clean(path):<26} {show(right[path])}"


def _untold(machine: Mapping[str, Any]) -> dict[str, Unavailable]:
    return {path: Unavailable(entry["reason"], entry["code"]) for path, entry in machine["unavailable"].items()}


def _section(name: str, section: Mapping[str, Any] | None) -> Iterable[tuple[str, str]]:
    yield "title", name if section is not None else f"{name}: none"
    for path, value in leaves(dict(sorted((section or {}).items()))):
        yield "plain", f"  {clean(path):<26} {show(value)}"


def _cuda(section: Mapping[str, Any] | None) -> Iterable[tuple[str, str]]:
    """One line a library: its version, the rule that found its file, and the file."""
    yield "title", "cuda" if section is not None else "cuda: none"
    for key, library in (section or {}).items():
        if not isinstance(library, dict):
            yield "plain", f"  {clean(key):<26} {show(library)}"
        elif library.get("linkage") not in ("absent", None):
            found = "linked statically" if library["linkage"] == "static" else show(library.get("resolved_by"))
            file = f", {show(library['file'])}" if library.get("file") else ""
            yield "plain", f"  {clean(key):<26} {show(library.get('version'))} ({found}{file})"


def _variables(variables: Mapping[str, str | None]) -> Iterable[tuple[str, str]]:
    present = {name: value for name, value in sorted(variables.items()) if value is not None}
    yield "title", f"environ: {len(present)} set, {len(variables) - len(present)} unset"
    for name, value in present.items():
        yield "plain", f"  {clean(name)}={show(value)}"


def _packages(packages: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    yield "title", f"packages: {len(packages)}"
    for name, package in sorted(packages.items()):
        origin = package.get("origin") or {}
        place = f" from {show(origin.get('url'))}" if origin else ""
        commit = f" at {origin['commit'][:12]}" if origin.get("commit") else ""
        editable = " (editable)" if origin.get("editable") else ""
        yield "plain", f"  {clean(name)} {show(package.get('version'))}{place}{commit}{editable}"
