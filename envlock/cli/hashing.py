"""What `envlock hash` and `envlock capture --hashes` have in common."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from envlock.cli.output import talk
from envlock.cli.progress import bar
from envlock.lock.document import load
from envlock.lock.models import Lockfile
from envlock.packages import cache
from envlock.reports import FORMATS
from envlock.runtime.capture import Snapshot
from envlock.runtime.errors import LockfileError
from envlock.runtime.report import ERROR, Report
from envlock.runtime.verify import judge


def refuse_another_environment(document: dict[str, Any], found: Snapshot) -> None:
    """Exit 1, with the differences, when the packages are not those of the lock."""
    report = judge(document, found)
    findings = [each for each in report.findings if each.severity == ERROR and each.path.startswith("packages")]
    if findings:
        talk(FORMATS["text"](Report(findings, report.policy)))
        talk("nothing was written: the lock is of other packages (`envlock capture` renews it)")
        raise typer.Exit(1)


def find(
    lock: Lockfile,
    python: Path | None,
    *,
    urls: list[str] | None = None,
    offline: bool = False,
    trust_index: bool = False,
    keep: bool = True,
    quiet: bool = False,
) -> Lockfile:
    """Return the lock with what can be said of the origin of every package.

    Raises:
        OutsideError: an index failed, or contradicts itself.
        UsageError: there is no such interpreter, or no such index.
    """
    # here and not above: what talks to an index takes a quarter of a second to import, and most commands need none
    from envlock.packages.indexes.online import online
    from envlock.packages.installation import installation
    from envlock.packages.prove import everything_installed, prove, with_identity

    place = installation(python)
    packages = everything_installed(lock, place)
    known = lock.identity.packages if lock.identity is not None else {}
    with _cache(keep) as folder, bar("packages", len(packages), quiet=quiet) as advance:
        index = None if offline else online(urls or [], place.prefix, folder)
        identity = prove(packages, index, known=known, trust_index=trust_index, on_done=lambda _: advance(1))
    return with_identity(lock, identity)


def carry_over(lock: Lockfile, path: Path, python: Path | None) -> Lockfile:
    """Return a lock made anew with what the one at `path` has proven of the very files that are installed now."""
    try:
        earlier = load(path).identity
    except LockfileError:  # there is none, or nothing in it can be trusted: it is replaced
        earlier = None
    if earlier is None:
        return lock
    from envlock.packages.installation import installation
    from envlock.packages.prove import everything_installed, kept, with_identity

    return with_identity(lock, kept(earlier, everything_installed(lock, installation(python))))


def found(lock: Lockfile) -> Iterator[str]:
    """Yield what a person wants to know of the outcome: how many are proven, and why the others are not."""
    packages = lock.identity.packages if lock.identity is not None else {}
    proven = [each for each in packages.values() if each.wheel is not None]
    trusted = sum(each.proof == "record" for each in proven)
    by_word = f" ({trusted} by the index's word for the hash)" if trusted else ""
    yield f"{len(proven)} of {len(packages)} packages have a proven wheel{by_word}"
    for name, each in packages.items():
        if each.reason is not None:
            yield f"  {name} {each.version or '(version unknown)'}: {each.reason}"


@contextmanager
def _cache(keep: bool) -> Iterator[Path]:
    if keep:
        yield cache.folder(os.environ, Path.home())
        return
    with tempfile.TemporaryDirectory(prefix="envlock-") as folder:
        yield Path(folder)
