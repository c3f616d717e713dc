"""From installed to hashed: the exact wheel of each package, with its proof or the reason for none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import monotonic
from typing import Literal, Protocol

from envlock.lock.models import Identity, Lockfile, PackageIdentity, WheelFile, WrongRecord
from envlock.packages.archive_comparison import (
    describe_other_files,
    find_wrong_rows,
    is_as_recorded,
)
from envlock.packages.identity import explain_misfit
from envlock.packages.index import NoWheelError, Offer, Wanted
from envlock.packages.installed_distributions import NO_RECORD, InstalledPackage
from envlock.packages.local_wheels import Made
from envlock.packages.parallel import run_all
from envlock.packages.proofs import DISTRIBUTIONS_OWN
from envlock.packages.sources import Source
from envlock.packages.wheel_files import BadWheel, hash_files, read_wheel_record
from envlock.runtime.collectors.packages import strip_url_secrets
from envlock.runtime.errors import EnvlockError, FactError, OutsideError
from envlock.runtime.files.record_rows import (
    Row,
    describe_difference,
    get_common_content,
    hash_content,
    parse_rows,
)
from envlock.runtime.report import count

WORKERS = 6  # packages in parallel; more is not faster on one connection and puts load on an index
TOO_SLOW = "use a faster index, or run it again"

REASON_LIMIT = 1000
"""Characters: a lockfile cannot have a longer reason."""

BUNDLED = Path("/usr/share/python-wheels")
"""Where Debian, Ubuntu and Fedora keep their own pip and setuptools for `python -m venv`.

