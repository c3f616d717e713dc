"""The proofs in a lockfile: for each package the exact wheel, or the reason why it is unknown.
Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from envlock.packages.proofs import LeftOut
from envlock.runtime.collectors.packages import strip_url_secrets
from envlock.runtime.errors import UsageError
from envlock.runtime.judgement import build_policy
from envlock.runtime.policies import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.fact_models import PackageFacts
    from envlock.lock.models import Lockfile, PackageIdentity, WheelFile

NO_VERSION = "its version is unknown"


class Proven(NamedTuple):
    """A package and the wheel that it was installed from.

    `origin` is its direct URL, None for a package that came from an index.
    """

    name: str
    version: str
    wheel: WheelFile
    origin: str | None


def list_proven(lock: Lockfile, shown: str) -> tuple[list[Proven], list[LeftOut]]:
    """Return the packages whose wheel the lockfile proves, and the others, both by name.

    `shown` is the lockfile's name in messages.

    Raises:
        UsageError: the lockfile has no identities, or those of packages that it no longer has.
    """
    if lock.identity is None and lock.facts.packages == {}:
        return [], []
    if lock.identity is None:
        raise UsageError(
            f"lockfile {shown} does not name the wheels of its packages",
            hint="run `envlock capture --hashes` where they are installed; `envlock sync` and "
            "`envlock export --format requirements --no-hashes` need no hashes",
        )
    facts = lock.facts.packages or {}
    identities = lock.identity.packages
    own_name = lock.own_name
    known: list[Proven] = []
    others: list[LeftOut] = []
    for name in sorted(facts.keys() | identities.keys()):
        if name == own_name and name not in facts:
            # The project's own package is not a fact, but it may have a wheel.
            own = identities[name]
            if own.wheel is not None and own.version is not None:
                known.append(Proven(name, own.version, own.wheel, None))
            continue
        fact = facts.get(name)
        identity = identities.get(name)
        if fact is None or identity is None or fact.version != identity.version:
            raise UsageError(
                f"lockfile {shown}: the recorded wheel of {name} is for another version",
                hint="run `envlock capture --hashes` again",
            )
        package = _describe_package(name, fact, identity)
        if isinstance(package, Proven):
            known.append(package)
        else:
            others.append(package)
    return known, others


def _describe_package(name: str, fact: PackageFacts, identity: PackageIdentity) -> Proven | LeftOut:
    version, wheel = fact.version, identity.wheel
    if wheel is None:
        return LeftOut(name, version, identity.reason or "its wheel is unknown")
    if version is None:
        return LeftOut(name, version, NO_VERSION)
    misfit = explain_misfit(name, version, wheel.name)
    if misfit is not None:
        return LeftOut(name, version, misfit)
    url = fact.origin.url if fact.origin is not None else None
    return Proven(name, version, wheel, url)


def list_unhashed(lock: Lockfile) -> list[str]:
    """Return the packages whose wheel was never searched for, in the version that the lockfile has
    now.
    """
    identities = lock.identities
    unknown = []
    for name, fact in (lock.facts.packages or {}).items():
        if name not in identities or identities[name].version != fact.version:
            unknown.append(name)
    return sorted(unknown)


class Checkout(NamedTuple):
    """A package that was built from a commit of a Git repository that a URL names.

    `folder` is the one of the package in the repository; None for its root.
    """

    name: str
    url: str
    commit: str
    folder: str | None


def find_checkout(lock: Lockfile, name: str) -> Checkout | None:
    """Return the commit that a package was built from; None if no URL names it."""
    package = (lock.facts.packages or {}).get(name)
    if package is None or package.origin is None:
        return None
    origin = package.origin
    if origin.vcs != "git" or origin.commit is None or origin.url is None:
        return None
    if f"packages.{name}.origin.subdirectory" in lock.unavailable:
        return None
    is_remote = origin.url.startswith(("https://", "ssh://"))
    if not is_remote or strip_url_secrets(origin.url) != origin.url:
        return None
    return Checkout(name, origin.url, origin.commit, origin.subdirectory)


def split_by_policy(lock: Lockfile, packages: list[LeftOut]) -> tuple[list[LeftOut], list[LeftOut]]:
    """Return the packages that at least one policy compares, and the others.

    The lockfile's overrides apply.

    Raises:
        LockfileError: the lockfile has a rule that does not exist.
    """
    document = lock.to_document()
    policies = [build_policy(document, name) for name in names()]
    compared: list[LeftOut] = []
    others: list[LeftOut] = []
    for package in packages:
        path = f"packages.{package.name}"
        rules: set[str] = set()
        for policy in policies:
            rules.add(policy.row(path)["rule"])
            rules.add(policy.row(f"{path}.version")["rule"])
        if rules == {"ignore"}:
            others.append(package)
        else:
            compared.append(package)
    return compared, others


def split_left_out(lock: Lockfile, packages: list[LeftOut]) -> tuple[list[LeftOut], list[LeftOut]]:
    """Return what is missing where the packages of a lockfile are to be installed, and what is not:
    no policy compares it, or it is the project's own package, which is installed from its folder.

    Raises:
        LockfileError: the lockfile has a rule that does not exist.
    """
    own = lock.own_name
    missing, others = split_by_policy(lock, packages)
    others += [package for package in missing if package.name == own]
    return [package for package in missing if package.name != own], sorted(others)


def explain_misfit(name: str, version: str | None, file: str) -> str | None:
    """Return why no installer would accept a wheel with this file name for a package; None if it
    would.
    """
    if version is None:
        return NO_VERSION
    try:
        package, release, _, _ = parse_wheel_filename(file)
        is_same = (package, release) == (name, Version(version))
    except (InvalidWheelFilename, InvalidVersion):
        return f"installers do not accept version `{version}` or file name `{file}`"
    if not is_same:
        return f"its wheel is named `{file}`, like one of another package or version"
    return None
