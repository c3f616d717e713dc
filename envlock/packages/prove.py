"""From installed to hashed: the exact wheel of each package, with its proof or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Literal, Protocol

from envlock.lock.models import Identity, Lockfile, PackageIdentity, WheelFile
from envlock.packages.indexes.page import IndexFile, choose, source_archives
from envlock.packages.installed import NO_RECORD, Installed
from envlock.packages.parallel import Advance, Done, run_all
from envlock.packages.proven import misfit
from envlock.packages.sources import Source
from envlock.runtime.collectors.packages import public_url
from envlock.runtime.errors import EnvlockError, FactError, OutsideError
from envlock.runtime.files.record import content, difference, digest, rows
from envlock.runtime.report import count

WORKERS = 6  # packages at once; more gains nothing on one line and is unkind to an index
TOO_SLOW = "use a faster index, or run it again"

BUNDLED = Path("/usr/share/python-wheels")
"""Where Debian, Ubuntu and Fedora keep the pip and setuptools that `python -m venv` installs, changed by themselves.

Source: https://docs.python.org/3/using/configure.html#cmdoption-with-wheel-pkg-dir
"""


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
        """Read a whole wheel."""
        ...

    def archive(self, file: IndexFile) -> Path:
        """Return where a source archive lies after it was read."""
        ...


class Here(Protocol):
    """Where wheels come from that no index has."""

    @property
    def build(self) -> bool:
        """Whether it builds them."""
        ...

    def wheel(self, name: str, source: Source | None) -> Path | None:
        """Return a wheel on this machine; may raise `OutsideError`, whose message is the reason for none."""
        ...


def prove(
    packages: list[Installed],
    index: Index | None,
    *,
    known: Mapping[str, PackageIdentity],
    trust_index: bool = False,
    here: Here | None = None,
    on_done: Callable[[Installed], None] = lambda _: None,
    seconds: float = inf,
) -> Identity:
    """Return what can be said of every distribution; `index` None is: ask nobody.

    Args:
        packages: what is installed.
        index: where to look.
        known: earlier answers; one whose files are still the same is kept.
        trust_index: take the index's word for the sha256 of a file whose RECORD fits.
        here: where to look for what no index has.
        on_done: told of every package that is finished, for a progress bar.
        seconds: how long all of it may take.

    Raises:
        OutsideError: an index failed, contradicts itself or takes too long; the message names every package concerned.
    """
    found: dict[str, PackageIdentity] = {}
    failed: dict[str, EnvlockError] = {}

    def work(each: Installed, advance: Advance) -> PackageIdentity:
        advance(0)
        return _one(each, index, known.get(each.name), trust_index, here)

    try:
        for event in run_all(
            packages, work, jobs=WORKERS, expected=(EnvlockError,), seconds=seconds
        ):
            if not isinstance(event, Done):
                continue
            name = event.task.name
            if event.result is not None:
                found[name] = event.result
            elif isinstance(event.error, EnvlockError):
                failed[name] = event.error
                if isinstance(event.error, OutsideError) and event.error.unreachable:
                    break  # with a hundred packages, the same error would come after a minute
            on_done(event.task)
    except TimeoutError:
        left = [
            each.name for each in packages if each.name not in found and each.name not in failed
        ]
        raise OutsideError(
            f"not finished within {seconds:g} s: {', '.join(left)}", hint=TOO_SLOW
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
        and (earlier.proof != "record" or not whole)
    )


def _one(
    each: Installed,
    index: Index | None,
    earlier: PackageIdentity | None,
    trust_index: bool,
    here: Here | None,
) -> PackageIdentity:
    if earlier is not None and still_holds(
        each, earlier, whole=index is not None and not trust_index
    ):
        is_stale = (
            earlier.proof == "built" and here is not None and here.build
        )  # its sources may have changed
        if not is_stale:
            return earlier
    found = _indexed(each, index, trust_index)
    if found.wheel is not None or here is None:
        return found
    source = each.source
    if source is None and index is not None and here.build:
        source = _archive(each, index)
    return _local(each._replace(source=source), found.reason or "", here)


def _archive(each: Installed, index: Index) -> Source | None:
    """Return the source archive that a package was built from: that of its URL, or an index's where no wheel fits."""
    files: list[IndexFile] = []
    if each.origin == "url" and each.url is not None and not each.url.endswith(".whl"):
        files = [_at(each.url)]
    elif each.origin == "index" and each.reason is None and each.version is not None:
        offered = index.files(each.name)
        if not choose(offered, each.name, each.version, each.tags).wheels:
            files = source_archives(offered, each.version)
    return Source("archive", str(index.archive(files[0]))) if files else None


