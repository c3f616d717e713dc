"""The facts of the live environment: this interpreter's, or another one's, where envlock need not be installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from envlock.guest import launch
from envlock.runtime.collectors import Snapshot, snapshot
from envlock.runtime.errors import FactError
from envlock.runtime.host import Host
from envlock.runtime.locked_wheels import with_locked_origins
from envlock.runtime.tooling import tooling

TIMEOUT = 60.0  # seconds; a capture takes a fifth of one, plus the start of a slow disk's Python


def live(python: Path | None = None, environ: Mapping[str, str] | None = None) -> Snapshot:
    """Return what the collectors find here, or when the interpreter `python` runs them; with these variables if given.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
        FactError: it did not answer, or not with facts.
    """
    if python is None:
        host = Host() if environ is None else Host(environ=environ, started_with=environ)
        found = snapshot(host)
        return Snapshot(found.facts, found.unavailable, tooling(host))
    return told(ask(python, "facts", environ), str(python))


def told(answer: Mapping[str, Any], who: str) -> Snapshot:
    """Return the snapshot in an answer to `facts`; `who` gave it. Single facts are checked where they enter a lockfile.

    Raises:
        FactError: it has another shape.
    """
    facts: Any = answer.get("facts")
    untold: Any = answer.get("unavailable")
    names: Any = answer.get("tooling", [])
    shaped = isinstance(facts, dict) and isinstance(untold, dict) and isinstance(names, list)
    if not shaped or not all(map(_is_reason, untold.values())):
        raise FactError(
            f"{who} gave an answer that is not one", hint="envlock needs Python 3.8 or newer there"
        )
    return Snapshot(facts, untold, [name for name in names if isinstance(name, str)])


def _is_reason(each: object) -> bool:
    return isinstance(each, dict) and all(
        isinstance(each.get(key), str) for key in ("reason", "code")
    )


def live_of(
    document: dict[str, Any], python: Path | None = None, environ: Mapping[str, str] | None = None
) -> Snapshot:
    """Return what `live` does; a package that has the files of its wheel in the lock has its locked origin.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
        FactError: it did not answer, or not with facts.
    """

    def host() -> Host:
        return Host() if python is None else Host(path=ask(python, "paths")["folders"])

    return with_locked_origins(document, live(python, environ), host)


def ask(
    python: Path,
    question: Literal["facts", "paths", "tensorflow"],
    environ: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return what the interpreter `python` answers; the questions are those of `guest/environment.py`.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
        FactError: it did not answer.
    """
    words = launch.module("environment", {"question": question, "binding": _binding_folder()})
    ended = launch.ask_python(words, python, timeout=TIMEOUT, environ=environ)
    if ended.code is None:
        raise FactError(f"{python} did not answer within {TIMEOUT:g} seconds")
    if not ended.answers:
        said = f"(exit code {ended.code}): {ended.last_words}"
        raise FactError(f"{python} gave no facts {said}", hint="envlock needs Python 3.8 or newer")
    return ended.answers[-1]


def _binding_folder() -> str:
    """Return the folder of this environment's NVML binding, for one that has none; empty where there is none here."""
    spec = find_spec("pynvml")
    return (
        ""
        if spec is None or spec.origin is None or spec.submodule_search_locations
        else str(Path(spec.origin).parent)
    )
