"""Find the exact wheel that each installed package came from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from envlock.lock.drafts import draft_folder
from envlock.lock.live import live_of
from envlock.lock.models import Lockfile, PackageIdentity
from envlock.packages.parallel import TIMEOUT
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import EnvironmentMismatch, UsageError
from envlock.runtime.report import ERROR, Finding, Report, count
from envlock.runtime.verify import judge
from envlock.workflows.locks import lock_of
from envlock.workflows.progress import SILENT, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


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
    """Return the lock with the wheel of every package, or the reason why none is known.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        python: the interpreter of the environment; this one when not given.
        indexes: package indexes to ask; those of pip's and uv's settings when not given.
        offline: ask no index.
        trust_index: take the index's word for the SHA-256 of a wheel whose RECORD fits.
        keep: keep the wheels that were read, for `vendor`.
        seconds: how long the indexes may take for all packages.
        build: build the packages that no index has from their sources, which runs their build backends.
        wheels: wheels, and folders of wheels, for packages that no index has.
        progress: shows what is going on.

    Raises:
        EnvironmentMismatch: the packages are not those of the lock, or one lost the proof that the lock has.
        LockfileError: the lock is missing, unreadable, invalid, or newer than this envlock.
        OutsideError: an index failed, contradicts itself, or takes too long.
        UsageError: there is no such interpreter, index or wheel, or what is built is not to be kept.
    """
    old = lock_of(lock)
    refuse_another_environment(old, live_of(old.to_document(), python))
    new = prove(
        old,
        python,
        indexes=indexes,
        offline=offline,
        trust_index=trust_index,
        keep=keep,
        seconds=seconds,
        build=build,
        wheels=wheels,
        progress=progress,
    )
    _refuse_lost_proofs(old, new)
    return new


def refuse_another_environment(lock: Lockfile, found: Snapshot) -> None:
    """Do nothing where the packages are those of the lock.

    Raises:
        EnvironmentMismatch: they are not.
    """
    report = judge(lock.to_document(), found)
    findings = [
        each
        for each in report.findings
        if each.severity == ERROR and each.where.fact.startswith("packages")
    ]
    if findings:
        other = Report(findings, policy=report.policy, overrides=report.overrides)
        hint = "run `envlock capture` to lock these packages; nothing was written"
        raise EnvironmentMismatch(other.to_text(), other, hint=hint)


def _refuse_lost_proofs(old: Lockfile, new: Lockfile) -> None:
    """Do nothing where every package that had a proven wheel still has one.

    Raises:
        EnvironmentMismatch: one has none.
    """
    from envlock.packages.proven import lost

    gone = lost(old, new)
    if not gone:
        return
    fix = "Reinstall the package, or run `envlock capture` to accept the installed files."
    why = "Other files can compute other bits."
    findings = [
        Finding("proof", ERROR, f"packages.{each.name}", str(each), why, fix, "design")
        for each in gone
    ]
    lines = "".join(f"\n  {each}" for each in gone)
    raise EnvironmentMismatch(
        f"{count(len(gone), 'package')} had a proven wheel and now {'has' if len(gone) == 1 else 'have'} none:{lines}",
        Report(findings, command="hash"),
        hint="run `envlock capture` to accept the installed files; nothing was written",
    )


def prove(
    lock: Lockfile,
    python: Path | None,
    *,
    indexes: Sequence[str] = (),
    offline: bool = False,
    trust_index: bool = False,
    keep: bool = True,
    seconds: float = TIMEOUT,
    build: bool = False,
    wheels: Sequence[Path] = (),
    progress: Progress,
) -> Lockfile:
    """Return the lock with what can be said of the origin of every package; see `hash_packages`."""
    if build and not keep:
        raise UsageError(
            "a wheel that is built must be kept", hint="leave out `--no-cache` or `--build`"
        )
    from envlock.packages import prove as packages
    from envlock.packages.indexes.online import online
    from envlock.packages.installation import installation
    from envlock.packages.installed import everything_installed
    from envlock.packages.workshop import Workshop, given

    place, known = installation(python), lock.identity.packages if lock.identity is not None else {}
    named = given(wheels)
    own = lock.project and lock.project.name
    installed = everything_installed(lock, place, own=build or own in known or own in named)
    with _cache(keep) as folder, progress.bar("packages", len(installed)) as advance:
        index = None if offline else online(list(indexes), place.prefix, folder)
        here = Workshop(python or Path(sys.executable), folder, named, build, progress.say)
        identity = packages.prove(
            installed,
            index,
            known=known,
            trust_index=trust_index,
            here=here,
            on_done=lambda _: advance(1),
            seconds=seconds,
        )
    return packages.with_identity(lock, identity)


def summary(lock: Lockfile) -> Iterator[str]:
    """Yield how many packages are proven, and why the others are not."""
    packages = lock.identity.packages if lock.identity is not None else {}
    proven = [each for each in packages.values() if each.wheel is not None]
    trusted = sum(each.proof == "record" for each in proven)
    built = sum(each.proof == "built" for each in proven)
    notes = [f"{trusted} with the hash that the index gives"] if trusted else []
    notes += (
        [f"{built} built from its sources" if built == 1 else f"{built} built from their sources"]
        if built
        else []
    )
    by_word = f" ({', '.join(notes)})" if notes else ""
    yield f"{len(proven)} of {len(packages)} packages have a proven wheel{by_word}"
    for name, each in packages.items():
        if each.reason is not None:
            yield f"  {name} {each.version or '(version unknown)'}: {each.reason}"
    own = lock.project.name if lock.project is not None else None
    if own is not None and own not in packages:
        yield (
            f"hint: the project's own package, {own}, is left out: if it is installed and belongs into an image, use "
            "`envlock hash --build`"
        )
    if any(each.wheel is None and _has_sources(each) for each in packages.values()):
        yield "hint: `envlock hash --build` builds the wheels of checkouts, folders and source archives"


def _has_sources(package: PackageIdentity) -> bool:
    from envlock.packages.indexes.page import SOURCES_ONLY

    return package.origin in ("editable", "vcs", "local") or (package.reason or "").startswith(
        SOURCES_ONLY
    )


@contextmanager
def _cache(keep: bool) -> Iterator[Path]:
    if keep:
        from envlock.packages.cache import folder

        yield folder(os.environ, Path.home())
        return
    with draft_folder(None) as cache:
        yield cache
