"""The builds of python-build-standalone, as the newest distribution pbs-installer lists them."""

from __future__ import annotations

import json
import re
from typing import Any

from envlock.runtime.errors import OutsideError
from envlock.runtime.release import parse_release
from refresh.found import Found
from refresh.rows import Asked, Row
from refresh.web import Web

FILE = re.compile(
    r"cpython-(3\.\d+\.\d+)\+(\d{8})-(x86_64|aarch64)-unknown-linux-gnu-install_only(_stripped)?\.tar\.gz"
)


def ask(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the rows of standalone_pythons.toml: a build that is known stays, though there is a later one of its Python."""
    by_version = web.list_wheels("pbs-installer")
    newest = max(by_version)
    text = web.read_member(by_version[newest][0], "pbs_installer/versions.json")
    known = {(row["python"], row["machine"]): row["release"] for row in table["build"]}
    oldest = parse_release(table["build"][0]["python"])
    best: dict[tuple[str, str, str], dict[str, Any]] = {}
    for file in _list_files(text):
        match = FILE.fullmatch(str(file.get("filename")))
        if match is None or parse_release(match[1]) < oldest:
            continue
        python, release, machine, stripped = match.groups()
        if known.get((python, machine), release) != release:
            continue
        row: dict[str, Any] = {"python": python, "release": release, "machine": machine}
        if stripped:
            row["stripped"] = True
        row |= {
            "sha256": file.get("sha256"),
            "source": f"pbs: pbs-installer {newest}, asked on {day}",
        }
        # The stripped one, which is smaller, where both are listed.
        if stripped or (python, release, machine) not in best:
            best[python, release, machine] = row
    rows = list(best.values())
    if not rows:
        raise OutsideError(
            f"pbs-installer {newest} lists no build for Linux", hint="look at its versions.json"
        )
    found = Found([Asked("build", rows, _get_key, _order, "pbs: ", complete=False)])
    found.through = max((row["python"] for row in [*rows, *table["build"]]), key=parse_release)
    added = sorted(
        {row["python"] for row in rows if (row["python"], row["machine"]) not in known},
        key=parse_release,
    )
    if added:
        found.decide.append(
            f"`compiler` of {', '.join(added)}: pythonbuild/downloads.py at the tag of the release; without one it is left out"
        )
    return found


def _list_files(text: str) -> list[dict[str, Any]]:
    """Return the files of a versions.json.

    Raises:
        OutsideError: it lists no files.
    """
    try:
        return [
            file for entry in json.loads(text) for file in entry["files"] if isinstance(file, dict)
        ]
    except (ValueError, TypeError, KeyError):
        raise OutsideError(
            "versions.json of pbs-installer has another form", hint="look at it"
        ) from None


def _get_key(row: Row) -> tuple[str, ...]:
    return row["python"], row["release"], row["machine"]


def _order(row: Row) -> tuple[tuple[int, ...], str]:
    return parse_release(row["python"]), row["machine"]
