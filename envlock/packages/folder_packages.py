"""The packages of a build that come from folders of this machine: the project itself, editable
installs, and folders that were installed as a copy.

Their sources can change without a new version. A build takes the project as it lies there now, and
the others only if they are as locked; a line for each says what was taken.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from envlock.lock.interpreter import find_environment
from envlock.lock.live_facts import collect_live_for
from envlock.lock.lock_text import describe_commit
from envlock.lock.models import Lockfile, PackageIdentity, WheelFile
from envlock.lock.revision import find_revision
from envlock.packages.hash import HashRequest, prove
from envlock.packages.installation import Installation, collect_distributions
from envlock.packages.live_environment import LiveEnvironment
from envlock.packages.local_wheels import Workshop
from envlock.packages.source_tree import digest_tree, list_tree
from envlock.packages.sources import Source, find_source
from envlock.packages.wheel_cache import get_wheel_path
from envlock.reports.progress import Progress
from envlock.runtime import lockfile
from envlock.runtime.archives import DamagedArchiveError, open_zip
from envlock.runtime.errors import EnvironmentMismatch, EnvlockError, OutsideError, UsageError
from envlock.runtime.judgement import LOCAL_FOLDER, judge
from envlock.runtime.report import ERROR, Report, count
from envlock.runtime.source_files import list_modules
from envlock.runtime.user_cache import require_cache

SHOWN = 19
"""Characters of a digest in a line: `sha256:` and twelve digits, as of a commit."""


def renew_folders(
    lock: Lockfile, python: Path | None, progress: Progress, *, offline: bool = False
) -> Lockfile:
    """Return the lockfile with a wheel of each package from a folder, built from it as it is now.

    A wheel that was built from the same files is kept. A package whose folder is not on this machine
    keeps its recorded wheel, and a line says so.

    Args:
        lock: the lockfile.
        python: the interpreter of the locked environment; None finds it as all commands do.
        progress: says what is taken.
        offline: build nothing, because a build downloads its backend.

    Raises:
        EnvironmentMismatch: the source of a package is not the locked one.
        OutsideError: a wheel cannot be built, or its folder cannot be read.
        UsageError: a wheel must be built, and `offline` forbids it.
    """
    wanted = set(list_folder_packages(lock))
    own = lock.own_name
    if own is not None:
        wanted.add(own)
    if not wanted:
        return lock
    environment = _find_environment(lock, python)
    folders = find_folders(environment.installation, wanted) if environment is not None else {}
    _say_what_is_recorded(lock, wanted - folders.keys(), progress)
    if environment is None or not folders:
        return lock
    _refuse_other_sources(lock, environment, folders.keys() - {own})
    if offline:
        _refuse_stale_wheels(lock, environment, folders)
    for name, source in folders.items():
        progress.say(_describe_source(name, source, environment.get_package(name) or {}))
    if offline:
        return lock
    # No index is asked for a package from a folder.
    proof = HashRequest(offline=True, build=True, only=folders.keys())
    new = prove(lock, environment, proof, progress)
    for name, source in folders.items():
        _check_wheel(name, Path(source.place), new.identities[name], progress)
    return new


def _check_wheel(name: str, folder: Path, entry: PackageIdentity, progress: Progress) -> None:
    """Check that a folder has a wheel, and warn of what this leaves out.

    Raises:
        OutsideError: it has none.
    """
    if entry.wheel is None:
        hint = "install it again from its folder, and run `envlock capture`"
        raise OutsideError(f"{name} has no wheel: {entry.reason}", hint=hint)
    if entry.origin == "editable":
        _warn_of_left_out(name, folder, entry.wheel, progress)


def _warn_of_left_out(name: str, folder: Path, wheel: WheelFile, progress: Progress) -> None:
    """Say that the wheel lacks modules which the editable install can import, those of tests aside."""
    path = get_wheel_path(Path(require_cache(os.environ)), wheel.sha256, wheel.name)
    try:
        with open_zip(str(path)) as archive:
            inside = {each for each in archive.namelist() if each.endswith(".py")}
        modules = [module.removeprefix("src/") for module in list_modules(str(folder))]
    except (OSError, DamagedArchiveError):
        return
    packages = {each.partition("/")[0] for each in inside if "/" in each}
    left_out = [
        module
        for module in sorted(set(modules) - inside)
        if module.endswith(".py") and module.partition("/")[0] in packages and "test" not in module
    ]
    if left_out:
        progress.say(
            f"warning: {name}: its build leaves out {count(len(left_out), 'module')} that the "
            f"editable install can import, such as {left_out[0]}; the image will not have them"
        )


def list_folder_packages(lock: Lockfile) -> list[str]:
    """Return the locked packages that were installed from a folder, sorted."""
    names = []
    for name, fact in (lock.facts.packages or {}).items():
        origin = fact.origin
        is_folder = origin is not None and origin.url == LOCAL_FOLDER and origin.vcs is None
        # Packages of conda name the folder that they were built in, on another machine.
        if is_folder and fact.installer != "conda":
            names.append(name)
    return sorted(names)


def _find_environment(lock: Lockfile, python: Path | None) -> LiveEnvironment | None:
    """Return the environment that the packages are installed in; None if it was not found."""
    try:
        if python is None:
            python = find_environment(os.environ, Path.cwd()).python
        return LiveEnvironment(python, collect_live_for(lock.to_document(), python))
    except EnvlockError:
        return None


def find_folders(installation: Installation, names: Collection[str]) -> dict[str, Source]:
    """Return the folders on this machine that these packages were installed from, by name."""
    folders = {}
    for name, distribution in sorted(collect_distributions(installation).items()):
        if name not in names:
            continue
        source = find_source(distribution)
        if source is not None and source.kind == "folder" and Path(source.place).is_dir():
            folders[name] = source
    return folders


def _say_what_is_recorded(lock: Lockfile, names: Collection[str], progress: Progress) -> None:
    """Say which packages are taken as the lockfile has them, because their folder is not here."""
    for name in sorted(names):
        entry = lock.identities.get(name)
        # A checkout can be of a package that came from an index.
        if entry is not None and entry.wheel is not None and entry.origin != "index":
            digest = entry.source or entry.tree or f"sha256:{entry.wheel.sha256}"
            progress.say(
                f"{name}: the recorded wheel ({digest[:SHOWN]}); its folder was not found here"
            )


def _describe_source(name: str, source: Source, facts: Mapping[str, Any]) -> str:
    """Return a line on what is taken of a package: its commit, and the digest of its source."""
    place = Path(source.place)
    parts = []
    # A build writes into the lockfile, so that one does not count as a change.
    lock = lockfile.find(source.place)
    revision = find_revision(place, None if lock is None else Path(lock))
    if revision:
        parts.append(describe_commit(revision))
    if (facts.get("origin") or {}).get("editable"):
        parts.append(f"source {str(facts.get('source', 'unknown'))[:SHOWN]}")
    else:
        parts.append(f"files {_digest_folder(name, place)[:SHOWN]}")
    return f"{name}: its folder as it is now, {', '.join(parts)}"


def _digest_folder(name: str, folder: Path) -> str:
    try:
        return digest_tree(list_tree(folder))
    except OSError as error:
        raise OutsideError(f"the folder of {name} cannot be read: {error.strerror}") from None


def _refuse_other_sources(
    lock: Lockfile, environment: LiveEnvironment, names: Collection[str]
) -> None:
    """Check that the sources of these packages are the locked ones, as far as the policy compares
    them.

    Raises:
        EnvironmentMismatch: they are not.
    """
    report = judge(lock.to_document(), environment.snapshot)
    paths = {f"packages.{name}.{leaf}" for name in names for leaf in ("source", "version")}
    findings = [finding for finding in report.of(ERROR) if str(finding.where) in paths]
    if not findings:
        return
    changed = sorted({str(finding.where).split(".")[1] for finding in findings})
    raise EnvironmentMismatch(
        f"the source of {', '.join(changed)} is not the locked one",
        Report(findings, policy=report.policy, overrides=report.overrides, extent=report.extent),
        hint="run `envlock capture` to lock the present source, or restore the locked one; "
        "nothing was built",
    )


def _refuse_stale_wheels(
    lock: Lockfile, environment: LiveEnvironment, folders: Mapping[str, Source]
) -> None:
    """Check that the cache has a wheel of each folder as it is now.

    Raises:
        UsageError: it lacks one.
    """
    workshop = Workshop(environment.interpreter, Path(require_cache(os.environ)))
    stale = []
    for name, source in folders.items():
        entry = lock.identities.get(name)
        if entry is None or not workshop.is_current(source, entry):
            stale.append(name)
    if stale:
        raise UsageError(
            f"`--offline` forbids the network, and {', '.join(stale)} must be built from "
            "sources that have changed",
            hint="run `envlock build` without `--offline`",
        )
