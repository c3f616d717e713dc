"""The limits of a server: how long it may take, how often it is asked, and how much it may send."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of requests; in seconds unless stated otherwise.

    Attributes:
        connect: until the connection is established.
        silence: one wait for the next byte.
        answer: a whole `get`, with every attempt and redirect.
        body: a whole `fetch`.
        attempts: how many at most, including the first.
        backoff: the pause before the second attempt; doubled each time.
        retry_after: the longest wait that a server may ask for.
        redirects: how many at most.
        largest: bytes of a `fetch` at most.
    """

    connect: float = 10
    silence: float = 20
    answer: float = 90
    body: float = 3600
    attempts: int = 4
    backoff: float = 0.5
    retry_after: float = 20
    redirects: int = 5
    largest: int = 64 * 1024**3
