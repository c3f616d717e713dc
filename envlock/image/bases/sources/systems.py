"""Ubuntu and Debian with the locked interpreter; everything else is installed from hashed wheels.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from envlock.data.image_tables import BaseSystem, Tables
from envlock.image.bases.candidate import Candidate, Value
from envlock.image.bases.needs import BaseNeeds
from envlock.image.bases.reference import DOCKER_HUB, parse
from envlock.image.bases.sources import slim
from envlock.image.bases.sources.interpreters import Interpreter, choose_interpreter
from envlock.runtime.release import minor


def list_candidates(needs: BaseNeeds, tables: Tables) -> Iterable[Candidate]:
    """Return each system with its own Python, and with another Python if no slim image has both."""
    for system in tables.python.system:
        if system.with_python and system.own and system.python == minor(needs.python or ""):
            note = f"Its Python {system.own} is the system's own."
            own = Interpreter(Value(system.own), Value(system.compiler), note)
            yield _make_candidate(system.with_python, system, own, needs, tables)
        if not system.image:
            continue
        other = choose_interpreter(system, needs, tables)
        # A Debian with the Python of a slim image equals that slim image.
        if other and (other.archive is not None or system.os.startswith("ubuntu")):
            yield _make_candidate(system.image, system, other, needs, tables)


def _make_candidate(
    image: str, system: BaseSystem, python: Interpreter, needs: BaseNeeds, tables: Tables
) -> Candidate:
    holds = {
        **slim.list_installed(needs),
        **slim.describe_system(system),
        "python": python.python,
        "compiler": python.compiler,
    }
    return Candidate(
        route="wheels",
        reference=parse(f"{DOCKER_HUB}/{image}"),
        holds=holds,
        lead=slim.describe_install(needs),
        exact=needs.tensorflow is not None and needs.label is None,
        obstacles=tuple(slim.list_obstacles(needs)),
        notes=(
            python.note,
            *slim.list_support_notes(system),
            *slim.list_wheel_notes(needs, tables),
        ),
        python_from=python.image,
        python_archive=python.archive,
        newest=(system.name == slim.NEWEST,),
    )
