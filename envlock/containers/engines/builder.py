"""What a builder is, and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from envlock.containers.engines.daemon import Daemon
from envlock.containers.engines.output import Trail

Say = Callable[[str], None]
"""Takes a line of progress."""


@dataclass(frozen=True)
class Order:
    """A build: the folder with its Dockerfile, and what the builder is told beside that."""

    context: Path
    epoch: int
    labels: Mapping[str, str]
    platform: str | None = None
    network: str = "none"
    no_cache: bool = False


class Builder(Protocol):
    """Builds an order and returns the image's ID.

    What comes to be on the daemon is noted in the trail at once, so that it can be removed if the build ends early.

    Raises:
        EngineError: the build failed.
    """

    def __call__(self, daemon: Daemon, order: Order, say: Say, trail: Trail) -> str: ...