They changed these wheels, so no index has the same files. Source:
https://docs.python.org/3/using/configure.html#cmdoption-with-wheel-pkg-dir
"""

INSTALLER = "pip"
"""Nothing needs it at runtime: if only one machine had its wheel, no other could build the image."""

ONLY_FILES = "only its file hashes are known"

Proof = Literal["file", "record", "built"]


class Index(Protocol):
    """The package indexes; every method may raise an `EnvlockError` with exit code 5."""

    def find(self, wanted: Sequence[Wanted], seconds: float) -> Mapping[str, Offer | OutsideError]:
        """Return the wheel that is installed today of each package, or the reason for its absence."""
        ...

    def find_tagged(self, wanted: Wanted, tags: Sequence[str]) -> Offer | OutsideError:
        """Return the wheel of a package that has these tags, or the reason for its absence."""
        ...


class LocalWheels(Protocol):
    """Wheels on this machine, for packages that no index has."""

    @property
    def build(self) -> bool:
        """Whether wheels are built from sources."""
        ...

    def wheel(self, name: str, source: Source | None, version: str | None = None) -> Made | None:
        """Return a wheel on this machine, in a folder named after its SHA-256.

        Raises:
            OutsideError: there is no such wheel; the message is the reason.
        """
        ...

    def is_current(self, source: Source | None, built: PackageIdentity) -> bool:
        """Return whether a wheel that was built is here, and its folder has not changed since."""
        ...


def prove(
    packages: list[InstalledPackage],
    index: Index | None,
    *,
    known: Mapping[str, PackageIdentity],
    here: LocalWheels | None = None,
    on_done: Callable[[InstalledPackage], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    seconds: float = inf,
) -> Identity:
    """Return the identity of every distribution, as far as it can be proven.

    Args:
        packages: the installed distributions.
        index: the index to search; None asks no index.
        known: earlier results; one whose files are still the same is kept.
        here: the wheels of this machine, for packages that no index has.
        on_done: called with every package that is finished, for a progress bar.
        say: prints a warning about a package that an index has yanked.
        seconds: how long all packages together may take.

    Raises:
        OutsideError: an index failed, contradicts itself or takes too long; the message names every
            package concerned.
    """
    prover = _Prover(index, here, say)
    found: dict[str, PackageIdentity] = {}
    failed: dict[str, EnvlockError] = {}
    until = monotonic() + seconds
    try:
        asked = [each for each in packages if not prover.is_kept(each, known.get(each.name))]
        offers = prover.ask(asked, seconds)

        def work(package: InstalledPackage) -> PackageIdentity:
            return prover.prove(package, known.get(package.name), offers.get(package.name))

        for package, result in run_all(packages, work, jobs=WORKERS, seconds=until - monotonic()):
            if isinstance(result, EnvlockError):
                failed[package.name] = result
            else:
                found[package.name] = result
            on_done(package)
    except TimeoutError:
        names = [each.name for each in packages]
        unfinished = [name for name in names if name not in found and name not in failed]
        raise OutsideError(
            f"not finished within {seconds:g} s: {', '.join(unfinished)}", hint=TOO_SLOW
        ) from None
    if failed:
        raise _join_errors(failed)
    return Identity(packages=dict(sorted(found.items())))


def is_still_proven(
    package: InstalledPackage, earlier: PackageIdentity, *, need_whole: bool
) -> bool:
    """Return whether an earlier proof is of the very files that are installed now.

    With `need_whole`, the word of an index for a hash is no longer proof enough.
    """
    if earlier.wheel is None or package.files is None:
        return False
    if earlier.proof == "record" and need_whole:
        return False
    return _has_same_files(package, earlier)


@dataclass(frozen=True)
class _Prover:
    """The places that are searched for the wheels of packages."""

    index: Index | None
    local_wheels: LocalWheels | None
    say: Callable[[str], None] = lambda _: None

    def is_kept(self, package: InstalledPackage, earlier: PackageIdentity | None) -> bool:
        """Return whether an earlier answer still holds."""
        if earlier is None:
            return False
        need_whole = self.index is not None
        is_proven = is_still_proven(package, earlier, need_whole=need_whole)
        return is_proven and not self._is_built_again(package, earlier)

    def ask(
        self, packages: Sequence[InstalledPackage], seconds: float
    ) -> Mapping[str, Offer | OutsideError]:
        """Return what the indexes have of packages that can be of one, by name."""
        wanted = [_want(each) for each in packages if self._is_of_index(each)]
        if self.index is None or not wanted:
            return {}
        return self.index.find(wanted, seconds)

    def prove(
        self,
        package: InstalledPackage,
        earlier: PackageIdentity | None,
        offer: Offer | OutsideError | None,
    ) -> PackageIdentity:
        """Return what can be said of one package: the earlier answer, where it still holds."""
        if earlier is not None and self.is_kept(package, earlier):
            return earlier
        found = self._compare_with_index(package, offer)
        if found.wheel is not None or self.local_wheels is None:
            return found
        if package.source is None:
            package = package._replace(source=self._find_source(package, self.local_wheels))
        return _prove_locally(package, found.reason or "", self.local_wheels)

    def _is_of_index(self, package: InstalledPackage) -> bool:
        return package.reason is None and package.version is not None and package.files is not None

    def _find_source(self, package: InstalledPackage, local_wheels: LocalWheels) -> Source | None:
        """Return what a package of an index may have been installed from instead; None if nothing."""
        bundled = _find_bundled(package)
        if bundled is not None and package.name != INSTALLER:
            return Source("wheel", str(bundled))
        if self.index is None or not local_wheels.build or package.version is None:
            return None
        if package.origin not in ("index", "url"):
            return None
        # A package with another wheel than the installed one was not built from these sources.
        if package.origin == "index" and package.reason is not None:
            return None
        line = _want(package).line
        return None if line is None else Source("requirement", line)

    def _is_built_again(self, package: InstalledPackage, earlier: PackageIdentity) -> bool:
        """Return whether a wheel that was built here is built again: its sources may have changed."""
        here = self.local_wheels
        is_built = earlier.proof == "built" or earlier.tree is not None
        if not is_built or here is None or not here.build:
            return False
        if earlier.source != package.digest:
            return True
        return not here.is_current(package.source, earlier)

    def _compare_with_index(
        self, package: InstalledPackage, offer: Offer | OutsideError | None
    ) -> PackageIdentity:
        """Return the identity that the wheel of an index proves, or the reason for its absence.

        Raises:
            OutsideError: the index failed.
        """
        if not self._is_of_index(package):
            return _describe_unproven(package, package.reason or NO_RECORD)
        if self.index is None:
            return _describe_unproven(package, "no index was used (--offline)")
        first_mismatch = None
        tried: list[str] = []
        for each in self._list_offers(package, offer):
            if isinstance(each, NoWheelError):
                return _describe_unproven(package, f"{each.message}; {ONLY_FILES}")
            if isinstance(each, OutsideError):
                raise each
            try:
                record = read_wheel_record(each.path).decode("utf-8", "surrogateescape")
                mismatch, wrong = _compare_files(package, each.name, record, each.path)
            except BadWheel as error:
                # One damaged file of an index says nothing of the other packages.
                return _describe_unproven(package, error.message)
            if mismatch is None:
                if each.yanked:
                    self.say(
                        f"warning: {package.name} {package.version} is yanked: its index says that "
                        "its maintainers ask not to use it"
                    )
                return _describe_proven(package, each, "file", wrong=wrong)
            first_mismatch = first_mismatch or mismatch
            tried.append(each.name)
        bundled = _find_bundled(package)
        if bundled is not None and package.name == INSTALLER:
            return _describe_unproven(
                package,
                f"{DISTRIBUTIONS_OWN} ({bundled}), which no index has; "
                f"reinstall {package.name}=={package.version} from an index to have its wheel",
            )
        reason = f"the installed files are not those of {tried[0]}: {first_mismatch}"
        return _describe_unproven(package, reason)

    def _list_offers(
        self, package: InstalledPackage, offer: Offer | OutsideError | None
    ) -> Iterator[Offer | OutsideError]:
        """Yield the wheel that pip would install today, and then the one with the installed tags: an
        index may hold a better one by now.
        """
        if offer is not None:
            yield offer
        if self.index is None or isinstance(offer, OutsideError):
            return
        exact = self.index.find_tagged(_want(package), package.tags)
        if not isinstance(exact, NoWheelError) and exact != offer:
            yield exact


def _want(package: InstalledPackage) -> Wanted:
    url = package.url if package.origin == "url" else None
    return Wanted(package.name, package.version or "", url)


def _prove_locally(
    package: InstalledPackage, reason: str, local_wheels: LocalWheels
) -> PackageIdentity:
    """Return the identity that a wheel on this machine proves, or the reason why there is no wheel.

    `reason` is why no index has it. The metadata of a wheel that was built may differ from the
    installed ones, since they name the program that made them; an editable install has none of the
    wheel's files.
    """
    try:
        made = local_wheels.wheel(package.name, package.source, package.version)
        if made is None:
            return _describe_unproven(package, reason)
        path = made.path
        record = read_wheel_record(path).decode("utf-8", "surrogateescape")
        inside = get_common_content(parse_rows(record))
    except EnvlockError as error:
        return _describe_unproven(package, f"{reason}; {error.message}")
    misfit = explain_misfit(package.name, package.version, path.name)
    if misfit is not None:
        return _describe_unproven(package, f"{reason}; {misfit}")
    # The cache has each wheel in a folder that is named after its hash.
    file = Offer(path.name, path.parent.name, path.stat().st_size, path)
    why = None
    code = None
    if package.files is None and package.origin != "editable":
        return _describe_unproven(
            package,
            f"{reason}; without a RECORD its files cannot be compared with those of {path.name}: "
            "install it again with pip",
        )
    if package.files is not None:
        why, wrong = _compare_files(package, path.name, record, path)
        if why is None:
            return _describe_proven(package, file, "file", wrong=wrong, tree=made.tree)
        code = describe_difference(_drop_metadata(package.files), _drop_metadata(inside))
    if package.origin != "editable" and (code is not None or _is_wheel_source(package)):
        return _describe_unproven(
            package, f"{reason}; the files of {path.name} are others: {code or why}"
        )
    return _describe_proven(package, file, "built", built=hash_content(inside), tree=made.tree)


def _is_wheel_source(package: InstalledPackage) -> bool:
    return package.source is not None and package.source.kind == "wheel"


def _drop_metadata(files: Mapping[str, str]) -> dict[str, str]:
    return {
        path: value
        for path, value in files.items()
        if not path.partition("/")[0].endswith(".dist-info")
    }


def _find_bundled(package: InstalledPackage) -> Path | None:
    """Return the operating system's own wheel with exactly the installed files."""
    start = f"{package.name.replace('-', '_')}-{package.version}-"
    wheels = [wheel for wheel in sorted(BUNDLED.glob("*.whl")) if wheel.name.startswith(start)]
    if not wheels:
        return None
    try:
        record = read_wheel_record(wheels[0]).decode("utf-8", "surrogateescape")
        is_same = get_common_content(parse_rows(record)) == package.files
    except EnvlockError:  # damaged
        return None
    if not is_same:
        return None
    return wheels[0]


