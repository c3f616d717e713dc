"""Start programs in other interpreters, limit their time and memory, and read their answers.

Every program that envlock runs in another interpreter is a module of this room and is started here.
A program that uses other modules of the room, or the runtime half, is imported there from the
folder of this installation (`build_module_arguments`). A standalone program is sent as text
(`build_text_arguments`), so that it runs in a Python without envlock. Each takes one argument,
JSON, and answers with lines of JSON that begin with `MARK`.
"""

from __future__ import annotations

import json
import os
import re
import resource
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
"""The beginning of every line of an answer: a program may print other lines, too."""
LONGEST = 300
"""Characters of the line that says why a process ended."""
GRACE = 5.0
"""Seconds that a killed process has to end."""

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
"""The first lines of a program of several modules: its first argument, envlock's folder, becomes
the package `envlock`.

That folder is never on the import path, so the other interpreter sees no other package of this
environment, and neither another module called `envlock` nor a file in the current folder is
imported instead of this one.
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
"""The first lines of a program that a thread of this process waits for: the kernel kills it when
that thread ends.

A command that is ended by SIGTERM or SIGKILL cannot kill its children itself: once a canary kept
running and grew to 13.5 GB. Without ctypes, or on another system, the program is not killed. Source
of 1, PR_SET_PDEATHSIG (9 is SIGKILL): https://man7.org/linux/man-pages/man2/prctl.2.html
"""

_FATAL = re.compile(r"F[01]\d[0-3]\d ")
"""How a fatal line of TensorFlow's log begins: F, the month and the day, such as F0131 or F1125."""
_ERROR_WORDS = ("Error", "Check failed", "Unknown flag")
"""Words in a line of stderr that says why a process ended."""


class Ended(NamedTuple):
    """How a program ended: its exit code (None if it took longer than `timeout` seconds), and its
    output.
    """

    code: int | None
    output: bytes
    errors: bytes
    timeout: float

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The objects in the answer, without a last line that the end of the process truncated."""
        answers = []
        for line in self.output.decode("utf-8", "replace").splitlines():
            if MARK not in line:
                continue
            with suppress(ValueError, RecursionError):
                answer = json.loads(line.rpartition(MARK)[2])
                if isinstance(answer, dict):
                    answers.append(answer)
        return answers

    @property
    def ending(self) -> str:
        """How it ended, as the rest of a sentence that begins with its name."""
        if self.code is None:
            return f"did not answer within {self.timeout:g} s"
        return describe_exit(self.code)

    @property
    def last_words(self) -> str:
        """The line of its standard error that says most about its end."""
        return pick_error_line(self.errors.decode("utf-8", "replace"))


def build_module_arguments(name: str, asked: Mapping[str, object]) -> list[str]:
    """Return the arguments with which an interpreter runs `main()` of a module of this room."""
    code = f"{BORROWED}\nfrom envlock.guest.{name} import main\nmain()\n"
    return ["-c", code, str(Path(envlock.__file__).parent), _encode(asked)]


def build_text_arguments(program: str, asked: Mapping[str, object]) -> list[str]:
    """Return the arguments with which an interpreter runs the text of a standalone program."""
    return ["-c", program, _encode(asked)]


def read(name: str) -> str:
    """Return the text of a standalone program of this room."""
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
    """Start an interpreter in a session of its own, and return the process.

    Args:
        words: the arguments, from one of the two functions above.
        python: the interpreter; None for this one.
        output, errors, stdin: its streams, as `subprocess.Popen` takes them.
        environ: its variables; None for those of this process.
        memory: the most bytes of address space that it may use; None for no limit.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
    """
    command = [str(python or sys.executable), *words]
    variables = dict(environ) if environ is not None else None
    try:
        child = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=output,
            stderr=errors,
            env=variables,
            start_new_session=True,
        )
    except OSError as error:
        hint = "name the interpreter of an environment, such as .venv/bin/python"
        raise UsageError(f"cannot run {command[0]}: {error.strerror}", hint=hint) from None
    if memory is not None:
        _set_memory_limit(child.pid, memory)
    return child


def ask(
    words: Sequence[str],
    python: Path | None,
    *,
    timeout: float,
    environ: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program to its end, for at most `timeout` seconds, and return its output and exit code;
    see `start`.

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
    finally:
        # Also after KeyboardInterrupt: the session of the child does not get the terminal's signal.
        kill(child)


def ask_python(
    words: Sequence[str],
    python: Path | None,
    *,
    timeout: float,
    environ: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program of this room as `ask` does; the kernel kills it when this process ends.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
    """
    return ask(bind_to_parent(words), python, timeout=timeout, environ=environ)


def bind_to_parent(words: Sequence[str]) -> list[str]:
    """Return the arguments of a program of this room with which the kernel kills it when this process ends."""
    flag, program, *rest = words
    return [flag, BOUND, program, *rest]


def kill(child: subprocess.Popen[bytes]) -> None:
    """Kill a process and all processes that it has started; every wait here has a limit."""
    # It may have ended already, or be a setuid helper of the driver.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    # A task that is stuck in a driver is not ended by any signal.
    with suppress(subprocess.TimeoutExpired):
        child.wait(GRACE)
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()


def describe_exit(code: int) -> str:
    """Return how a process ended, as the rest of a sentence that begins with its name."""
    if code >= 0:
        return f"exited with code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def pick_error_line(text: str) -> str:
    """Return the line that says most about why a process ended: the last one that names an error,
    else the last one.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "no output"
    chosen = lines[-1]
    for line in lines:
        if _FATAL.match(line) or any(word in line for word in _ERROR_WORDS):
            chosen = line
    # The prefix of a line in TensorFlow's log (level, time, thread, file) ends with "] ".
    message = chosen.rpartition("] ")[2] or chosen
    return message[:LONGEST]


def _set_memory_limit(pid: int, memory: int) -> None:
    """Limit the address space of a process to `memory` bytes, or to its own lower limit, and
    disable core dumps.
    """
    with suppress(ProcessLookupError):  # it has ended already
        hard = resource.prlimit(pid, resource.RLIMIT_AS)[1]
        # -1 (RLIM_INFINITY) means that there is no limit.
        wanted = min(memory, hard) if hard >= 0 else memory
        resource.prlimit(pid, resource.RLIMIT_AS, (wanted, hard))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def _encode(asked: Mapping[str, object]) -> str:
    """Return the argument of a program: the request, and the mark of its answers."""
    return json.dumps({"mark": MARK, **asked})
