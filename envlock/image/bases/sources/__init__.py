"""Where base images come from: one file and one line in `SOURCES` for each source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from envlock.data.image_tables import Tables
from envlock.image.bases.candidate import Candidate
from envlock.image.bases.needs import BaseNeeds
from envlock.image.bases.sources import cuda, ngc, slim, systems


class Source(Protocol):
    """A source: a function from the needs of a lockfile to its candidates, in any order."""

    def __call__(self, needs: BaseNeeds, tables: Tables) -> Iterable[Candidate]:
        """Return the candidates worth showing."""
        ...


SOURCES: dict[str, Source] = {
    "ngc": ngc.list_candidates,
    "cuda": cuda.list_candidates,
    "slim": slim.list_candidates,
    "systems": systems.list_candidates,
}
