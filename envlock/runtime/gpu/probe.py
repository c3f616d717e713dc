"""The parent's side of the NVML child process: start it, wait for a limited time, read one answer.

NVML can crash, and can hang in a way that no signal ends (a task that is stuck in the driver), so
it never runs in the user's process. `subprocess` is not used: importing it takes longer than
starting the child, and after a timeout `subprocess.run` waits for the killed child without a limit.
"""

from __future__ import annotations

import os
import select
import sys
import time

from envlock.runtime import strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Mapping, Optional, Tuple

    from envlock.runtime.gpu.nvml import Answer
    from envlock.runtime.host import Host

START_SECONDS = 10.0
SECONDS_PER_GPU = 3.0
"""These two make the time limit: without persistence mode a GPU takes 1 to 3 s to wake up (NVIDIA,
"Driver Persistence").
"""

GRACE_SECONDS = 0.2
"""How long the child may take to end, once after SIGTERM and once after SIGKILL.

SIGTERM comes first: SIGKILL of an NVML process has itself frozen a GPU (NVIDIA/dcgm-exporter#84).
"""

ANSWER_LIMIT = 1 << 20
"""Bytes: longer output is not an answer (64 devices take about 40 kB)."""

LAST_RESORT: List[str] = []
"""Folders with a `pynvml`, for an environment that does not have one."""

_SIGINT, _SIGTERM, _SIGKILL, _SIGPIPE = 2, 15, 9, 13
"""POSIX; importing `signal` takes half a millisecond."""
_LOADER_VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD")
_stuck: List[int] = []
"""Process ids of children that no signal has ended; the next `ask` reaps them, so that no zombie
stays longer.
"""


def compute_limit(gpus: int) -> float:
    """Return the time limit in seconds for a machine with this many GPUs."""
    return START_SECONDS + SECONDS_PER_GPU * max(gpus, 1)


def ask(host: Host, limit_seconds: float) -> Answer:
    """Return the child's answer (see `child.query_nvml`), or a `status` that says why there is no
    answer.

    Takes at most `limit_seconds` + 0.4 s, and + 0.2 s if the child can be ended. The further
    statuses are `no-interpreter`, `probe-timeout` {seconds}, `probe-stuck` {seconds}, `probe-died`
    {signal or exit}, and `probe-garbled`. Raises nothing of its own.
    """
    _stuck[:] = [pid for pid in _stuck if _reap(pid) is None]
    python = sys.executable
    if not python or getattr(sys, "frozen", False) or "py" not in os.path.basename(python).lower():
        # An embedded Python: sys.executable would start the user's own program.
        return {"status": "no-interpreter"}
    try:
        pid, reader = _start(_build_command(python, host), build_child_environ(host))
    except OSError as error:
        return {"status": "probe-not-started", "errno": error.errno}
    output, state = b"", None
    try:
        deadline = time.monotonic() + limit_seconds
        output, is_complete = _read(reader, deadline)
        if is_complete:
            state = _wait(pid, deadline)
    finally:
        os.close(reader)
        if state is None:
            state = _terminate(pid)
    return _judge(output, is_complete, state, limit_seconds)


def _judge(output: bytes, complete: bool, state: Optional[int], limit_seconds: float) -> Answer:
    if not complete:
        if len(output) > ANSWER_LIMIT:
            return {"status": "probe-garbled"}
        if state is None:
            return {"status": "probe-stuck", "seconds": limit_seconds}
        return {"status": "probe-timeout", "seconds": limit_seconds}
    answer = _decode(output)
    if answer is not None:
        return answer
    if state and os.WIFSIGNALED(state):
        return {"status": "probe-died", "signal": os.WTERMSIG(state)}
    if state and os.WIFEXITED(state):
        return {"status": "probe-died", "exit": os.WEXITSTATUS(state)}
    return {"status": "probe-garbled"}


def _decode(output: bytes) -> Optional[Answer]:
    try:
        answer = strict_json.parse(output)
    except ValueError:
        return None
    if isinstance(answer, dict) and isinstance(answer.get("status"), str):
        return answer
    return None


def _build_command(python: str, host: Host) -> List[str]:
    """Return the child's command line: isolated, without `site`, with this process's import path.

    The folder of the running script and relative folders are left out, so that a `pynvml.py` of the
    user's project is not imported instead of NVIDIA's. `-S` also keeps `.pth` hooks from running
    once more.
    """
    script_folder = (
        os.path.dirname(os.path.abspath(sys.argv[0])) if sys.argv and sys.argv[0] else None
    )
    folders = [folder for folder in host.path if os.path.isabs(folder) and folder != script_folder]
    options = ["-I", "-S"]
    if sys.dont_write_bytecode:
        options.append("-B")
    if sys.pycache_prefix:
        options += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child.py")
    return [python, *options, program, *folders, *LAST_RESORT]


def build_child_environ(host: Host) -> Mapping[str, str]:
    """Return the child's variables: the current ones, except that the loader's are those of the
    start of this process.

    CUDA reads its variables when it starts; the loader of *this* process has read its own already.
    """
    environ = dict(host.environ)
    at_start = host.start_environ()
    for name in _LOADER_VARIABLES:
        environ.pop(name, None)
        if name in at_start:
            environ[name] = at_start[name]
    return environ


def _start(command: List[str], environ: Mapping[str, str]) -> Tuple[int, int]:
    """Start the child in its own process group, and return its id and the read end of its standard
    output.
    """
    reader, writer = os.pipe()
    actions = [
        (os.POSIX_SPAWN_DUP2, writer, 1),
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        pid = os.posix_spawn(
            command[0],
            command,
            environ,
            file_actions=actions,
            setpgroup=0,  # Ctrl-C is for the user's process, which then ends the child
            setsigmask=(),
            setsigdef=(_SIGINT, _SIGTERM, _SIGPIPE),
        )
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    return pid, reader


def _read(reader: int, deadline: float) -> Tuple[bytes, bool]:
    """Return the child's output, and whether it is complete.

    It is complete when the child closed it before the deadline and within the size limit.
    """
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    output = b""
    while len(output) <= ANSWER_LIMIT:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return output, False
        chunk = os.read(reader, 1 << 16)
        if not chunk:
            return output, True
        output += chunk
    return output, False


def _terminate(pid: int) -> Optional[int]:
    """End the child and return its state; None, and a note in `_stuck`, if no signal ends it."""
    for signal in (_SIGTERM, _SIGKILL):
        try:
            os.killpg(pid, signal)
        except OSError:
            pass  # gone already, or a setuid helper of the driver is in the group
        state = _wait(pid, time.monotonic() + GRACE_SECONDS)
        if state is not None:
            return state
    _stuck.append(pid)
    return None


def _wait(pid: int, deadline: float) -> Optional[int]:
    """Return the child's state once it has ended; None if it is still running at the deadline."""
    pause = 0.0002
    while True:
        state = _reap(pid)
        left = deadline - time.monotonic()
        if state is not None or left <= 0:
            return state
        time.sleep(min(pause, left))
        pause = min(pause * 2, 0.01)


def _reap(pid: int) -> Optional[int]:
    """Return the child's wait status, 0 if another thread has reaped it, None while it is running."""
    try:
        ended, state = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return state if ended else None
