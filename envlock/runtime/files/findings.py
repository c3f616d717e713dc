"""Findings about files: their shape, their reasons from files.toml, their order. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, NamedTuple

from envlock.runtime.report import ABSENT, ERROR, FILE_RULE, Finding, clean
from envlock.runtime.tables import table


class Fault(NamedTuple):
    """One thing that is not as recorded.

    Attributes:
        kind: a kind of files.toml.
        path: absolute.
        what: a short phrase for people, after the path.
        packages: titles of those that own it.
        expected, actual: what else is known of the two sides.
        severity: of the finding.
        why: instead of the kind's own reason.
    """

    kind: str
    path: str
    what: str
    packages: tuple[str, ...] = ()
    expected: dict[str, Any] | None = None
    actual: dict[str, Any] | None = None
    severity: str = ERROR
    why: str | None = None


def findings(faults: Iterable[Fault], sites: list[str]) -> list[Finding]:
    """Return the findings; a path in the first `site-packages` is shown relative to it."""
    found = [_finding(fault, relative(fault.path, sites)) for fault in faults]
    return sorted(found, key=lambda finding: str(finding.where))


def relative(path: str, sites: list[str]) -> str:
    """Return a path relative to the first of the folders, if it lies there or near it, as RECORD would have it."""
    if not sites:
        return path
    first = sites[0]
    if path.startswith(first + "/"):
        return path[len(first) + 1 :]
    root = first.rsplit("/", 3)[0]
    is_near = (
        root
        and path.startswith(root + "/")
        and not any(path.startswith(site + "/") for site in sites[1:])
    )
    return f"../../../{path[len(root) + 1 :]}" if is_near else path


def _finding(fault: Fault, path: str) -> Finding:
    row = _kinds()[fault.kind]
    owners = {"packages": list(fault.packages)} if fault.packages else {}
    expected = {**owners, **(fault.expected or {})}
    return Finding(
        FILE_RULE + fault.kind,
        fault.severity,
        path,
        f"{clean(path)}: {fault.what}",
        fault.why or row["why"],
        row["fix"],
        row["source"],
        expected=expected or ABSENT,
        actual={"what": fault.what, **(fault.actual or {})},
        weight=min(100, row["weight"] + _first(path)),
    )


@lru_cache(maxsize=None)
def _kinds() -> dict[str, Any]:
    return {row["name"]: row for row in table("files")["kind"]}


def _first(path: str) -> int:
    return next(
        (row["weight"] for row in table("files")["first"] if fnmatchcase(path, row["path"])), 0
    )
