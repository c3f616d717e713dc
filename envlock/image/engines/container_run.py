"""A container that runs to its end: how it is started, and its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Start:
    """How a container is started. It is always removed at its end.

    Attributes:
        gpus: with this machine's GPUs. Podman starts it even without GPUs, so check inside.
        env: variables in addition to the image's own.
        entrypoint: instead of the image's own; empty for none.
        folder: a folder of this machine, which is at the container's root under the same name.
        network: `none`, `host`, or `default` for the engine's own.
    """

    gpus: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    entrypoint: Sequence[str] | None = None
    folder: Path | None = None
    network: str = "none"

    @property
    def network_options(self) -> list[str]:
        """The options of an engine's command for the network."""
        if self.network == "default":
            return []
        return [f"--network={self.network}"]


PLAIN = Start()
"""Everything as in the image."""


@dataclass(frozen=True)
class Finished:
    """A container that ran to its end."""

    exit_code: int
    stdout: str
    stderr: str
