"""The slim images of Python, as docker-library publishes them; the releases of Debian and Ubuntu, by their archives."""

from __future__ import annotations

import csv
import json
import lzma
import re
from typing import Any

from envlock.runtime.errors import OutsideError
from envlock.runtime.release import parse_release
from refresh.index import LARGEST
from refresh.rows import Asked, Found, Row, columns
from refresh.web import Web, unpack

IMAGES = "https://raw.githubusercontent.com/docker-library/official-images/master/library/python"
TAG = re.compile(r"\b(3\.\d+)\.(\d+)-slim-([a-z]+)\b(?!\d)")
ARCHIVES = {"debian": "https://deb.debian.org/debian", "ubuntu": "http://archive.ubuntu.com/ubuntu"}
ENDS = {"debian": ("eol-lts", "eol"), "ubuntu": ("eol",)}
"""The columns with the day of the last free security updates; very old Debians had no LTS."""
POCKETS = {"debian": ("",), "ubuntu": ("", "-updates")}
STANZA = re.compile(
    r"^Package: (libc6|python3(?:\.\d+)?|gcc(?:-\d+)?|distro-info-data)\n(?:.+\n)*", re.MULTILINE
)


def ask_slim(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the rows of python_images.toml: only what is supported upstream is listed, so no row ever goes."""
    text = web.get(IMAGES)
    commit = re.search(r"docker-library/python/blob/([0-9a-f]{40})/", text)
    newest: dict[tuple[str, str], int] = {}
    for python, patch, suite in TAG.findall(text):
        newest[python, suite] = max(int(patch), newest.get((python, suite), 0))
    if commit is None or not newest:
        raise OutsideError(f"{IMAGES} is not the list of images of Python", hint="look at it")
    known = {(row["python"], row["suite"]): row for row in table["slim"]}
    systems = [row["name"] for row in table["system"]]
    found, rows = Found(), []
    for (python, suite), patch in newest.items():
        old = known.get((python, suite), {"last": patch})
        row = {"python": python, "suite": suite, "last": max(patch, old["last"])}
        row |= {} if (python, suite) in known else {"first": patch}
        if suite not in systems:
            found.decide.append(
                f"Debian's {suite} has no row of `system`: its Python, its C library and its compiler"
            )
        elif patch > old["last"] + 1:
            found.decide.append(
                f"Python {python} on {suite}: {old['last']} is followed by {patch}; "
                "whether those between were built is not listed"
            )
        else:
            rows.append({**row, "source": f"docker-library: commit {commit[1]}, asked on {day}"})
    found.lists = [
        Asked(
            "slim",
            rows,
            columns("python", "suite"),
            lambda row: (parse_release(row["python"]), systems.index(row["suite"])),
            grows=("last",),
        )
    ]
    ends = [f"{row['python']}.{row['last']}" for row in [*table["slim"], *rows]]
    found.through = max(ends, key=parse_release)
    return found


def ask_systems(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the systems of python_images.toml: those with free updates; of the others only when they ended."""
    stable = _list_packages(web, "debian", "stable")
    try:
        url = f"{ARCHIVES['debian']}/{stable['distro-info-data']['Filename']}"
    except KeyError:
        raise OutsideError("Debian has no distro-info-data", hint="look at its archive") from None
    releases = json.loads(web.get(url, read_releases))
    known = {row["name"]: row for row in table["system"]}
    found, rows = Found(moves_horizon=False), []
    for name, text in releases.items():
        for release in csv.DictReader(text.splitlines()):
            version, suite = release["version"].partition(" ")[0], release["series"]
            end = next((release[each] for each in ENDS[name] if release[each]), "9999")
            if not version or not (release["release"] or "9999") <= day:
                continue
            if name == "ubuntu" and "LTS" not in release["version"]:
                continue
            system = f"ubuntu{version}" if name == "ubuntu" else suite
            old = known.get(system, {})
            row = {"name": system, "os": f"{name} {version}"}
            if end <= day:
                rows += [{**row, "ended": end}] if old else []
                continue
            rows.append({**row, **_describe(web, name, suite, old)})
            if not old:
                found.decide.append(f"`image` and `with_python` of {system}: whether there are any")
    for row in rows:
        row["source"] = f"archive: asked on {day}"
    if not rows:
        raise OutsideError("distro-info-data lists no release", hint="look at it")
    found.lists = [Asked("system", rows, columns("name"), _order, grows=("own", "ended"))]
    return found


def _describe(web: Web, name: str, suite: str, old: Row) -> dict[str, str]:
    """Return the columns that the packages of a release tell.

    Raises:
        OutsideError: one of them is missing.
    """
    packages: dict[str, dict[str, str]] = {}
    for pocket in POCKETS[name]:
        packages |= _list_packages(web, name, f"{suite}{pocket}")
    try:
        python = re.split(r"[ ,]", packages["python3"]["Depends"])[0]
        gcc = re.split(r"[ ,]", re.sub(r"cpp\S* \(.*?\), ", "", packages["gcc"]["Depends"]))[0]
        versions = {
            each: re.split(r"[-+~]", packages[each]["Version"])[0]
            for each in (python, gcc, "libc6")
        }
    except KeyError as error:
        raise OutsideError(
            f"{suite} has no package {error.args[0]}", hint="look at its archive"
        ) from None
    compiler = f"GCC {versions[gcc]}"
    return {
        "libc": versions["libc6"],
        "python": python.removeprefix("python"),
        "own": versions[python],
        # Some print the day of their source too, which no package has in its version.
        "compiler": old["compiler"]
        if f"{old.get('compiler')} ".startswith(f"{compiler} ")
        else compiler,
    }


def _list_packages(web: Web, name: str, suite: str) -> dict[str, dict[str, str]]:
    text = web.get(f"{ARCHIVES[name]}/dists/{suite}/main/binary-amd64/Packages.xz", read_packages)
    return {
        stanza[1]: dict(re.findall(r"^(Version|Depends|Filename): (.+)$", stanza[0], re.MULTILINE))
        for stanza in STANZA.finditer(text)
    }


def read_packages(body: bytes) -> str:
    """Return what a Packages.xz says of the packages that a row is about."""
    text = lzma.LZMADecompressor().decompress(body, 8 * LARGEST).decode()
    found = [stanza[0] for stanza in STANZA.finditer(text)]
    if not found:
        raise ValueError("it lists none of the packages")
    return "\n".join(found)


def read_releases(body: bytes) -> str:
    """Return debian.csv and ubuntu.csv of a package distro-info-data."""
    if not body.startswith(b"!<arch>\n"):
        raise ValueError("it is no package")
    place = 8
    while place + 60 <= len(body):
        size, start = int(body[place + 48 : place + 58]), place + 60
        if body.startswith(b"data.tar", place):
            texts = unpack(body[start : start + size], lambda name: name.endswith(tuple(TABLES)))
            return json.dumps(
                {TABLES[f"/{path.rpartition('/')[2]}"]: text for path, text in texts.items()}
            )
        place = start + size + size % 2
    raise ValueError("it has no data")


TABLES = {"/debian.csv": "debian", "/ubuntu.csv": "ubuntu"}


def _order(row: Row) -> tuple[bool, tuple[int, ...]]:
    name, _, version = row["os"].partition(" ")
    return name != "ubuntu", parse_release(version)
