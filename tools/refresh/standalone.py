"""The builds of python-build-standalone, as the source of the newest uv lists them."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote

from envlock.runtime.errors import OutsideError
from envlock.runtime.release import parse_release
from refresh.rows import Asked, Found, Row, columns
from refresh.web import Web

LIST = "/download-metadata.json"
FILE = re.compile(
    r"cpython-(3\.\d+\.\d+)\+(\d{8})-(x86_64|aarch64)-unknown-linux-gnu-install_only(_stripped)?\.tar\.gz"
)


def ask(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the rows of standalone_pythons.toml: a build that is known stays, though there is a later one of its Python."""
    version, text = web.read_source("uv", LIST)
    known = {(row["python"], row["machine"]): row["release"] for row in table["build"]}
    oldest = parse_release(table["build"][0]["python"])
    rows = []
    for name, sha256 in _list_files(text).items():
        match = FILE.fullmatch(name)
        if match is None or parse_release(match[1]) < oldest:
            continue
        python, release, machine, stripped = match.groups()
        if known.get((python, machine), release) != release:
            continue
        row: dict[str, Any] = {"python": python, "release": release, "machine": machine}
        if stripped:
            row["stripped"] = True
        rows.append({**row, "sha256": sha256, "source": f"uv: {version}, asked on {day}"})
    if not rows:
        raise OutsideError(
            f"uv {version} lists no build for Linux", hint="look at its download-metadata.json"
        )
    found = Found([Asked("build", rows, columns("python", "release", "machine"), _order)])
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


def _list_files(text: str) -> dict[str, str]:
    """Return the SHA-256 of the files of a download-metadata.json.

    Raises:
        OutsideError: it lists no files.
    """
    try:
        entries = json.loads(text).values()
        return {unquote(entry["url"].rpartition("/")[2]): entry["sha256"] for entry in entries}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise OutsideError(
            "download-metadata.json of uv has another form", hint="look at it"
        ) from None


def _order(row: Row) -> tuple[tuple[int, ...], str]:
    return parse_release(row["python"]), row["machine"]
