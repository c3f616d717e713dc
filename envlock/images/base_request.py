"""The request for a base image: one value, from the command line down to the registry. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from envlock.images.reference import Mirror, parse_digest, parse_mirror, parse_platform

AUTO = "auto"
"""The choice that leaves the base to envlock: the lock's own, else the best that is known."""


@dataclass(frozen=True)
class BaseRequest:
    """What is asked of the choice of a base image.

    Attributes:
        choice: `auto`, a route, or the name of an image.
        platform: of the image, such as `linux/amd64`; None for the lock's own.
        mirrors: where images are taken from instead.
        accepted: the digest of a release's tag that has moved; None where none was named.
    """

    choice: str = AUTO
    platform: str | None = None
    mirrors: tuple[Mirror, ...] = ()
    accepted: str | None = None

    @classmethod
    def parse(
        cls, choice: str, platform: str | None, mirrors: Iterable[str], accept: str | None
    ) -> BaseRequest:
        """Return the request that these arguments of a command make.

        Raises:
            UsageError: a platform, a mirror or a digest is malformed.
        """
        places = tuple(parse_mirror(text) for text in mirrors)
        digest = None
        if accept is not None:
            digest = parse_digest(accept)
        named = None
        if platform is not None:
            named = parse_platform(platform)
        return cls(choice, named, places, digest)
