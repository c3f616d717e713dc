"""Buildah, by its command: what builds inside a rootless container of a cluster. It shares its images with podman."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from envlock.containers.engines.daemon import Finished
from envlock.containers.engines.engine import Order, Say
from envlock.containers.engines.failures import EngineError, Trail, explain
from envlock.containers.engines.podman import built, mount
from envlock.containers.engines.process import ask, call, pull, push
from envlock.images.reference import MACHINES

PROGRAM = "buildah"


class Buildah:
    """Buildah's images and containers, as `Daemon` has those of Docker.

    Attributes:
        version: of the command, such as "1.28.2".
        platform: that it runs, such as "linux/amd64".
    """

    def __init__(self) -> None:
        self.version = str(json.loads(call(PROGRAM, "version", "--json"))["version"])
        self.platform = MACHINES.get(platform.machine(), platform.machine())

    def images(self) -> set[str]:
        """Return the IDs of all images."""
        return set(call(PROGRAM, "images", "--all", "--quiet", "--no-trunc").split())

    def inspect(self, image: str) -> dict[str, Any]:
        """Return what buildah knows of an image, in Docker's words.

        Raises:
            EngineError: it has no such image.
        """
        found = json.loads(call(PROGRAM, "inspect", "--type=image", "--", image))
        config = found["OCIv1"]
        return {
            "Id": f"sha256:{str(found['FromImageID']).removeprefix('sha256:')}",
            "Config": config.get("config") or {},
            "Os": config.get("os"),
            "Architecture": config.get("architecture"),
            "RootFS": {"Layers": config["rootfs"]["diff_ids"]},
        }

    def pull(self, reference: str) -> Iterator[dict[str, Any]]:
        """Pull an image.

        Raises:
            EngineError: the registry was not reached, refused, or does not have it.
        """
        return pull(PROGRAM, reference)

    def push(self, name: str) -> Iterator[dict[str, Any]]:
        """Push an image by its name and yield its digest.

        Raises:
            EngineError: the registry was not reached, or refused.
        """
        return push(PROGRAM, name)

    def tag(self, image: str, name: str) -> None:
        """Give an image a name; buildah puts `localhost/` before one without a registry."""
        call(PROGRAM, "tag", "--", image, name)

    def remove_image(self, image: str) -> None:
        """Remove an image that has no name and that nothing is made of; else leave it."""
        code, told, _ = ask(PROGRAM, "images", "--json", "--", image)
        if code == 0 and not any(each.get("names") for each in json.loads(told)):
            ask(PROGRAM, "rmi", "--", image)

    def has_container(self, container: str) -> bool:
        """Return whether there is such a container."""
        return ask(PROGRAM, "inspect", "--type=container", "--", container)[0] == 0

    def remove_container(self, container: str) -> None:
        """Remove a container, if it is there."""
        ask(PROGRAM, "rm", "--", container)

    def run(
        self,
        image: str,
        argv: Sequence[str],
        *,
        gpus: bool = False,
        env: Mapping[str, str] | None = None,
        network: str = "none",
        read_only: bool = False,
        entrypoint: Sequence[str] | None = None,
        brought: Path | None = None,
    ) -> Finished:
        """Run a program in a container of the image, which is removed in every case.

        Raises:
            EngineError: it cannot be started, or GPUs or a read-only root are wanted, which buildah does not have.
        """
        if gpus or read_only:
            raise EngineError(
                "buildah gives no GPU to a container", hint="use `--engine podman`, or leave out `--gpus`"
            )
        config = self.inspect(image)["Config"]
        own = config.get("Entrypoint") or [] if entrypoint is None else entrypoint
        words = [*own, *(argv or config.get("Cmd") or [])]
        container = call(PROGRAM, "from", "--pull-never", "--", image).strip()
        try:
            variables = [f"--env={key}={value}" for key, value in (env or {}).items()]
            variables += [] if brought is None else [mount(brought)]
            code, stdout, stderr = ask(PROGRAM, "run", *variables, f"--network={network}", "--", container, *words)
        finally:
            self.remove_container(container)
        if code in (125, 126, 127) and "rror: " in stderr:
            raise explain(stderr, image=image)
        return Finished(code, stdout, stderr)


def connect() -> Buildah:
    """Return buildah.

    Raises:
        EngineError: it is not installed, or does not work here.
    """
    return Buildah()


def build(host: Buildah, order: Order, say: Say, trail: Trail) -> str:
    """Build with buildah and return the image's ID."""
    return built([PROGRAM, "build"], order, say, trail)