def _compare_files(
    package: InstalledPackage, name: str, record: str, path: Path | None
) -> tuple[str | None, WrongRecord | None]:
    """Return how the installed files differ from those of a wheel, None if they do not; and what is
    wrong with its RECORD.
    """
    mismatch = _compare_record(package, name, record)
    if package.folder is None or path is None or package.origin == "editable":
        return mismatch, None
    own = [row for row in package.rows if row.path not in package.overwritten]
    if mismatch is None and is_as_recorded(own, package.folder):
        return None, None
    archive = hash_files(path)
    other = describe_other_files(package.rows, package.folder, archive)
    wrong = find_wrong_rows(_parse_rows(name, record), archive)
    if other is None and wrong is None:
        # The files are the wheel's, and its RECORD is right: the installed RECORD is not.
        return mismatch, None
    return other, wrong


def _parse_rows(name: str, record: str) -> list[Row]:
    """Return the rows of a wheel's RECORD.

    Raises:
        OutsideError: it is not a RECORD.
    """
    try:
        return parse_rows(record)
    except FactError as error:
        raise OutsideError(
            f"{name}: {error.message}", hint="use another index: this one is damaged"
        ) from None


def _compare_record(package: InstalledPackage, name: str, record: str) -> str | None:
    """Return how the installed files differ from those in a wheel's RECORD; None if they do not."""
    listed = _parse_rows(name, record)
    return describe_difference(dict(package.files or {}), get_common_content(listed))


