"""Which base image for a lock. Pure: facts and tables in, a ranked list out."""

from __future__ import annotations

from collections.abc import Iterable

from envlock.data.images import Tables, image_tables
from envlock.images.candidate import Candidate, rank
from envlock.images.drivers import judged
from envlock.images.sources import SOURCES
from envlock.images.wanted import Wanted, wanted
from envlock.lock.facts import Facts


def choose(facts: Facts, *, platform: str | None = None, tables: Tables | None = None) -> list[Candidate]:
    """Return the base images for these facts, the best first; there is always one.

    Args:
        facts: of the lock.
        platform: of the image; the lock's own unless named.
        tables: what is known of base images; envlock's own unless given.
    """
    return candidates(wanted(facts, platform), tables or image_tables())


def candidates(asked: Wanted, tables: Tables) -> list[Candidate]:
    """Return what all sources have for this, the best first."""
    return ranked((candidate for source in SOURCES.values() for candidate in source(asked, tables)), asked, tables)


def ranked(found: Iterable[Candidate], asked: Wanted, tables: Tables) -> list[Candidate]:
    """Return candidates held against the lock's driver and GPUs, the best first."""
    told = [judged(candidate, asked, tables.cuda) for candidate in found]
    return sorted(told, key=lambda candidate: rank(candidate, asked), reverse=True)
