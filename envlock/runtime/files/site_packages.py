"""Files in `site-packages` that no RECORD lists: foreign files, leftovers, and code that Python
runs at every start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase

from envlock.runtime.distributions import is_metadata_name
from envlock.runtime.files.compiled_file import parse_compiled_name
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.survey import Survey
from envlock.runtime.files.unowned import (
    COUNT_LIMIT,
    PTH_LIMIT,
    Pth,
    Stranger,
    Surroundings,
    is_customization,
    matches_patterns,
    read_pth,
)
from envlock.runtime.host import read_bytes
from envlock.runtime.report import ERROR, INFO, WARNING, Severity
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class KnownFile(TypedDict):
        """A row of files.toml: a file that a known tool writes."""

        path: str
        lines: list[str]
        why: str


def judge_site(survey: Survey, site: str, seen: Surroundings, *, by: str | None) -> Iterator[Fault]:
    """Yield the faults of a `site-packages`, other than those of the files that RECORDs list.

    Args:
        survey: the files that RECORDs list.
        site: the folder.
        seen: the files in it that belong to no package.
        by: the system's package manager, if it manages the folder: then no file in it is foreign.
    """
    for stranger in seen.strangers:
        if stranger.is_inert and not is_metadata_name(os.path.basename(stranger.path)):
            continue
        fault = _judge_stranger(stranger, site)
        if by is None or fault.severity == INFO or fault.kind == "half-upgraded":
            yield fault
        elif fault.kind == "startup":
            yield fault._replace(severity=INFO, what=f"{fault.what} (the folder belongs to {by})")
    yield from _find_leftovers(survey, seen.bytecode)
    yield from _find_owned_startup(survey, site)


def find_customizations(survey: Survey) -> Iterator[Fault]:
    """Yield `sitecustomize` and `usercustomize` in the other folders of the import path.

    The one that a Linux distribution ships with its Python does not count if it is unchanged.
    """
    for folder in survey.folders:
        if folder in survey.sites:
            continue
        is_library = os.path.exists(f"{folder}/os.py")
        for name in sorted(filter(is_customization, _list_names(folder))):
            path = f"{folder}/{name}"
            if _is_distributors_own(path):
                continue
            owners = survey.list_owners(path)
            what = "runs at every start"
            if is_library:
                what += ", and lies in the library of Python itself"
            severity: Severity = INFO if is_library or owners else ERROR
            yield Fault("startup", path, what, owners, severity=severity)


def _is_distributors_own(path: str) -> bool:
    """Return whether each line of a file is one of those that files.toml knows."""
    row = _find_known(path)
    if row is None:
        return False
    pth = _read(path)
    return pth is not None and matches_patterns(pth, row["lines"])


def _judge_stranger(stranger: Stranger, site: str) -> Fault:
    path = stranger.path
    relative = path[len(site) + 1 :]
    name = os.path.basename(relative)
    is_at_top = name == relative
    row = _find_known(relative)
    # Python finds entry points in any folder of this kind.
    if is_at_top and is_metadata_name(name) and not os.path.exists(f"{path}/entry_points.txt"):
        what = "describes no package: it has neither METADATA nor RECORD"
        return Fault("remnant", path, what, severity=WARNING)
    if is_at_top and name.startswith("~"):
        what = f"{_describe_kind(stranger)} that pip has renamed for removal"
        return Fault("half-upgraded", path, what)
    if is_at_top and name.endswith(".pth"):
        return _judge_pth(path, row)
    if row is not None:
        return Fault("foreign", path, "known", severity=INFO, why=row["why"])
    if stranger.files == 0:
        # A module of its name anywhere on the path comes first: it is imported instead of none.
        why = "Without any other module of its name, `import` finds an empty package."
        return Fault("foreign", path, "an empty folder", severity=INFO, why=why)
    if is_at_top and is_customization(name):
        return Fault("startup", path, "runs at every start, and belongs to no package")
    if name.endswith(".pyc"):
        return _judge_sourceless(path)
    return Fault("foreign", path, f"{_describe_kind(stranger)} that belongs to no package")


def _judge_pth(path: str, row: KnownFile | None) -> Fault:
    pth = _read(path)
    if pth is None:
        return Fault("startup", path, "belongs to no package, and cannot be read")
    what = pth.what or "does nothing"
    if row is not None and matches_patterns(pth, row["lines"]):
        return Fault("startup", path, what, severity=INFO, why=row["why"])
    return Fault("startup", path, f"belongs to no package, and {what}")


def _find_owned_startup(survey: Survey, site: str) -> Iterator[Fault]:
    """Yield, for information, the code of the packages themselves that Python runs at every start."""
    for name in sorted(_list_names(site)):
        path = f"{site}/{name}"
        owners = survey.list_owners(path)
        if owners and name.endswith(".pth"):
            pth = _read(path)
            if pth is not None and pth.what:
                yield Fault("startup", path, pth.what, owners, severity=INFO)
        elif is_customization(name) and (owners or f"{path}/__init__.py" in survey.claims):
            yield Fault("startup", path, "runs at every start", owners, severity=INFO)


def _judge_sourceless(path: str) -> Fault:
    """Return the fault of a .pyc file outside a `__pycache__`, which Python imports if it finds no
    source.
    """
    if os.path.exists(path[:-1]):
        what = "is beside its source, which Python uses instead"
        return Fault("bytecode", path, what, severity=INFO)
    return Fault("bytecode", path, "is imported without a source, and belongs to no package")


def _find_leftovers(survey: Survey, paths: list[str]) -> Iterator[Fault]:
    """Yield bytecode without a source: Python never imports it."""
    for path in paths:
        file = parse_compiled_name(path)
        has_source = file is not None and (
            file.source in survey.claims or os.path.exists(file.source)
        )
        if not has_source:
            what = "is not imported, as it has no source"
            yield Fault("bytecode", path, what, severity=INFO)


def _find_known(path: str) -> KnownFile | None:
    rows: list[KnownFile] = table("files")["known"]
    for row in rows:
        if fnmatchcase(path, row["path"]):
            return row
    return None


def _read(path: str) -> Pth | None:
    try:
        text = read_bytes(path, PTH_LIMIT)
    except OSError:
        return None
    if text is None:
        return None
    return read_pth(text.decode("utf-8", "surrogateescape"))


def _list_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _describe_kind(stranger: Stranger) -> str:
    if stranger.is_link:
        return "a link"
    if stranger.files is None:
        return "a file"
    if stranger.files == 1:
        return "a folder of 1 file"
    if stranger.files >= COUNT_LIMIT:
        return f"a folder of {stranger.files:,}+ files"
    return f"a folder of {stranger.files:,} files"
