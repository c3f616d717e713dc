"""Podman: no daemon, and no root; see `Command`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import cast

from envlock.image.engines.container_run import Finished, Start
from envlock.image.engines.engine import Inspected, Order, Say
from envlock.image.engines.engine_command import (
    CANNOT_START,
    Command,
    make_mount,
    normalize_id,
)
from envlock.image.engines.engine_errors import Trail, explain
from envlock.image.engines.process import ask, call

PROGRAM = "podman"


class Podman(Command):
    """Podman's images and containers, with the methods of `Daemon`."""

    def __init__(self) -> None:
        version = call(PROGRAM, "version", "--format", "{{json .Client.Version}}")
        super().__init__(PROGRAM, str(json.loads(version)))

    def inspect(self, image: str) -> Inspected:
        """Return podman's description of an image, with its ID in Docker's form.

        Raises:
            EngineError: it has no such image.
        """
        inspected = cast(Inspected, json.loads(call(PROGRAM, "image", "inspect", "--", image))[0])
        inspected["Id"] = normalize_id(str(inspected["Id"]))
        return inspected

    def remove_image(self, image: str) -> None:
        """Remove an image that has no name and is not the base of another; leave any other image."""
        names = ask(PROGRAM, "image", "inspect", "--format", "{{json .RepoTags}}", "--", image)
        if names.exit_code == 0 and not json.loads(names.stdout):
            ask(PROGRAM, "rmi", "--", image)

    def has_container(self, container: str) -> bool:
        """Return whether the container exists, running or not."""
        return ask(PROGRAM, "container", "exists", "--", container).exit_code == 0

    def remove_container(self, container: str) -> None:
        """Remove a container, running or not, if it exists."""
        ask(PROGRAM, "rm", "--force", "--ignore", "--volumes", "--", container)

    def run(self, image: str, argv: Sequence[str], start: Start) -> Finished:
        """Run a container to its end and return what it printed; it is always removed.

        Raises:
            EngineError: it cannot be started.
        """
        # Its name is known before it exists, so that it can be removed at any time.
        name = f"envlock-{uuid.uuid4().hex}"
        # The facts are the image's variables, so this user's proxies stay out. What it prints is read
        # from the command, so no log is kept.
        options = [
            "--rm",
            f"--name={name}",
            *start.network_options,
            "--http-proxy=false",
            "--log-driver=none",
        ]
        options += [f"--env={key}={value}" for key, value in start.env.items()]
        # The name that NVIDIA's toolkit gives all GPUs in its description for containers (CDI):
        # https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html
        if start.gpus:
            options.append("--device=nvidia.com/gpu=all")
        if start.folder is not None:
            options.append(make_mount(start.folder))
        if start.entrypoint is not None:
            options.append(f"--entrypoint={json.dumps(list(start.entrypoint))}")
        try:
            done = ask(PROGRAM, "run", *options, "--", image, *argv)
        finally:
            self.remove_container(name)
        # A program in the image may end with these exit codes, too; podman's own error has this
        # beginning.
        if done.exit_code in CANNOT_START and "Error: " in done.stderr:
            raise explain(done.stderr, image=image, program=PROGRAM)
        return done


connect = Podman


def build(host: Podman, order: Order, say: Say, trail: Trail) -> str:
    """Build with podman and return the image's ID."""
    # Without this, podman would pass this user's proxies to a build.
    return host.build(order, ["--http-proxy=false"], say, trail)
