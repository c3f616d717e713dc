"""What lies beside the files of packages: strangers, leftovers, and what Python reads at every start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from envlock.runtime.files.compiled import compiled
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.survey import Survey
from envlock.runtime.files.unowned import (
    COUNT_LIMIT,
    PTH_LIMIT,
    Around,
    Pth,
    Stranger,
    customizes,
    fits,
    read_pth,
)
from envlock.runtime.host import read_bytes
from envlock.runtime.report import ERROR, INFO
from envlock.runtime.tables import table


def around(survey: Survey, site: str, seen: Around, *, by: str | None) -> Iterator[Fault]:
    """Yield what is to be said of a `site-packages` besides the files that RECORDs list.

    Args:
        survey: what RECORDs list.
        site: the folder.
        seen: what nobody owns in it.
        by: who looks after the folder, where that is the system: then nothing in it is foreign.
    """
    for stranger in seen.strangers:
        fault = _stranger(stranger, site)
        if by is None or fault.severity == INFO or fault.kind == "half-upgraded":
            yield fault
        elif fault.kind == "startup":
            yield fault._replace(severity=INFO, what=f"{fault.what} (the folder belongs to {by})")
    yield from _left_behind(survey, seen.bytecode)
    yield from _owned_startup(survey, site)


def customized_elsewhere(survey: Survey) -> Iterator[Fault]:
    """Yield `sitecustomize` and `usercustomize` in the other folders of the import path.

    The unchanged one of a distribution's own Python does not count.
    """
    for folder in survey.folders:
        if folder in survey.sites:
            continue
        is_library = os.path.exists(f"{folder}/os.py")
        for name in sorted(filter(customizes, _names(folder))):
            path = f"{folder}/{name}"
            known = _known(path)
            if (
                known is not None
                and (text := _read(path)) is not None
                and fits(text, known["lines"])
            ):
                continue
            owners = tuple(claim.package for claim in survey.claims.get(path, ()))
            what = "runs at every start" + (
                ", and lies in the library of Python itself" if is_library else ""
            )
            yield Fault(
                "startup", path, what, owners, severity=INFO if is_library or owners else ERROR
            )


def _stranger(each: Stranger, site: str) -> Fault:
    path = each.path[len(site) + 1 :]
    name = os.path.basename(path)
    at_top = name == path
    known = _known(path)
    if at_top and name.startswith("~"):
        return Fault("half-upgraded", each.path, f"{_sort(each)} that pip has renamed for removal")
    if at_top and name.endswith(".pth"):
        return _pth(each.path, known)
    if known is not None:
        return Fault("foreign", each.path, "known", severity=INFO, why=known["why"])
    if at_top and customizes(name):
        return Fault("startup", each.path, "runs at every start, and belongs to no package")
    if name.endswith(".pyc"):
        return _sourceless(each)
    return Fault("foreign", each.path, f"{_sort(each)} that belongs to no package")


def _pth(path: str, known: Any | None) -> Fault:
    pth = _read(path)
    if pth is None:
        return Fault("startup", path, "belongs to no package, and cannot be read")
    what = pth.what or "does nothing"
    if known is not None and fits(pth, known["lines"]):
        return Fault("startup", path, what, severity=INFO, why=known["why"])
    return Fault("startup", path, f"belongs to no package, and {what}")


def _owned_startup(survey: Survey, site: str) -> Iterator[Fault]:
    """Yield what the packages themselves let Python do at every start, for information."""
    for name in sorted(_names(site)):
        path = f"{site}/{name}"
        owners = tuple(claim.package for claim in survey.claims.get(path, ()))
        if owners and name.endswith(".pth"):
            pth = _read(path)
            if pth is not None and pth.what:
                yield Fault("startup", path, pth.what, owners, severity=INFO)
        elif customizes(name) and (owners or f"{path}/__init__.py" in survey.claims):
            yield Fault("startup", path, "runs at every start", owners, severity=INFO)


def _sourceless(each: Stranger) -> Fault:
    if os.path.exists(each.path[:-1]):
        return Fault(
            "bytecode", each.path, "is beside its source, which Python uses instead", severity=INFO
        )
    return Fault("bytecode", each.path, "is imported without a source, and belongs to no package")


def _left_behind(survey: Survey, paths: list[str]) -> Iterator[Fault]:
    """Yield bytecode whose source is gone: Python never imports it."""
    for path in paths:
        made_of = compiled(path)
        if made_of is None or (
            made_of.source not in survey.claims and not os.path.exists(made_of.source)
        ):
            what = "is not imported, as it has no source"
            yield Fault("bytecode", path, what, severity=INFO)


def _known(path: str) -> Any | None:
    return next((row for row in table("files")["known"] if fnmatchcase(path, row["path"])), None)


def _read(path: str) -> Pth | None:
    try:
        text = read_bytes(path, PTH_LIMIT)
    except OSError:
        return None
    return None if text is None else read_pth(text.decode("utf-8", "surrogateescape"))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _sort(each: Stranger) -> str:
    if each.is_link:
        return "a link"
    if each.files is None:
        return "a file"
    count = f"{each.files:,}+" if each.files >= COUNT_LIMIT else f"{each.files:,}"
    return f"a folder of {count} file{'' if each.files == 1 else 's'}"
