"""BuildKit, through `docker buildx build`, because the SDK lacks it. Its images always have the
same ID.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from envlock.image.engines.daemon import Daemon
from envlock.image.engines.engine import Order, Say
from envlock.image.engines.engine_errors import (
    EngineError,
    Trail,
    explain,
    follow_buildx,
    select_output,
)
from envlock.image.engines.process import follow
from envlock.lock.temporary import open_draft_folder
from envlock.runtime.release import parse_release

OLDEST = (0, 10)
"""The first buildx with --provenance."""

OLDEST_DAEMON = (23,)
"""The first Docker whose BuildKit respects SOURCE_DATE_EPOCH."""


def find_version() -> str | None:
    """Return the version of buildx; None if `docker buildx` is not installed."""
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
    if done.returncode != 0 or found is None:
        return None
    return found[1]


def connect() -> Daemon:
    """Return the daemon that BuildKit belongs to; see `Daemon.connect`."""
    require_plugin()
    return Daemon.connect()


def build(daemon: Daemon, order: Order, say: Say, trail: Trail) -> str:
    """Build with BuildKit and return the image's ID."""

    def follow_line(line: str) -> None:
        follow_buildx(line, trail)
        say(line)

    with open_draft_folder(None) as folder:
        file = folder / "iid"
        # An attestation has the time of the build, so that the digest would differ each time.
        # https://docs.docker.com/build/building/variables/#buildx_no_default_attestations
        environ = {"SOURCE_DATE_EPOCH": str(order.epoch), "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}
        lines = follow(_make_command(order, file), environ, follow_line)
        if lines is not None:
            raise explain(_find_error(lines), select_output(lines))
        image = file.read_text(encoding="ascii").strip()
    trail.images.append(image)
    return image


def _make_command(order: Order, file: Path) -> list[str]:
    # With another builder than the daemon's own, the daemon would not have the image.
    builder = _find_builder()
    command = ["docker", "buildx", "build", "--builder", builder, "--progress=plain", "--load"]
    command += ["--provenance=false", f"--network={order.network}", f"--iidfile={file}"]
    command.append(f"--build-arg=SOURCE_DATE_EPOCH={order.epoch}")
    if order.platform is not None:
        command.append(f"--platform={order.platform}")
    if order.no_cache:
        command.append("--no-cache")
    return [*command, "--", str(order.context)]


def _find_builder() -> str:
    """Return the name of the daemon's own builder: that of its context, or `default` with
    DOCKER_HOST.
    """
    if os.environ.get("DOCKER_HOST"):
        return "default"
    command = ["docker", "context", "show"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=20, check=False, stdin=subprocess.DEVNULL
    )
    return done.stdout.strip() or "default"


def _find_error(lines: list[str]) -> str:
    """Return the builder's own error to its end, else the last line."""
    for position in range(len(lines) - 1, -1, -1):
        if lines[position].startswith("ERROR: "):
            return "\n".join(lines[position:])
    return "\n".join(lines[-1:])


def require_plugin() -> None:
    """Check that buildx is installed and new enough.

    Raises:
        EngineError: it is not.
    """
    found = find_version()
    hint = "install the buildx plugin of Docker, or use `--engine docker`"
    if found is None:
        raise EngineError("`docker buildx` is not installed", hint=hint)
    if parse_release(found) < OLDEST:
        raise EngineError(f"`docker buildx` {found} is too old: 0.10 or newer is needed", hint=hint)
