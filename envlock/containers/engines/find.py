"""The choice among the container engines."""

from __future__ import annotations

from importlib import import_module

from envlock.containers.engines import AUTO, ENGINES, buildx
from envlock.containers.engines.daemon import Daemon
from envlock.containers.engines.engine import Builder, Engine
from envlock.runtime.errors import UsageError


def find(name: str = AUTO) -> Engine:
    """Return the engine of this name on the daemon that the `docker` command would take.

    `auto` is BuildKit where the daemon's heeds SOURCE_DATE_EPOCH and the client's plugin is there, else the classic
    builder; `reason` says which and why.

    Raises:
        UsageError: there is no engine of this name.
        EngineError: there is no daemon, it does not let us, or buildx was asked for and is not there.
    """
    if name not in (AUTO, *ENGINES):
        raise UsageError(f"unknown container engine `{name}`", hint=f"choose from: {', '.join((AUTO, *ENGINES))}")
    daemon = Daemon.connect()
    if name == AUTO:
        name, reason = prefer(daemon.version, podman=daemon.podman, plugin=buildx.version())
    else:
        reason = f"{name}, as requested"
    if name == "buildx":
        buildx.require()
    build: Builder = import_module(ENGINES[name]).build
    return Engine(name, daemon, build, reason)


def prefer(version: str, *, podman: bool, plugin: str | None) -> tuple[str, str]:
    """Return the engine to take on a daemon of this version, and why."""
    if podman:
        return "docker", "docker (the daemon is podman, which has no BuildKit)"
    if plugin is None:
        return "docker", "docker (`docker buildx` is not installed); layers are reproducible, image IDs are not"
    if buildx.numbers(plugin) < buildx.OLDEST:
        return "docker", f"docker (buildx {plugin} is too old); layers are reproducible, image IDs are not"
    if buildx.numbers(version) < buildx.OLDEST_DAEMON:
        return "docker", f"docker (the BuildKit of Docker {version} writes the build time into its images)"
    return "buildx", f"buildx {plugin} on Docker {version}"
