"""The request for a base image as one value, from the command line to the registry. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from envlock.image.bases.reference import Mirror, parse_mirror, parse_platform

AUTO = "auto"
"""The value that leaves the base to envlock: the one in the lockfile, else the best known one."""


@dataclass(frozen=True)
class BaseRequest:
    """The request for a base image.

    Attributes:
        choice: `auto`, a route, or the name of an image.
        platform: that of the image, such as `linux/amd64`; None for the lockfile's own.
        mirrors: registries that images are taken from instead.
    """

    choice: str = AUTO
    platform: str | None = None
    mirrors: tuple[Mirror, ...] = ()

    @classmethod
    def parse(cls, choice: str, platform: str | None, mirrors: Iterable[str]) -> BaseRequest:
        """Return the request with these arguments of a command.

        Raises:
            UsageError: a platform or a mirror is malformed.
        """
        places = tuple(parse_mirror(text) for text in mirrors)
        named = parse_platform(platform) if platform is not None else None
        return cls(choice, named, places)
