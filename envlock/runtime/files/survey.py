"""What there is to look at in an environment: every file that a RECORD lists, whose it is, and what has no RECORD."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from envlock.runtime.files.claims import Claim, Package, packages, places, resolve
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.read_file import Wanted, expected_size, known
from envlock.runtime.files.unowned import Owned, folders_of, sites
from envlock.runtime.host import read_bytes
from envlock.runtime.report import INFO

MOST_PATHS_SHOWN = 200  # of one package's rows that lead outside


@dataclass
class Survey:
    """An environment before its files are read.

    Attributes:
        folders: the import path.
        sites: those of it that only installers should write to.
        packages: every metadata folder.
        claims: absolute path -> the rows of every RECORD about it.
        links: folder as a RECORD names it -> the folder that a link leads to; only where they differ.
        faults: what is wrong with the metadata itself.
    """

    folders: list[str]
    sites: list[str]
    packages: list[Package]
    claims: dict[str, list[Claim]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def wanted(self) -> Iterator[Wanted]:
        """Yield every file to read."""
        for path, claims in self.claims.items():
            names = {claim.hash.partition("=")[0] for claim in claims if claim.hash is not None}
            sizes = {claim.size for claim in claims if claim.size is not None}
            yield Wanted(path, tuple(sorted(filter(known, names))), tuple(sorted(sizes)))

    @property
    def size(self) -> int:
        """How many bytes there are to read, as the RECORDs say."""
        return sum(map(expected_size, self.wanted()))

    def owned(self, site: str) -> Owned:
        """Return what belongs to somebody in a folder of the import path."""
        whole = {
            path for package in self.packages if package.folder == site for path in trees(package)
        }
        links = {link: real for link, real in self.links.items() if link.startswith(site + "/")}
        folders = {
            folder for start in (site, *links.values()) for folder in folders_of(self.claims, start)
        }
        return Owned(self.claims, folders, whole | set(links))


def survey(prefix: str, folders: list[str]) -> Survey:
    """Return what there is to look at; nothing but metadata is read."""
    found = Survey(folders, sites(folders), packages(folders))
    where = places(prefix, folders)
    for package in found.packages:
        found.faults += _metadata(package)
        outside = []
        for row in package.rows:
            path = resolve(row.path, package.folder, where)
            if path is None:
                outside.append(row.path)
            else:
                found.claims.setdefault(path, []).append(Claim(package.title, row.hash, row.size))
        found.faults += _outside(package, outside)
    found.links = {link: real for link, real in where.real.items() if link != real}
    found.faults += _rivals(found.packages)
    return found


def _metadata(package: Package) -> Iterator[Fault]:
    if package.problem is not None:
        yield Fault("record", package.info, package.problem, (package.title,))
    elif package.text is None:
        yield Fault("no-record", package.info, "has no RECORD", (package.title,), severity=INFO)


def _outside(package: Package, paths: list[str]) -> Iterator[Fault]:
    for path in paths[:MOST_PATHS_SHOWN]:
        yield Fault("outside", path, f"listed by {package.title}", (package.title,))
    if len(paths) > MOST_PATHS_SHOWN:
        what = f"lists {len(paths) - MOST_PATHS_SHOWN} more paths outside the environment"
        yield Fault("outside", package.info, what, (package.title,))


def _rivals(found: list[Package]) -> Iterator[Fault]:
    groups: dict[tuple[str, str], list[Package]] = {}
    for package in found:
        groups.setdefault((package.folder, package.name), []).append(package)
    for (folder, _), group in groups.items():
        if len(group) > 1:
            titles = tuple(package.title for package in group)
            names = " and ".join(os.path.basename(package.info) for package in group)
            yield Fault(
                "rivals",
                f"{folder}/{os.path.basename(group[0].info)}",
                f"{names} are installed side by side",
                titles,
            )


def trees(package: Package) -> Iterator[str]:
    """Yield what a package without a readable RECORD owns in all likelihood: what it names, or is named like it."""
    if package.rows:
        return
    yield package.info
    try:
        listed = read_bytes(f"{package.info}/top_level.txt", 100_000) or b""
        names = os.listdir(package.folder)
    except OSError:
        return
    own = os.path.basename(package.info).partition("-")[0]
    own = own[: -len(".egg")] if own.endswith(".egg") else own
    tops = set(listed.decode("utf-8", "replace").split()) or {
        own,
        own.lower(),
        package.name.replace("-", "_"),
    }
    for name in names:
        if name in tops or name.partition(".")[0] in tops:
            yield f"{package.folder}/{name}"
