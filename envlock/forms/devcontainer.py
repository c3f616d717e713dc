"""A development container: https://containers.dev/implementors/json_reference/. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from envlock.forms.deployment import deployment
from envlock.lock.models import Lockfile
from envlock.packages.licenses import License


def render(lock: Lockfile, licenses: Mapping[str, License]) -> str:
    """Return devcontainer.json.

    An editor starts such a container by a program of its own, not by the entrypoint: the check runs at each start.

    Raises:
        UsageError: the image is in no registry.
    """
    made = deployment(lock)
    options = [f"--platform={made.platform}", f"--shm-size={made.shared_memory}"]
    needs: dict[str, Any] = {}
    if made.cpus:
        options.append(f"--cpuset-cpus={f'0-{made.cpus - 1}' if made.cpus > 1 else '0'}")
        needs["cpus"] = made.cpus
    if made.gpus:
        options.append(f"--gpus={made.gpus}")
        needs["gpu"] = True
    document: dict[str, Any] = {
        "name": made.name,
        "image": made.image,
        "runArgs": options,
        "postStartCommand": [*made.entrypoint, "true"],
        "waitFor": "postStartCommand",
    }
    if needs:
        document["hostRequirements"] = needs
    return json.dumps(document, indent=2) + "\n"
