"""A service of Docker Compose: https://github.com/compose-spec/compose-spec/blob/main/spec.md. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envlock.forms.deployment import CHECKED, deployment, yaml_text
from envlock.lock.models import Lockfile
from envlock.packages.licenses import License


def render(lock: Lockfile, licenses: Mapping[str, License]) -> str:
    """Return compose.yaml.

    Raises:
        UsageError: the image is in no registry.
    """
    made = deployment(lock)
    service: dict[str, Any] = {
        "image": made.image,
        "platform": made.platform,
        "shm_size": made.shared_memory,
    }
    if made.cpus:
        service["cpuset"] = f"0-{made.cpus - 1}" if made.cpus > 1 else "0"
    if made.gpus:
        device = {"driver": "nvidia", "count": made.gpus, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return yaml_text([CHECKED], {"services": {made.name: service}})
