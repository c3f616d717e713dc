"""What a lockfile holds as lines of a requirements file: for each package its line, or the reason why
it has no line. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from envlock.data.specifiers import parse_version
from envlock.packages.identity import explain_misfit, find_checkout, split_by_policy
from envlock.packages.proofs import LeftOut
from envlock.packages.public_index import PUBLIC_INDEX
from envlock.runtime.judgement import LOCAL_FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.fact_models import OriginFacts, PackageFacts
    from envlock.lock.models import Lockfile, WheelFile

URL = re.compile(
    r"(?:https?|ssh)://(?:git@)?[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~!*():=+,%-]*)*"
)
"""The URLs that a line can hold: no space, quote, `$`, `;`, `#` or `@` that an installer would read
as something else, and no host that `ssh` would take for an option.
"""
FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")
"""The folders of a repository that a line can hold."""
ON_AN_INDEX = ("manylinux", "musllinux", "macosx", "win")
"""The beginnings of the platforms that only a wheel of an index has: what is built here is tagged
`linux_*`. Source: https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
"""

INSTALLERS = ("pip", "uv", "pkg-resources")
"""They come with an environment, and no policy compares them; the last one is Debian's part of setuptools."""

NO_VERSION = "it has no version that installers accept"
BY_CONDA = "installed by conda, whose packages are not wheels"
NO_ORIGIN = "the lockfile does not say from where it was installed"
NO_LINE = "no requirements file can hold its URL, commit or folder"

Kind = Literal["index", "url", "commit", "folder", "file"]


class Pin(NamedTuple):
    """A package as an installer takes it.

    Attributes:
        name: normalised.
        version: the locked one.
        kind: where it comes from; of a `folder` or a `file`, this machine has to know the place.
        line: the line of a requirements file, without a hash; empty if the place is unknown.
        sha256: that of its wheel or archive, if the lockfile has it.
        wheel: the name of its wheel, if the lockfile has it.
        extra_index: the index that its proven wheel is on, if that is not the public one.
        on_disk: whether its wheel is on no index, as far as the lockfile knows.
        built: whether that wheel was built from its sources.
        editable: whether it is imported from its folder.
        option: the option that this line needs: a wheel is never replaced by a build, nor a build by
            a wheel.
    """

    name: str
    version: str
    kind: Kind
    line: str
    sha256: str | None = None
    wheel: str | None = None
    extra_index: str | None = None
    on_disk: bool = False
    built: bool = False
    editable: bool = False
    option: str = ""

    @property
    def hashed(self) -> bool:
        """Whether an installer can check its hash."""
        return self.sha256 is not None and not self.built and self.kind in ("index", "url")


def list_pins(lock: Lockfile) -> tuple[list[Pin], list[LeftOut]]:
    """Return what can be installed of a lockfile, and what cannot, by name.

    Of what no policy compares, only what is sure to be found is installed.
    """
    found = [
        _describe(lock, name, fact) for name, fact in sorted((lock.facts.packages or {}).items())
    ]
    pins = [each for each in found if isinstance(each, Pin)]
    missing, _ = split_by_policy(lock, [each for each in found if isinstance(each, LeftOut)])
    as_missing = [LeftOut(pin.name, pin.version, "") for pin in pins]
    _, uncompared = split_by_policy(lock, as_missing)
    unsure = {
        each.name
        for each in uncompared
        if each.name in INSTALLERS or (lock.identity is not None and not _is_proven(lock, each))
    }
    return [pin for pin in pins if pin.name not in unsure], missing


def _is_proven(lock: Lockfile, package: LeftOut) -> bool:
    wheel, built = _get_wheel(lock, package.name, package.version or "")
    return wheel is not None and not built


def _describe(lock: Lockfile, name: str, fact: PackageFacts) -> Pin | LeftOut:
    version = fact.version
    if fact.installer == "conda":
        return LeftOut(name, version, BY_CONDA)
    if version is None or parse_version(version) is None:
        return LeftOut(name, version, NO_VERSION)
    if f"packages.{name}.origin" in lock.unavailable:
        return LeftOut(name, version, NO_ORIGIN)
    wheel, built = _get_wheel(lock, name, version)
    if fact.origin is None:
        return _describe_indexed(name, version, fact, wheel, built=built)
    return _describe_direct(lock, name, version, fact.origin, wheel)


