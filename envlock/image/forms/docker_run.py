"""The command that starts an image with Docker or podman on one machine. Pure."""

from __future__ import annotations

import shlex

from envlock.image.forms.deployment import CHECKED, describe_deployment
from envlock.lock.models import Lockfile
from envlock.runtime.version import __version__


def render(lock: Lockfile) -> str:
    """Return a script of one command; its arguments are the program's.

    Raises:
        UsageError: there is no image.
    """
    deployment = describe_deployment(lock, local=True)
    options = [f"--shm-size={deployment.shared_memory}"]
    if deployment.cpu_set is not None:
        options.append(f"--cpuset-cpus={deployment.cpu_set}")
    if deployment.gpus:
        options.append(f"--gpus={deployment.gpus}")
    if deployment.is_local:
        options.append("--pull=never")
    options += ["--cap-drop=ALL", "--security-opt=no-new-privileges"]
    words = [
        "docker",
        "run",
        "--rm",
        f"--platform={deployment.platform}",
        *options,
        deployment.image,
    ]
    lines = [
        "#!/bin/sh",
        f"# Written by envlock {__version__}. Without arguments, the command of the image runs.",
        f"# {CHECKED}",
        f'exec {shlex.join(words)} "$@"',
    ]
    return "\n".join(lines) + "\n"
