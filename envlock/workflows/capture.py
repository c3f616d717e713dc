"""Write the live environment into a lockfile."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envlock.lock import capture as lock
from envlock.lock import machines
from envlock.lock.live import ask, live, live_of
from envlock.lock.merge import OF_COMMIT
from envlock.lock.models import Lockfile
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import UsageError
from envlock.runtime.machines import sentence
from envlock.runtime.policy import DEFAULT
from envlock.workflows.entry_points import section
from envlock.workflows.locks import lock_of
from envlock.workflows.progress import SILENT, Progress
from envlock.workflows.settings import project_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.numerics.target import Target
    from envlock.workflows.locks import Source


def capture(
    policy: str = DEFAULT,
    overrides: Mapping[str, str] | None = None,
    *,
    python: Path | None = None,
    hashes: bool = False,
    canary: bool = False,
    earlier: Lockfile | None = None,
    only: Sequence[str] | None = None,
    project: Mapping[str, Any] | None = None,
    entry: Sequence[str] | None = None,
    programs: Mapping[str, Target] | None = None,
    need_tensorflow: bool = False,
    progress: Progress = SILENT,
) -> Lockfile:
    """Return a lock of the live environment; nothing is written.

    Args:
        policy: how closely it is to be held.
        overrides: rules of the project's own, by path pattern.
        python: the interpreter of the environment; this one when not given.
        hashes: also find the exact wheel of every package.
        canary: also compute the canary in TensorFlow.
        earlier: a lock that this one renews: what it has proven and still holds stays, and so do its other machines.
        only: path patterns of the facts that are renewed; the others stay as in `earlier`.
        project: its `commit`, whether it is `dirty`, and the normalised `name` of its own package, which is left out.
        entry: programs and modules of the project in the current folder; only packages that they import are held. Those
            of `earlier` when not given.
        programs: what the canary also covers, by name: run for two steps, and each operation that they run is computed
            alone. Those of the canary of `earlier` when not given.
        need_tensorflow: refuse an environment without TensorFlow, unless that of `earlier` has none either.
        progress: shows what is going on.

    Raises:
        LockfileError: the policy or a rule does not exist.
        UsageError: there is no such interpreter or entry point, there is no earlier lock to keep facts of, nothing
            fits a pattern, `earlier` has several machines, and this is not one of them, or TensorFlow is missing.
        FactError: the interpreter did not answer, or the canary cannot be computed.
        OutsideError: a package index failed.
    """
    found = live(python)
    if need_tensorflow and (earlier is None or earlier.facts.tensorflow is not None):
        _check_tensorflow(found, python)
    whole, place = earlier, _place(earlier, found)
    earlier = (
        machines.seen_from(whole, place) if whole is not None and place is not None else earlier
    )
    new = lock.capture(policy, overrides, found, section(project or {}, entry, earlier, python))
    new = _accepted(earlier, new, only) if only else new
    new = _with_identity(new, earlier, python, progress, hashes=hashes)
    new = _settled(
        _with_canary(new, earlier, found, python, progress, wanted=canary, programs=programs),
        earlier,
    )
    return new if whole is None or place is None else machines.folded(whole, new, place)


def live_lock(python: Path | None = None) -> Lockfile:
    """Return the live environment as the project of the current folder would lock it, without a look at its lockfile.

    Args:
        python: the interpreter of the environment; this one when not given.

    Raises:
        UsageError: there is no such interpreter, or the project's pyproject.toml is not TOML.
        FactError: the interpreter did not answer.
    """
    name = project_name(Path.cwd())
    return lock.capture(live=live(python), project=None if name is None else {"name": name})


def _check_tensorflow(found: Snapshot, python: Path | None) -> None:
    """Refuse an environment without TensorFlow: most often it is another one than was meant.

    Raises:
        UsageError: it has none; the message lists the folders of its import path.
    """
    if found.facts.get("tensorflow") is not None or "tensorflow" in found.unavailable:
        return
    folders = sys.path if python is None else ask(python, "paths")["folders"]
    shown = ", ".join(each for each in folders if each and Path(each).is_dir())
    raise UsageError(
        f"no TensorFlow in {python or sys.executable}; looked in {shown}",
        hint="activate the environment that has it or name it with `--python`, or add `--without-tensorflow`",
    )


def _place(lock: Lockfile | None, found: Snapshot) -> int | None:
    """Return which of the machines of a lock is renewed; None where it has only one."""
    if lock is None or not lock.machines:
        return None
    place = machines.place_of(lock, found)
    if place is None:
        raise machines.unknown(lock)
    return place


def add_machine(lock: Source | None = None, *, python: Path | None = None) -> tuple[Lockfile, str]:
    """Return the lock with the facts of this machine as another one that it accepts, and a sentence that says which.

    The lock is the same where it has this machine already.

    Raises:
        LockfileError: the lock is missing, unreadable, invalid, or newer than this envlock.
        EnvironmentMismatch: the software differs from the lock's under its policy.
        UsageError: there is no such interpreter, or the lock has as many machines as it can.
        FactError: the interpreter did not answer.
    """
    model = lock_of(lock)
    new, place = machines.with_another(model, live_of(model.to_document(), python))
    return new, sentence(new.to_document(), place, fits=True)


def _with_identity(
    new: Lockfile,
    earlier: Lockfile | None,
    python: Path | None,
    progress: Progress,
    *,
    hashes: bool,
) -> Lockfile:
    """Return the lock with what the earlier one has proven of its packages and still holds, or with new proofs."""
    if earlier is not None and earlier.identity is not None:
        from envlock.packages.installation import installation
        from envlock.packages.installed import everything_installed
        from envlock.packages.prove import kept, with_identity

        new = with_identity(
            new, kept(earlier.identity, everything_installed(new, installation(python), own=True))
        )
    if hashes:
        from envlock.workflows.hash import prove

        new = prove(new, python, progress=progress)
    return new


def _settled(new: Lockfile, earlier: Lockfile | None) -> Lockfile:
    """Return the earlier lock where only the project's commit differs: no commit makes a lock outdated."""
    return (
        earlier if earlier is not None and _without_commit(earlier) == _without_commit(new) else new
    )


