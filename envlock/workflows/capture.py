"""Write the live environment into a lockfile."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envlock.lock import creation as lock
from envlock.lock import machine_profiles
from envlock.lock.acceptance import accept, add_moved, find_unmatched
from envlock.lock.live_facts import ask, collect_live, collect_live_for
from envlock.lock.locks import load_lock
from envlock.lock.models import Lockfile
from envlock.lock.settings import read_project_name
from envlock.packages.live_environment import LiveEnvironment
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.collectors import Snapshot
from envlock.runtime.compare import OWN_SECTIONS, find_uncompared
from envlock.runtime.errors import UsageError
from envlock.runtime.judgement import LOADED, build_policy
from envlock.runtime.lockfile import find_project
from envlock.runtime.machines import describe_choice
from envlock.runtime.policies import DEFAULT
from envlock.workflows.capture_requests import Contents
from envlock.workflows.data_capture import add_data_section
from envlock.workflows.entry_points import make_section
from envlock.workflows.loaded import observe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source


@dataclass(frozen=True)
class Renewal:
    """The lockfile that a capture renews.

    Attributes:
        whole: the lockfile as it is in the file; None if nothing is renewed.
        machine: the index of this machine among its machines; None if it has only one.
    """

    whole: Lockfile | None
    machine: int | None

    @property
    def lock(self) -> Lockfile | None:
        """The lockfile as if this machine were its only one."""
        if self.whole is None or self.machine is None:
            return self.whole
        return machine_profiles.select_machine(self.whole, self.machine)

    def merge(self, new: Lockfile) -> Lockfile:
        """Return a new lockfile of this machine, together with the other machines of the old one."""
        if self.whole is None or self.machine is None:
            return new
        return machine_profiles.update_machine(self.whole, new, self.machine)


FACTS_ONLY = Contents()
LIBRARIES = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}
"""The sections about libraries that compute, and their names."""


def capture(
    policy: str = DEFAULT,
    overrides: Mapping[str, str] | None = None,
    contents: Contents = FACTS_ONLY,
    *,
    python: Path | None = None,
    earlier: Lockfile | None = None,
    need_tensorflow: bool = False,
    progress: Progress = SILENT,
) -> Lockfile:
    """Return a lockfile of the live environment; nothing is written.

    Args:
        policy: how strictly the environment is compared later.
        overrides: the project's own rules, by path pattern.
        contents: what the lockfile is to hold beside the facts.
        python: the interpreter of the environment; this one when not given.
        earlier: a lockfile that this one renews: its proofs that still hold are kept, and so are
            its other machines.
        need_tensorflow: refuse an environment without TensorFlow, JAX and PyTorch, unless that of
            `earlier` has none either.
        progress: shows what is being done.

    Raises:
        LockfileError: the policy or a rule does not exist.
        UsageError: there is no such interpreter, entry point or data; there is no earlier lockfile
            to keep facts of; no fact matches a pattern; `earlier` has several machines, and this is
            not one of them; or TensorFlow or the library that Keras computes with is missing.
        FactError: the interpreter did not answer, the canary cannot be computed, or data cannot be
            read.
        OutsideError: a package index failed.
    """
    environment = LiveEnvironment(python, collect_live(python))
    if need_tensorflow and (earlier is None or _has_library(earlier)):
        _check_library(environment)
    _check_backend(environment.snapshot)
    if _has_sources(environment):
        # Start-up time: this reads metadata, and most environments have no such package.
        from envlock.workflows.source_notes import note_sources

        note_sources(environment)
    if not contents.static:
        environment = _add_loaded(environment, progress)
    renewal = Renewal(earlier, _find_machine(earlier, environment.snapshot))
    old = renewal.lock
    project = _add_installed_name(contents.project or {}, environment)
    section = make_section(project, contents.entry, old, environment)
    new = lock.capture(policy, overrides, environment.snapshot, section)
    if contents.only:
        new = _accept_only(old, new, contents.only)
    if contents.hashes is not None or (old is not None and old.identity is not None):
        # Start-up time: this loads HTTP, which a capture without hashes does not need.
        from envlock.packages.hash import renew_proofs

        new = renew_proofs(new, old, environment, progress, contents.hashes)
    if contents.canary:
        # Start-up time: this loads the computing half, which a capture without a canary does not
        # need.
        from envlock.evidence.canary.canary import add_canary

        new = add_canary(new, old, environment, contents.programs, progress)
    else:
        new = _keep_canary(new, old, progress)
    if contents.only is None:
        new = add_data_section(new, contents.data, progress)
    if old is not None and _remove_commit(old) == _remove_commit(new):
        # Only the commit differs, and a new commit alone does not make a lockfile outdated.
        new = old
    _say_what_is_not_held(new, progress)
    return renewal.merge(new)


def _add_loaded(environment: LiveEnvironment, progress: Progress) -> LiveEnvironment:
    """Return the environment with what its processes load, if a library that computes is installed."""
    seen = observe(environment.snapshot, environment.python, progress)
    if seen is None:
        return environment
    if seen.facts is None:
        progress.say(f"warning: {seen.note}")
        return environment
    facts = {**environment.snapshot.facts, LOADED: seen.facts}
    _say_what_is_unexplained(seen.facts, seen.places, progress)
    return LiveEnvironment(environment.python, environment.snapshot.with_facts(facts))


def _say_what_is_unexplained(
    facts: Mapping[str, Any], places: Mapping[str, str], progress: Progress
) -> None:
    for each in facts.get("unexplained", []):
        progress.say(f"warning: locked, though nothing explains it: {places.get(each, each)}")


def _add_installed_name(
    project: Mapping[str, object], environment: LiveEnvironment
) -> Mapping[str, object]:
    """Return the section `project` with the name of the package that is installed from the project's
    own folder, where no file gives it: a setup.py may compute it.
    """
    if "name" in project or not _has_sources(environment):
        return project
    # Start-up time: this reads metadata, and most environments have no such package.
    from envlock.packages.sources import find_package

    name = find_package(environment.installation, Path(find_project(str(Path.cwd()))))
    if name is None:
        return project
    return {**project, "name": name}


def _has_sources(environment: LiveEnvironment) -> bool:
    """Return whether a package was installed from a folder or a file of this machine."""
    packages = environment.snapshot.facts.get("packages") or {}
    return any("source" in facts for facts in packages.values())


def capture_live_lock(python: Path | None = None) -> Lockfile:
    """Return a lockfile of the live environment with the settings of the project in the current
    folder; its own lockfile is not read.

    Args:
        python: the interpreter of the environment; this one when not given.

    Raises:
        UsageError: there is no such interpreter, or the project's pyproject.toml is not TOML.
        FactError: the interpreter did not answer.
    """
    environment = LiveEnvironment(python, collect_live(python))
    named = {}
    name = read_project_name(Path.cwd())
    if name is not None:
        named["name"] = name
    project = _add_installed_name(named, environment)
    return lock.capture(live=environment.snapshot, project=project or None)


def _check_library(environment: LiveEnvironment) -> None:
    """Refuse an environment without TensorFlow, JAX and PyTorch: most often it is not the one that
    the user meant.

    Raises:
        UsageError: it has none of them; the message lists the folders of its import path.
    """
    found = environment.snapshot
    if any(_has_section(found, name) for name in LIBRARIES):
        return
    folders = (
        ask(environment.python, "paths")["folders"] if environment.python is not None else sys.path
    )
    shown = ", ".join(folder for folder in folders if folder and Path(folder).is_dir())
    raise UsageError(
        f"no TensorFlow, JAX or PyTorch in {environment.interpreter}; looked in {shown}",
        hint="activate the environment that has it or name it with `--python`, or add `--without-tensorflow`",
    )


def _has_library(lock: Lockfile) -> bool:
    """Return whether a lockfile is of an environment with TensorFlow, JAX or PyTorch."""
    return any(getattr(lock.facts, name) is not None for name in LIBRARIES)


def _has_section(found: Snapshot, name: str) -> bool:
    return found.facts.get(name) is not None or name in found.unavailable


def _say_what_is_not_held(lock: Lockfile, progress: Progress) -> None:
    """Say in one line what a lockfile cannot hold of an environment without TensorFlow."""
    document = lock.to_document()
    side = (document["facts"], document["unavailable"])
    if find_uncompared(side, side, build_policy(document)):
        progress.say(
            "warning: no package is installed that computes: `envlock verify` cannot decide on this lockfile"
        )
    found = Snapshot(*side)
    others = [LIBRARIES[name] for name in OWN_SECTIONS if _has_section(found, name)]
    if others and not _has_section(found, "tensorflow"):
        progress.say(
            f"note: of {' and '.join(others)}, versions, builds and settings are locked; "
            "the CUDA libraries that it loads are locked only as packages, and no canary computes with it"
        )


def _check_backend(found: Snapshot) -> None:
    """Refuse an environment in which Keras is to compute with a library that is not there: nothing would run.

    Raises:
        UsageError: it is so; the message names the library.
    """
    hint = "install it, or choose another back end by KERAS_BACKEND or ~/.keras/keras.json"
    for path, reason in found.unavailable.items():
        if path in OWN_SECTIONS and reason["code"] == "no-backend":
            raise UsageError(reason["reason"], hint=hint)
    keras = found.facts.get("keras") or {}
    backend = (keras.get("config") or {}).get("backend")
    packages = found.facts.get("packages") or {}
    # Of OpenVINO there are no facts that could say so.
    if backend == "openvino" and backend not in packages:
        message = f"Keras is to compute with {backend}, but no {backend} is installed"
        raise UsageError(message, hint=hint)


def _find_machine(earlier: Lockfile | None, found: Snapshot) -> int | None:
    """Return the index of the machine of a lockfile that is renewed; None if it has only one
    machine.
    """
    if earlier is None or not earlier.machines:
        return None
    place = machine_profiles.find_place(earlier, found)
    if place is None:
        raise machine_profiles.make_unknown_error(earlier)
    return place


def add_machine(lock: Source | None = None, *, python: Path | None = None) -> tuple[Lockfile, str]:
    """Return the lockfile with this machine added as one more that it accepts, and a sentence that
    describes the machine.

    The lockfile is unchanged if it has this machine already.

    Raises:
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        EnvironmentMismatch: the software differs from the lockfile's under its policy.
        UsageError: there is no such interpreter, or the lockfile already has the most machines that
            it can.
        FactError: the interpreter did not answer.
    """
    model = load_lock(lock)
    new, place = machine_profiles.add_live_machine(
        model, collect_live_for(model.to_document(), python)
    )
    return new, describe_choice(new.to_document(), place, fits=True)


def _remove_commit(lock: Lockfile) -> dict[str, Any]:
    document = lock.to_document()
    project = document.pop("project", {})
    for key in ("commit", "dirty"):
        project.pop(key, None)
    if project:
        document["project"] = project
    return document


def _accept_only(earlier: Lockfile | None, new: Lockfile, patterns: Sequence[str]) -> Lockfile:
    """Return the earlier lockfile with the matching facts of the new one, under the policy and
    entry points of the new one.

    Raises:
        UsageError: there is no earlier lockfile, or no fact matches a pattern.
    """
    if earlier is None:
        raise UsageError(
            "`--only` needs a valid lockfile to renew",
            hint="run `envlock capture` without it first",
        )
    wanted: list[str] = []
    for pattern in patterns:
        moved = add_moved(pattern, earlier, new)
        if len(find_unmatched(moved, earlier, new)) == len(moved):
            raise UsageError(
                f"no fact matches `{pattern}`",
                hint="run `envlock diff envlock.lock live` for the paths",
            )
        wanted += moved
    update: dict[str, object] = {"policy": new.policy}
    if new.project is not None:
        update["project"] = new.project
    return accept(earlier, new, wanted).model_copy(update=update)


def _keep_canary(new: Lockfile, earlier: Lockfile | None, progress: Progress) -> Lockfile:
    """Return the lockfile with the canary of the earlier one, unless a fact has changed since: that
    may change bits.
    """
    if earlier is None or earlier.numerics is None:
        return new
    if (earlier.facts, earlier.unavailable) == (new.facts, new.unavailable):
        return new.model_copy(update={"numerics": earlier.numerics})
    progress.say(
        "warning: dropped the canary of the old lockfile, as facts differ (`--canary` computes a new one)"
    )
    return new
