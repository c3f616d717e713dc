"""Buildah, which can build inside a rootless container of a cluster; see `Command`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from envlock.image.bases.reference import parse
from envlock.image.engines.container_run import Finished, Start
from envlock.image.engines.engine import Inspected, Order, Say
from envlock.image.engines.engine_command import (
    CANNOT_START,
    Command,
    make_mount,
    normalize_id,
)
from envlock.image.engines.engine_errors import EngineError, Trail, explain
from envlock.image.engines.process import ask, call

PROGRAM = "buildah"


class Buildah(Command):
    """Buildah's images and containers, with the methods of `Daemon`."""

    def __init__(self) -> None:
        super().__init__(PROGRAM, str(json.loads(call(PROGRAM, "version", "--json"))["version"]))

    def inspect(self, image: str) -> Inspected:
        """Return buildah's description of an image, with Docker's keys.

        Raises:
            EngineError: it has no such image.
        """
        found = json.loads(call(PROGRAM, "inspect", "--type=image", "--", image))
        document = found["OCIv1"]
        name = str(found.get("FromImage") or "")
        # Buildah puts its own images below localhost; all others came from the registry in their name.
        pulled = "/" in name and not name.startswith("localhost/")
        return {
            "Id": normalize_id(str(found["FromImageID"])),
            "RepoDigests": [f"{parse(name).name}@{found['FromImageDigest']}"] if pulled else [],
            "Config": document.get("config"),
            "Os": document.get("os"),
            "Architecture": document.get("architecture"),
            "RootFS": {"Layers": document["rootfs"]["diff_ids"]},
        }

    def remove_image(self, image: str) -> None:
        """Remove an image that has no name and is not the base of another; leave any other image."""
        listed = ask(PROGRAM, "images", "--json", "--", image)
        if listed.exit_code != 0:
            return
        if not any(entry.get("names") for entry in json.loads(listed.stdout)):
            ask(PROGRAM, "rmi", "--", image)

    def has_container(self, container: str) -> bool:
        """Return whether there is such a container."""
        return ask(PROGRAM, "inspect", "--type=container", "--", container).exit_code == 0

    def remove_container(self, container: str) -> None:
        """Remove a container if it exists."""
        ask(PROGRAM, "rm", "--", container)

    def run(self, image: str, argv: Sequence[str], start: Start) -> Finished:
        """Run a program in a container of the image; the container is always removed.

        Raises:
            EngineError: it cannot be started, or GPUs are wanted, which buildah does not have.
        """
        if start.gpus:
            raise EngineError(
                "buildah gives no GPU to a container",
                hint="use `--engine podman`, or leave out `--gpus`",
            )
        # Entrypoint and command of the image are combined here, as Docker combines them.
        config = self.inspect(image).get("Config") or {}
        entrypoint = (
            (config.get("Entrypoint") or []) if start.entrypoint is None else start.entrypoint
        )
        words = [*entrypoint, *(argv or config.get("Cmd") or [])]
        container = call(PROGRAM, "from", "--pull-never", "--", image).strip()
        try:
            options = [f"--env={key}={value}" for key, value in start.env.items()]
            if start.folder is not None:
                options.append(make_mount(start.folder))
            options += start.network_options
            done = ask(PROGRAM, "run", *options, "--", container, *words)
        finally:
            self.remove_container(container)
        if done.exit_code in CANNOT_START and "rror: " in done.stderr:
            raise explain(done.stderr, image=image, program=PROGRAM)
        return done


connect = Buildah


def build(host: Buildah, order: Order, say: Say, trail: Trail) -> str:
    """Build with buildah and return the image's ID."""
    return host.build(order, [], say, trail)
