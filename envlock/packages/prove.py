"""From installed to hashed: the exact wheel of each package, with its proof or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import Distribution
from math import inf
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from envlock.lock.models import Identity, Lockfile, PackageIdentity, WheelFile
from envlock.packages.indexes.page import IndexFile, choose
from envlock.packages.installation import Installation, by_name, record_of
from envlock.packages.parallel import Advance, Done, run_all
from envlock.runtime.collectors.packages import public_url
from envlock.runtime.errors import EnvlockError, FactError, OutsideError
from envlock.runtime.files.record import content, difference, digest, rows
from envlock.runtime.report import count

WORKERS = 6  # packages at once; more gains nothing on one line and is unkind to an index

NO_RECORD = "it has no RECORD, so it was not installed from a wheel (perhaps by a system package)"

BUNDLED = Path("/usr/share/python-wheels")
"""Where Debian, Ubuntu and Fedora keep the pip and setuptools that `python -m venv` installs, changed by themselves.

Source: https://docs.python.org/3/using/configure.html#cmdoption-with-wheel-pkg-dir
"""

Origin = Literal["index", "url", "vcs", "editable", "local", "conda", "unknown"]


class Seen(Protocol):
    """What reading parts of a wheel told."""

    @property
    def record(self) -> str:
        """Its RECORD."""
        ...

    @property
    def size(self) -> int:
        """In bytes."""
        ...


class Whole(Seen, Protocol):
    """What reading all of a wheel told; the RECORD is in these very bytes."""

    @property
    def sha256(self) -> str:
        """Of all its bytes."""
        ...


class Index(Protocol):
    """The door to the package indexes; every method may raise `EnvlockError` with exit code 5."""

    def files(self, name: str) -> list[IndexFile]:
        """Return what all indexes offer under a normalised name."""
        ...

    def glance(self, file: IndexFile) -> Seen | None:
        """Return the RECORD of a wheel without reading all of it, or None where that cannot be done."""
        ...

    def fetch(self, file: IndexFile) -> Whole:
        """Read a whole file."""
        ...


class Installed(NamedTuple):
    """What is known here of one distribution: its facts as the lock has them, and what its RECORD lists."""

    name: str
    version: str | None
    tags: tuple[str, ...]
    origin: Origin
    url: str | None
    common: dict[str, str] | None
    reason: str | None


def installed(name: str, facts: Mapping[str, Any], found: Distribution | None) -> Installed:
    """Return what is known of a distribution from its facts and its metadata folder."""
    origin, reason = _origin(facts)
    version, tags = facts.get("version"), tuple(facts.get("wheel_tags") or ())
    common: dict[str, str] | None = None
    try:
        text = record_of(found) if found is not None else None
        if text is None:
            reason = reason or NO_RECORD
        else:
            common = content(rows(text))
    except FactError as error:
        reason = reason or error.message
    if reason is None and (version is None or not tags):
        reason = "its metadata has no version or no wheel tags"
    url = (facts.get("origin") or {}).get("url")
    return Installed(name, version, tags, origin, url, common, reason)


def _origin(facts: Mapping[str, Any]) -> tuple[Origin, str | None]:
    """Return where a distribution came from, and why it can have no index file, if that is so."""
    origin = facts.get("origin")
    if facts.get("installer") == "conda":
        return "conda", "installed by conda, whose packages are not wheels"
    if not origin:
        return "index", None
    if origin.get("editable"):
        return "editable", "an editable install of a checkout"
    if origin.get("vcs"):
        at = f" at commit {origin['commit']}" if origin.get("commit") else ""
        return "vcs", f"built from a {origin['vcs']} checkout{at}"
    url = origin.get("url")
    if url is None:
        return "unknown", "installed from a direct URL that cannot be recorded"
    if not url.startswith("http"):
        return "local", "installed from a file or a folder on a disk"
    return "url", None if url.endswith(".whl") else f"built from the archive {url}"


def prove(
    packages: list[Installed],
    index: Index | None,
    *,
    known: Mapping[str, PackageIdentity],
    trust_index: bool = False,
    on_done: Callable[[Installed], None] = lambda _: None,
    seconds: float = inf,
) -> Identity:
    """Return what can be said of every distribution; `index` None is: ask nobody.

    Args:
        packages: what is installed.
        index: where to look.
        known: earlier answers; one whose files are still the same is kept.
        trust_index: take the index's word for the sha256 of a file whose RECORD fits.
        on_done: told of every package that is finished, for a progress bar.
        seconds: how long all of it may take.

    Raises:
        OutsideError: an index failed, contradicts itself or takes too long; the message names every package concerned.
    """
    found: dict[str, PackageIdentity] = {}
    failed: dict[str, EnvlockError] = {}

    def work(each: Installed, advance: Advance) -> PackageIdentity:
        advance(0)
        return _one(each, index, known.get(each.name), trust_index)

    try:
        for event in run_all(packages, work, jobs=WORKERS, expected=(EnvlockError,), seconds=seconds):
            if not isinstance(event, Done):
                continue
            name = event.task.name
            if event.result is not None:
                found[name] = event.result
            elif isinstance(event.error, EnvlockError):
                failed[name] = event.error
            on_done(event.task)
    except TimeoutError:
        left = [each.name for each in packages if each.name not in found and each.name not in failed]
        raise OutsideError(
            f"not finished within {seconds:g} s: {', '.join(left)}",
            hint="use a faster index, or allow more time with `--timeout`",
        ) from None
    if failed:
        raise _failure(failed)
    return Identity(packages=dict(sorted(found.items())))


def still_holds(each: Installed, earlier: PackageIdentity | None, *, whole: bool) -> bool:
    """Return whether an earlier proof is of the very files that are installed now, and as strong as is asked for."""
    return (
        earlier is not None
        and earlier.wheel is not None
        and each.common is not None
        and earlier.version == each.version
        and earlier.content == digest(each.common)
        and (earlier.proof == "file" or not whole)
    )


def _one(each: Installed, index: Index | None, earlier: PackageIdentity | None, trust_index: bool) -> PackageIdentity:
    if earlier is not None and still_holds(each, earlier, whole=index is not None and not trust_index):
        return earlier
    if each.reason is not None or each.version is None or each.common is None:
        return _unproven(each, each.reason or NO_RECORD)
    if index is None:
        return _unproven(each, "no index was used (--offline)")
    if each.origin == "url" and each.url is not None:
        wheels = [_at(each.url)]
    else:
        wheels, reason = choose(index.files(each.name), each.name, each.version, each.tags)
        if reason is not None:
            return _unproven(each, f"{reason}; only its file hashes are known")
    contradiction = None
    for wheel in wheels:
        proven, why = _try(each, wheel, index, trust_index)
        if proven is not None:
            return proven
        contradiction = contradiction or why
    bundled = _bundled(each.name, each.version, each.common)
    if bundled is not None:
        what = f"it is the distribution's own build ({bundled}), which no index has"
        return _unproven(each, f"{what}; `pip install --force-reinstall {each.name}=={each.version}` replaces it")
    return _unproven(each, f"the installed files are not those of {wheels[0].name}: {contradiction}")


def _bundled(name: str, version: str, common: Mapping[str, str]) -> Path | None:
    """Return the wheel of the operating system that holds the very files that are installed, if there is one."""
    from envlock.packages.indexes.ranges import record_of as record_in  # it brings a client for the web

    start = f"{name.replace('-', '_')}-{version}-"
    wheel = next((each for each in sorted(BUNDLED.glob("*.whl")) if each.name.startswith(start)), None)
    try:
        same = wheel is not None and content(rows(record_in(wheel).decode("utf-8", "surrogateescape"))) == common
    except EnvlockError:  # it is damaged
        return None
    return wheel if same else None


def _at(url: str) -> IndexFile:
    """Return the file of a direct URL, of which nothing else is known."""
    return IndexFile(url.rpartition("/")[2], url, None, None, yanked=False, metadata_sha256=None, index_url="")


def _try(
    each: Installed, wheel: IndexFile, index: Index, trust_index: bool
) -> tuple[PackageIdentity | None, str | None]:
    """Return the identity that this wheel proves, or why it is not the one."""
    early = index.glance(wheel)
    if early is not None:
        why = _difference(each, wheel, early.record)
        if why is not None:
            return None, why
        if trust_index and wheel.sha256 is not None:
            return _proven(each, wheel, "record", wheel.sha256, early.size), None
    whole = index.fetch(wheel)
    why = _difference(each, wheel, whole.record)
    if why is None:
        return _proven(each, wheel, "file", whole.sha256, whole.size), None
    if early is not None:
        raise OutsideError(
            f"{wheel.name} changed between two requests: its RECORD matched first, and then not ({why})",
            hint="try again, or use another index; nothing was recorded",
        )
    return None, why


def _difference(each: Installed, wheel: IndexFile, record: str) -> str | None:
    """Return how the installed files differ from those that a wheel's RECORD lists; None: they are the same."""
    try:
        listed = rows(record)
    except FactError as error:
        raise OutsideError(f"{wheel.name}: {error.message}", hint="use another index: this one is damaged") from None
    return difference(dict(each.common or {}), content(listed))


