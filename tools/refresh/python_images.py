"""The slim images of Python and the systems of Debian and Ubuntu, as docker-library publishes them."""

from __future__ import annotations

import csv
import re
from typing import Any

from envlock.runtime.errors import OutsideError
from envlock.runtime.release import minor, parse_release
from refresh.rows import Asked, Found, Row, columns
from refresh.web import Web

IMAGES = "https://raw.githubusercontent.com/docker-library/official-images/master/library/python"
TAG = re.compile(r"\b(3\.\d+)\.(\d+)-slim-([a-z]+)\b(?!\d)")
RELEASES = "https://git.launchpad.net/ubuntu/+source/distro-info-data/plain"
CONTENTS = (
    "https://raw.githubusercontent.com/docker-library/repo-info/master/repos/buildpack-deps/local"
)
ENDS = {"debian": ("eol-lts", "eol"), "ubuntu": ("eol",)}
"""The columns with the day of the last free security updates; very old Debians had no LTS."""
PACKAGES = {"libc": r"libc6:amd64", "own": r"python3\.\d+", "compiler": r"gcc-\d+"}
"""The columns that a package tells, and its name."""


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
    known = {row["name"]: row for row in table["system"]}
    found, rows = Found(moves_horizon=False), []
    for name in ENDS:
        url = f"{RELEASES}/{name}.csv"
        releases = list(csv.DictReader(web.get(url).splitlines()))
        if not releases or not {"version", "series", "release", *ENDS[name]} <= set(releases[0]):
            raise OutsideError(f"{url} does not list releases", hint="look at it")
        for release in releases:
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
                if old:
                    source = f"{old['source']}; ended: distro-info, asked on {day}"
                    rows.append({**row, "ended": end, "source": source})
                continue
            source = f"repo-info: asked on {day}"
            rows.append({**row, **_describe(web, suite, old), "source": source})
            if not old:
                found.decide.append(f"`image` and `with_python` of {system}: whether there are any")
    found.lists = [Asked("system", rows, columns("name"), _order, grows=("own", "ended"))]
    return found


def _describe(web: Web, suite: str, old: Row) -> dict[str, str]:
    """Return the columns that the packages of a release tell.

    Raises:
        OutsideError: one of them is not listed once.
    """
    url = f"{CONTENTS}/{suite}.md"
    text, row = web.get(url), {}
    for column, package in PACKAGES.items():
        listed = set(re.findall(rf"^- `{package}=([\d.]+)", text, re.MULTILINE))
        if len(listed) != 1:
            raise OutsideError(f"{url} does not list one package {package}", hint="look at it")
        row[column] = listed.pop()
    row["python"] = minor(row["own"])
    row["compiler"] = f"GCC {row['compiler']}"
    # Some print the day of their source too, which no package has in its version.
    if f"{old.get('compiler')} ".startswith(f"{row['compiler']} "):
        row["compiler"] = old["compiler"]
    return row


def _order(row: Row) -> tuple[bool, tuple[int, ...]]:
    name, _, version = row["os"].partition(" ")
    return name != "ubuntu", parse_release(version)
