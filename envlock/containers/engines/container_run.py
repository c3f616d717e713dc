"""A container that runs to its end: how it is started, and what it printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Start:
    """How a container is started. It is removed in every case.

    Attributes:
        gpus: with this machine's GPUs. Podman starts it also where there are none: look inside.
        env: variables beside the image's own.
        entrypoint: instead of the image's own; empty for none.
        folder: of this machine, which the container has at its root under the same name.
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
"""With everything as the image has it."""


@dataclass(frozen=True)
class Finished:
    """A container that ran to its end."""

    exit_code: int
    stdout: str
    stderr: str
