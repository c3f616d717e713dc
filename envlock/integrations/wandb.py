"""Weights & Biases: the environment of a run in its settings, and the lockfile as an artifact.

import wandb
from envlock.integrations.wandb import log_lock

with wandb.init(project="mine"):
    log_lock()
"""

from __future__ import annotations

import wandb

import envlock
from envlock.integrations.verdict import describe_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Optional, Union

ARTIFACT = "environment"
"""The name and the type of the artifact."""


def log_lock(
    path: Optional[Union[str, os.PathLike[str]]] = None, run: Optional[wandb.Run] = None
) -> str:
    """Add the environment to a run, and return the line of the lockfile.

    The settings of the run get `envlock`, with the values of `describe_environment`; the artifact
    `environment` has the lockfile. The same lockfile is one version of the artifact, whichever run
    logs it.

    Args:
        path: the lockfile; else the one that `envlock.assert_locked()` would use.
        run: the run; else the active one.

    Raises:
        LockfileError: there is no lockfile, or it is invalid.
        UsageError: no run is active.
    """
    lock = envlock.locate(path)
    found = describe_environment(lock)
    active = run or wandb.run
    if active is None:
        raise envlock.UsageError("no run of W&B is active", hint="call `wandb.init()` first")
    active.config.update({"envlock": found})
    artifact = wandb.Artifact(ARTIFACT, type=ARTIFACT, metadata=found)
    artifact.add_file(lock, name="envlock.lock")
    active.log_artifact(artifact)
    return found["lock"]
