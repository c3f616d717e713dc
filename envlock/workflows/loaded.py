"""Observe in a child process what the environment loads, or believe the last observation while nothing
that it rested on has changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from envlock.guest import launch
from envlock.packages.live_environment import LiveEnvironment
from envlock.reports.progress import Progress
from envlock.runtime.collectors import Snapshot
from envlock.runtime.compare import IMPORT_FAILED
from envlock.runtime.errors import UsageError
from envlock.runtime.judgement import LOADED
from envlock.runtime.loaded.agreement import align
from envlock.runtime.loaded.identities import get_mark, read_note, write_note
from envlock.runtime.version import __version__

TIMEOUT = 300.0
"""Seconds: the first import of TensorFlow from a network disk takes minutes."""
COMPUTING = ("tensorflow", "jax", "torch")
IMPORTS = (*COMPUTING, "numpy", "keras")
"""In this order, where they are facts: the first that computes brings most of the others."""
PASSING = (
    "_",
    "COLUMNS",
    "LINES",
    "MFLAGS",
    "OLDPWD",
    "PRE_COMMIT",
    "PWD",
    "SHLVL",
    "TERM",
    "WINDOWID",
)
PASSING_PREFIXES = ("GIT_", "MAKE", "SSH_", "TMUX", "XDG_SESSION_")
"""Variables of a terminal, a login, a target of make or a hook of git, which differ from one shell to the
next; git's have the time of each commit.
"""
NOW = "loaded: observed in a process of its own"
BEFORE = "loaded: as observed before; nothing that the observation rested on has changed"


class Observed(NamedTuple):
    """What a process loaded.

    Attributes:
        facts: the section `loaded`; None if nothing could be observed.
        places: the files of this machine, by what the facts call them.
        note: a sentence: on what a report rests, or why there is nothing.
        failed: the imports that failed, or during which the process ended.
    """

    facts: dict[str, Any] | None
    places: Mapping[str, str]
    note: str
    failed: Sequence[str] = ()


def add_loaded(
    document: Mapping[str, Any],
    environment: LiveEnvironment,
    progress: Progress,
    environ: Mapping[str, str] | None = None,
) -> tuple[LiveEnvironment, Observed | None]:
    """Return an environment with what of the lockfile's section `loaded` its processes have, and what
    was observed.

    Args:
        document: a lockfile with that section.
        environment: the environment.
        progress: shows that a process imports.
        environ: the variables of a process; those of this one when not given.
    """
    seen = observe(environment.snapshot, environment.python, progress, environ)
    if seen is None:
        return environment, seen
    if seen.facts is None:
        return LiveEnvironment(
            environment.python, _add_failure(document, environment.snapshot, seen)
        ), seen
    locked, live = document["facts"], environment.snapshot.facts
    builds = [(each.get("python") or {}).get("compiler") for each in (locked, live)]
    section = align(locked[LOADED], seen.facts, is_same_build=builds[0] == builds[1])
    found = environment.snapshot.with_facts({**live, LOADED: section})
    return LiveEnvironment(environment.python, found), seen


def _add_failure(document: Mapping[str, Any], snapshot: Snapshot, seen: Observed) -> Snapshot:
    """Return a snapshot that says what could not be imported, if the lockfile's environment imports it."""
    locked = document["facts"][LOADED].get("imports") or []
    if not seen.failed or not set(seen.failed).issubset(locked):
        return snapshot
    missing = {
        f"{LOADED}.imports": {"reason": seen.note.rpartition(": ")[2], "code": IMPORT_FAILED}
    }
    return snapshot.with_facts({**snapshot.facts, LOADED: {}}, {**snapshot.unavailable, **missing})


def observe(
    snapshot: Snapshot,
    python: Path | None,
    progress: Progress,
    variables: Mapping[str, str] | None = None,
) -> Observed | None:
    """Return what a process of the environment loads; None without a library that computes.

    Args:
        snapshot: the facts of the environment, which say what to import.
        python: its interpreter; this one when not given.
        progress: shows that a process imports.
        variables: those that the process is started with; those of this one when not given.
    """
    names = [name for name in IMPORTS if isinstance(snapshot.facts.get(name), dict)]
    if not any(name in COMPUTING for name in names):
        return None
    environ = dict(os.environ if variables is None else variables)
    key = _make_key(names, python, environ)
    known = read_note(environ, key)
    if _is_current(known):
        return Observed(known["facts"], known["places"], BEFORE)
    progress.say(f"importing {names[0]}, to see what it loads")
    answer = _ask(_make_question(names, snapshot), python, environ)
    if "failed" in answer:
        note = f"loaded: not compared: {answer['failed']}"
        return Observed(None, {}, note, answer.get("imports", ()))
    looked = {path: get_mark(path) for path in answer.pop("looked")}
    write_note(environ, key, {**answer, "looked": looked})
    return Observed(answer["facts"], answer["places"], NOW)


def _make_key(names: list[str], python: Path | None, environ: Mapping[str, str]) -> str:
    """Return the name of the note on an observation: what the process would be started with."""
    kept = (
        name for name in environ if name not in PASSING and not name.startswith(PASSING_PREFIXES)
    )
    variables = sorted((name, environ[name]) for name in kept)
    state = [__version__, names, str(python or ""), variables]
    return "seen-" + sha256(json.dumps(state).encode("ascii")).hexdigest()


def _is_current(known: Mapping[str, Any]) -> bool:
    """Return whether each file and folder is as it was."""
    looked = known.get("looked")
    if not isinstance(looked, dict) or not isinstance(known.get("facts"), dict):
        return False
    return all(get_mark(path) == mark for path, mark in looked.items())


def _make_question(names: list[str], snapshot: Snapshot) -> dict[str, Any]:
    """Return what to import, and what facts say of the code at the start of Python."""
    startup = (snapshot.facts.get("python") or {}).get("startup") or {}
    held = {key: list(startup.get(key) or ()) for key in ("known", "modules")}
    return {"imports": names, **held}


def _ask(question: dict[str, Any], python: Path | None, environ: dict[str, str]) -> dict[str, Any]:
    names = question["imports"]
    words = ["-S", *launch.bind_to_parent(launch.build_module_arguments("imported", question))]
    environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        ended = launch.ask(words, python, timeout=TIMEOUT, environ=environ)
    except UsageError as error:
        return {"failed": error.message}
    if not ended.answers:
        reason = f"the process that imports {names[0]} {ended.ending}"
        # A slow machine says nothing of the environment.
        return {"failed": reason, "imports": [] if ended.code is None else names}
    return ended.answers[-1]
