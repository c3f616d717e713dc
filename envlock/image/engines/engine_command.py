"""Podman and buildah, through their commands: no daemon, no root, and both share their images.

`--timestamp` sets the time of the image and of every file in a layer to the epoch. Layers differ
from Docker's, because these commands write different tars, but are always the same with the same
version of a command.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from envlock.image.bases.reference import MACHINES
from envlock.image.engines.engine import Order, Say
from envlock.image.engines.engine_errors import Trail, explain, select_output
from envlock.image.engines.process import ask, call, follow
from envlock.lock.temporary import open_draft_folder

CANNOT_START = (125, 126, 127)
"""Exit codes of `run` if the command itself failed, or the image does not have the program."""


class Command:
    """What podman and buildah have in common; `Daemon` documents each method.

    Attributes:
        program: the name of the command.
        version: that of the command, such as "4.3.1".
        platform: the one that it runs, such as "linux/amd64".
    """

    def __init__(self, program: str, version: str) -> None:
        self.program = program
        self.version = version
        self.platform = MACHINES.get(platform.machine(), platform.machine())

    def list_images(self) -> set[str]:
        """Return the IDs of all images, including the bases of other images."""
        return set(call(self.program, "images", "--all", "--quiet", "--no-trunc").split())

    def tag(self, image: str, name: str) -> None:
        """Give an image a name.

        Raises:
            EngineError: there is no such image.
        """
        call(self.program, "tag", "--", image, name)

    def pull(self, reference: str) -> Iterator[dict[str, Any]]:
        """Pull an image and yield messages in the form of a daemon's; see `Daemon.pull`."""
        yield {"status": f"pulling {reference}"}
        about = f"pull of {reference}: "
        call(self.program, "pull", "--quiet", "--", reference, image=reference, about=about)

    def push(self, name: str) -> Iterator[dict[str, Any]]:
        """Push an image by its name and yield messages in the form of a daemon's; see
        `Daemon.push`.

        The last one has the digest.
        """
        yield {"status": f"pushing {name}"}
        with open_draft_folder(None) as folder:
            file = folder / "digest"
            options = ["--quiet", f"--digestfile={file}"]
            call(self.program, "push", *options, "--", name, about=f"push of {name}: ")
            yield {"aux": {"Digest": file.read_text(encoding="ascii").strip()}}

    def build(self, order: Order, options: Sequence[str], say: Say, trail: Trail) -> str:
        """Build an image, with further options of the command, and return the image's ID.

        Raises:
            EngineError: the build failed.
        """
        with open_draft_folder(None) as folder:
            file = folder / "iid"
            words = [
                *[self.program, "build"],
                f"--timestamp={order.epoch}",
                f"--build-arg=SOURCE_DATE_EPOCH={order.epoch}",
                f"--iidfile={file}",
                *options,
                *["--format=oci", "--layers=true", f"--network={order.network}"],
                *drop_identity_label(ask(self.program, "build", "--help").stdout),
            ]
            if order.platform is not None:
                words.append(f"--platform={order.platform}")
            if order.no_cache:
                words.append("--no-cache")
            lines = follow([*words, str(order.context)], {}, say)
            if lines is not None:
                raise explain(_find_error(lines), select_output(lines), program=self.program)
            image = normalize_id(file.read_text(encoding="ascii").strip())
        trail.images.append(image)
        return image


def normalize_id(image: str) -> str:
    """Return the ID of an image in Docker's form."""
    return f"sha256:{image.removeprefix('sha256:')}"


def make_mount(folder: Path) -> str:
    """Return the option that mounts a folder of this machine at a container's root, read-only."""
    return f"--volume={folder}:/{folder.name}:ro,z"  # `z` is for SELinux


def drop_identity_label(usage: str) -> list[str]:
    """Return the option, if the command has it, that leaves out buildah's version, with which
    images would differ.
    """
    if "--identity-label" in usage:
        return ["--identity-label=false"]
    return []


def _find_error(lines: Sequence[str]) -> str:
    """Return the builder's own error, else its last line."""
    for line in reversed(lines):
        if line.startswith(("Error: ", "error ")):
            return line
    return "\n".join(lines[-1:])
