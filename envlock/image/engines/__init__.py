"""The container engines. To add one, write a module with `connect` and `build`, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

AUTO = "auto"
ENGINES: Mapping[str, str] = {
    "buildx": "envlock.image.engines.buildx",
    "docker": "envlock.image.engines.classic",
    "podman": "envlock.image.engines.podman",
    "buildah": "envlock.image.engines.buildah",
}
"""The modules of the builders by their names on the command line; the first is preferred."""
NETWORKS = ("none", "host", "default")
"""The networks that a build can use."""