def _without_commit(lock: Lockfile) -> dict[str, Any]:
    document = lock.to_document()
    project = {
        key: value for key, value in document.pop("project", {}).items() if key not in OF_COMMIT
    }
    return {**document, **({"project": project} if project else {})}


def _accepted(earlier: Lockfile | None, new: Lockfile, patterns: Sequence[str]) -> Lockfile:
    """Return the earlier lock with some facts of the new one, under the new one's policy and entry points."""
    from envlock.lock.merge import accept, unmatched

    if earlier is None:
        raise UsageError(
            "`--only` needs a valid lockfile to renew",
            hint="run `envlock capture` without it first",
        )
    for pattern in unmatched(patterns, earlier, new):
        raise UsageError(
            f"no fact fits `{pattern}`", hint="run `envlock diff envlock.lock live` for the paths"
        )
    renewed = {} if new.project is None else {"project": new.project}
    return accept(earlier, new, patterns).model_copy(update={"policy": new.policy, **renewed})


def _with_canary(
    new: Lockfile,
    earlier: Lockfile | None,
    found: Snapshot,
    python: Path | None,
    progress: Progress,
    *,
    wanted: bool,
    programs: Mapping[str, Target] | None,
) -> Lockfile:
    """Return the lock with its canary: computed, or else the earlier one where not a fact differs from then."""
    if wanted:
        from envlock.numerics.canary.run import Settings
        from envlock.workflows.canary import measure

        before = None if earlier is None else earlier.numerics
        canary = measure(Settings(), python, found, progress, before, programs)
        return new.model_copy(update={"numerics": canary.numerics})
    if earlier is None or earlier.numerics is None:
        return new
    if (earlier.facts, earlier.unavailable) == (new.facts, new.unavailable):
        return new.model_copy(update={"numerics": earlier.numerics})
    progress.say(
        "warning: dropped the canary of the old lockfile, as facts differ (`--canary` computes a new one)"
    )
    return new
