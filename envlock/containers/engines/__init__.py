"""Container engines: the builders there are. Adding one is a module with a `build`, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

AUTO = "auto"
ENGINES: Mapping[str, str] = {
    "buildx": "envlock.containers.engines.buildx",
    "docker": "envlock.containers.engines.classic",
}
"""The modules of the builders by their names on the command line; the first is preferred."""
NETWORKS = ("none", "host", "default")
"""What a build may reach."""
