"""A Docker daemon of a version of its own, unpacked and started beside whatever the machine has."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.image.bed.debian import BedError, call, fetch, unpack

VERSIONS = {
    "26": ["docker.io/trixie", "docker-cli/trixie", "docker-buildx/trixie", "containerd/trixie", "runc/bookworm",
           "tini/bookworm"],
    "20": ["docker.io/bookworm", "containerd/bookworm", "runc/bookworm", "tini/bookworm"],
}  # fmt: skip
"""The packages of each engine. Trixie's runc needs a newer C library than bookworm has; bookworm's works with both."""

START_SECONDS = 60
NVIDIA_HOOK = "#!/bin/sh\ncat >/dev/null\n"
"""Stands for NVIDIA's container toolkit: with a program of that name on its PATH the daemon accepts `--gpus`."""


@dataclass(frozen=True)
class Engine:
    """A running daemon.

    Attributes:
        folder: what it keeps, below /tmp: the paths of sockets must be short.
        root: where its programs are unpacked.
        pid: its process, whose mount name space has the bed's /etc.
    """

    folder: Path
    root: Path
    pid: int
    trust: Mapping[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        """What to add to a process's environment so that `docker` and docker-py take this daemon and no other."""
        return {
            "DOCKER_HOST": f"unix://{self.folder}/docker.sock",
            "DOCKER_CONFIG": str(self.folder / "config"),
            "PATH": f"{self.root}/usr/bin:{os.environ.get('PATH', os.defpath)}",
            **self.trust,
        }

    @property
    def enter(self) -> list[str]:
        """What to put before a command so that it sees the bed's /etc: there nvcr.io is the bed's registry."""
        return ["nsenter", f"--mount=/proc/{self.pid}/ns/mnt", "--"]

    def docker(self, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run `docker` on this daemon; where it fails and `check` is set, raise with what it said."""
        done = subprocess.run(
            [self.root / "usr/bin/docker", *arguments],
            env={**os.environ, **self.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if check and done.returncode:
            raise BedError(f"docker {' '.join(map(str, arguments))} failed: {done.stderr.strip()}")
        return done

    @property
    def alive(self) -> bool:
        """Whether it answers."""
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            return _is_ours(self.pid, self.folder) and self.docker("version", check=False).returncode == 0
        return False

    def stop(self) -> None:
        """Remove its containers, end it, and remove all it kept."""
        if self.alive:  # first the containers: each that ignores SIGTERM would cost ten seconds
            containers = self.docker("ps", "-aq", check=False).stdout.split()
            if containers:
                self.docker("rm", "-f", *containers, check=False)
        end(self.pid, self.folder)
        _end_orphans(self.folder)
        remove(self.folder)


def unpacked(cache: Path, version: str) -> Path:
    """Return the root of an engine's unpacked packages, unpacking them the first time."""
    packages = VERSIONS[version]
    key = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:8]
    root = cache / f"docker-{version}-{key}"
    if not root.exists():
        fresh = cache / f".docker-{version}"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        unpack(fetch(packages, cache / "debs"), fresh)
        fresh.replace(root)
    return root


def start(
    root: Path,
    folder: Path | None = None,
    *,
    etc: Path | None = None,
    trust: Mapping[str, str] | None = None,
    gpus: bool = False,
    disk: str | None = None,
) -> Engine:
    """Start a daemon and return when it answers.

    Args:
        root: its unpacked packages.
        folder: where it keeps what it keeps; a new one below /tmp if not given.
        etc: files laid over the machine's /etc for this daemon and who enters its name space.
        trust: variables that name the certificate authority to trust, for the daemon and its clients.
        gpus: whether it believes that NVIDIA's container toolkit is there.
        disk: the size of its disk, such as "200m": a file system in memory.

    Raises:
        BedError: it did not come up; the text holds the end of its log.
    """
    folder = folder or Path(tempfile.mkdtemp(prefix="el.", dir="/tmp"))
    for name in ("data", "config", "work", "bin"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    if etc is not None and etc != folder / "etc":  # an upper folder belongs to one overlay
        etc = Path(shutil.copytree(etc, folder / "etc"))
    plugins = {"cliPluginsExtraDirs": [f"{root}/usr/libexec/docker/cli-plugins"]}
    (folder / "config/config.json").write_text(json.dumps(plugins))
    if gpus:
        (folder / "bin/nvidia-container-runtime-hook").write_text(NVIDIA_HOOK)
        (folder / "bin/nvidia-container-runtime-hook").chmod(0o755)
    path = f"{folder}/bin:{root}/usr/sbin:{root}/usr/bin:{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    pid = spawn(
        [*_private(folder, etc, disk), *_daemon(folder, root)],
        folder / "daemon.log",
        {"PATH": path, **(trust or {})},
    )
    engine = Engine(folder, root, pid, trust or {})
    limit = time.monotonic() + START_SECONDS
    while time.monotonic() < limit and os.waitpid(pid, os.WNOHANG) == (0, 0):
        if engine.docker("version", check=False).returncode == 0:
            return engine
        time.sleep(0.05)
    end(pid, folder)
    log = (folder / "daemon.log").read_text(errors="replace").splitlines()[-12:]
    remove(folder)
    raise BedError("\n".join(["the Docker daemon did not start:", *log]))


def _private(folder: Path, etc: Path | None, disk: str | None) -> list[str]:
    """Return what starts a command in a mount name space of its own, with `etc` over /etc."""
    steps = []
    if etc is not None:
        steps.append('mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1,workdir=$2/work" /etc')
    if disk is not None:
        steps.append('mount -t tmpfs -o "size=$3" tmpfs "$2/data"')
    script = " && ".join([*steps, 'shift 3 && exec "$@"'])
    own = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh"]
    return [*own, str(etc or ""), str(folder), disk or ""]


def _daemon(folder: Path, root: Path) -> list[str]:
    """Return the daemon's command line: no bridge and no iptables, which would change the machine's network."""
    return [
        *(f"{root}/usr/sbin/dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"),
        *("--pidfile", f"{folder}/docker.pid", "-H", f"unix://{folder}/docker.sock"),
        *("--bridge=none", "--iptables=false", "--ip6tables=false"),
        *("--init-path", f"{root}/usr/bin/tini-static"),
    ]


def spawn(command: Sequence[str], log: Path, environ: Mapping[str, str], cwd: Path | None = None) -> int:
    """Start a process in a session of its own, which the interrupt key does not reach; return its number."""
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    process.returncode = 0  # not waited for by this object: another process may be the one to end it
    return process.pid


def end(pid: int, folder: Path) -> None:
    """End a process of ours and wait until it is gone: by asking, and after 20 seconds by force."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        limit = time.monotonic() + 20
        if _is_ours(pid, folder):
            os.kill(pid, number)
        while _is_ours(pid, folder) and time.monotonic() < limit:
            time.sleep(0.02)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)  # it may be on its way out, without a command line by now


def _end_orphans(folder: Path) -> None:
    """End what a daemon that was killed left: the keepers of its containers, and what runs in these."""
    for place in Path("/proc").glob("[0-9]*"):
        pid = int(place.name)
        with contextlib.suppress(OSError):
            keeper = _is_ours(pid, folder) and (place / "exe").readlink().name.startswith(("containerd", "runc"))
            mounts = (line.split() for line in (place / "mountinfo").read_text().splitlines())
            if keeper or any(words[4] == "/" and f"={folder}/data/" in words[-1] for words in mounts):
                os.kill(pid, signal.SIGKILL)


def _is_ours(pid: int, folder: Path) -> bool:
    """Whether this process has our folder on its command line: a number alone may be somebody else's by now."""
    try:
        return f"{folder}".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def remove(folder: Path) -> None:
    """Unmount what is left below a folder and remove it."""
    mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for place in sorted((place for place in mounted if place.startswith(f"{folder}/")), reverse=True):
        with contextlib.suppress(BedError):
            call(["umount", "-l", place])
    shutil.rmtree(folder, ignore_errors=True)
