"""Podman, by its command: no daemon, and no root. `--timestamp` gives every file of a layer and the image the epoch.

Its layers differ from Docker's (it writes other tars) and are the same each time on one version of podman.
"""

from __future__ import annotations

import json
import platform
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from envlock.containers.engines.container import Finished, Start
from envlock.containers.engines.engine import Order, Say
from envlock.containers.engines.failures import Trail, explain, words
from envlock.containers.engines.process import ask, call, follow, images, pull, push, tag
from envlock.images.reference import MACHINES
from envlock.lock.drafts import draft_folder

PROGRAM = "podman"


class Podman:
    """Podman's images and containers, as `Daemon` has those of Docker.

    Attributes:
        version: of the command, such as "4.3.1".
        platform: that it runs, such as "linux/amd64".
    """

    def __init__(self) -> None:
        self.version = str(
            json.loads(call(PROGRAM, "version", "--format", "{{json .Client.Version}}"))
        )
        self.platform = MACHINES.get(platform.machine(), platform.machine())
        self.images = partial(images, PROGRAM)
        self.pull = partial(pull, PROGRAM)
        self.push = partial(push, PROGRAM)
        self.tag = partial(tag, PROGRAM)

    def inspect(self, image: str) -> dict[str, Any]:
        """Return what podman knows of an image; its ID is written as Docker does.

        Raises:
            EngineError: it has no such image.
        """
        found: dict[str, Any] = json.loads(call(PROGRAM, "image", "inspect", "--", image))[0]
        return {**found, "Id": f"sha256:{str(found['Id']).removeprefix('sha256:')}"}

    def save(self, image: str, file: Path) -> None:
        """Write an image to a file.

        Raises:
            EngineError: podman cannot.
        """
        call(PROGRAM, "save", "--quiet", "--format=oci-archive", f"--output={file}", "--", image)

    def remove_image(self, image: str) -> None:
        """Remove an image that has no name and that nothing is made of; else leave it."""
        code, told, _ = ask(
            PROGRAM, "image", "inspect", "--format", "{{json .RepoTags}}", "--", image
        )
        if code == 0 and not json.loads(told):
            ask(PROGRAM, "rmi", "--", image)

    def has_container(self, container: str) -> bool:
        """Return whether there is such a container, running or not."""
        return ask(PROGRAM, "container", "exists", "--", container)[0] == 0

    def remove_container(self, container: str) -> None:
        """Remove a container, running or not, if it is there."""
        ask(PROGRAM, "rm", "--force", "--ignore", "--volumes", "--", container)

    def run(self, image: str, argv: Sequence[str], start: Start) -> Finished:
        """Run a container to its end and return what it printed; it is removed in every case.

        Raises:
            EngineError: it cannot be started.
        """
        name = f"envlock-{uuid.uuid4().hex}"  # known before the container is, so that it can be removed at any moment
        options = [
            "--rm",
            f"--name={name}",
            *start.network_options,
            "--http-proxy=false",
            "--log-driver=none",
        ]
        options += [f"--env={key}={value}" for key, value in start.env.items()]
        if start.gpus:
            options.append("--device=nvidia.com/gpu=all")
        if start.brought is not None:
            options.append(mount(start.brought))
        if start.entrypoint is not None:
            options.append(f"--entrypoint={json.dumps(list(start.entrypoint))}")
        try:
            code, stdout, stderr = ask(PROGRAM, "run", *options, "--", image, *argv)
        finally:
            self.remove_container(name)
        if (
            code in (125, 126, 127) and "Error: " in stderr
        ):  # podman's own, and what the image lacks
            raise explain(stderr, image=image)
        return Finished(code, stdout, stderr)


def mount(folder: Path) -> str:
    """Return the option that shows a folder of this machine at a container's root, read-only; `z` is for SELinux."""
    return f"--volume={folder}:/{folder.name}:ro,z"


def connect() -> Podman:
    """Return podman.

    Raises:
        EngineError: it is not installed, or does not work here.
    """
    return Podman()


def build(host: Podman, order: Order, say: Say, trail: Trail) -> str:
    """Build with podman and return the image's ID."""
    return built([PROGRAM, "build"], order, say, trail)


def built(command: Sequence[str], order: Order, say: Say, trail: Trail) -> str:
    """Build with podman or buildah, which take the same options, and return the image's ID."""
    with draft_folder(None) as folder:
        iid = folder / "iid"
        options = [
            f"--timestamp={order.epoch}",
            f"--build-arg=SOURCE_DATE_EPOCH={order.epoch}",
            f"--iidfile={iid}",
        ]
        options += ["--http-proxy=false"] if command[0] == PROGRAM else []
        options += ["--format=oci", "--layers=true", f"--network={order.network}"]
        options += unlabelled(ask(*command, "--help")[1])
        options += [f"--label={name}={value}" for name, value in sorted(order.labels.items())]
        if order.platform is not None:
            options.append(f"--platform={order.platform}")
        if order.no_cache:
            options.append("--no-cache")
        lines = follow([*command, *options, str(order.context)], {}, say)
        if lines is not None:
            raise explain(_last_words(lines), words(lines), hint=f"see `{command[0]} info`")
        image = iid.read_text(encoding="ascii").strip()
    image = f"sha256:{image.removeprefix('sha256:')}"
    trail.images.append(image)
    return image


def unlabelled(known: str) -> list[str]:
    """Return the option that leaves out buildah's release, by which an image would differ; none before it is known."""
    return ["--identity-label=false"] if "--identity-label" in known else []


def _last_words(lines: Sequence[str]) -> str:
    """Return the builder's own error."""
    return next(
        (line for line in reversed(lines) if line.startswith(("Error: ", "error "))),
        "\n".join(lines[-1:]),
    )
