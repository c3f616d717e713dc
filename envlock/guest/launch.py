"""The one door into another interpreter: every program that is sent there is started, bounded and ended here.

A program is a module of this room. Those that use other modules of the room, or the runtime half, are imported over
there from this installation's own folder (`module`); one that stands alone is sent as text (`text`), so that it runs in
a Python without envlock. Each takes one argument, JSON, and answers with lines of JSON that begin with `MARK`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import envlock
from envlock.runtime.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import IO, Any, Union

    Stream = Union[int, IO[bytes]]

MARK = "envlock-answer:"
LONGEST = 300  # characters of a process's last words
GRACE = 5.0  # seconds for a killed process to be gone

BORROWED = """
import sys
package = sys.argv[1]
del sys.argv[1]
sys.path[:] = [folder for folder in sys.path if folder]  # -c puts the current folder there, as an empty name
for name in [name for name in sys.modules if name.partition(".")[0] == "envlock"]:
    del sys.modules[name]  # what a .pth file or sitecustomize has imported over there
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("envlock", package + "/__init__.py", submodule_search_locations=[package])
sys.modules["envlock"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["envlock"])
"""
"""How a program of several modules begins: its first argument, envlock's folder, becomes the package `envlock`.

That folder never enters the import path, so nothing of this environment is seen in that one, and no other module called
`envlock`, nor a file in the current folder, stands in for what is meant.
"""

BOUND = """
import sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)
except (ImportError, OSError, AttributeError):
    pass
exec(compile(sys.argv.pop(1), "<string>", "exec"))
"""
"""How a program begins whose answer is waited for: the kernel ends it (signal 9) with the thread that waits.

A command that SIGTERM or SIGKILL ends has no say in that: its canary lived on, and grew to 13.5 GB. Without ctypes, or
on another system, nothing is bound. Source of 1, PR_SET_PDEATHSIG: https://man7.org/linux/man-pages/man2/prctl.2.html
"""

_TELLING = ("Error", "Check failed", "Unknown flag")


class Ended(NamedTuple):
    """How a program ended: its exit code (None: it took longer than `timeout` seconds), and what it wrote."""

    code: int | None
    output: bytes
    errors: bytes
    timeout: float

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The objects that it answered with; a line that the end of the process cut off is not one of them."""
        found = []
        for line in self.output.decode("utf-8", "replace").splitlines():
            with suppress(ValueError, RecursionError):
                if MARK in line:
                    found.append(json.loads(line.rpartition(MARK)[2]))
        return [answer for answer in found if isinstance(answer, dict)]

    @property
    def ending(self) -> str:
        """How it ended, for a sentence that begins with its name."""
        return (
            f"did not answer within {self.timeout:g} s" if self.code is None else ending(self.code)
        )

    @property
    def last_words(self) -> str:
        """The line of its standard error that says most about its end."""
        return last_words(self.errors.decode("utf-8", "replace"))


def module(name: str, asked: Mapping[str, Any]) -> list[str]:
    """Return the arguments that let an interpreter run `main()` of a module of this room."""
    code = f"{BORROWED}\nfrom envlock.guest.{name} import main\nmain()\n"
    return ["-c", code, str(Path(envlock.__file__).parent), _json(asked)]


def text(program: str, asked: Mapping[str, Any]) -> list[str]:
    """Return the arguments that let an interpreter run a program that stands alone, given as its text."""
    return ["-c", program, _json(asked)]


def read(name: str) -> str:
    """Return the text of a program of this room that stands alone."""
    return Path(__file__).with_name(name + ".py").read_text(encoding="utf-8")


def start(
    words: Sequence[str],
    python: Path | None,
    *,
    output: Stream,
    errors: Stream,
    stdin: Stream = subprocess.DEVNULL,
    environ: Mapping[str, str] | None = None,
    memory: int | None = None,
) -> subprocess.Popen[bytes]:
    """Return the process in which an interpreter (this one when not given) runs, in a session of its own.

    Args:
        words: the arguments, from `module` or `text`.
        python: the interpreter.
        output, errors, stdin: its streams, as `subprocess.Popen` takes them.
        environ: its variables; those of this process when not given.
        memory: how many bytes of address space it may have.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
    """
    command = [str(python or sys.executable), *words]
    try:
        child = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=output,
            stderr=errors,
            env=None if environ is None else dict(environ),
            start_new_session=True,
        )
    except OSError as error:
        hint = "name the interpreter of an environment, such as .venv/bin/python"
        raise UsageError(f"cannot run {command[0]}: {error.strerror}", hint=hint) from None
    if memory is not None:
        _limit(child.pid, memory)
    return child


def ask(
    words: Sequence[str],
    python: Path | None,
    *,
    timeout: float,
    environ: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program to its end, for at most `timeout` seconds, and return what it said; see `start`.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
    """
    child = start(words, python, output=subprocess.PIPE, errors=subprocess.PIPE, environ=environ)
    try:
        output, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as late:
        return Ended(None, late.output or b"", late.stderr or b"", timeout)
    else:
        return Ended(child.returncode, output, errors, timeout)
    finally:  # also of an interrupt
        end(child)


def ask_python(
    words: Sequence[str],
    python: Path | None,
    *,
    timeout: float,
    environ: Mapping[str, str] | None = None,
) -> Ended:
    """Do what `ask` does with a program of this room, from `module` or `text`, which ends with this process.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
    """
    flag, program, *rest = words
    return ask([flag, BOUND, program, *rest], python, timeout=timeout, environ=environ)


def end(child: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started; no wait here is unbounded."""
    with suppress(ProcessLookupError, PermissionError):  # gone, or a setuid helper of the driver
        os.killpg(child.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # a task stuck in a driver answers to nothing
        child.wait(GRACE)
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()


def ending(code: int) -> str:
    """Return how a process ended, for a sentence that begins with its name."""
    if code >= 0:
        return f"exited with code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def last_words(text: str) -> str:
    """Return the line that says most about why a process ended: the last that names an error, else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [
        line for line in lines if line.startswith("F0") or any(word in line for word in _TELLING)
    ]
    words = (telling or lines or ["no output"])[-1]
    return (words.rpartition("] ")[2] or words)[
        :LONGEST
    ]  # without the head of a line of TensorFlow's log


def _limit(pid: int, memory: int) -> None:
    """Limit a process to this much memory, or to its own limit where that is lower, and let it write no core dump."""
    import resource

    with suppress(ProcessLookupError):  # it has ended already
        hard = resource.prlimit(pid, resource.RLIMIT_AS)[1]
        resource.prlimit(pid, resource.RLIMIT_AS, (memory if hard < 0 else min(memory, hard), hard))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def _json(asked: Mapping[str, Any]) -> str:
    return json.dumps({"mark": MARK, **asked})
