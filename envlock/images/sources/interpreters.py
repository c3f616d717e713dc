"""A Python for an image that has none: copied from a slim image, or a build of python-build-standalone. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from envlock.data.images import BaseSystem, SlimImages, StandaloneBuild, Tables
from envlock.images.candidate import PythonArchive, Value, likeness
from envlock.images.reference import DOCKER_HUB, MACHINES, Reference
from envlock.images.sources import slim
from envlock.images.wanted import Wanted
from envlock.runtime.release import minor, numbers


@dataclass(frozen=True)
class Interpreter:
    """A Python: its version and compiler, where it is from, and a sentence on that."""

    python: Value
    compiler: Value
    note: str
    image: Reference | None = None
    archive: PythonArchive | None = None


def interpreter(system: BaseSystem, asked: Wanted, tables: Tables) -> Interpreter | None:
    """Return the Python that is most like the lock's and loads on a system; None where there is none.

    A Python that Clang built on Linux is one of python-build-standalone; any other is rather copied, if its patch
    release can be.
    """
    found = [
        each
        for each in (_copied(system, asked, tables), _standalone(asked, tables))
        if each is not None
    ]
    clang = (asked.compiler or "").startswith("Clang")
    return max(
        found,
        key=lambda each: (likeness(asked.python, each.python), clang is (each.archive is not None)),
        default=None,
    )


def unknown_build(asked: Wanted, tables: Tables) -> str | None:
    """Return the machine of a Python that only a newer release of python-build-standalone than the tables' can have."""
    machine = next(name for name, platform in MACHINES.items() if platform == asked.platform)
    named = re.fullmatch(r"3\.[0-9]{1,3}\.[0-9]{1,3}", asked.python or "") is not None
    known = any(
        (row.python, row.machine) == (asked.python, machine) for row in tables.standalone.build
    )
    return machine if named and not known and (asked.compiler or "").startswith("Clang") else None


def _copied(system: BaseSystem, asked: Wanted, tables: Tables) -> Interpreter | None:
    """Return the Python of a slim image: of the newest suite whose C library is not newer than the system's own."""
    systems = {row.name: row for row in tables.python.system}
    rows = [
        row
        for row in slim.nearest_pythons(asked.python, tables)
        if numbers(systems[row.suite].libc) <= numbers(system.libc)
    ]
    exact = [row for row in rows if slim.tag_of(row, asked.python)[1] != row.python]
    best: SlimImages | None = max(
        exact or rows, key=lambda row: numbers(systems[row.suite].libc), default=None
    )
    if best is None:
        return None
    tag, _ = slim.tag_of(best, asked.python)
    note = (
        f"It has no Python; the one of {slim.REPOSITORY.removeprefix('library/')}:{tag} is copied."
    )
    version, compiler = slim.version_of(best, asked.python), systems[best.suite].compiler
    return Interpreter(
        Value(version), Value(compiler), note, image=Reference(DOCKER_HUB, slim.REPOSITORY, tag)
    )


def _standalone(asked: Wanted, tables: Tables) -> Interpreter | None:
    """Return a build of this minor version by python-build-standalone: they load on any glibc from 2.17 on.

    Source: https://gregoryszorc.com/docs/python-build-standalone/main/running.html, Runtime Requirements
    """
    machine = next(name for name, platform in MACHINES.items() if platform == asked.platform)
    rows: list[StandaloneBuild] = [
        row
        for row in tables.standalone.build
        if row.machine == machine and minor(row.python) == minor(asked.python or "")
    ]
    best = max(
        rows,
        key=lambda row: (likeness(asked.python, Value(row.python)), numbers(row.python)),
        default=None,
    )
    if best is None:
        return None
    note = f"It has no Python; {best.file} is installed, by hash."
    return Interpreter(
        Value(best.python),
        Value(best.compiler),
        note,
        archive=PythonArchive(best.file, best.sha256),
    )
