"""A service of Docker Compose: https://github.com/compose-spec/compose-spec/blob/main/spec.md.
Pure.
"""

from __future__ import annotations

from envlock.image.forms.deployment import CHECKED, describe_deployment, format_yaml
from envlock.lock.models import Lockfile


def render(lock: Lockfile) -> str:
    """Return compose.yaml.

    Raises:
        UsageError: there is no image.
    """
    deployment = describe_deployment(lock, local=True)
    service: dict[str, object] = {"image": deployment.image, "platform": deployment.platform}
    if deployment.is_local:
        service["pull_policy"] = "never"
    service["shm_size"] = deployment.shared_memory
    service["cap_drop"] = ["ALL"]
    service["security_opt"] = ["no-new-privileges:true"]
    if deployment.cpu_set is not None:
        service["cpuset"] = deployment.cpu_set
    if deployment.gpus:
        device = {"driver": "nvidia", "count": deployment.gpus, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return format_yaml([CHECKED], {"services": {deployment.name: service}})
