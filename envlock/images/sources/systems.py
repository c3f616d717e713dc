"""Ubuntu and Debian with the interpreter that the lock has; everything else is installed from hashed wheels. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from envlock.data.images import BaseSystem, Tables
from envlock.images.candidate import Candidate, Value
from envlock.images.reference import DOCKER_HUB, parse
from envlock.images.sources import slim
from envlock.images.sources.interpreters import Interpreter, interpreter
from envlock.images.wanted import Wanted
from envlock.runtime.release import minor


def candidates(asked: Wanted, tables: Tables) -> Iterable[Candidate]:
    """Return each system with its own Python and, where a slim image is not that already, with another."""
    for system in tables.python.system:
        if system.with_python and system.own and system.python == minor(asked.python or ""):
            note = f"Its Python {system.own} is the system's own."
            own = Interpreter(Value(system.own), Value(system.compiler), note)
            yield _candidate(system.with_python, system, own, asked, tables)
        other = interpreter(system, asked, tables) if system.image else None
        if system.image and other and (other.archive is not None or system.os.startswith("ubuntu")):
            yield _candidate(system.image, system, other, asked, tables)


def _candidate(
    image: str, system: BaseSystem, python: Interpreter, asked: Wanted, tables: Tables
) -> Candidate:
    parts = {"python": python.python, "compiler": python.compiler}
    return Candidate(
        route="wheels",
        reference=parse(f"{DOCKER_HUB}/{image}"),
        holds={**slim.installed(asked), **slim.held_by(system), **parts},
        lead=slim.lead(asked),
        exact=asked.tensorflow is not None and asked.label is None,
        obstacles=tuple(slim.obstacles(asked)),
        notes=(python.note, *slim.wheel_notes(asked, tables)),
        python_from=python.image,
        python_archive=python.archive,
        newest=(system.name == slim.NEWEST,),
    )
