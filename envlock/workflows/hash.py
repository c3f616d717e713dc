"""Find the exact wheel that each installed package came from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from envlock.lock.live_facts import collect_live_for
from envlock.lock.models import Lockfile, PackageIdentity
from envlock.lock.temporary import open_draft_folder
from envlock.packages import prover as packages
from envlock.packages import wheel_cache
from envlock.packages.indexes.online import configure_indexes
from envlock.packages.indexes.page import SOURCES_ONLY
from envlock.packages.installed_distributions import describe_all_installed
from envlock.packages.local_wheels import Workshop, find_named_wheels
from envlock.packages.lost_proofs import find_lost_proofs
from envlock.packages.parallel import TIMEOUT
from envlock.runtime.errors import EnvironmentMismatch, UsageError
from envlock.runtime.report import ERROR, Finding, Report, count
from envlock.workflows.live_environment import LiveEnvironment, refuse_another_environment
from envlock.workflows.locks import load_lock
from envlock.workflows.progress import SILENT, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


@dataclass(frozen=True)
class HashRequest:
    """Where wheels may come from and how they are proven; see `hash_packages` for the fields."""

    indexes: Sequence[str] = ()
    offline: bool = False
    trust_index: bool = False
    keep: bool = True
    seconds: float = TIMEOUT
    build: bool = False
    wheels: Sequence[Path] = ()


def hash_packages(
    lock: Source | None = None,
    *,
    python: Path | None = None,
    indexes: Sequence[str] = (),
    offline: bool = False,
    trust_index: bool = False,
    keep: bool = True,
    seconds: float = TIMEOUT,
    build: bool = False,
    wheels: Sequence[Path] = (),
    progress: Progress = SILENT,
) -> Lockfile:
    """Return the lockfile with the wheel of every package, or the reason why it is unknown.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        python: the interpreter of the environment; this one when not given.
        indexes: package indexes to ask; those of pip's and uv's settings when not given.
        offline: ask no index.
        trust_index: accept the SHA-256 that the index states for a wheel whose RECORD matches,
        without
            downloading the wheel.
        keep: keep the wheels that were read, for `vendor`.
        seconds: how long the indexes may take for all packages.
        build: build the packages that no index has from their sources, which runs their build
            backends.
        wheels: wheels, and folders of wheels, for packages that no index has.
        progress: shows what is being done.

    Raises:
        EnvironmentMismatch: the packages are not those of the lockfile, or a package whose wheel
        the
            lockfile proves can no longer be proven.
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        OutsideError: an index failed, contradicts itself, or takes too long.
        UsageError: there is no such interpreter, index or wheel, or packages are built and `keep`
        is
            not set.
    """
    old = load_lock(lock)
    environment = LiveEnvironment(python, collect_live_for(old.to_document(), python))
    refuse_another_environment(old, environment.snapshot)
    request = HashRequest(indexes, offline, trust_index, keep, seconds, build, wheels)
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
        findings.append(Finding("proof", ERROR, where, str(proof), why, fix, "design"))
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
    if request.build and not request.keep:
        raise UsageError(
            "a wheel that is built must be kept", hint="leave out `--no-cache` or `--build`"
        )
    place = environment.installation
    known = {}
    if lock.identity is not None:
        known = lock.identity.packages
    named = find_named_wheels(request.wheels)
    own = None
    if lock.project is not None:
        own = lock.project.name
    # The project's own package is not locked, so its wheel is searched for only on request.
    has_own = request.build or own in known or own in named
    installed = describe_all_installed(lock, place, own=has_own)
    with _open_cache(request.keep) as folder, progress.bar("packages", len(installed)) as advance:
        index = None
        if not request.offline:
            index = configure_indexes(list(request.indexes), place.prefix, folder)
        workshop = Workshop(environment.interpreter, folder, named, request.build, progress.say)
        identity = packages.prove(
            installed,
            index,
            known=known,
            trust_index=request.trust_index,
            here=workshop,
            on_done=lambda _: advance(1),
            seconds=request.seconds,
        )
    return packages.add_identity(lock, identity)


def renew_proofs(
    new: Lockfile,
    earlier: Lockfile | None,
    environment: LiveEnvironment,
    progress: Progress,
    *,
    hashes: bool,
) -> Lockfile:
    """Return a lockfile with the proofs of an earlier one that still hold; `hashes` proves the
    packages again.
    """
    if earlier is not None and earlier.identity is not None:
        installed = describe_all_installed(new, environment.installation, own=True)
        identity = packages.keep_valid_proofs(earlier.identity, installed)
        new = packages.add_identity(new, identity)
    if hashes:
        new = prove(new, environment, HashRequest(), progress)
    return new


def describe_proofs(lock: Lockfile) -> Iterator[str]:
    """Yield sentences: how many packages are proven, and why the others are not."""
    packages = {}
    if lock.identity is not None:
        packages = lock.identity.packages
    proven = [package for package in packages.values() if package.wheel is not None]
    yield f"{len(proven):,} of {len(packages):,} packages have a proven wheel{_describe_weak(proven)}"
    for name, package in packages.items():
        if package.reason is not None:
            version = package.version or "(version unknown)"
            yield f"  {name} {version}: {package.reason}"
    own = None
    if lock.project is not None:
        own = lock.project.name
    if own is not None and own not in packages:
        yield (
            f"hint: the project's own package, {own}, is left out: if it is installed and belongs "
            "into an image, use `envlock hash --build`"
        )
    if any(package.wheel is None and _has_sources(package) for package in packages.values()):
        sources = "checkouts, folders and source archives"
        yield f"hint: `envlock hash --build` builds the wheels of {sources}"


def _describe_weak(proven: Sequence[PackageIdentity]) -> str:
    """Return in brackets how many proofs rest on less than all bytes of a wheel from an index."""
    trusted = sum(package.proof == "record" for package in proven)
    built = sum(package.proof == "built" for package in proven)
    parts = []
    if trusted:
        parts.append(f"{trusted} with the hash that the index gives")
    if built == 1:
        parts.append("1 built from its sources")
    elif built:
        parts.append(f"{built} built from their sources")
    if not parts:
        return ""
    return f" ({', '.join(parts)})"


def _has_sources(package: PackageIdentity) -> bool:
    if package.origin in ("editable", "vcs", "local"):
        return True
    return package.reason is not None and package.reason.startswith(SOURCES_ONLY)


@contextmanager
def _open_cache(keep: bool) -> Iterator[Path]:
    if not keep:
        with open_draft_folder(None) as folder:
            yield folder
        return
    yield wheel_cache.get_cache_folder(os.environ, Path.home())