def _describe_proven(
    package: InstalledPackage,
    wheel: Offer,
    proof: Proof,
    *,
    built: str | None = None,
    wrong: WrongRecord | None = None,
    tree: str | None = None,
) -> PackageIdentity:
    file = WheelFile(
        name=wheel.name,
        sha256=wheel.sha256,
        size=wheel.size,
        url=_keep_web_url(wheel.url),
        index=_keep_web_url(wheel.index_url),
    )
    found = _describe(package, proof=proof, wheel=file, built=built, wrong=wrong)
    if tree is None:
        return found
    # Only fields that were set are written into a lockfile.
    update = {"tree": tree}
    if package.digest is not None:
        update["source"] = package.digest
    return found.model_copy(update=update)


def _describe_unproven(package: InstalledPackage, reason: str) -> PackageIdentity:
    return _describe(package, reason=reason[:REASON_LIMIT])


def _describe(
    package: InstalledPackage,
    *,
    proof: Proof | None = None,
    wheel: WheelFile | None = None,
    reason: str | None = None,
    built: str | None = None,
    wrong: WrongRecord | None = None,
) -> PackageIdentity:
    fields: dict[str, object] = {
        "version": package.version,
        "content": _digest_files(package),
        "origin": package.origin,
        "proof": proof,
        "reason": reason,
        "wheel": wheel,
    }
    # Only fields that were set are written into a lockfile.
    if built is not None:
        fields["built"] = built
    if wrong is not None:
        fields["wrong_record"] = wrong
    if package.overwritten:
        fields["overwritten"] = dict(package.overwritten)
    return PackageIdentity.model_validate(fields)


def _digest_files(package: InstalledPackage) -> str | None:
    if package.files is None:
        return None
    return hash_content(package.files)


def _keep_web_url(url: str) -> str | None:
    """Return a URL without its secrets; None if it is not on the web."""
    public = strip_url_secrets(url)
    if public is None or not public.startswith(("http:", "https:")):
        return None
    return public


def _join_errors(failed: Mapping[str, EnvlockError]) -> OutsideError:
    name, first = next(iter(failed.items()))
    if len(failed) == 1:
        return OutsideError(f"{name}: {first.message}", hint=first.hint)
    lines = [f"  {name}: {error.message}" for name, error in sorted(failed.items())]
    return OutsideError(
        f"{count(len(failed), 'package')} could not be looked up:", hint=first.hint, lines=lines
    )


def add_identity(lock: Lockfile, identity: Identity | None) -> Lockfile:
    """Return the lockfile with this section; unchanged if the section is empty."""
    if identity is None or not identity.packages:
        return lock
    return lock.model_copy(update={"identity": identity})


def keep_valid_proofs(
    earlier: Identity | None, packages: list[InstalledPackage]
) -> Identity | None:
    """Return the results in an earlier lockfile that still hold."""
    if earlier is None:
        return None
    valid: dict[str, PackageIdentity] = {}
    for package in packages:
        entry = earlier.packages.get(package.name)
        if entry is not None and _is_same_install(package, entry):
            valid[package.name] = entry
    return Identity(packages=valid)


def _is_same_install(package: InstalledPackage, entry: PackageIdentity) -> bool:
    if entry.source is not None and entry.source != package.digest:
        return False
    return _has_same_files(package, entry)


def _has_same_files(package: InstalledPackage, entry: PackageIdentity) -> bool:
    if (entry.overwritten or {}) != package.overwritten:
        return False
    return entry.version == package.version and entry.content == _digest_files(package)
