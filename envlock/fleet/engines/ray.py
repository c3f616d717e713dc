"""Ray: one task on each live node; the command is the driver.

Source: https://docs.ray.io/en/latest/ray-core/scheduling/
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PROGRAMS: Sequence[str] = ()
DRIVER = "ray_nodes"


def is_meant(environ: Mapping[str, str], ranks: int | None) -> bool:
    """Return whether a variable names a cluster."""
    return bool(environ.get("RAY_ADDRESS"))


def start(
    program: str, command: Sequence[str], ranks: int | None, options: Sequence[str]
) -> list[str]:
    """Return the command unchanged: Ray itself starts the workers of a driver."""
    return list(command)
