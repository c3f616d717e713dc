"""A service of Docker Compose: https://github.com/compose-spec/compose-spec/blob/main/spec.md.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from envlock.forms.deployment import CHECKED, describe_deployment, format_yaml
from envlock.lock.models import Lockfile
from envlock.packages.licenses import License


def render(lock: Lockfile, licenses: Mapping[str, License]) -> str:
    """Return compose.yaml.

    Raises:
        UsageError: the image is not in a registry.
    """
    deployment = describe_deployment(lock)
    service: dict[str, object] = {
        "image": deployment.image,
        "platform": deployment.platform,
        "shm_size": deployment.shared_memory,
    }
    if deployment.cpu_set is not None:
        service["cpuset"] = deployment.cpu_set
    if deployment.gpus:
        device = {"driver": "nvidia", "count": deployment.gpus, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return format_yaml([CHECKED], {"services": {deployment.name: service}})
