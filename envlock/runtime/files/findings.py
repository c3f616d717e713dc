"""Findings about files: their shape, their reasons from files.toml, their order. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from envlock.runtime.report import ABSENT, ERROR, FILE_RULE, Finding, Severity, clean
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class Kind(TypedDict):
        """A row of files.toml."""

        name: str
        why: str
        fix: str
        source: str
        weight: int


class Fault(NamedTuple):
    """A difference between a file and its record.

    Attributes:
        kind: a kind of files.toml.
        path: absolute.
        what: a short phrase that follows the path in a message.
        packages: titles of the packages that own it.
        expected, actual: further facts of the two sides.
        severity: that of the finding.
        why: instead of the kind's own reason.
    """

    kind: str
    path: str
    what: str
    packages: tuple[str, ...] = ()
    expected: dict[str, object] | None = None
    actual: dict[str, object] | None = None
    severity: Severity = ERROR
    why: str | None = None


def make_findings(faults: Iterable[Fault], sites: list[str]) -> list[Finding]:
    """Return the findings; a path in the first `site-packages` is shown relative to it."""
    converted = [_convert_fault(fault, make_relative(fault.path, sites)) for fault in faults]
    return sorted(converted, key=lambda finding: str(finding.where))


def make_relative(path: str, sites: list[str]) -> str:
    """Return a path relative to the first folder, if it lies in it or near it, as RECORD has it."""
    if not sites:
        return path
    first = sites[0]
    if path.startswith(first + "/"):
        return path[len(first) + 1 :]
    root = first.rsplit("/", 3)[0]
    if not root or not path.startswith(root + "/"):
        return path
    if is_below(path, sites[1:]):
        return path
    return f"../../../{path[len(root) + 1 :]}"


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path lies below one of the folders."""
    return any(path.startswith(folder + "/") for folder in folders)


def _convert_fault(fault: Fault, path: str) -> Finding:
    row = _load_kinds()[fault.kind]
    expected: dict[str, object] = {}
    if fault.packages:
        expected["packages"] = list(fault.packages)
    expected.update(fault.expected or {})
    return Finding(
        FILE_RULE + fault.kind,
        fault.severity,
        path,
        message=f"{clean(path)}: {fault.what}",
        why=fault.why or row["why"],
        fix=row["fix"],
        source=row["source"],
        expected=expected or ABSENT,
        actual={"what": fault.what, **(fault.actual or {})},
        weight=min(100, row["weight"] + _get_path_weight(path)),
    )


@lru_cache(maxsize=None)
def _load_kinds() -> dict[str, Kind]:
    return {row["name"]: row for row in table("files")["kind"]}


def _get_path_weight(path: str) -> int:
    """Return the weight that a fault of this file adds, from the first pattern that matches it."""
    for row in table("files")["first"]:
        if fnmatchcase(path, row["path"]):
            return int(row["weight"])
    return 0
