"""The slim images of Python, as docker-library publishes them."""

from __future__ import annotations

import re
from typing import Any

from envlock.runtime.errors import OutsideError
from envlock.runtime.release import parse_release
from refresh.rows import Asked, Found, columns
from refresh.web import Web

URL = "https://raw.githubusercontent.com/docker-library/official-images/master/library/python"
TAG = re.compile(r"\b(3\.\d+)\.(\d+)-slim-([a-z]+)\b(?!\d)")


def ask(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the rows of python_images.toml: only what is supported upstream is listed, so no row ever goes."""
    text = web.get(URL)
    commit = re.search(r"docker-library/python/blob/([0-9a-f]{40})/", text)
    newest: dict[tuple[str, str], int] = {}
    for python, patch, suite in TAG.findall(text):
        newest[python, suite] = max(int(patch), newest.get((python, suite), 0))
    if commit is None or not newest:
        raise OutsideError(f"{URL} is not the list of images of Python", hint="look at it")
    known = {(row["python"], row["suite"]): row for row in table["slim"]}
    systems = [row["name"] for row in table["system"]]
    found, rows = Found(), []
    for (python, suite), patch in newest.items():
        source = f"docker-library: commit {commit[1]}, asked on {day}"
        old = known.get((python, suite))
        if suite not in systems:
            found.decide.append(
                f"Debian's {suite} has no row of `system`: its Python, its C library and its compiler"
            )
        elif old is None:
            rows.append(
                {"python": python, "suite": suite, "first": patch, "last": patch, "source": source}
            )
        elif patch <= old["last"] + 1:
            rows.append(
                {
                    "python": python,
                    "suite": suite,
                    "last": max(patch, old["last"]),
                    "source": source,
                }
            )
        else:
            found.decide.append(
                f"Python {python} on {suite}: {old['last']} is followed by {patch}; "
                "whether those between were built is not listed"
            )
    found.lists = [
        Asked(
            "slim",
            rows,
            columns("python", "suite"),
            lambda row: (parse_release(row["python"]), systems.index(row["suite"])),
            grows=("last",),
        )
    ]
    ends = {
        **{key: row["last"] for key, row in known.items()},
        **{(row["python"], row["suite"]): row["last"] for row in rows},
    }
    found.through = max(
        (f"{python}.{last}" for (python, _), last in ends.items()), key=parse_release
    )
    return found
