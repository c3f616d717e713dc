"""The whole bed, shared: the first who asks brings it up, the last who leaves takes it down."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.image.bed import certificates, engine, images, registry
from tests.image.bed.debian import BedError, fetch, unpack

ROOT = Path(__file__).resolve().parents[3]
CACHE = ROOT / ".venvs" / "engine"
PROGRAMS = ("apt-get", "dpkg-deb", "tar", "unshare", "nsenter", "mount", "ldconfig")
NGC = ("nvidia/tensorflow", "25.02-tf2-py3")
CUDA = ("nvidia/cuda", "12.5.1-cudnn-runtime-ubuntu22.04")
PYTHON = ("library/python", "3.11-slim")
PRIVATE = ("private/tensorflow", "25.02-tf2-py3")


@dataclass(frozen=True)
class Bed:
    """An engine, and a registry that it takes for nvcr.io and docker.io.

    Attributes:
        digests: repository -> digest of what is published there.
    """

    engine: engine.Engine
    registry: registry.Registry
    digests: dict[str, str]

    @property
    def ngc(self) -> str:
        """The stand-in of NVIDIA's TensorFlow, pinned, under its real name."""
        return f"nvcr.io/{NGC[0]}:{NGC[1]}@{self.digests[NGC[0]]}"

    @property
    def cuda(self) -> str:
        """The stand-in of a CUDA runtime image, pinned, under its real name at nvcr.io."""
        return f"nvcr.io/{CUDA[0]}:{CUDA[1]}@{self.digests[CUDA[0]]}"

    @property
    def python(self) -> str:
        """The stand-in of Python's slim image, pinned, under its real name."""
        return f"docker.io/{PYTHON[0]}:{PYTHON[1]}@{self.digests[PYTHON[0]]}"

    @property
    def private(self) -> str:
        """An image of nvcr.io that only those with `registry.KEY` may pull, pinned."""
        return f"nvcr.io/{PRIVATE[0]}:{PRIVATE[1]}@{self.digests[PRIVATE[0]]}"


def folder() -> Path:
    """Return where this checkout's bed runs: one place, so that all its processes find it, and short."""
    return Path("/tmp") / f"el-{hashlib.sha256(str(CACHE).encode()).hexdigest()[:8]}"


@contextlib.contextmanager
def shared(*, keep: bool = False) -> Iterator[Bed]:
    """Yield the bed, bringing it up unless it runs; take it down when nobody else uses it, unless `keep`.

    Raises:
        BedError: it cannot be brought up here.
    """
    _possible()
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "users").open("a") as users:
        with _locked():
            bed = running() or up()
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield bed
        finally:
            if not keep:
                _leave(users)


def _leave(users: IO[str]) -> None:
    with _locked(), contextlib.suppress(BlockingIOError):  # others still use it
        fcntl.flock(users, fcntl.LOCK_UN)
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not (folder() / "keep").exists():
            down()


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    with (CACHE / "lock").open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _possible() -> None:
    if os.geteuid() != 0:
        raise BedError("a container engine of one's own needs root")
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if missing:
        raise BedError(f"missing on this machine: {', '.join(missing)}")


def running() -> Bed | None:
    """Return the bed that runs, if it is made of what this checkout would make it of."""
    try:
        state = json.loads((folder() / "state.json").read_text())
    except (OSError, ValueError):
        return None
    bed = _bed(state)
    return bed if state["made_of"] == _made_of() and bed.engine.alive else None


def _made_of() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


def _bed(state: dict[str, str]) -> Bed:
    place = folder()
    ca = place / "registry/ca.crt"
    trust = trusting(place)
    own = engine.Engine(place, Path(state["root"]), int(state["engine"]), trust)
    served = registry.Registry(state["address"], state["tokens_address"], ca)
    return Bed(own, served, json.loads(state["digests"]))


def trusting(place: Path) -> dict[str, str]:
    """Return the variables that make Go, OpenSSL and requests trust the bed's authority beside the usual ones."""
    bundle = str(place / "bundle.crt")
    return {"SSL_CERT_FILE": bundle, "REQUESTS_CA_BUNDLE": bundle, "CURL_CA_BUNDLE": bundle}


