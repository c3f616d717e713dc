"""The facts of the live environment: those of this interpreter, or of another one.

envlock does not have to be installed in the other environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from envlock.guest import launch
from envlock.runtime.collectors import Snapshot, take_snapshot
from envlock.runtime.errors import FactError
from envlock.runtime.host import Host
from envlock.runtime.locked_wheels import restore_locked_origins
from envlock.runtime.tooling import find_required, find_tooling

TIMEOUT = 60.0
"""Seconds: a capture takes a fifth of one, plus the start of Python on a slow disk."""


def collect_live(python: Path | None = None, environ: Mapping[str, str] | None = None) -> Snapshot:
    """Return the facts of an environment.

    Args:
        python: the interpreter that collects them; this one when not given.
        environ: its variables; those of this process when not given.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
        FactError: it did not answer, or not with facts.
    """
    if python is None:
        host = Host(environ=environ, started_with=environ) if environ is not None else Host()
        found = take_snapshot(host)
        return Snapshot(found.facts, found.unavailable, find_tooling(host), find_required(host))
    return parse_snapshot(ask(python, "facts", environ), str(python))


def parse_snapshot(answer: Mapping[str, object], who: str) -> Snapshot:
    """Return the snapshot in an answer to `facts`; `who` is the name of the interpreter in
    messages.

    Single facts are checked later, when they are put into a lockfile.

    Raises:
        FactError: the answer has another shape.
    """
    facts = answer.get("facts")
    unavailable = answer.get("unavailable")
    tooling, required = answer.get("tooling", []), answer.get("required", [])
    if (
        not isinstance(facts, dict)
        or not isinstance(unavailable, dict)
        or not isinstance(tooling, list)
        or not isinstance(required, list)
        or not all(map(_is_reason, unavailable.values()))
    ):
        raise FactError(
            f"{who} gave an answer that is not one", hint="envlock needs Python 3.8 or newer there"
        )
    return Snapshot(facts, unavailable, _keep_texts(tooling), _keep_texts(required))


def _keep_texts(values: list[object]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _is_reason(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("reason"), str) and isinstance(value.get("code"), str)


def collect_live_for(
    document: dict[str, object],
    python: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Snapshot:
    """Do what `collect_live` does, and give packages that are their locked wheels the locked
    origin.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
        FactError: it did not answer, or not with facts.
    """

    def make_host() -> Host:
        if python is None:
            return Host()
        return Host(path=ask(python, "paths")["folders"])

    return restore_locked_origins(document, collect_live(python, environ), make_host)


def ask(
    python: Path,
    question: Literal["facts", "paths", "tensorflow", "gpu-health"],
    environ: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the answer of the interpreter `python` to a question of `guest/environment.py`.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
        FactError: it did not answer.
    """
    words = launch.build_module_arguments(
        "environment", {"question": question, "binding": _find_binding()}
    )
    ended = launch.ask_python(words, python, timeout=TIMEOUT, environ=environ)
    if ended.code is None:
        raise FactError(f"{python} did not answer within {TIMEOUT:g} seconds")
    if not ended.answers:
        raise FactError(
            f"{python} gave no facts (exit code {ended.code}): {ended.last_words}",
            hint="envlock needs Python 3.8 or newer",
        )
    return ended.answers[-1]


def _find_binding() -> str:
    """Return the folder of this environment's NVML binding, for an environment without one; empty
    if this one has no binding, either.
    """
    spec = find_spec("pynvml")
    # The folder of a package's own file is not one to import from.
    if spec is None or spec.origin is None or spec.submodule_search_locations:
        return ""
    return str(Path(spec.origin).parent)