def _proven(
    each: Installed, wheel: IndexFile, proof: Literal["file", "record"], sha256: str, size: int
) -> PackageIdentity:
    file = WheelFile(name=wheel.name, sha256=sha256, size=size, url=_web(wheel.url), index=_web(wheel.index_url))
    return _identity(each, proof=proof, wheel=file)


def _unproven(each: Installed, reason: str) -> PackageIdentity:
    return _identity(each, reason=reason[:1000])


def _identity(
    each: Installed,
    *,
    proof: Literal["file", "record"] | None = None,
    wheel: WheelFile | None = None,
    reason: str | None = None,
) -> PackageIdentity:
    content = None if each.common is None else digest(each.common)
    return PackageIdentity(
        version=each.version, content=content, origin=each.origin, proof=proof, wheel=wheel, reason=reason
    )


def _web(url: str) -> str | None:
    kept = public_url(url)
    return kept if kept is not None and kept.startswith(("http:", "https:")) else None


def _failure(failed: Mapping[str, EnvlockError]) -> OutsideError:
    first = next(iter(failed.values()))
    if len(failed) == 1:
        return OutsideError(f"{next(iter(failed))}: {first.message}", hint=first.hint)
    sentences = "".join(f"\n  {name}: {error.message}" for name, error in sorted(failed.items()))
    return OutsideError(f"{count(len(failed), 'package')} could not be looked up:{sentences}", hint=first.hint)


def everything_installed(lock: Lockfile, place: Installation) -> list[Installed]:
    """Return what is known here of every package of a lock.

    Raises:
        FactError: the environment cannot be read.
    """
    found = by_name(place)
    facts = lock.to_document()["facts"].get("packages") or {}
    return [installed(name, package, found.get(name)) for name, package in facts.items()]


def with_identity(lock: Lockfile, identity: Identity | None) -> Lockfile:
    """Return the lock with this section; without one where there is nothing in it."""
    return lock if identity is None or not identity.packages else lock.model_copy(update={"identity": identity})


def kept(earlier: Identity | None, packages: list[Installed]) -> Identity | None:
    """Return what still holds of an earlier lock's answers."""
    if earlier is None:
        return None
    entries = {each.name: earlier.packages.get(each.name) for each in packages}
    still = {each.name: entries[each.name] for each in packages if _same(each, entries[each.name])}
    return Identity(packages={name: entry for name, entry in still.items() if entry is not None})


def _same(each: Installed, entry: PackageIdentity | None) -> bool:
    content = None if each.common is None else digest(each.common)
    return entry is not None and (entry.version, entry.content) == (each.version, content)