def up() -> Bed:
    """Bring the bed up, in a second when the cache holds what it is made of.

    Raises:
        BedError: something is missing or failed; nothing is left.
    """
    down()
    every = [*engine.VERSIONS["26"], *registry.PACKAGES, *images.PACKAGES]
    fetch(every, CACHE / "debs")  # all at once: reading the lists costs more than most packages
    root = engine.unpacked(CACHE, "26")
    programs = _registry_root()
    place = folder()
    place.mkdir(mode=0o700)
    try:
        state = _registry(place, programs)
        started = engine.start(root, place, etc=place / "etc", trust=trusting(place))
        state.update(root=str(root), engine=str(started.pid), made_of=_made_of())
        bed = _bed({**state, "digests": "{}"})
        bed.registry.wait()
        state["digests"] = json.dumps(_publish(bed.registry))
        (place / "state.json").write_text(json.dumps(state))
    except BaseException:
        down()
        raise
    return _bed(state)


def _registry_root() -> Path:
    root = CACHE / "registry"
    if not root.exists():
        fresh = CACHE / ".registry"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        unpack(fetch(registry.PACKAGES, CACHE / "debs"), fresh)
        fresh.replace(root)
    return root


def _registry(place: Path, programs: Path) -> dict[str, str]:
    """Start the registry and its token server, lay out the /etc in which they are nvcr.io; return where they are."""
    number = int(place.name.removeprefix("el-")[:4], 16)
    prefix = f"127.77.{number // 256}.{number % 256}"  # of this checkout: several may have a bed at a time
    address, tokens_address = prefix, prefix.replace("127.77", "127.78")
    home = place / "registry"
    certificates.write(home, registry.HOSTS, [address, tokens_address])
    (home / "config.yml").write_text(registry.configuration(home, address, tokens_address))
    serve = [f"{programs}/usr/bin/docker-registry", "serve", f"{home}/config.yml"]
    pids = [engine.spawn(serve, home / "registry.log", {"OTEL_TRACES_EXPORTER": "none"})]
    tokens = [sys.executable, "-m", "tests.image.bed.registry", str(home), tokens_address]
    pids.append(engine.spawn(tokens, home / "tokens.log", {}, cwd=ROOT))
    (place / "pids").write_text(" ".join(map(str, pids)))
    etc = place / "etc"
    trusted = (home / "ca.crt").read_bytes()
    (etc / "docker/certs.d/nvcr.io").mkdir(parents=True)
    (etc / "docker/certs.d/nvcr.io/ca.crt").write_bytes(trusted)
    system = Path("/etc/ssl/certs/ca-certificates.crt")
    (place / "bundle.crt").write_bytes((system.read_bytes() if system.exists() else b"") + trusted)
    hosts = Path("/etc/hosts").read_text() + "".join(f"{address} {host}\n" for host in registry.HOSTS)
    (etc / "hosts").write_text(hosts)
    return {"address": address, "tokens_address": tokens_address}


def _publish(served: registry.Registry) -> dict[str, str]:
    ngc = images.ngc(CACHE)
    published = {
        NGC: [ngc, images.ngc(CACHE, "arm64")],
        PRIVATE: [ngc],
        CUDA: [images.cuda(CACHE)],
        PYTHON: [images.python(CACHE)],
    }
    return {name: served.push(name, tag, *content) for (name, tag), content in published.items()}


def down() -> None:
    """Take down what runs, and remove what it kept; the cache stays."""
    place = folder()
    with contextlib.suppress(OSError, ValueError):
        pids = [int(word) for word in (place / "pids").read_text().split()]
        for pid in pids:
            engine.end(pid, place)
    pid = 0
    with contextlib.suppress(OSError, ValueError):
        pid = int((place / "docker.pid").read_text())
    if (place / "docker.sock").exists() and pid:
        engine.Engine(place, engine.unpacked(CACHE, "26"), pid).stop()
    engine.remove(place)
