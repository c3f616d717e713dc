"""Debian packages in an image: what a project asks for, and what apt makes of it inside the base.

apt resolves once, by the signed indexes of its archives, and says which files it would download. The lock has these by
SHA-256, and a build installs them without a network.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any
from urllib.parse import unquote

from envlock.containers.engines.container import Finished, Start
from envlock.containers.engines.engine import Engine, Say
from envlock.containers.inside import at_hand
from envlock.containers.plan import Base
from envlock.lock.models import DEBIAN_SOURCE, DEBIAN_WISH, DebianPackage, DebianPackages
from envlock.runtime.errors import EnvlockError, OutsideError, UsageError
from envlock.runtime.report import clean

NO_APT = 66
"""Exit code of the script: there is no apt."""

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
"""Takes archives, `--`, and packages; needs neither root nor a place but the temporary folder. Writes what apt says."""

_PROXIES = ("http_proxy", "https_proxy", "no_proxy")
_INST = re.compile(
    r"Inst (?P<name>\S+)(?P<old> \[[^]]*\])? \((?P<version>\S+) .*\[(?P<architecture>[a-z0-9]+)\]\)"
)
_FILE = re.compile(
    r"'(?P<url>[^']*)' (?P<name>[^ _]+)_(?P<version>[^ _]+)_(?P<architecture>[a-z0-9]+)\.deb"
    r" (?P<size>[0-9]{1,12}) SHA256:(?P<sha256>[0-9a-f]{64})"
)
_WRONG = ("Unable to locate package", "Version '", "Package '")
"""What apt says of a package that its archives do not have."""

_OWN_BASE = "put them into a base of your own, and name it with `--base`"


@dataclass(frozen=True)
class AptRequest:
    """Packages, as `name` or `name=version`, and the archives to ask instead of the base's own."""

    packages: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def apt_request(values: Mapping[str, Any], where: str) -> AptRequest:
    """Return what `[tool.envlock.container]` asks for.

    Raises:
        UsageError: something that is neither a package nor an archive; the message names its key.
    """
    packages = _texts(
        values.get("apt", []),
        DEBIAN_WISH,
        f"{where}: `apt`",
        'apt = ["libgl1", "ffmpeg=7:5.1.6-0"]',
    )
    example = 'apt-sources = ["http://mirror.example/debian/20251101T000000Z bookworm main"]'
    sources = _texts(
        values.get("apt-sources", []), DEBIAN_SOURCE, f"{where}: `apt-sources`", example
    )
    return AptRequest(packages, sources)


