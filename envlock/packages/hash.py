"""Find the exact wheel that each installed package came from."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from envlock.lock.live_facts import collect_live_for
from envlock.lock.locks import load_lock
from envlock.lock.models import Lockfile
from envlock.packages import prover as packages
from envlock.packages.index import PackageIndex, make_target
from envlock.packages.installed_distributions import describe_all_installed
from envlock.packages.live_environment import LiveEnvironment, refuse_another_environment
from envlock.packages.local_wheels import Workshop, find_named_wheels
from envlock.packages.parallel import TIMEOUT
from envlock.packages.proofs import find_lost_proofs
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.errors import EnvironmentMismatch
from envlock.runtime.report import ERROR, Finding, Report, count
from envlock.runtime.user_cache import require_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source


@dataclass(frozen=True)
class HashRequest:
    """Where wheels may come from, and how they are proven.

    Attributes:
        offline: ask no index.
        seconds: how long the indexes may take for all packages.
        build: build the packages that no index has from their sources, which runs their build
            backends.
        wheels: wheels, and folders of wheels, for packages that no index has.
        only: the packages to prove; all when not given.
    """

    offline: bool = False
    seconds: float = TIMEOUT
    build: bool = False
    wheels: Sequence[Path] = ()
    only: Collection[str] | None = None


PLAIN_REQUEST = HashRequest()


def hash_packages(
    lock: Source | None = None,
    request: HashRequest = PLAIN_REQUEST,
    *,
    python: Path | None = None,
    progress: Progress = SILENT,
) -> Lockfile:
    """Return the lockfile with the wheel of every package, or the reason why it is unknown.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        request: where wheels may come from, and how they are proven.
        python: the interpreter of the environment; this one when not given.
        progress: shows what is being done.

    Raises:
        EnvironmentMismatch: the packages are not those of the lockfile, or a package whose wheel
            the lockfile proves can no longer be proven.
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        OutsideError: an index failed, contradicts itself, or takes too long.
        UsageError: there is no such interpreter, index or wheel.
    """
    old = load_lock(lock)
    environment = LiveEnvironment(python, collect_live_for(old.to_document(), python))
    refuse_another_environment(old, environment.snapshot)
    new = prove(old, environment, request, progress)
    _refuse_lost_proofs(old, new)
    return new


def _refuse_lost_proofs(old: Lockfile, new: Lockfile) -> None:
    """Check that every package that had a proven wheel still has one.

    Raises:
        EnvironmentMismatch: a package has lost its proof.
    """
    gone = find_lost_proofs(old, new)
    if not gone:
        return
    fix = "Reinstall the package, or run `envlock capture` to accept the installed files."
    why = "Other files can compute other bits."
    findings = []
    lines = ""
    for proof in gone:
        where = f"packages.{proof.name}"
        findings.append(
            Finding("proof", ERROR, where, message=str(proof), why=why, fix=fix, source="design")
        )
        lines += f"\n  {proof}"
    verb = "has" if len(gone) == 1 else "have"
    raise EnvironmentMismatch(
        f"{count(len(gone), 'package')} had a proven wheel and now {verb} none:{lines}",
        Report(findings, command="hash"),
        hint="run `envlock capture` to accept the installed files; nothing was written",
    )


def prove(
    lock: Lockfile, environment: LiveEnvironment, request: HashRequest, progress: Progress
) -> Lockfile:
    """Return the lockfile with the origin of every package as far as it can be proven; raises the
    errors of `hash_packages`.
    """
    place = environment.installation
    known = lock.identities
    named = find_named_wheels(request.wheels)
    own = lock.own_name
    own_facts = environment.get_package(own)
    # The project's own package is not locked, so its wheel is searched for only on request, unless
    # it was installed from an index.
    is_wanted = request.build or own in known or own in named
    is_built = own_facts is not None and own_facts.get("origin") is not None
    if is_built and not is_wanted:
        own_facts = None
    installed = describe_all_installed(lock, place, own_facts)
    if request.only is not None:
        installed = [package for package in installed if package.name in request.only]
    folder = Path(require_cache(os.environ))
    with progress.bar("packages", len(installed)) as advance:
        index = None
        if not request.offline:
            index = PackageIndex(make_target(lock), folder, place.prefix)
        workshop = Workshop(
            environment.interpreter, folder, named, request.build, index, progress.say
        )
        identity = packages.prove(
            installed,
            index,
            known=known,
            here=workshop,
            on_done=lambda _: advance(1),
            say=progress.say,
            seconds=request.seconds,
        )
    if request.only is not None:
        merged = dict(sorted({**known, **identity.packages}.items()))
        identity = identity.model_copy(update={"packages": merged})
    return packages.add_identity(lock, identity)


def renew_proofs(
    new: Lockfile,
    earlier: Lockfile | None,
    environment: LiveEnvironment,
    progress: Progress,
    request: HashRequest | None,
) -> Lockfile:
    """Return a lockfile with the proofs of an earlier one that still hold; a request proves the
    packages again.
    """
    if earlier is not None and earlier.identity is not None:
        own = environment.get_package(new.own_name)
        installed = describe_all_installed(new, environment.installation, own)
        identity = packages.keep_valid_proofs(earlier.identity, installed)
        new = packages.add_identity(new, identity)
    if request is not None:
        new = prove(new, environment, request, progress)
    return new
