"""Debian packages in an image: those that a project requests, as apt in the base resolves them.

apt resolves them once, with the signed indexes of its archives, and prints the files that it would
download. The lockfile has the SHA-256 of these files, and a build installs them without a network.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from envlock.image.engines.container_run import Finished, Start
from envlock.image.engines.engine import Engine, Say
from envlock.image.inside import ensure_image
from envlock.image.plan import Base
from envlock.lock.models import DEBIAN_SOURCE, DEBIAN_WISH, DebianPackage, DebianPackages
from envlock.runtime.errors import EnvlockError, OutsideError, UsageError
from envlock.runtime.report import clean

NO_APT = 66
"""The exit code of the script if there is no apt."""

# `check-valid-until=no`: the archives of one day, which make a build repeatable, have indexes that
# have expired (sources.list(5)).
SCRIPT = f"""\
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
command -v apt-get > /dev/null || exit {NO_APT}
work=$(mktemp -d)
mkdir -p "$work/lists/partial" "$work/archives/partial"
: > "$work/own.list"
while [ "$1" != -- ]; do
    printf 'deb [check-valid-until=no] %s\\n' "$1" >> "$work/own.list"
    shift
done
shift
ask() {{
    [ ! -s "$work/own.list" ] || set -- -o Dir::Etc::SourceList="$work/own.list" -o Dir::Etc::SourceParts=/dev/null "$@"
    apt-get -qq -y --no-install-recommends --no-upgrade -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work" \\
        -o APT::Update::Error-Mode=any -o Acquire::ForceHash=SHA256 -o Acquire::Languages=none \\
        -o Debug::NoLocking=1 "$@"
}}
ask update >&2
ask --simulate install "$@"
ask --print-uris install "$@"
echo
dpkg-query -W -f 'Have ${{Package}} ${{Version}}\\n'
"""
"""Takes archives, `--`, and packages; prints the answers of apt.

It needs neither root nor any folder other than the temporary one.
"""

_PROXIES = ("http_proxy", "https_proxy", "no_proxy")
_INST = re.compile(
    r"Inst (?P<name>\S+)(?P<old> \[[^]]*\])? \((?P<version>\S+) .*\[(?P<architecture>[a-z0-9]+)\]\)"
)
_FILE = re.compile(
    r"'(?P<url>[^']*)' (?P<name>[^ _]+)_(?P<version>[^ _]+)_(?P<architecture>[a-z0-9]+)\.deb"
    r" (?P<size>[0-9]{1,12}) SHA256:(?P<sha256>[0-9a-f]{64})"
)
_WRONG = ("Unable to locate package", "Version '", "Package '")
"""How apt's errors begin if its archives do not have a package."""

_OWN_BASE = "put them into a base of your own, and name it with `--base`"


@dataclass(frozen=True)
class AptRequest:
    """Packages as `name` or `name=version`, and the archives to use instead of the base's own."""

    packages: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def parse_apt_request(values: Mapping[str, object], where: str) -> AptRequest:
    """Return the request in `[tool.envlock.container]`.

    Raises:
        UsageError: an entry is neither a package nor an archive; the message names its key.
    """
    packages = _check_entries(
        values.get("apt", []),
        DEBIAN_WISH,
        f"{where}: `apt`",
        'apt = ["libgl1", "ffmpeg=7:5.1.6-0"]',
    )
    sources = _check_entries(
        values.get("apt-sources", []),
        DEBIAN_SOURCE,
        f"{where}: `apt-sources`",
        'apt-sources = ["http://mirror.example/debian/20251101T000000Z bookworm main"]',
    )
    return AptRequest(packages, sources)


def _check_entries(value: object, pattern: str, where: str, example: str) -> tuple[str, ...]:
    """Return the strings of a list after checking that all match a pattern, without duplicates."""
    hint = f"write it like `{example}`"
    if not isinstance(value, list):
        raise UsageError(f"{where} must be a list of strings", hint=hint)
    for item in value:
        is_short = isinstance(item, str) and len(item) <= 400
        if not is_short or re.fullmatch(pattern, item, re.ASCII) is None:
            raise UsageError(f"{where} has a malformed entry: {clean(str(item))[:80]}", hint=hint)
    return tuple(dict.fromkeys(value))


def get_locked_request(apt: DebianPackages | None) -> AptRequest:
    """Return the request that led to the locked packages."""
    if apt is None:
        return AptRequest()
    return AptRequest(tuple(apt.wanted), tuple(apt.sources))


def check_locked(base: Base, wanted: AptRequest) -> None:
    """Check that the locked packages of a base are those of a request.

    Raises:
        UsageError: no packages are locked, or those of another request.
    """
    locked = get_locked_request(base.apt)
    if locked == wanted or not (locked.packages or wanted.packages):
        return
    if locked.packages:
        difference = "the locked Debian packages are not those of"
    else:
        difference = "no Debian packages are locked for"
    raise UsageError(
        f"{difference} `apt` in [tool.envlock.container]",
        hint="run `envlock build --pin` to lock them",
    )


