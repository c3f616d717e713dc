"""TensorFlow's wheels on the package index: for which Pythons, what they and their extra `and-cuda` require."""

from __future__ import annotations

import re
from collections.abc import Iterable
from email.parser import Parser
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from envlock.data.specifiers import matches_version
from envlock.runtime.errors import OutsideError
from envlock.runtime.release import minor, parse_release
from refresh.index import IndexFile
from refresh.rows import Asked, Found, Row, columns
from refresh.web import Web

PACKAGES = ("numpy", "protobuf", "keras", "keras-nightly")
OLDEST_EXTRA = (2, 14)
OLDEST_NEEDS = (2, 2)
LINUX = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "os_name": "posix",
}
EXTRA = ("exact", "cuda", "cudnn", "nccl")
PREFERRED = "cp311"
"""The Python whose wheel is read where there is one: the other rows are those of that wheel."""


def ask_builds(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the rows of tensorflow_builds.toml."""
    found = Found()
    by_version = web.list_wheels("tensorflow")
    newest = list_newest(by_version, parse_release(table["build"][0]["tensorflow"]))
    known = {minor(row["tensorflow"]): row for row in table["and_cuda"]}
    builds, extras = [], []
    for version in newest:
        line = [file for each in by_version if _is_line(each, version) for file in by_version[each]]
        wheel = choose(list_linux(by_version[version]), version)
        row: dict[str, Any] = {"tensorflow": str(version), "python": _list_pythons(line)}
        wants = {}
        if version.release >= OLDEST_EXTRA:
            wants = _read_extra(web.read_member(wheel, ".dist-info/METADATA"))
        if wants:
            extra = _describe_extra(wants, str(version))
            old = known.get(minor(str(version)), {})
            if old.get("tensorflow") == str(version) or not _is_like(old, extra):
                extras.append({**extra, "source": f"metadata: {wheel.name}, asked on {day}"})
            row |= {"cuda": minor(extra["cuda"]), "cudnn": minor(extra["cudnn"])}
        builds.append(
            {**row, "and_cuda": bool(wants), "source": f"wheels: {wheel.name}, asked on {day}"}
        )
        _report_yanked(found, version, by_version[version])
    found.lists = [
        _make_builds(builds, table),
        Asked("and_cuda", extras, _get_release, _order),
    ]
    found.through = str(newest[-1])
    return found


def ask_needs(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the rows of compatibility.toml: NumPy, protobuf and Keras."""
    found = Found()
    by_version = web.list_wheels("tensorflow-cpu")
    newest = list_newest(by_version, OLDEST_NEEDS)
    rows = []
    for version in newest:
        wheel = choose(list_linux(by_version[version]), version)
        source = f"metadata: {wheel.name}, asked on {day}"
        for package, takes in _list_needs(web.read_member(wheel, ".dist-info/METADATA"), wheel):
            rows.append(
                {
                    "tensorflow": minor(str(version)),
                    "package": package,
                    "takes": takes,
                    "source": source,
                }
            )
            if package == "keras-nightly" and version == newest[-1]:
                found.decide.append(
                    f"TensorFlow {version} requires keras-nightly, and no release does: what follows it"
                )
        wanted = {row["package"] for row in rows if row["tensorflow"] == minor(str(version))}
        found.decide += [
            f"TensorFlow {version} does not require {row['package']}, which its candidate did: take that row away"
            for row in table["needs"]
            if row["tensorflow"] == minor(str(version)) and row["package"] not in wanted
        ]
        _report_yanked(found, version, by_version[version])
    found.lists = [Asked("needs", rows, columns("tensorflow", "package"), _order_needs)]
    found.through = str(newest[-1])
    if not any(matches_version(row["tensorflow"], found.through) for row in table["fails"]):
        found.decide.append(f"`fails` of {minor(found.through)}: the rows end before it")
    return found


def _is_like(old: Row, extra: Row) -> bool:
    """Return whether a patch release requires what the known one does, so that it needs no row."""
    return "rc" not in old.get("tensorflow", "rc") and all(
        old[name] == extra[name] for name in EXTRA
    )


def _list_needs(metadata: str, wheel: IndexFile) -> list[tuple[str, str]]:
    """Return what a wheel requires of the packages that the table is about."""
    python = _get_python(wheel)
    environment = {
        **LINUX,
        "python_version": python,
        "python_full_version": f"{python}.0",
        "extra": "",
    }
    wanted = [each for each in _list_requirements(metadata) if each.name in PACKAGES]
    fitting = [each for each in wanted if each.marker is None or each.marker.evaluate(environment)]
    return [(each.name, _leave_marks(str(each.specifier))) for each in fitting]


def _leave_marks(takes: str) -> str:
    """Return a specifier without what only lets candidates in or keeps them out: >=2.7.0rc0 and <5.0.0dev."""
    return re.sub(r"<(\d+)(\.0)*\.?dev\b", r"<\1", re.sub(r"(>=[\d.]+)rc0\b", r"\1", takes))


def _make_builds(rows: list[dict[str, Any]], table: dict[str, Any]) -> Asked:
    """Return the list of builds; a row of a release has its CUDA from elsewhere, and names the first of its line."""
    known = {minor(row["tensorflow"]): row["tensorflow"] for row in table["build"]}
    asked = []
    for row in rows:
        first = known.get(minor(row["tensorflow"]))
        if first is not None and "rc" not in first:
            asked.append({"tensorflow": first, "python": row["python"], "source": row["source"]})
        elif "cuda" in row:
            asked.append(row)
    return Asked("build", asked, _get_line, _order)


def _get_line(row: Row) -> tuple[str, ...]:
    """Return the minor version, which stands for its patches."""
    return (minor(row["tensorflow"]),)


def _get_release(row: Row) -> tuple[str, ...]:
    """Return the release; a candidate has the place of its own."""
    return (row["tensorflow"].partition("rc")[0],)


def _order(row: Row) -> tuple[int, ...]:
    return parse_release(row["tensorflow"])


def list_newest(versions: Iterable[Version], oldest: tuple[int, ...]) -> list[Version]:
    """Return the newest version of each minor one; a candidate only where no release is newer.

    Raises:
        OutsideError: it has no version.
    """
    newest: dict[tuple[int, ...], Version] = {}
    wanted = [
        each for each in versions if each.release[:2] >= oldest[:2] and not each.is_devrelease
    ]
    releases = [each for each in wanted if not each.is_prerelease]
    last = max(releases, default=Version("0"))
    ahead = [
        each for each in wanted if each > last and each.pre is not None and each.pre[0] == "rc"
    ]
    for each in sorted([*releases, *ahead]):
        newest[each.release[:2]] = each
    if not newest:
        raise OutsideError(
            "the index has no TensorFlow that a table is about", hint="ask again later"
        )
    return list(newest.values())


def _is_line(version: Version, other: Version) -> bool:
    return version.release[:2] == other.release[:2] and version.is_prerelease == other.is_prerelease


def list_linux(files: Iterable[IndexFile]) -> list[IndexFile]:
    return [file for file in files if re.search(r"-(many)?linux\S*_x86_64\.whl$", file.name)]


def _list_pythons(files: Iterable[IndexFile]) -> list[str]:
    found = {_get_python(file) for file in list_linux(files)}
    return sorted(found, key=parse_release)


def _get_python(wheel: IndexFile) -> str:
    """Return the Python of a wheel: 3.11 for cp311."""
    tag = min(parse_wheel_filename(wheel.name)[3], key=str).interpreter
    return f"{tag[2]}.{tag[3:]}"


def choose(wheels: list[IndexFile], version: Version) -> IndexFile:
    """Return the wheel that is read for all: that of one Python, else of the newest.

    Raises:
        OutsideError: it has no version.
    """
    if not wheels:
        raise OutsideError(f"the index has no wheel of {version} for Linux", hint="ask again later")
    preferred = [wheel for wheel in wheels if f"-{PREFERRED}-" in wheel.name]
    return max(preferred or wheels, key=lambda wheel: parse_release(_get_python(wheel)))


def _list_requirements(metadata: str) -> list[Requirement]:
    """Return what a METADATA requires.

    Raises:
        OutsideError: it is not there, or of another form.
    """
    lines = Parser().parsestr(metadata).get_all("Requires-Dist", [])
    try:
        found = [Requirement(line) for line in lines]
    except ValueError as error:
        raise OutsideError(
            f"a METADATA has a requirement of another form: {error}", hint="look at the wheel"
        ) from None
    if not found:
        raise OutsideError(
            "a METADATA requires nothing, which TensorFlow's never did", hint="look at the wheel"
        )
    return found


def _read_extra(metadata: str) -> dict[str, Requirement]:
    """Return what the extra and-cuda requires, by the name without the CUDA at its end."""
    marked = [each for each in _list_requirements(metadata) if "and-cuda" in str(each.marker)]
    return {
        re.sub(r"-cu\d+$", "", each.name): each
        for each in marked
        if each.name.startswith("nvidia-")
    }


def _describe_extra(wants: dict[str, Requirement], version: str) -> dict[str, Any]:
    """Return the row of the extra of a version.

    Raises:
        OutsideError: it asks for no version of something.
    """
    versions, exact = {}, True
    for name, project in (
        ("cuda", "nvidia-cuda-runtime"),
        ("cudnn", "nvidia-cudnn"),
        ("nccl", "nvidia-nccl"),
    ):
        lowest = (
            [each for each in wants[project].specifier if each.operator in ("==", ">=")]
            if project in wants
            else []
        )
        if not lowest:
            raise OutsideError(
                f"and-cuda of {version} asks for no version of {project}",
                hint="look at its METADATA",
            )
        versions[name] = lowest[0].version
        exact = exact and lowest[0].operator == "=="
    return {"tensorflow": version, "exact": exact, **versions}


def _report_yanked(found: Found, version: Version, files: list[IndexFile]) -> None:
    if any(file.yanked for file in files):
        found.decide.append(f"TensorFlow {version} is yanked: whether its rows stay")


def _order_needs(row: Row) -> tuple[tuple[int, ...], int]:
    return parse_release(row["tensorflow"]), PACKAGES.index(row["package"])