def _local(each: Installed, reason: str, here: Here) -> PackageIdentity:
    """Return what a wheel on this machine proves, or why there is none: `reason`, and what went wrong here.

    A wheel that was built need not be equal in its own metadata, which name the program that made them; and an editable
    install has none of the files.
    """
    try:
        place = here.wheel(each.name, each.source)
        if place is None:
            return _unproven(each, reason)
        inside = content(rows(_record_in(place)))
    except EnvlockError as error:
        return _unproven(each, f"{reason}; {error.message}")
    unfit = misfit(each.name, each.version, place.name)
    if unfit is not None:
        return _unproven(each, f"{reason}; {unfit}")
    file = IndexFile(place.name, place.as_uri())
    size, sha256 = place.stat().st_size, place.parent.name  # the cache keeps it by its hash
    why = None if each.common is None else difference(each.common, inside)
    if why is None and each.common is not None:
        return _proven(each, file, "file", sha256, size)
    is_built = each.source is None or each.source.kind != "wheel"
    code = None if each.common is None else difference(_code(each.common), _code(inside))
    if each.origin != "editable" and (code is not None or not is_built):
        return _unproven(each, f"{reason}; the files of {place.name} are others: {code or why}")
    return _proven(each, file, "built", sha256, size, digest(inside))


def _code(common: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a distribution without its metadata."""
    return {
        path: value
        for path, value in common.items()
        if not path.partition("/")[0].endswith(".dist-info")
    }


def _indexed(each: Installed, index: Index | None, trust_index: bool) -> PackageIdentity:
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
        return _unproven(
            each, f"{what}; reinstall {each.name}=={each.version} from an index to have its wheel"
        )
    return _unproven(
        each, f"the installed files are not those of {wheels[0].name}: {contradiction}"
    )


def _bundled(name: str, version: str, common: Mapping[str, str]) -> Path | None:
    """Return the wheel of the operating system that holds the very files that are installed, if there is one."""
    start = f"{name.replace('-', '_')}-{version}-"
    wheel = next(
        (each for each in sorted(BUNDLED.glob("*.whl")) if each.name.startswith(start)), None
    )
    try:
        same = wheel is not None and content(rows(_record_in(wheel))) == common
    except EnvlockError:  # it is damaged
        return None
    return wheel if same else None


def _record_in(wheel: Path) -> str:
    from envlock.packages.indexes.ranges import (
        record_of as record_in,
    )  # it brings a client for the web

    return record_in(wheel).decode("utf-8", "surrogateescape")


def _at(url: str) -> IndexFile:
    """Return the file of a direct URL, of which nothing else is known."""
    return IndexFile(
        url.rpartition("/")[2], url, None, None, yanked=False, metadata_sha256=None, index_url=""
    )


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
        raise OutsideError(
            f"{wheel.name}: {error.message}", hint="use another index: this one is damaged"
        ) from None
    return difference(dict(each.common or {}), content(listed))


def _proven(
    each: Installed,
    wheel: IndexFile,
    proof: Literal["file", "record", "built"],
    sha256: str,
    size: int,
    built: str | None = None,
) -> PackageIdentity:
    file = WheelFile(
        name=wheel.name, sha256=sha256, size=size, url=_web(wheel.url), index=_web(wheel.index_url)
    )
    return _identity(each, proof=proof, wheel=file, built=built)


def _unproven(each: Installed, reason: str) -> PackageIdentity:
    return _identity(each, reason=reason[:1000])


def _identity(
    each: Installed,
    *,
    proof: Literal["file", "record", "built"] | None = None,
    wheel: WheelFile | None = None,
    reason: str | None = None,
    built: str | None = None,
) -> PackageIdentity:
    content = None if each.common is None else digest(each.common)
    known = {
        "version": each.version,
        "content": content,
        "origin": each.origin,
        "proof": proof,
        "reason": reason,
    }
    more = {} if built is None else {"built": built}
    return PackageIdentity.model_validate({**known, "wheel": wheel, **more})


def _web(url: str) -> str | None:
    kept = public_url(url)
    return kept if kept is not None and kept.startswith(("http:", "https:")) else None


def _failure(failed: Mapping[str, EnvlockError]) -> OutsideError:
    first = next(iter(failed.values()))
    if len(failed) == 1:
        return OutsideError(f"{next(iter(failed))}: {first.message}", hint=first.hint)
    lines = [f"  {name}: {error.message}" for name, error in sorted(failed.items())]
    return OutsideError(
        f"{count(len(failed), 'package')} could not be looked up:", hint=first.hint, lines=lines
    )


def with_identity(lock: Lockfile, identity: Identity | None) -> Lockfile:
    """Return the lock with this section; without one where there is nothing in it."""
    return (
        lock
        if identity is None or not identity.packages
        else lock.model_copy(update={"identity": identity})
    )


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
