"""BuildKit, by `docker buildx build`: the SDK does not know it. The image it makes has the same ID each time."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections import deque
from pathlib import Path

from envlock.containers.engines.daemon import Daemon
from envlock.containers.engines.engine import Order, Say
from envlock.containers.engines.failures import EngineError, Trail, explain, follow_buildx, plain, words

OLDEST = (0, 10)
"""The first buildx that knows --provenance."""

OLDEST_DAEMON = (23,)
"""The first Docker whose BuildKit heeds SOURCE_DATE_EPOCH."""

STOP_SECONDS = 15


def version() -> str | None:
    """Return the version of buildx; None where `docker buildx` is not installed."""
    try:
        done = subprocess.run(
            ["docker", "buildx", "version"],  # noqa: S607 (whichever `docker` the user has)
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\bv?(\d+\.\d+(?:\.\d+)?)", done.stdout)
    return found[1] if done.returncode == 0 and found else None


def numbers(text: str) -> tuple[int, ...]:
    """Return the first two numbers of a version, which compare."""
    return tuple(map(int, re.findall(r"\d+", text)[:2]))


def build(daemon: Daemon, order: Order, say: Say, trail: Trail) -> str:
    """Build with BuildKit and return the image's ID."""
    with tempfile.TemporaryDirectory(prefix="envlock-") as folder:
        iid = Path(folder) / "iid"
        lines = _run(_command(order, iid), order.epoch, say, trail)
        if lines is not None:
            raise explain(_last_words(lines), words(lines))
        image = iid.read_text(encoding="ascii").strip()
    trail.images.append(image)
    return image


def _command(order: Order, iid: Path) -> list[str]:
    """Return the command line. The builder is the daemon's own: others would keep the image to themselves."""
    command = ["docker", "buildx", "build", "--builder", _builder(), "--progress=plain", "--load"]
    command += ["--provenance=false", f"--network={order.network}", f"--iidfile={iid}"]
    command.append(f"--build-arg=SOURCE_DATE_EPOCH={order.epoch}")
    command += [f"--label={name}={value}" for name, value in sorted(order.labels.items())]
    if order.platform is not None:
        command.append(f"--platform={order.platform}")
    if order.no_cache:
        command.append("--no-cache")
    return [*command, "--", str(order.context)]


def _builder() -> str:
    """Return the name of the daemon's own builder: that of the context, and `default` where DOCKER_HOST counts."""
    if os.environ.get("DOCKER_HOST"):
        return "default"
    command = ["docker", "context", "show"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, stdin=subprocess.DEVNULL)
    return done.stdout.strip() or "default"


def _run(command: list[str], epoch: int, say: Say, trail: Trail) -> list[str] | None:
    """Run the build; return None when it worked, else the last lines of what it said."""
    environ = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}
    last: deque[str] = deque(maxlen=1000)
    process = subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,  # the interrupt key reaches us alone, and we pass it on, once
    )
    try:
        assert process.stdout is not None  # noqa: S101 (for the type checker)
        for raw in process.stdout:
            line = plain(raw)
            follow_buildx(line, trail)
            last.append(line)
            say(line)
        code = process.wait()
    finally:
        _stop(process)
    return None if code == 0 else list(last)


def _stop(process: subprocess.Popen[str]) -> None:
    """End the client and its plugin, if they still run: BuildKit then ends the step it is at, and drops it."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=STOP_SECONDS)
    if process.stdout is not None:
        process.stdout.close()


def _last_words(lines: list[str]) -> str:
    """Return the builder's own error: from its last line that begins so, to the end."""
    for at in range(len(lines) - 1, -1, -1):
        if lines[at].startswith("ERROR: "):
            return "\n".join(lines[at:])
    return lines[-1] if lines else ""


def require() -> None:
    """Return if buildx is there and new enough.

    Raises:
        EngineError: it is not.
    """
    found = version()
    hint = "install the buildx plugin of Docker, or use `--engine docker`"
    if found is None:
        raise EngineError("`docker buildx` is not installed", hint=hint)
    if numbers(found) < OLDEST:
        raise EngineError(f"`docker buildx` {found} is too old: 0.10 or newer is needed", hint=hint)
