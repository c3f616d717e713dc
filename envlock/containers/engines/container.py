"""A container that runs to its end: what it is started with, and what it printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Start:
    """How a container is started. It is removed in every case.

    Attributes:
        gpus: with this machine's GPUs. Podman starts one without where there are none: look inside.
        env: variables beside the image's own.
        entrypoint: instead of the image's own; empty for none.
        brought: a folder that is there at the root, under its own name.
        network: `none`, `host`, or `default` for the engine's own.
    """

    gpus: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    entrypoint: Sequence[str] | None = None
    brought: Path | None = None
    network: str = "none"

    @property
    def network_options(self) -> list[str]:
        """What the command of an engine takes for it."""
        return [] if self.network == "default" else [f"--network={self.network}"]


PLAIN = Start()
"""As the image is."""


@dataclass(frozen=True)
class Finished:
    """A container that ran to its end."""

    exit_code: int
    stdout: str
    stderr: str
