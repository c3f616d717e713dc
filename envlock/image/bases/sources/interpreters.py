"""A Python for an image without one: copied from a slim image, or a build of
python-build-standalone. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from envlock.data.image_tables import BaseSystem, SlimImages, Tables
from envlock.image.bases.candidate import PythonArchive, Value, compare_versions
from envlock.image.bases.needs import BaseNeeds
from envlock.image.bases.reference import DOCKER_HUB, Reference, get_machine
from envlock.image.bases.sources import slim
from envlock.runtime.release import minor, parse_release


@dataclass(frozen=True)
class Interpreter:
    """A Python: its version and compiler, its origin, and a sentence on that."""

    python: Value
    compiler: Value
    note: str
    image: Reference | None = None
    archive: PythonArchive | None = None


def choose_interpreter(system: BaseSystem, needs: BaseNeeds, tables: Tables) -> Interpreter | None:
    """Return the Python that runs on a system and is most like the locked one; None without one."""
    copied = _find_copied_python(system, needs, tables)
    standalone = _find_standalone_python(needs, tables)
    if copied is None or standalone is None:
        return copied or standalone
    copied_likeness = compare_versions(needs.python, copied.python)
    standalone_likeness = compare_versions(needs.python, standalone.python)
    if copied_likeness != standalone_likeness:
        return copied if copied_likeness > standalone_likeness else standalone
    # A Python that Clang built on Linux is from python-build-standalone; any other is copied.
    return standalone if _has_clang(needs) else copied


def _has_clang(needs: BaseNeeds) -> bool:
    return needs.compiler is not None and needs.compiler.startswith("Clang")


def find_unlisted_machine(needs: BaseNeeds, tables: Tables) -> str | None:
    """Return the machine of a locked Python that only newer tables can have: a build of
    python-build-standalone that may be in its newest release.

    None if the tables have it, or it is not a Python of that project.
    """
    if needs.python is None or not _has_clang(needs):
        return None
    if re.fullmatch(r"3\.[0-9]{1,3}\.[0-9]{1,3}", needs.python) is None:
        return None
    machine = get_machine(needs.platform)
    for row in tables.standalone.build:
        if (row.python, row.machine) == (needs.python, machine):
            return None
    return machine


def _find_copied_python(system: BaseSystem, needs: BaseNeeds, tables: Tables) -> Interpreter | None:
    """Return the Python of a slim image: that of the newest suite whose C library is not newer than
    the system's.
    """
    systems = {row.name: row for row in tables.python.system}

    def get_libc(row: SlimImages) -> tuple[int, ...]:
        return parse_release(systems[row.suite].libc)

    # A program runs on the C library that it was linked with, and on newer ones.
    nearest = slim.find_nearest_pythons(needs.python, tables)
    rows = [row for row in nearest if get_libc(row) <= parse_release(system.libc)]
    exact = [row for row in rows if slim.choose_tag(row, needs.python).python != row.python]
    best = max(exact or rows, key=get_libc, default=None)
    if best is None:
        return None
    tag = slim.choose_tag(best, needs.python).tag
    name = f"{slim.REPOSITORY.removeprefix('library/')}:{tag}"
    return Interpreter(
        Value(slim.find_version(best, needs.python)),
        Value(systems[best.suite].compiler),
        f"It has no Python; the one of {name} is copied.",
        image=Reference(DOCKER_HUB, slim.REPOSITORY, tag),
    )


def _find_standalone_python(needs: BaseNeeds, tables: Tables) -> Interpreter | None:
    """Return a build of python-build-standalone, which runs on any glibc from 2.17 on.

    Source: https://gregoryszorc.com/docs/python-build-standalone/main/running.html, Runtime
    Requirements
    """
    machine = get_machine(needs.platform)
    version = minor(needs.python or "")
    rows = [
        row
        for row in tables.standalone.build
        if row.machine == machine and minor(row.python) == version
    ]
    best = max(
        rows,
        key=lambda row: (
            compare_versions(needs.python, Value(row.python)),
            parse_release(row.python),
        ),
        default=None,
    )
    if best is None:
        return None
    return Interpreter(
        Value(best.python),
        Value(best.compiler),
        f"It has no Python; {best.file} is installed, by hash.",
        archive=PythonArchive(best.file, best.sha256),
    )
