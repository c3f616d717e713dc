"""The choice among the container engines."""

from __future__ import annotations

import os
from importlib import import_module
from shutil import which
from types import ModuleType

from envlock.image.engines import AUTO, ENGINES, buildx
from envlock.image.engines.daemon import Daemon
from envlock.image.engines.engine import Builder, Engine
from envlock.image.engines.engine_errors import EngineError
from envlock.runtime.errors import make_choice_error
from envlock.runtime.release import parse_release


def find(name: str = AUTO) -> Engine:
    """Return the engine of this name on the daemon that the `docker` command would use.

    `auto` is BuildKit if the daemon's respects SOURCE_DATE_EPOCH and the client has the plugin,
    else the classic builder; podman or buildah without Docker. `reason` says which and why.

    Raises:
        UsageError: there is no engine with this name.
        EngineError: there is no daemon, it refuses, or the command is not installed.
    """
    if name not in (AUTO, *ENGINES):
        raise make_choice_error("container engine", name, (AUTO, *ENGINES))
    if name == AUTO:
        return _choose_engine()
    module = import_module(ENGINES[name])
    return Engine(name, module.connect(), module.build, f"{name}, as requested")


def _choose_engine() -> Engine:
    """Return the daemon's engine; podman or buildah if Docker is not installed."""
    try:
        daemon = Daemon.connect()
    except EngineError:
        # If Docker is installed or named, the user means it: its error is the answer.
        if os.environ.get("DOCKER_HOST") or which("docker"):
            raise
        for command, module in list_commands().items():
            if which(module.PROGRAM):
                reason = f"{command}, as Docker is not installed"
                return Engine(command, module.connect(), module.build, reason)
        raise
    name, reason = prefer(daemon.version, podman=daemon.podman, plugin=buildx.find_version())
    build: Builder = import_module(ENGINES[name]).build
    return Engine(name, daemon, build, reason)


def list_commands() -> dict[str, ModuleType]:
    """Return the modules of the engines that need no daemon: each names its program."""
    modules = {name: import_module(module) for name, module in ENGINES.items()}
    return {name: module for name, module in modules.items() if hasattr(module, "PROGRAM")}


def prefer(version: str, *, podman: bool, plugin: str | None) -> tuple[str, str]:
    """Return the engine to use with a daemon, and why.

    Args:
        version: that of the daemon.
        podman: whether the daemon is podman.
        plugin: the version of buildx; None if it is not installed.
    """
    if podman:
        return "docker", "docker (the daemon is podman, which has no BuildKit)"
    lost = "layers are reproducible, image IDs are not"
    if plugin is None:
        return "docker", f"docker (`docker buildx` is not installed); {lost}"
    if parse_release(plugin) < buildx.OLDEST:
        return "docker", f"docker (buildx {plugin} is too old); {lost}"
    if parse_release(version) < buildx.OLDEST_DAEMON:
        reason = f"the BuildKit of Docker {version} writes the build time into its images"
        return "docker", f"docker ({reason})"
    return "buildx", f"buildx {plugin} on Docker {version}"
