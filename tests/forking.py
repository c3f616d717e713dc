"""A process that has imported envlock once, and forks for every command line: a start of Python and pydantic saved.

What a fork cannot be: a process whose interpreter, loader or C library *began* with other variables (`can_fork`), or
with another module in the place of one that is loaded here; both get a real start. What /proc/self/environ tells is
memory of the process, and is written anew.

Run as a program it is the server: a request is a line of JSON, with the three standard streams beside it.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import inspect
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

HARMLESS = (
    *("ENVLOCK_", "XDG_", "PIP_", "UV_", "DOCKER_", "NO_COLOR", "COLUMNS", "HOME", "NETRC", "TMPDIR"),
    *("TF_", "KERAS_", "TEST_", "AWS_", "PYTHONPATH", "PYTHONHASHSEED", "VIRTUAL_ENV"),
)
ROOM = "ENVLOCK_TEST_ROOM"
"""A variable of the server that is only long: the variables of a request are written where it stood."""

START_LIMIT = 300
"""Seconds in which the server must have imported envlock and forked, on a machine with much other work."""

PROGRAMS = ("envlock.__main__", "envlock.runtime.gpu.child")
GUESTS = ("envlock.guest.", "envlock.integrations.")
LAUNCHER = "envlock.guest.launch"


def can_fork(argv: list[str], environ: dict[str, str]) -> bool:
    """Return whether a fork is as good as a start of `argv` with these variables."""
    return argv == [sys.executable, "-m", "envlock"] and all(name.startswith(HARMLESS) for name in environ)


START = subprocess.Popen  # as it is now: the first command may be of a test that must start no other process


class Server:
    """The process that forks; it ends with this one."""

    def __init__(self, environ: dict[str, str]) -> None:
        environ = {**environ, ROOM: "." * (1 << 16)}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        root = str(Path(__file__).resolve().parents[1])
        self.process = START(
            [sys.executable, __file__, str(theirs.fileno())], env=environ, cwd=root, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self.socket = ours

    def close(self) -> None:
        """End it."""
        self.socket.close()
        self.process.wait(60)

    def run(
        self, args: tuple[str, ...], folder: Path, environ: dict[str, str], stdin: bytes, timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Return exit code, stdout and stderr of `envlock args`.

        Raises:
            subprocess.TimeoutExpired: it did not end in time, and was killed.
        """
        with TemporaryFile() as source, TemporaryFile() as out, TemporaryFile() as err:
            source.write(stdin)
            source.seek(0)
            request = json.dumps({"args": args, "folder": str(folder), "environ": environ}).encode()
            socket.send_fds(self.socket, [request], [source.fileno(), out.fileno(), err.fileno()])
            return self._code(["envlock", *args], timeout), _all(out.fileno()), _all(err.fileno())

    def _code(self, argv: list[str], timeout: float) -> int:
        # Not the command's time: the server may still be importing, and an answer that nobody waits for any more would be
        # taken for that of the next command.
        self.socket.settimeout(START_LIMIT)
        pid = int(self.socket.recv(64))
        self.socket.settimeout(timeout)
        try:
            return int(self.socket.recv(64))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            self.socket.settimeout(10)
            self.socket.recv(64)
            raise subprocess.TimeoutExpired(argv, timeout) from None


def _all(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _serve(connection: socket.socket) -> list[str] | None:
    """Fork for every request; return its arguments in the child, None at the end."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        if not message:
            return None
        pid = os.fork()
        if pid == 0:
            request = json.loads(message)
            for target, descriptor in enumerate(descriptors):
                os.dup2(descriptor, target)
                os.close(descriptor)
            connection.close()
            os.chdir(request["folder"])
            _settle(request["args"], request["environ"])
            return list(request["args"])
        for descriptor in descriptors:
            os.close(descriptor)
        connection.send(str(pid).encode())
        connection.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def _settle(args: list[str], environ: dict[str, str]) -> None:
    """Let this process have the variables that it was asked to have, also at its start; start anew where it cannot."""
    folders = [folder for folder in environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    names = {name.partition(".")[0] for folder in folders if Path(folder).is_dir() for name in os.listdir(folder)}
    text = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environ.items())
    fields = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(") ")[2].split()
    start, size = int(fields[47]), int(fields[48]) - int(fields[47])  # env_start and env_end in proc(5)
    if names & set(sys.modules) or len(text) > size:
        os.execve(sys.executable, [sys.executable, "-m", "envlock", *args], environ)
    sys.path[:0] = folders
    os.environ.clear()
    os.environ.update(environ)
    ctypes.memmove(start, text.ljust(size, b"\0"), size)


def warm() -> None:
    """Import all of envlock but what runs elsewhere, and read its tables."""
    import envlock
    from envlock.lock.models import Lockfile

    for module in pkgutil.walk_packages(envlock.__path__, "envlock."):
        is_guest = module.name.startswith(GUESTS) and module.name != LAUNCHER
        if module.name not in PROGRAMS and not is_guest:
            import_module(module.name)
    Lockfile.model_rebuild()  # the models are built when they are first used
    for name in [name for name in sys.modules if name.startswith("envlock.data")]:
        for read in vars(sys.modules[name]).values():
            if hasattr(read, "cache_info") and not inspect.signature(read).parameters:
                read()  # a table


def _run() -> int:
    """Run the program and end as an interpreter does, but for taking hundreds of modules apart, which takes 0.2 s."""
    try:
        runpy.run_module("envlock", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        return 120  # as the interpreter does
    return code


if __name__ == "__main__":
    warm()
    gc.collect()
    gc.freeze()  # or the collector of every child would touch, and so copy, all of it
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        arguments = _serve(listening)
    if arguments is not None:
        sys.argv[:] = ["envlock", *arguments]
        os._exit(_run())
