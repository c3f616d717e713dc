"""What this machine knows about each installed distribution, before an index is asked."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import Distribution
from typing import Any, Literal, NamedTuple

from envlock.lock.models import Lockfile
from envlock.packages.installation import (
    Installation,
    collect_distributions,
    read_field,
    read_record,
)
from envlock.packages.sources import Source, find_source
from envlock.runtime.errors import FactError
from envlock.runtime.files.record_rows import get_common_content, parse_rows

NO_RECORD = "it has no RECORD, so it was not installed from a wheel (perhaps by a system package)"

Origin = Literal["index", "url", "vcs", "editable", "local", "conda", "unknown"]


class InstalledPackage(NamedTuple):
    """One installed distribution.

    Attributes:
        name: normalised.
        version, tags, origin, url: those in the facts of the lockfile.
        files: path -> hash, from its RECORD; None if it has no RECORD.
        reason: why no index can have its wheel; None if one can.
        source: what it was installed from, if that is known on this machine.
    """

    name: str
    version: str | None
    tags: tuple[str, ...]
    origin: Origin
    url: str | None
    files: dict[str, str] | None
    reason: str | None
    source: Source | None = None


def describe_installed(
    name: str, facts: Mapping[str, Any], distribution: Distribution | None
) -> InstalledPackage:
    """Return the description of a distribution from its facts and its metadata folder."""
    origin, reason = _classify_origin(facts)
    version = facts.get("version")
    tags = tuple(facts.get("wheel_tags") or ())
    files: dict[str, str] | None = None
    source: Source | None = None
    record: str | None = None
    if distribution is not None:
        source = find_source(distribution)
        try:
            record = read_record(distribution)
            if record is not None:
                files = get_common_content(parse_rows(record))
        except FactError as error:
            reason = reason or error.message
    if reason is None and record is None:
        reason = NO_RECORD
    if reason is None and (version is None or not tags):
        reason = "its metadata has no version or no wheel tags"
    url = (facts.get("origin") or {}).get("url")
    return InstalledPackage(name, version, tags, origin, url, files, reason, source)


def _classify_origin(facts: Mapping[str, Any]) -> tuple[Origin, str | None]:
    """Return where a distribution came from, and the reason if no index can have its file."""
    origin = facts.get("origin")
    if facts.get("installer") == "conda":
        return "conda", "installed by conda, whose packages are not wheels"
    if not origin:
        return "index", None
    if origin.get("editable"):
        return "editable", "an editable install of a checkout"
    if origin.get("vcs"):
        reason = f"built from a {origin['vcs']} checkout"
        if origin.get("commit"):
            reason += f" at commit {origin['commit']}"
        return "vcs", reason
    url = origin.get("url")
    if url is None:
        return "unknown", "installed from a direct URL that cannot be recorded"
    if not url.startswith("http"):
        return "local", "installed from a file or a folder on a disk"
    if url.endswith(".whl"):
        return "url", None
    return "url", f"built from the archive {url}"


def describe_all_installed(
    lock: Lockfile, environment: Installation, *, own: bool = False
) -> list[InstalledPackage]:
    """Return the description of every package of a lockfile on this machine.

    With `own`, the project's own package is included, which is not among the facts.

    Raises:
        FactError: the environment cannot be read.
    """
    found = collect_distributions(environment)
    facts = lock.to_document()["facts"].get("packages") or {}
    packages = [
        describe_installed(name, package, found.get(name)) for name, package in facts.items()
    ]
    project = None
    if own and lock.project is not None:
        project = lock.project.name
    if project is not None and project in found and project not in facts:
        version = read_field(found[project], "Version")
        project_facts = {"version": version, "origin": {"editable": True}}
        packages.append(describe_installed(project, project_facts, found[project]))
    return packages
