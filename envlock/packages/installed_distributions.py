"""What this machine knows about each installed distribution, before an index is asked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from envlock.lock.models import Lockfile
from envlock.packages.archive_comparison import hash_file
from envlock.packages.installation import (
    Installation,
    collect_distributions,
    read_field,
    read_record,
)
from envlock.packages.sources import Source, as_installed, find_source
from envlock.runtime.editable_installs import is_editable
from envlock.runtime.errors import FactError
from envlock.runtime.facts import Unavailable
from envlock.runtime.files.record_rows import Row, get_common_content, parse_rows
from envlock.runtime.source_files import digest_source

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
        folder: its `site-packages`; None if its files cannot be read here.
        rows: those of its RECORD.
        digest: that of its source, in the facts; None for a package from elsewhere.
        overwritten: path -> name of the package that has replaced this file by its own.
    """

    name: str
    version: str | None
    tags: tuple[str, ...]
    origin: Origin
    url: str | None
    files: dict[str, str] | None
    reason: str | None
    source: Source | None = None
    folder: Path | None = None
    rows: tuple[Row, ...] = ()
    digest: str | None = None
    overwritten: Mapping[str, str] = MappingProxyType({})


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
    rows: list[Row] = []
    folder: Path | None = None
    if distribution is not None:
        source = find_source(distribution)
        try:
            record = read_record(distribution)
            if record is not None:
                rows = parse_rows(record)
                files = get_common_content(rows)
                folder = Path(str(distribution.locate_file("")))
        except FactError as error:
            reason = reason or error.message
    if reason is None and record is None:
        reason = NO_RECORD
    if reason is None and (version is None or not tags):
        reason = "its metadata has no version or no wheel tags"
    url = (facts.get("origin") or {}).get("url")
    digest = facts.get("source")
    return InstalledPackage(
        name, version, tags, origin, url, files, reason, source, folder, tuple(rows), digest
    )


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
    lock: Lockfile, environment: Installation, own: Mapping[str, Any] | None = None
) -> list[InstalledPackage]:
    """Return the description of every package of a lockfile on this machine.

    Args:
        lock: the lockfile.
        environment: where they are installed.
        own: the live facts of the project's own package, which is not among those of the lockfile;
            None leaves it out.

    Raises:
        FactError: the environment cannot be read.
    """
    found = collect_distributions(environment)
    facts = lock.to_document()["facts"].get("packages") or {}
    packages = [
        describe_installed(name, package, found.get(name)) for name, package in facts.items()
    ]
    project = lock.own_name
    if own is not None and project in found and project not in facts:
        # A checkout can be of a package that was installed from an index; else it is built from
        # its folder, however it was installed from there.
        if own.get("origin"):
            own = {
                "version": read_field(found[project], "Version"),
                "origin": {"editable": True},
                "source": _digest_editable(found[project]),
            }
        packages.append(describe_installed(project, own, found[project]))
    return find_overwritten(packages)


def find_overwritten(packages: Sequence[InstalledPackage]) -> list[InstalledPackage]:
    """Return the packages with those of their files that others have replaced.

    Libraries are left out: a mixture of two builds of one is never wanted.
    """
    owners: dict[tuple[Path, str], dict[str, str]] = {}
    for package in packages:
        for row in package.rows:
            if package.folder is not None and row.hash is not None and _is_shared(row.path):
                owners.setdefault((package.folder, row.path), {})[package.name] = row.hash
    replaced: dict[str, dict[str, str]] = {}
    for (folder, path), hashes in owners.items():
        if len(set(hashes.values())) > 1:
            digest = hash_file(folder / path)
            winner = next((name for name, value in hashes.items() if value == digest), None)
            for name, value in hashes.items():
                if winner is not None and value != digest:
                    replaced.setdefault(name, {})[path] = winner
    return [
        package._replace(overwritten=replaced[package.name])
        if package.name in replaced
        else package
        for package in packages
    ]


def _is_shared(path: str) -> bool:
    """Return whether a file lies in `site-packages`, and is neither metadata nor a library."""
    folder, _, name = path.rpartition("/")
    return not path.startswith(("/", "..")) and ".so" not in name and ".dist-info" not in folder


def _digest_editable(distribution: Distribution) -> str | None:
    """Return the digest of the source of an editable install; None for another one, or if it cannot be read."""
    installed = as_installed(distribution)
    source = find_source(distribution)
    if installed is None or source is None or source.kind != "folder" or not is_editable(installed):
        return None
    digest = digest_source(installed, source.place, os.environ)
    if isinstance(digest, Unavailable):
        return None
    return digest
