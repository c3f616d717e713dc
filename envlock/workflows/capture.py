"""Write the live environment into a lockfile."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envlock.lock import creation as lock
from envlock.lock import machine_profiles
from envlock.lock.live_facts import ask, collect_live, collect_live_for
from envlock.lock.merging import OF_COMMIT, accept, find_unmatched
from envlock.lock.models import Lockfile
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import UsageError
from envlock.runtime.machines import describe_choice
from envlock.runtime.policies import DEFAULT
from envlock.workflows.capture_requests import Contents
from envlock.workflows.data_capture import add_data_section
from envlock.workflows.entry_points import make_section
from envlock.workflows.live_environment import LiveEnvironment
from envlock.workflows.locks import load_lock
from envlock.workflows.progress import SILENT, Progress
from envlock.workflows.settings import read_project_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


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
        need_tensorflow: refuse an environment without TensorFlow, unless that of `earlier` has none
            either.
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
    if need_tensorflow and (earlier is None or earlier.facts.tensorflow is not None):
        _check_tensorflow(environment)
    _check_backend(environment.snapshot)
    renewal = Renewal(earlier, _find_machine(earlier, environment.snapshot))
    old = renewal.lock
    section = make_section(contents.project or {}, contents.entry, old, environment)
    new = lock.capture(policy, overrides, environment.snapshot, section)
    if contents.only:
        new = _accept_only(old, new, contents.only)
    if contents.hashes or (old is not None and old.identity is not None):
        # Start-up time: this loads HTTP, which a capture without hashes does not need.
        from envlock.workflows.hash import renew_proofs

        new = renew_proofs(new, old, environment, progress, hashes=contents.hashes)
    if contents.canary:
        # Start-up time: this loads the computing half, which a capture without a canary does not
        # need.
        from envlock.workflows.canary import add_canary

        new = add_canary(new, old, environment, contents.programs, progress)
    else:
        new = _keep_canary(new, old, progress)
    if contents.functions or (old is not None and old.program is not None):
        # Start-up time, too.
        from envlock.workflows.program_fingerprints import renew_programs

        new = renew_programs(new, old, environment, contents.functions or {}, progress)
    if contents.only is None:
        new = add_data_section(new, contents.data, progress)
    if old is not None and _remove_commit(old) == _remove_commit(new):
        # Only the commit differs, and a new commit alone does not make a lockfile outdated.
        new = old
    return renewal.merge(new)


def capture_live_lock(python: Path | None = None) -> Lockfile:
    """Return a lockfile of the live environment with the settings of the project in the current
    folder; its own lockfile is not read.

    Args:
        python: the interpreter of the environment; this one when not given.

    Raises:
        UsageError: there is no such interpreter, or the project's pyproject.toml is not TOML.
        FactError: the interpreter did not answer.
    """
    project = {}
    name = read_project_name(Path.cwd())
    if name is not None:
        project["name"] = name
    return lock.capture(live=collect_live(python), project=project or None)


def _check_tensorflow(environment: LiveEnvironment) -> None:
    """Refuse an environment without TensorFlow: most often it is not the one that the user meant.

    Raises:
        UsageError: it has no TensorFlow; the message lists the folders of its import path.
    """
    found = environment.snapshot
    if found.facts.get("tensorflow") is not None or "tensorflow" in found.unavailable:
        return
    folders = sys.path
    if environment.python is not None:
        folders = ask(environment.python, "paths")["folders"]
    shown = ", ".join(folder for folder in folders if folder and Path(folder).is_dir())
    raise UsageError(
        f"no TensorFlow in {environment.interpreter}; looked in {shown}",
        hint="activate the environment that has it or name it with `--python`, or add `--without-tensorflow`",
    )


def _check_backend(found: Snapshot) -> None:
    """Refuse an environment in which Keras is to compute with a library that is not there: nothing would run.

    Raises:
        UsageError: it is so; the message names the library.
    """
    hint = "install it, or choose another back end by KERAS_BACKEND or ~/.keras/keras.json"
    for path, reason in found.unavailable.items():
        if path.startswith("keras.") and reason["code"] == "no-backend":
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
    for key in OF_COMMIT:
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
    for pattern in find_unmatched(patterns, earlier, new):
        raise UsageError(
            f"no fact fits `{pattern}`", hint="run `envlock diff envlock.lock live` for the paths"
        )
    update: dict[str, object] = {"policy": new.policy}
    if new.project is not None:
        update["project"] = new.project
    return accept(earlier, new, patterns).model_copy(update=update)


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
