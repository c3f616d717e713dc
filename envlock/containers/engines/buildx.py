"""BuildKit, by `docker buildx build`: the SDK does not know it. The image it makes has the same ID each time."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from envlock.containers.engines.daemon import Daemon
from envlock.containers.engines.engine import Order, Say
from envlock.containers.engines.failures import EngineError, Trail, explain, follow_buildx, words
from envlock.containers.engines.process import follow
from envlock.lock.drafts import draft_folder
from envlock.runtime.release import numbers

OLDEST = (0, 10)
"""The first buildx that knows --provenance."""

OLDEST_DAEMON = (23,)
"""The first Docker whose BuildKit heeds SOURCE_DATE_EPOCH."""


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


def connect() -> Daemon:
    """Return the daemon whose BuildKit it is; see `Daemon.connect`."""
    require()
    return Daemon.connect()


def build(daemon: Daemon, order: Order, say: Say, trail: Trail) -> str:
    """Build with BuildKit and return the image's ID."""

    def on_line(line: str) -> None:
        follow_buildx(line, trail)
        say(line)

    with draft_folder(None) as folder:
        iid = folder / "iid"
        lines = follow(_command(order, iid), _environ(order.epoch), on_line)
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


def _environ(epoch: int) -> dict[str, str]:
    return {"SOURCE_DATE_EPOCH": str(epoch), "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}


def _builder() -> str:
    """Return the name of the daemon's own builder: that of the context, and `default` where DOCKER_HOST counts."""
    if os.environ.get("DOCKER_HOST"):
        return "default"
    command = ["docker", "context", "show"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=20, check=False, stdin=subprocess.DEVNULL
    )
    return done.stdout.strip() or "default"


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