def _get_wheel(lock: Lockfile, name: str, version: str) -> tuple[WheelFile | None, bool]:
    """Return the proven wheel of a package, and whether it was built from its sources."""
    found = lock.identities.get(name)
    if found is None or found.wheel is None or found.version != version:
        return None, False
    if explain_misfit(name, version, found.wheel.name) is not None:
        return None, False
    return found.wheel, found.proof == "built"


def _describe_indexed(
    name: str, version: str, fact: PackageFacts, wheel: WheelFile | None, *, built: bool
) -> Pin:
    line = f"{name}=={version}"
    option = _choose_option(name, version, fact.wheel_tags or ())
    if wheel is None:
        return Pin(name, version, "index", line, option=option)
    index = wheel.index
    if index is not None and index.rstrip("/") == PUBLIC_INDEX.rstrip("/"):
        index = None
    on_disk = wheel.url is None
    return Pin(
        name,
        version,
        "index",
        line,
        wheel.sha256,
        wheel.name,
        extra_index=index,
        on_disk=on_disk,
        built=built,
        option=option,
    )


def _choose_option(name: str, version: str, tags: Sequence[str]) -> str:
    """Return the option that takes a wheel where a wheel was taken, and a build where it was built."""
    platforms = [part for tag in tags for part in tag.rpartition("-")[2].split(".")]
    if any(platform.startswith(ON_AN_INDEX) for platform in platforms):
        return f"--only-binary {name}"
    # An index of one's own can have wheels with such a tag, and mostly with a local label.
    if any(platform.startswith("linux_") for platform in platforms) and "+" not in version:
        return f"--no-binary {name}"
    return ""


def _describe_direct(
    lock: Lockfile, name: str, version: str, origin: OriginFacts, wheel: WheelFile | None
) -> Pin | LeftOut:
    sha256, file = (wheel.sha256, wheel.name) if wheel is not None else (origin.sha256, None)
    url = origin.url
    if url is None:
        return LeftOut(name, version, NO_ORIGIN)
    if origin.vcs is not None:
        checkout = find_checkout(lock, name)
        if checkout is None or not URL.fullmatch(checkout.url):
            return LeftOut(name, version, NO_LINE)
        line = f"{name} @ git+{checkout.url}@{checkout.commit}"
        if checkout.folder is not None:
            if not FOLDER.fullmatch(checkout.folder):
                return LeftOut(name, version, NO_LINE)
            line += f"#subdirectory={checkout.folder}"
        return Pin(name, version, "commit", line)
    if url == LOCAL_FOLDER or origin.editable:
        editable = bool(origin.editable)
        return Pin(
            name, version, "folder", "", sha256, file, on_disk=True, built=True, editable=editable
        )
    if url.startswith(LOCAL_FOLDER):
        file = file or url.removeprefix(LOCAL_FOLDER)
        return Pin(name, version, "file", "", sha256, file, on_disk=True)
    if not URL.fullmatch(url) or url.startswith("ssh:"):
        return LeftOut(name, version, NO_LINE)
    return Pin(name, version, "url", f"{name} @ {url}", sha256, file)


def render_pins(pins: Iterable[Pin], *, hashes: bool) -> str:
    """Return the text of a requirements file; with `hashes`, each package must have one."""
    lines = []
    options = set()
    for pin in pins:
        line = pin.line
        if hashes:
            line += f" --hash=sha256:{pin.sha256}"
            if pin.extra_index is not None:
                # A quote would end the option for the installers.
                address = pin.extra_index.rstrip("/").replace("'", "%27")
                options.add(f"--extra-index-url {address}/")
        elif pin.option:
            options.add(pin.option)
        lines.append(line)
    return "\n".join([*sorted(options), *lines, ""])
