"""Buildah, by its command: what builds inside a rootless container of a cluster. It shares its images with podman."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from envlock.containers.engines.container import Finished, Start
from envlock.containers.engines.engine import Order, Say
from envlock.containers.engines.failures import EngineError, Trail, explain
from envlock.containers.engines.podman import built, mount
from envlock.containers.engines.process import ask, call, images, pull, push, tag
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
        self.images = partial(images, PROGRAM)
        self.pull = partial(pull, PROGRAM)
        self.push = partial(push, PROGRAM)
        self.tag = partial(tag, PROGRAM)

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

    def save(self, image: str, file: Path) -> None:
        """Write an image to a file.

        Raises:
            EngineError: buildah cannot.
        """
        call(PROGRAM, "push", "--quiet", "--", image, f"oci-archive:{file}")

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

    def run(self, image: str, argv: Sequence[str], start: Start) -> Finished:
        """Run a program in a container of the image, which is removed in every case.

        Raises:
            EngineError: it cannot be started, or GPUs are wanted, which buildah does not have.
        """
        if start.gpus:
            raise EngineError(
                "buildah gives no GPU to a container",
                hint="use `--engine podman`, or leave out `--gpus`",
            )
        config = self.inspect(image)["Config"]
        own = config.get("Entrypoint") or [] if start.entrypoint is None else start.entrypoint
        words = [*own, *(argv or config.get("Cmd") or [])]
        container = call(PROGRAM, "from", "--pull-never", "--", image).strip()
        try:
            variables = [f"--env={key}={value}" for key, value in start.env.items()]
            variables += [] if start.brought is None else [mount(start.brought)]
            options = [*variables, *start.network_options]
            code, stdout, stderr = ask(PROGRAM, "run", *options, "--", container, *words)
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