def _texts(value: Any, pattern: str, where: str, example: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise UsageError(f"{where} must be a list of strings", hint=f"write it like `{example}`")
    for item in value:
        if (
            not isinstance(item, str)
            or len(item) > 400
            or re.fullmatch(pattern, item, re.ASCII) is None
        ):
            raise UsageError(
                f"{where} has a malformed entry: {clean(str(item))[:80]}",
                hint=f"write it like `{example}`",
            )
    return tuple(dict.fromkeys(value))


def locked_request(apt: DebianPackages | None) -> AptRequest:
    """Return what locked packages were resolved for."""
    return AptRequest() if apt is None else AptRequest(tuple(apt.wanted), tuple(apt.sources))


def check_locked(base: Base, wanted: AptRequest) -> None:
    """Make sure that the locked packages of a base are those that were resolved for a request.

    Raises:
        UsageError: none are locked, or those of another request.
    """
    locked = locked_request(base.apt)
    if locked == wanted or not (locked.packages or wanted.packages):
        return
    how = (
        "the locked Debian packages are not those of"
        if locked.packages
        else "no Debian packages are locked for"
    )
    raise UsageError(
        f"{how} `apt` in [tool.envlock.container]", hint="run `envlock build --pin` to lock them"
    )


def resolve(
    engine: Engine, image: str, wanted: AptRequest, *, host: bool, say: Say
) -> DebianPackages:
    """Return the packages that an image needs for a request, as apt in it says; nothing is downloaded.

    Args:
        engine: runs the image.
        image: the base, by digest.
        wanted: at least one package.
        host: with this machine's network, where the engine's own does not reach the archives.
        say: gets what the engine prints while it pulls.

    Raises:
        EngineError: the image cannot be had, or not be run.
        OutsideError: an archive was not reached, or a package of the base would be replaced or removed.
        UsageError: the archives do not have a package.
    """
    at_hand(engine, image, say)
    proxies = {name: os.environ[name] for name in _PROXIES if os.environ.get(name)}
    argv = ["/bin/sh", "-euc", SCRIPT, "sh", *wanted.sources, "--", *wanted.packages]
    done = engine.run(
        image, argv, Start(env=proxies, entrypoint=(), network="host" if host else "default")
    )
    if done.exit_code:
        raise _refusal(done, image)
    return _resolved(done.stdout.splitlines(), wanted, image)


def _refusal(done: Finished, image: str) -> EnvlockError:
    if done.exit_code == NO_APT:
        return UsageError(
            f"{image} has no apt-get", hint="use a base of Debian or Ubuntu, or remove `apt`"
        )
    lines = (done.stderr or done.stdout).splitlines()
    said = [line[3:] for line in lines if line.startswith("E: ")] or lines[-1:]
    shown = clean("; ".join(said))[:300]
    if said and said[0].startswith(_WRONG):
        return UsageError(
            f"apt in {image}: {shown}",
            hint="correct `apt`: names and versions are those of its archives",
        )
    hint = "check its archives; `--network host` lets it use this machine's network"
    return OutsideError(f"apt in {image} failed: {shown}", hint=hint)


def _resolved(lines: Iterable[str], wanted: AptRequest, image: str) -> DebianPackages:
    """Return the packages of which apt says that it would install them, each with its file."""
    lines = list(lines)
    removed = [line.split()[1] for line in lines if line.startswith("Remv ")]
    new = [found.groupdict() for line in lines if (found := _INST.match(line))]
    removed += [row["name"] for row in new if row["old"]]
    if removed:
        raise OutsideError(
            f"apt would replace or remove packages of {image}: {', '.join(sorted(set(removed))[:6])}",
            hint=f"name the versions that fit the base, or archives of its day with `apt-sources`; or {_OWN_BASE}",
        )
    files = [found.groupdict() for line in lines if (found := _FILE.fullmatch(line))]
    has = {tuple(line.split()[1:]) for line in lines if line.startswith("Have ")}
    has |= {(row["name"], row["version"]) for row in new}
    for name, _, version in (each.partition("=") for each in wanted.packages):
        if version and (name, version) not in has:
            raise OutsideError(
                f"{image} has {name} in another version than {version}", hint=_OWN_BASE
            )
    try:
        known = {(row["name"], unquote(row["version"]), row["architecture"]): row for row in files}
        packages = [_package(row, known) for row in sorted(new, key=itemgetter("name"))]
        return DebianPackages(
            wanted=list(wanted.packages), sources=list(wanted.sources), packages=packages
        )
    except (KeyError, ValueError):
        raise OutsideError(
            f"apt in {image} names a file that cannot be locked: no SHA-256, no http, or credentials in its address",
            hint=_OWN_BASE,
        ) from None


def _package(
    row: Mapping[str, str], files: Mapping[tuple[str, str, str], Mapping[str, str]]
) -> DebianPackage:
    """Return a package with its file.

    Raises:
        KeyError: apt names no file of it with a SHA-256.
        ValueError: something of it cannot be locked.
    """
    named = {name: row[name] for name in ("name", "version", "architecture")}
    file = files[named["name"], named["version"], named["architecture"]]
    return DebianPackage.model_validate(
        {**named, "size": int(file["size"]), "sha256": file["sha256"], "url": file["url"]}
    )
