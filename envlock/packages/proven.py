"""What a lock proves: for each package the exact wheel, or the reason why there is none. Pure."""

from __future__ import annotations

from typing import NamedTuple

from envlock.runtime.collectors.packages import public_url
from envlock.runtime.errors import UsageError
from envlock.runtime.policy import names
from envlock.runtime.report import clean
from envlock.runtime.verify import policy_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile, WheelFile


OTHER_FILES = "its RECORD is not the one that was proven (`envlock hash` looks for its wheel)"


class Proven(NamedTuple):
    """A package and the wheel it was installed from; `origin` is its direct URL, None when it came from an index."""

    name: str
    version: str
    wheel: WheelFile
    origin: str | None


class LeftOut(NamedTuple):
    """A package that is not among what was asked for, and why."""

    name: str
    version: str | None
    reason: str

    def __str__(self) -> str:
        """Return one line, whatever the texts hold."""
        return clean(f"{self.name} {self.version or '(version unknown)'}: {self.reason}")


def proven(lock: Lockfile, shown: str) -> tuple[list[Proven], list[LeftOut]]:
    """Return the packages whose wheel the lock proves and the others, both by name; `shown` names the lock.

    Raises:
        UsageError: the lock has no identities, or those of other packages than it has now.
    """
    if lock.identity is None:
        raise UsageError(
            f"lockfile {shown} does not name the wheels of its packages",
            hint="run `envlock hash` to add them",
        )
    facts, identities = lock.facts.packages or {}, lock.identity.packages
    known: list[Proven] = []
    others: list[LeftOut] = []
    own = lock.project and lock.project.name  # no fact, and yet it may have a wheel
    for name in sorted(facts.keys() | identities.keys()):
        if name == own and name not in facts:
            each = identities[name]
            if each.wheel is not None and each.version is not None:
                known.append(Proven(name, each.version, each.wheel, None))
            continue
        if (
            name not in facts
            or name not in identities
            or facts[name].version != identities[name].version
        ):
            raise UsageError(
                f"lockfile {shown}: the recorded wheel of {name} is for another version",
                hint="run `envlock hash` again",
            )
        version, wheel, origin = facts[name].version, identities[name].wheel, facts[name].origin
        reason = identities[name].reason if wheel is None else misfit(name, version, wheel.name)
        if reason is not None or wheel is None or version is None:
            others.append(LeftOut(name, version, reason or "its wheel is unknown"))
        else:
            known.append(Proven(name, version, wheel, None if origin is None else origin.url))
    return known, others


def unasked(lock: Lockfile) -> list[str]:
    """Return the packages whose wheel nobody has looked for yet; of the others it is known, or why there is none."""
    known = lock.identity.packages if lock.identity is not None else {}
    facts = lock.facts.packages or {}
    return sorted(
        name
        for name, fact in facts.items()
        if name not in known or known[name].version != fact.version
    )


class Checkout(NamedTuple):
    """A package that was built from a commit of a public Git repository, in a folder of it or (None) in its root."""

    name: str
    url: str
    commit: str
    folder: str | None


def checkout(lock: Lockfile, name: str) -> Checkout | None:
    """Return the commit that a package was built from, where its URL says whence anybody can get it; else None."""
    package = (lock.facts.packages or {}).get(name)
    origin = None if package is None else package.origin
    if origin is None or origin.vcs != "git" or origin.commit is None or origin.url is None:
        return None
    if f"packages.{name}.origin.subdirectory" in lock.unavailable:
        return None
    is_public = (
        origin.url.startswith(("https://", "ssh://")) and public_url(origin.url) == origin.url
    )
    return Checkout(name, origin.url, origin.commit, origin.subdirectory) if is_public else None


def held(lock: Lockfile, packages: list[LeftOut]) -> tuple[list[LeftOut], list[LeftOut]]:
    """Return the packages that some policy compares under the lock's overrides, and those that none does.

    Raises:
        LockfileError: the lock has a rule that does not exist.
    """
    document = lock.to_document()
    policies = [policy_of(document, name) for name in names()]
    compared: list[LeftOut] = []
    others: list[LeftOut] = []
    for each in packages:
        path = f"packages.{each.name}"
        rules = {
            policy.row(place)["rule"] for policy in policies for place in (path, f"{path}.version")
        }
        (others if rules == {"ignore"} else compared).append(each)
    return compared, others


def lost(earlier: Lockfile, now: Lockfile) -> list[LeftOut]:
    """Return the packages that had a proven wheel and have none in the same version now, by name, and why."""
    had, has = (
        lock.identity.packages if lock.identity is not None else {} for lock in (earlier, now)
    )
    counted = {*(now.facts.packages or {}), now.project and now.project.name}
    found = []
    for name, old in sorted(had.items()):
        new = has.get(name)
        is_gone = old.wheel is not None and (new is None or new.wheel is None)
        if is_gone and name in counted and (new is None or new.version == old.version):
            found.append(LeftOut(name, old.version, (new and new.reason) or OTHER_FILES))
    return found


def misfit(name: str, version: str | None, file: str) -> str | None:
    """Return why no installer would take a wheel of this name for that package, or None."""
    from packaging.utils import (
        InvalidWheelFilename,
        parse_wheel_filename,
    )  # here: most commands need none of it
    from packaging.version import InvalidVersion, Version

    if version is None:
        return "its version is unknown"
    try:
        package, release, _, _ = parse_wheel_filename(file)
        fits = (package, release) == (name, Version(version))
    except (InvalidWheelFilename, InvalidVersion):
        return f"installers do not accept version `{version}` or file name `{file}`"
    return None if fits else f"its wheel is named `{file}`, like one of another package or version"
