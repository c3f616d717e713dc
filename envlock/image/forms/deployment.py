"""What a deployment needs from a lockfile: the image by its digest, and the machine that its
entrypoint accepts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml

from envlock.data.image_tables import load_image_defaults
from envlock.lock.models import Lockfile
from envlock.lock.route import COMPLETE
from envlock.runtime.errors import UsageError
from envlock.runtime.version import __version__

CHECKED = (
    "The entrypoint of the image verifies, and then runs the command: "
    "give a command, and keep the entrypoint."
)
"""A remark for every form."""
DEFAULT_NAME = "train"
"""The name of the service or job if the project has none that Kubernetes accepts."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names"""


@dataclass(frozen=True)
class Deployment:
    """An image and its surroundings.

    Attributes:
        name: of the service or job.
        image: the image in its registry, by the digest of its manifest; without a registry, its ID.
        is_local: whether only the engine that built the image has it.
        platform: such as `linux/amd64`.
        gpus: how many GPUs the lockfile has.
        gpu_model: the model of all GPUs; None without GPUs, or with several models.
        cpus: how many CPUs the process may use; None if the lockfile does not have it.
        shared_memory: bytes of /dev/shm.
        lock: the SHA-256 of the lockfile in the image.
        entrypoint: the program that verifies.
        command: the one that the image was built with; empty if it has its base's.
        code: the folder of the project's files; None if the image has none.
    """

    name: str
    image: str
    is_local: bool
    platform: str
    gpus: int
    gpu_model: str | None
    cpus: int | None
    shared_memory: int
    lock: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    code: str | None

    @property
    def cpu_set(self) -> str | None:
        """The first CPUs in Linux's notation of sets: `0-7`; None if the lockfile has no number of
        CPUs.
        """
        if not self.cpus:
            return None
        if self.cpus == 1:
            return "0"
        return f"0-{self.cpus - 1}"


def describe_deployment(lock: Lockfile, *, local: bool = False) -> Deployment:
    """Return the deployment of the image of a lockfile.

    Args:
        lock: the lockfile.
        local: the image may be one that only an engine has.

    Raises:
        UsageError: there is no image, or it is not in a registry.
    """
    image, base = lock.image, lock.base_image
    if local and (image is None or base is None or image.lock is None):
        raise UsageError(
            "the lockfile names no image", hint="run `envlock build` to build and record one"
        )
    is_local = image is not None and image.reference is None
    if image is None or base is None or image.lock is None or (is_local and not local):
        raise UsageError(
            "the lockfile names no image in a registry",
            hint="run `envlock build --tag registry/name:tag --push` to push one",
        )
    gpus: list[str | None] = []
    if lock.facts.gpu is not None and lock.facts.gpu.devices is not None:
        gpus = [device.name for device in lock.facts.gpu.devices.values()]
    gpu_model = gpus[0] if len(set(gpus)) == 1 else None
    cpus = lock.facts.cpu.affinity_count if lock.facts.cpu is not None else None
    # A base with all packages has its own Python; otherwise there is a virtual environment.
    python = "python3" if base.route in COMPLETE and not image.wheels else "/opt/venv/bin/python"
    command: tuple[str, ...] = ()
    code = None
    if image.container is not None:
        command = tuple(image.container.command)
        if image.container.files:
            code = image.container.workdir
    return Deployment(
        name=_choose_name(lock),
        image=image.reference or image.id,
        is_local=is_local,
        platform=base.platform,
        gpus=len(gpus),
        gpu_model=gpu_model,
        cpus=cpus,
        shared_memory=load_image_defaults().shared_memory.bytes,
        lock=image.lock,
        entrypoint=(python, "-B", "/opt/envlock/entrypoint.py"),
        command=command,
        code=code,
    )


def _choose_name(lock: Lockfile) -> str:
    """Return the name of the project in a form that Kubernetes accepts."""
    if lock.project is None or lock.project.name is None:
        return DEFAULT_NAME
    name = lock.project.name.replace("_", "-").replace(".", "-").lower()
    if _NAME.fullmatch(name) is None:
        return DEFAULT_NAME
    return name


def format_yaml(remarks: Sequence[str], *documents: Mapping[str, object]) -> str:
    """Return documents as YAML after comment lines, which are our own words."""
    lines = [f"# Written by envlock {__version__}."]
    lines += [f"# {remark}" for remark in remarks]
    # Wide, so that an expression or a command is not broken into two lines.
    lines.append(yaml.safe_dump_all(documents, sort_keys=False, width=1000))
    return "\n".join(lines)