def resolve(
    engine: Engine, image: str, wanted: AptRequest, *, host: bool, say: Say
) -> DebianPackages:
    """Return the packages that a request needs in an image, resolved by apt inside it; nothing is
    downloaded.

    Args:
        engine: runs the image.
        image: the base, by digest.
        wanted: at least one package.
        host: use this machine's network, if the engine's own does not reach the archives.
        say: gets the lines that the engine prints while it pulls.

    Raises:
        EngineError: the image cannot be pulled or run.
        OutsideError: an archive could not be reached, or a package of the base would be replaced or
            removed.
        UsageError: the archives do not have a package.
    """
    ensure_image(engine, image, say)
    proxies = {name: os.environ[name] for name in _PROXIES if os.environ.get(name)}
    argv = ["/bin/sh", "-euc", SCRIPT, "sh", *wanted.sources, "--", *wanted.packages]
    network = "host" if host else "default"
    done = engine.run(image, argv, Start(env=proxies, entrypoint=(), network=network))
    if done.exit_code:
        raise _explain_failure(done, image)
    return _parse_answers(done.stdout.splitlines(), wanted, image)


def _explain_failure(done: Finished, image: str) -> EnvlockError:
    if done.exit_code == NO_APT:
        return UsageError(
            f"{image} has no apt-get", hint="use a base of Debian or Ubuntu, or remove `apt`"
        )
    lines = (done.stderr or done.stdout).splitlines()
    errors = [line[3:] for line in lines if line.startswith("E: ")] or lines[-1:]
    text = clean("; ".join(errors))[:300]
    if errors and errors[0].startswith(_WRONG):
        return UsageError(
            f"apt in {image}: {text}",
            hint="correct `apt`: names and versions are those of its archives",
        )
    return OutsideError(
        f"apt in {image} failed: {text}",
        hint="check its archives; `--network host` lets it use this machine's network",
    )


@dataclass
class _Answers:
    """The answers of apt and dpkg to a request.

    Attributes:
        new: the packages that would be installed, as groups of `_INST`.
        removed: names of packages of the base that would be removed.
        files: the files that would be downloaded, by name, version and architecture.
        installed: name and version of each package of the base.
    """

    new: list[dict[str, str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    files: dict[tuple[str, str, str], dict[str, str]] = field(default_factory=dict)
    installed: set[tuple[str, ...]] = field(default_factory=set)


def _read_answers(lines: Iterable[str]) -> _Answers:
    answers = _Answers()
    for line in lines:
        if line.startswith("Remv "):
            answers.removed.append(line.split()[1])
        elif line.startswith("Have "):
            answers.installed.add(tuple(line.split()[1:]))
        elif (package := _INST.match(line)) is not None:
            answers.new.append(package.groupdict())
        elif (file := _FILE.fullmatch(line)) is not None:
            # A colon in a version, after its epoch, is `%3a` in the name of a file.
            key = (file["name"], unquote(file["version"]), file["architecture"])
            answers.files[key] = file.groupdict()
    return answers


def _parse_answers(lines: Iterable[str], wanted: AptRequest, image: str) -> DebianPackages:
    """Return the packages that apt would install, each with its file.

    Raises:
        OutsideError: a package of the base would be replaced, has another version, or has no file
            to lock.
    """
    answers = _read_answers(lines)
    replaced = [package["name"] for package in answers.new if package["old"]]
    if answers.removed or replaced:
        names = sorted({*answers.removed, *replaced})
        raise OutsideError(
            f"apt would replace or remove packages of {image}: {', '.join(names[:6])}",
            hint="name the versions that fit the base, or archives of its day with `apt-sources`; "
            f"or {_OWN_BASE}",
        )
    installed = {*answers.installed, *((row["name"], row["version"]) for row in answers.new)}
    for package in wanted.packages:
        name, _, version = package.partition("=")
        if version and (name, version) not in installed:
            raise OutsideError(
                f"{image} has {name} in another version than {version}", hint=_OWN_BASE
            )
    try:
        new = sorted(answers.new, key=lambda row: row["name"])
        return DebianPackages(
            wanted=list(wanted.packages),
            sources=list(wanted.sources),
            packages=[_make_package(row, answers.files) for row in new],
        )
    except (KeyError, ValueError):
        raise OutsideError(
            f"apt in {image} names a file that cannot be locked: "
            "no SHA-256, no http, or credentials in its address",
            hint=_OWN_BASE,
        ) from None


def _make_package(
    row: Mapping[str, str], files: Mapping[tuple[str, str, str], Mapping[str, str]]
) -> DebianPackage:
    """Return a package with its file.

    Raises:
        KeyError: apt prints no file with a SHA-256 for it.
        ValueError: one of its values cannot be locked.
    """
    file = files[row["name"], row["version"], row["architecture"]]
    return DebianPackage.model_validate(
        {
            "name": row["name"],
            "version": row["version"],
            "architecture": row["architecture"],
            "size": int(file["size"]),
            "sha256": file["sha256"],
            "url": file["url"],
        }
    )
