"""A process that has imported envlock once, and forks for every command line: a start of Python and pydantic saved.

What a fork cannot be: a process that was *started* with other variables, which /proc/self/environ would tell. So only
variables that no collector looks at may differ (`can_fork`); all else gets a real start.

Run as a program it is the server: a request is a line of JSON, with the three standard streams beside it.
"""

from __future__ import annotations

import atexit
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

HARMLESS = ("ENVLOCK_", "XDG_", "PIP_", "UV_", "DOCKER_", "NO_COLOR", "COLUMNS", "HOME", "NETRC", "TMPDIR")
PROGRAMS = ("envlock.__main__", "envlock.runtime.gpu.child")
GUESTS = "envlock.guest."
LAUNCHER = "envlock.guest.launch"


def can_fork(argv: list[str], environ: dict[str, str]) -> bool:
    """Return whether a fork is as good as a start of `argv` with these variables."""
    return argv == [sys.executable, "-m", "envlock"] and all(name.startswith(HARMLESS) for name in environ)


class Server:
    """The process that forks; it ends with this one."""

    def __init__(self, environ: dict[str, str]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        root = str(Path(__file__).resolve().parents[1])
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())], env=environ, cwd=root, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self.socket = ours

    def close(self) -> None:
        """End it."""
        self.socket.close()
        self.process.wait(10)

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
        self.socket.settimeout(timeout)
        pid = int(self.socket.recv(64))
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
            os.environ.clear()
            os.environ.update(request["environ"])
            return list(request["args"])
        for descriptor in descriptors:
            os.close(descriptor)
        connection.send(str(pid).encode())
        connection.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def _warm() -> None:
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
    _warm()
    gc.collect()
    gc.freeze()  # or the collector of every child would touch, and so copy, all of it
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        arguments = _serve(listening)
    if arguments is not None:
        sys.argv[:] = ["envlock", *arguments]
        os._exit(_run())
