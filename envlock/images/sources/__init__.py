"""Where base images come from: one file a source, one line in `SOURCES`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from envlock.data.images import Tables
from envlock.images.candidate import Candidate
from envlock.images.sources import cuda, ngc, slim, systems
from envlock.images.wanted import Wanted


class Source(Protocol):
    """What a source is: a function from what is asked for to its candidates, in any order."""

    def __call__(self, asked: Wanted, tables: Tables) -> Iterable[Candidate]:
        """Return the candidates worth showing."""
        ...


SOURCES: dict[str, Source] = {
    "ngc": ngc.candidates,
    "cuda": cuda.candidates,
    "slim": slim.candidates,
    "systems": systems.candidates,
}
