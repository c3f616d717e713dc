"""What is known on this machine of each installed distribution, before an index is asked."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import Distribution
from typing import Any, Literal, NamedTuple

from envlock.lock.models import Lockfile
from envlock.packages.installation import Installation, by_name, header, record_of
from envlock.packages.sources import Source, source_of
from envlock.runtime.errors import FactError
from envlock.runtime.files.record import content, rows

NO_RECORD = "it has no RECORD, so it was not installed from a wheel (perhaps by a system package)"

Origin = Literal["index", "url", "vcs", "editable", "local", "conda", "unknown"]


class Installed(NamedTuple):
    """What is known here of one distribution: its facts as the lock has them, and what its RECORD lists."""

    name: str
    version: str | None
    tags: tuple[str, ...]
    origin: Origin
    url: str | None
    common: dict[str, str] | None
    reason: str | None
    source: Source | None = None


def installed(name: str, facts: Mapping[str, Any], found: Distribution | None) -> Installed:
    """Return what is known of a distribution from its facts and its metadata folder."""
    origin, reason = _origin(facts)
    version, tags = facts.get("version"), tuple(facts.get("wheel_tags") or ())
    common: dict[str, str] | None = None
    try:
        text = record_of(found) if found is not None else None
        if text is None:
            reason = reason or NO_RECORD
        else:
            common = content(rows(text))
    except FactError as error:
        reason = reason or error.message
    if reason is None and (version is None or not tags):
        reason = "its metadata has no version or no wheel tags"
    url = (facts.get("origin") or {}).get("url")
    return Installed(
        name,
        version,
        tags,
        origin,
        url,
        common,
        reason,
        None if found is None else source_of(found),
    )


def _origin(facts: Mapping[str, Any]) -> tuple[Origin, str | None]:
    """Return where a distribution came from, and why it can have no index file, if that is so."""
    origin = facts.get("origin")
    if facts.get("installer") == "conda":
        return "conda", "installed by conda, whose packages are not wheels"
    if not origin:
        return "index", None
    if origin.get("editable"):
        return "editable", "an editable install of a checkout"
    if origin.get("vcs"):
        at = f" at commit {origin['commit']}" if origin.get("commit") else ""
        return "vcs", f"built from a {origin['vcs']} checkout{at}"
    url = origin.get("url")
    if url is None:
        return "unknown", "installed from a direct URL that cannot be recorded"
    if not url.startswith("http"):
        return "local", "installed from a file or a folder on a disk"
    return "url", None if url.endswith(".whl") else f"built from the archive {url}"


def everything_installed(
    lock: Lockfile, place: Installation, *, own: bool = False
) -> list[Installed]:
    """Return what is known here of every package of a lock; with `own`, also of the project's own, which is no fact.

    Raises:
        FactError: the environment cannot be read.
    """
    found = by_name(place)
    facts = lock.to_document()["facts"].get("packages") or {}
    others = [installed(name, package, found.get(name)) for name, package in facts.items()]
    name = lock.project and lock.project.name
    if not own or name is None or name not in found or name in facts:
        return others
    project = {"version": header(found[name], "Version"), "origin": {"editable": True}}
    return [*others, installed(name, project, found[name])]
