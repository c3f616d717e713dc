"""Debian packages, fetched from the machine's own mirror and unpacked into a folder: nothing is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

SUITES = ("bookworm", "trixie")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

Stanza = dict[str, str]
"""A deb822 stanza of a .sources file, its field names in lower case."""


class BedError(Exception):
    """The test bed cannot be brought up here; the text says why."""


def mirror(etc: Path = Path("/etc")) -> Stanza:
    """Return the machine's own source for Debian's main archive, whichever of apt's two formats holds it.

    Raises:
        BedError: the machine is no Debian, or has no such source.
    """
    release = etc / "os-release"
    lines = release.read_text(encoding="utf-8").splitlines() if release.exists() else []
    facts = {name: value.strip('"') for name, _, value in (line.partition("=") for line in lines)}
    if facts.get("ID") != "debian" or "VERSION_CODENAME" not in facts:
        raise BedError(f"the engines are made of Debian's packages, and this machine is {facts.get('ID', 'unknown')}")
    for stanza in _sources(etc / "apt"):
        kinds, suites, parts = (stanza.get(name, "").split() for name in ("types", "suites", "components"))
        enabled = stanza.get("enabled", "yes").lower() in ("yes", "true", "1")
        if enabled and "deb" in kinds and facts["VERSION_CODENAME"] in suites and "main" in parts:
            return stanza
    raise BedError(f"apt has no source for {facts['VERSION_CODENAME']} main on this machine")


def _sources(apt: Path) -> Iterator[Stanza]:
    for file in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]:
        if file.suffix == ".list" and file.is_file():
            yield from one_line_sources(file.read_text(encoding="utf-8"))
        elif file.suffix == ".sources" and file.is_file():
            yield from deb822_sources(file.read_text(encoding="utf-8"))


def one_line_sources(text: str) -> Iterator[Stanza]:
    """Yield what a .list file holds: `deb [option=value ...] URI SUITE COMPONENT...`."""
    for line in text.splitlines():
        kind, _, rest = line.partition("#")[0].strip().partition(" ")
        if kind != "deb":
            continue
        stanza = {"types": "deb"}
        rest = rest.strip()
        if rest.startswith("["):
            options, _, rest = rest[1:].partition("]")
            stanza.update((name.lower(), value) for name, _, value in (o.partition("=") for o in options.split()))
        words = rest.split()
        if len(words) > 2:
            yield {**stanza, "uris": words[0], "suites": words[1], "components": " ".join(words[2:])}


def deb822_sources(text: str) -> Iterator[Stanza]:
    """Yield the stanzas of a .sources file; a value may go on in lines that begin with a blank."""
    stanza: Stanza = {}
    name = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if "uris" in stanza and "components" in stanza:
                yield stanza
            stanza, name = {}, ""
        elif line[0] in " \t" and name:
            stanza[name] += f"\n{line}"
        else:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            stanza[name] = value.strip()


def fetch(packages: Sequence[str], folder: Path) -> list[Path]:
    """Return the .debs of these packages (`name/suite`) from `folder`, downloading those not there, with one retry.

    apt works on lists and caches of its own below `folder`: it neither waits for nor disturbs the machine's.

    Raises:
        BedError: there is no mirror, or it does not give them.
    """
    missing = [package for package in packages if not _deb(folder, package)]
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _download(missing, folder)
        except BedError:
            _download(missing, folder)
    return [deb for package in packages if (deb := _deb(folder, package))]


def _deb(folder: Path, package: str) -> Path | None:
    name, _, suite = package.partition("/")
    return next((folder / suite).glob(f"{name}_*.deb"), None)


def _download(packages: Sequence[str], folder: Path) -> None:
    source = mirror()
    kept: Stanza = {"signed-by": KEYRING, **{name: source[name] for name in ("signed-by", "trusted") if name in source}}
    fields = {"types": "deb", "uris": source["uris"], "suites": " ".join(SUITES), "components": "main", **kept}
    apt = folder / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    sources = apt / "bed.sources"
    sources.write_text("".join(f"{name.title()}: {value}\n" for name, value in fields.items()), encoding="utf-8")
    own = [f"Dir::Etc::sourcelist={sources}", "Dir::Etc::sourceparts=-", f"Dir::State::lists={apt}/lists"]
    own += [f"Dir::Cache={apt}/cache", "APT::Sandbox::User=root", "Acquire::Languages=none", "Acquire::Retries=1"]
    command = ["apt-get", *(word for option in own for word in ("-o", option)), "-qq"]
    call([*command, "update"])
    for suite in SUITES:
        wanted = [package for package in packages if package.endswith(f"/{suite}")]
        if wanted:
            fresh = folder / f".{suite}"  # renamed when whole, so that an interrupt leaves no half a package
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            call([*command, "download", *wanted], cwd=fresh)
            (folder / suite).mkdir(exist_ok=True)
            for deb in fresh.iterdir():
                deb.replace(folder / suite / deb.name)


def unpack(debs: Sequence[Path], root: Path) -> None:
    """Unpack .debs below `root`, through the links of a merged /usr; no script of theirs is run."""
    for deb in debs:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as content:
            call(["tar", "-x", "--keep-directory-symlink", "-C", str(root)], stdin=content.stdout)
        if content.returncode:
            raise BedError(f"dpkg-deb cannot read {deb.name}")


def call(command: Sequence[str], *, cwd: Path | None = None, stdin: IO[bytes] | None = None) -> str:
    """Run a command and return its output.

    Raises:
        BedError: it is missing, failed, or took more than five minutes.
    """
    plain = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=plain,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BedError(f"{command[0]}: {error}") from None
    if done.returncode:
        raise BedError(f"{command[0]} failed ({done.returncode}): {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
