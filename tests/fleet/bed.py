"""Launchers for tests: Slurm of Debian's packages, MPI and Ray of wheels. Nothing is installed on the machine.

What they are made of is kept below `.venvs`; what runs, runs below /tmp, and ends with the test session.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.image.bed.debian import BedError, fetch, unpack

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".venvs" / "fleet"
SLURM = (
    "libhwloc15",
    "liblua5.1-0",
    "libnuma1",
    "libmunge2",
    "munge",
    "slurm-wlm-basic-plugins",
    "slurm-client",
    "slurmd",
    "slurmctld",
)
NODES = 4
START_SECONDS = 60

_CLAIMS: list[socket.socket] = []
"""What this process holds until it ends, so that no two beds that start together are given the same ports."""

CONF = """\
ClusterName=envlock
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool.%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SlurmctldTimeout=30
SlurmdTimeout=30
KillWait=5
NodeName=n[1-4] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=2 RealMemory=500 State=UNKNOWN
PartitionName=all Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""
"""https://slurm.schedmd.com/slurm.conf.html: several nodes on one host, no accounting, no cgroups."""

UP = """\
set -e
mount -t overlay overlay -o "lowerdir=$1/usr:/usr" /usr
umask 077
head -c 1024 /dev/urandom > "$2/munge/key"
munged --force --key-file="$2/munge/key" --socket="$2/munge.socket" --pid-file="$2/munged.pid" \
  --log-file="$2/munge/log" --seed-file="$2/munge/seed"
slurmctld-wlm -c
for node in n1 n2 n3 n4; do slurmd-wlm -N $node; done
exec sleep 100000
"""


@dataclass(frozen=True)
class Started:
    """How a job ended."""

    code: int
    output: str
    errors: str
    seconds: float


WAITING = re.compile(r"^srun: job \d+ (?:queued|has been) .*\n", re.MULTILINE)
"""What srun says while the nodes of the last job become free."""


@dataclass(frozen=True)
class Slurm:
    """A cluster of four nodes on this machine.

    Attributes:
        folder: what it keeps.
        keeper: the process whose mount name space has Slurm's programs.
    """

    folder: Path
    keeper: subprocess.Popen[bytes]

    @property
    def environ(self) -> dict[str, str]:
        """What a client needs."""
        return {"SLURM_CONF": f"{self.folder}/slurm.conf"}

    def run(self, command: Sequence[str | Path], cwd: Path, environ: Mapping[str, str] | None = None) -> Started:
        """Run a command where Slurm's programs are; what srun says of waiting for free nodes is left out."""
        enter = ["nsenter", f"--mount=/proc/{self.keeper.pid}/ns/mnt", f"--wd={cwd}", "--"]
        done = run([*enter, *command], cwd, {**self.environ, **(environ or {})})
        return replace(done, output=WAITING.sub("", done.output), errors=WAITING.sub("", done.errors))

    def daemon(self, name: str) -> int:
        """Return the process of a daemon, such as `slurmd.n3`."""
        return int((self.folder / f"{name}.pid").read_text())

    def stop(self) -> None:
        """End the daemons and remove what they kept."""
        for file in sorted(self.folder.glob("*.pid")):
            with contextlib.suppress(OSError, ValueError):
                pid = int(file.read_text())
                if str(self.folder).encode() in Path(f"/proc/{pid}/environ").read_bytes():
                    os.kill(pid, signal.SIGKILL)
        self.keeper.kill()
        self.keeper.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def run(command: Sequence[str | Path], cwd: Path, environ: Mapping[str, str], timeout: float = 120) -> Started:
    """Run a command to its end."""
    plain = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "CI")}
    start = time.monotonic()
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**plain, "PYTHONPATH": str(ROOT), **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    output, errors = (each.decode("utf-8", "replace") for each in (done.stdout, done.stderr))
    return Started(done.returncode, output, errors, time.monotonic() - start)


@contextlib.contextmanager
def slurm() -> Iterator[Slurm]:
    """Yield a cluster, and end it.

    Raises:
        BedError: it cannot be brought up here.
    """
    if os.geteuid() != 0:
        raise BedError("a Slurm of one's own needs root")
    root = _slurm_root()
    folder = Path(tempfile.mkdtemp(prefix="el-slurm.", dir="/tmp"))
    for name in ("munge", "state", *(f"spool.n{number}" for number in range(1, NODES + 1))):
        (folder / name).mkdir(mode=0o700)
    port = free_ports(NODES + 1)
    host = socket.gethostname().partition(".")[0]
    text = CONF.format(folder=folder, host=host, port=port, first=port + 1, last=port + NODES)
    (folder / "slurm.conf").write_text(text)
    log = (folder / "up.log").open("wb")
    own = ["unshare", "--mount", "--propagation", "private", "sh", "-c", UP, "sh", str(root), str(folder)]
    environ = {**os.environ, "SLURM_CONF": f"{folder}/slurm.conf"}
    found = Slurm(folder, subprocess.Popen(own, stdout=log, stderr=log, env=environ, start_new_session=True))
    try:
        _wait(found)
        yield found
    finally:
        log.close()
        found.stop()


def _wait(found: Slurm) -> None:
    limit = time.monotonic() + START_SECONDS
    idle = Started(1, "", "", 0)
    while time.monotonic() < limit and found.keeper.poll() is None:
        if (found.folder / "slurmd.n4.pid").exists():
            idle = found.run(["sinfo", "-h", "-t", "idle", "-o", "%D"], found.folder)
            if idle.output.strip() == str(NODES):
                return
        time.sleep(0.1)
    logs = [file.read_text(errors="replace")[-300:] for file in sorted(found.folder.glob("*.log"))]
    raise BedError("\n".join(["Slurm did not start:", idle.errors, *logs]))


def _slurm_root() -> Path:
    with _locked():
        root = CACHE / "slurm"
        if not root.exists():
            fresh = CACHE / ".slurm"
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(parents=True)
            unpack(fetch([f"{name}/bookworm" for name in SLURM], CACHE / "debs"), fresh)
            (fresh / "usr/sbin/slurmstepd").symlink_to("slurmstepd-wlm")  # the package's own script would do so
            fresh.replace(root)
        return root


def free_ports(number: int) -> int:
    """Return the first of several neighbouring ports, ten at most, that are free and that no other bed is given."""
    for first in range(21000, 32000, 10):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            claim = stack.enter_context(socket.socket(socket.AF_UNIX))
            claim.bind(f"\0envlock-ports-{first}")  # an abstract name: gone with the process
            for port in range(first, first + number):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            _CLAIMS.append(claim.dup())
            return first
    raise BedError("no free ports")


def python(kind: str) -> Path:
    """Return the interpreter of the environment with the wheels of requirements/KIND.txt, which `make` installs.

    Raises:
        BedError: they cannot be installed.
    """
    target = f".venvs/{kind}/.ready"
    with _locked():
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        make = ["make", "--silent", target, f"PYTHON={sys.executable}"]
        done = subprocess.run(make, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BedError(f"cannot make {target}: {done.stderr.strip()[-300:]}")
    return ROOT / ".venvs" / kind / "bin" / "python"


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
