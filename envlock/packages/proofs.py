"""What a lock proves of its packages and what a renewed one has lost, as sentences. Pure."""

from __future__ import annotations

from typing import NamedTuple

from envlock.runtime.report import clean, join_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from envlock.lock.models import Lockfile, PackageIdentity

NO_WHEEL = "no index has its wheel for this Python and machine"
"""Begins the reason of a package whose wheel was built, and can be built again."""
DISTRIBUTIONS_OWN = "it is the distribution's own build"
"""Begins the reason of a pip that Debian, say, puts into each virtual environment."""
SHOWN = 3
"""Packages that one hint names: of an index on a disk, all are such."""
OTHER_FILES = (
    "its RECORD is not the one that was proven (`envlock capture --hashes` looks for its wheel)"
)


OTHER_SOURCE = "its source has changed (`envlock build` builds its wheel again)"


class LeftOut(NamedTuple):
    """A package that is not among the requested ones, and why."""

    name: str
    version: str | None
    reason: str

    def __str__(self) -> str:
        """Return one line, whatever the texts hold."""
        return clean(f"{self.name} {self.version or '(version unknown)'}: {self.reason}")


def find_lost_proofs(earlier: Lockfile, now: Lockfile) -> list[LeftOut]:
    """Return the packages that had a proven wheel and have none in the same version now, by name."""
    present = {*(now.facts.packages or {}), now.own_name}
    identities = now.identities
    found = []
    for name, old in sorted(earlier.identities.items()):
        if old.wheel is None or name not in present:
            continue
        new = identities.get(name)
        if new is None:
            why = OTHER_FILES if old.tree is None else OTHER_SOURCE
            found.append(LeftOut(name, old.version, why))
        elif new.wheel is None and new.version == old.version:
            found.append(LeftOut(name, old.version, new.reason or OTHER_FILES))
    return found


def describe_proofs(lock: Lockfile) -> Iterator[str]:
    """Yield sentences: how many packages are proven, and why the others are not."""
    packages = lock.identities
    proven = [package for package in packages.values() if package.wheel is not None]
    yield f"{len(proven):,} of {len(packages):,} packages have a proven wheel{_describe_weak(proven)}"
    for name, package in packages.items():
        if package.reason is not None:
            version = package.version or "(version unknown)"
            yield f"  {name} {version}: {package.reason}"
    yield from _describe_wrong_records(packages)
    unaddressed = [name for name, package in packages.items() if _lacks_address(package)]
    if unaddressed:
        names = join_first(unaddressed, SHOWN)
        yield (
            f"hint: another machine cannot download the wheels of {names}: to build there, copy the "
            "wheelhouse, or reinstall them from an index on the web and capture again"
        )
    if any(package.wheel is None and _has_sources(package) for package in packages.values()):
        sources = "checkouts, folders and source archives"
        yield f"hint: `envlock capture --hashes --build` builds the wheels of {sources}"


def _describe_wrong_records(packages: Mapping[str, PackageIdentity]) -> Iterator[str]:
    for name, package in packages.items():
        if package.wrong_record is not None:
            yield (
                f"warning: {name} {package.version}: {package.wrong_record.what}; the installed files "
                "are those of the wheel, and the mistake is its publisher's"
            )


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


def _lacks_address(package: PackageIdentity) -> bool:
    """Return whether a package of an index has a wheel without an address.

    Such as the setuptools that Debian's `python -m venv` installs.
    """
    return package.origin == "index" and package.wheel is not None and package.wheel.url is None


def _has_sources(package: PackageIdentity) -> bool:
    if package.origin in ("editable", "vcs", "local"):
        return True
    return package.reason is not None and package.reason.startswith(NO_WHEEL)
