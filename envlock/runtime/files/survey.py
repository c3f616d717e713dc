"""The files of an environment: every file that a RECORD lists, its owner, and missing RECORDs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from envlock.runtime.files.claims import Claim, Package, Places, find_places, read_packages, resolve
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.read_file import FileRequest, can_compute, get_expected_size
from envlock.runtime.files.record_rows import Row, mend_rows
from envlock.runtime.files.unowned import Ownership, list_folders, list_sites
from envlock.runtime.host import read_bytes
from envlock.runtime.report import INFO, WARNING

MOST_PATHS_SHOWN = 200
"""Rows of one package that lead outside and are listed in a finding."""


@dataclass
class Survey:
    """An environment before its files are read.

    Attributes:
        folders: the import path.
        sites: the folders of the import path that only installers should write to.
        packages: every metadata folder.
        claims: absolute path -> the rows of every RECORD that lists it.
        links: folder as a RECORD names it -> the folder that it links to; only folders for which
            these differ.
        faults: what is wrong with the metadata itself.
        where: the folders in which files of RECORDs may be.
    """

    folders: list[str]
    sites: list[str]
    packages: list[Package]
    claims: dict[str, list[Claim]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    where: Places = field(default_factory=lambda: Places((), {}))

    def list_requests(self) -> Iterator[FileRequest]:
        """Yield every file to read."""
        for path, claims in self.claims.items():
            algorithms = set()
            sizes = set()
            for claim in claims:
                if claim.hash is not None:
                    algorithms.add(claim.hash.partition("=")[0])
                if claim.size is not None:
                    sizes.add(claim.size)
            algorithms = set(filter(can_compute, algorithms))
            yield FileRequest(path, tuple(sorted(algorithms)), tuple(sorted(sizes)))

    @property
    def size(self) -> int:
        """How many bytes there are to read, according to the RECORDs."""
        return sum(map(get_expected_size, self.list_requests()))

    def get_ownership(self, site: str) -> Ownership:
        """Return the files and folders in a folder of the import path that belong to packages."""
        trees: set[str] = set()
        for package in self.packages:
            if package.folder == site:
                trees.update(guess_trees(package))
        folders = list_folders(self.claims, site)
        for link, real in self.links.items():
            if link.startswith(site + "/"):
                trees.add(link)
                folders |= list_folders(self.claims, real)
        return Ownership(self.claims, folders, trees)

    def correct(self, package: Package, row: Row, sha256: str | None) -> None:
        """Replace the hash of a row by another, or remove the row if that is None."""
        path = resolve(row.path, package.folder, self.where)
        claim = Claim(package.title, row.hash, row.size)
        claims = self.claims.get(path or "", [])
        if path is None or claim not in claims:
            return
        claims.remove(claim)
        if sha256 is not None:
            claims.append(Claim(package.title, f"sha256={sha256}", None))
        elif not claims:
            del self.claims[path]

    def list_owners(self, path: str) -> tuple[str, ...]:
        """Return the titles of the packages whose RECORDs list a file."""
        return tuple([claim.package for claim in self.claims.get(path, ())])


def survey(prefix: str, folders: list[str]) -> Survey:
    """Return the files of an environment that are to be checked; only metadata is read."""
    result = Survey(folders, list_sites(folders), read_packages(folders))
    where = result.where = find_places(prefix, folders)
    for package in result.packages:
        result.faults += _check_metadata(package)
        outside = []
        rows, wrong = mend_rows(package.rows, partial(_is_file, package.folder))
        result.faults += _explain_wrong_rows(package, wrong)
        for row in rows:
            path = resolve(row.path, package.folder, where)
            if path is None:
                outside.append(row.path)
            else:
                claim = Claim(package.title, row.hash, row.size)
                result.claims.setdefault(path, []).append(claim)
        result.faults += _explain_outside(package, outside)
    result.links = {link: real for link, real in where.real.items() if link != real}
    result.faults += _find_rivals(result.packages)
    return result


def _check_metadata(package: Package) -> Iterator[Fault]:
    if package.problem is not None:
        yield Fault("damaged-record", package.info, package.problem, (package.title,))
    elif package.text is None:
        yield Fault("no-record", package.info, "has no RECORD", (package.title,), severity=INFO)


def _is_file(folder: str, path: str) -> bool:
    return os.path.isfile(f"{folder}/{path}")


def _explain_wrong_rows(package: Package, wrong: list[str]) -> Iterator[Fault]:
    if wrong:
        rows = "1 of its rows" if len(wrong) == 1 else f"{len(wrong)} of its rows"
        what = f"{rows} in RECORD do not follow the specification, such as {wrong[0]}"
        yield Fault("misrecorded", package.info, what, (package.title,), severity=WARNING)


def _explain_outside(package: Package, paths: list[str]) -> Iterator[Fault]:
    for path in paths[:MOST_PATHS_SHOWN]:
        yield Fault("outside-environment", path, f"listed by {package.title}", (package.title,))
    if len(paths) > MOST_PATHS_SHOWN:
        what = f"lists {len(paths) - MOST_PATHS_SHOWN} more paths outside the environment"
        yield Fault("outside-environment", package.info, what, (package.title,))


def _find_rivals(packages: list[Package]) -> Iterator[Fault]:
    """Yield the packages that are installed in several versions in one folder."""
    groups: dict[tuple[str, str], list[Package]] = {}
    for package in packages:
        groups.setdefault((package.folder, package.name), []).append(package)
    for group in groups.values():
        if len(group) > 1:
            names, titles = [], []
            for package in group:
                names.append(os.path.basename(package.info))
                titles.append(package.title)
            what = f"{' and '.join(names)} are installed side by side"
            yield Fault("duplicate-package", group[0].info, what, tuple(titles))


def guess_trees(package: Package) -> Iterator[str]:
    """Yield the paths that a package without a readable RECORD probably owns: those that its
    top_level.txt names, or else those named like the package.
    """
    if package.rows:
        return
    yield package.info
    try:
        top_level = read_bytes(f"{package.info}/top_level.txt", 100_000) or b""
        names = os.listdir(package.folder)
    except OSError:
        return
    tops = set(top_level.decode("utf-8", "replace").split())
    if not tops:
        own = os.path.basename(package.info).partition("-")[0]
        if own.endswith(".egg"):
            own = own[: -len(".egg")]
        tops = {own, own.lower(), package.name.replace("-", "_")}
    for name in names:
        if name in tops or name.partition(".")[0] in tops:
            yield f"{package.folder}/{name}"
