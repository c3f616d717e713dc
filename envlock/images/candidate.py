"""A base image that might do, and the words for why. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from envlock.images.reference import Reference
from envlock.images.versions import NEAR, SAME, UNKNOWN, Likeness, Value, likeness
from envlock.images.wanted import Wanted

Route = Literal["ngc", "cuda", "wheels"]

SUBJECTS = {
    "tensorflow": "TensorFlow",
    "python": "Python",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "nccl": "NCCL",
    "libc": "glibc",
}
"""What is compared, and what it is called; in the order in which it counts."""


@dataclass(frozen=True)
class Candidate:
    """A base image for a lock.

    Attributes:
        holds: what comes with it, and with what is installed on it, by the names of `SUBJECTS`.
        lead: what it is, in a sentence.
        exact: the lock's very build of TensorFlow is in it, or can be installed on it.
        obstacles: why it cannot do what the lock does, if so.
        doubts: what may keep it from running on the lock's GPUs.
        driver: how the lock's driver gets on with its CUDA.
        notes: what else is worth knowing.
        lowest: compute capability of the lowest GPU that it is for.
        python_from: the image to take Python from, where the base image has none.
    """

    route: Route
    reference: Reference
    holds: dict[str, Value]
    lead: str
    exact: bool = False
    obstacles: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    driver: str | None = None
    notes: tuple[str, ...] = ()
    lowest: str | None = None
    python_from: Reference | None = None
    newest: tuple[int, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether nothing that is known speaks against it."""
        return not self.obstacles and not self.doubts


Rank = tuple[bool, bool, bool, tuple[Likeness, ...], int, tuple[int, ...], str]


def rank(candidate: Candidate, asked: Wanted) -> Rank:
    """Return what candidates are ordered by; the greatest is the best.

    It can do it; the very build of TensorFlow; no doubts; then how like what is asked for its parts are, one after the
    other; then how much of it is more than expected; then the newer one.
    """
    held = {name: candidate.holds.get(name, Value()) for name in SUBJECTS}
    return (
        not candidate.obstacles,
        candidate.exact,
        not candidate.doubts,
        tuple(likeness(getattr(asked, name), value) for name, value in held.items()),
        sum(not value.expected for value in held.values()),
        candidate.newest,
        str(candidate.reference),
    )


def reason(candidate: Candidate, asked: Wanted) -> str:
    """Return why it stands where it stands, in sentences."""
    driver = [candidate.driver] if candidate.driver else []
    against = (*candidate.obstacles, *candidate.doubts)
    return " ".join([candidate.lead, *_compared(candidate, asked), *against, *driver, *candidate.notes])


def _compared(candidate: Candidate, asked: Wanted) -> Iterable[str]:
    """Yield a sentence for each kind of likeness."""
    kinds: dict[str, list[str]] = {"same": [], "expected": [], "other": [], "unknown": []}
    for name, title in SUBJECTS.items():
        held, want = candidate.holds.get(name), getattr(asked, name)
        if held is None or want is None or (name == "tensorflow" and candidate.exact):
            continue
        grade = likeness(want, held).grade
        text = f"{title} {held.version}"
        if grade == UNKNOWN:
            kinds["unknown"].append(f"{title} (the lock has {want})")
        elif grade == SAME:
            kinds["expected" if held.expected else "same"].append(text)
        else:
            expected = ", expected" if held.expected else ""
            close = ", of the same minor version" if grade == NEAR else ""
            kinds["other"].append(f"{text}{expected} (the lock has {want}{close})")
    heads = {
        "same": "As in the lock",
        "expected": "Expected as in the lock, though not told of this very image",
        "other": "Not as in the lock",
        "unknown": "Not known",
    }
    for kind, texts in kinds.items():
        if texts:
            yield f"{heads[kind]}: {', '.join(texts)}."
