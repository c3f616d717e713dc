"""What a deployment needs of a lock: the image by its digest, and the machine that its entrypoint accepts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envlock.data.images import image_table
from envlock.lock.models import Lockfile
from envlock.lock.route import COMPLETE
from envlock.runtime.errors import UsageError
from envlock.runtime.version import __version__

CHECKED = "The entrypoint of the image verifies, and then runs the command: give a command, and keep the entrypoint."
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class Deployment:
    """An image and its surroundings.

    Attributes:
        name: of the service or job.
        image: the image in its registry, by the digest of its manifest.
        platform: such as `linux/amd64`.
        gpus: how many GPUs the lock has.
        gpu_model: what they all are called; None where there are none, or of several kinds.
        cpus: how many CPUs the process may use; None where the lock does not say.
        shared_memory: bytes of /dev/shm.
        lock: the SHA-256 of the lockfile in the image.
        entrypoint: the program that verifies.
    """

    name: str
    image: str
    platform: str
    gpus: int
    gpu_model: str | None
    cpus: int | None
    shared_memory: int
    lock: str
    entrypoint: tuple[str, ...]


def deployment(lock: Lockfile) -> Deployment:
    """Return what a lock says of how its image is deployed.

    Raises:
        UsageError: its image is in no registry.
    """
    image, base = lock.image, lock.base_image
    if image is None or base is None or image.reference is None or image.lock is None:
        raise UsageError(
            "the lockfile names no image in a registry",
            hint="run `envlock build --tag registry/name:tag --push` to push one",
        )
    facts = lock.facts
    found = facts.gpu.devices if facts.gpu is not None else None
    devices = list((found or {}).values())
    models = {device.name for device in devices}
    project = lock.project.name if lock.project is not None else None
    name = (project or "").replace("_", "-").replace(".", "-").lower()
    python = "python3" if base.route in COMPLETE and not image.wheels else "/opt/venv/bin/python"
    return Deployment(
        name=name if _NAME.fullmatch(name) else "train",
        image=image.reference,
        platform=base.platform,
        gpus=len(devices),
        gpu_model=models.pop() if len(models) == 1 else None,
        cpus=facts.cpu.affinity_count if facts.cpu is not None else None,
        shared_memory=image_table().shared_memory.bytes,
        lock=image.lock,
        entrypoint=(python, "-B", "/opt/envlock/entrypoint.py"),
    )


def yaml_text(remarks: Sequence[str], *documents: dict[str, Any]) -> str:
    """Return documents as YAML below remarks, which are our own words."""
    import yaml  # here: only two forms need it

    head = [f"# Written by envlock {__version__}.", *(f"# {remark}" for remark in remarks)]
    body: str = yaml.safe_dump_all(documents, sort_keys=False, width=1000)
    return "\n".join([*head, body])
