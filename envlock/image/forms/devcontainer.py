"""A development container: https://containers.dev/implementors/json_reference/. Pure."""

from __future__ import annotations

import json

from envlock.image.forms.deployment import describe_deployment
from envlock.lock.models import Lockfile


def render(lock: Lockfile) -> str:
    """Return devcontainer.json.

    An editor starts such a container with a program of its own instead of the entrypoint, so the
    check runs at each start.

    Raises:
        UsageError: there is no image.
    """
    deployment = describe_deployment(lock, local=True)
    options = [f"--platform={deployment.platform}", f"--shm-size={deployment.shared_memory}"]
    requirements: dict[str, object] = {}
    if deployment.cpu_set is not None:
        options.append(f"--cpuset-cpus={deployment.cpu_set}")
        requirements["cpus"] = deployment.cpus
    if deployment.gpus:
        options.append(f"--gpus={deployment.gpus}")
        requirements["gpu"] = True
    document: dict[str, object] = {
        "name": deployment.name,
        "image": deployment.image,
        "runArgs": options,
        # The first process is the editor's own, and does not wait for orphans.
        "init": True,
        "postStartCommand": [*deployment.entrypoint, "true"],
        "waitFor": "postStartCommand",
    }
    if requirements:
        document["hostRequirements"] = requirements
    return json.dumps(document, indent=2) + "\n"
