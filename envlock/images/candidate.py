"""How well a base image meets what a lock asks for, in versions and words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from envlock.images.reference import Reference
from envlock.images.wanted import Wanted
from envlock.lock.route import Route
from envlock.runtime.release import numbers


class Value(NamedTuple):
    """A version that an image holds, None where nobody tells; `expected`: it is not said of this image itself."""

    version: str | None = None
    expected: bool = False


class Likeness(NamedTuple):
    """How like what is wanted it is; the greater, the liker.

    `grade` 3: the same as far as both are known; 2: the same major and minor number; 1: one is unknown; 0: another.
    """

    grade: int
    shared: int
    nearness: int


SAME, NEAR, UNKNOWN, OTHER = 3, 2, 1, 0


def likeness(asked: str | None, held: Value) -> Likeness:
    """Return how like `asked` the version is that an image holds."""
    if asked is None or held.version is None:
        return Likeness(UNKNOWN, 0, 0)
    one, other = numbers(asked), numbers(held.version)
    if not one or not other:  # words, such as `ubuntu 22.04`: the first one counts most
        alike = asked.split(" ")[0] == held.version.split(" ")[0]
        return Likeness(SAME if asked == held.version else NEAR if alike else OTHER, 0, 0)
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    whole = min(len(one), len(other))
    grade = SAME if shared == whole else NEAR if shared >= 2 else OTHER
    return Likeness(grade, shared, 0 if grade == SAME else -_distance(one[:whole], other[:whole]))


def _distance(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    padded = [(*version, 0, 0, 0)[:3] for version in (one, other)]
    return sum(abs(a - b) * weight for a, b, weight in zip(*padded, (10**6, 10**3, 1), strict=True))


SUBJECTS = {
    "tensorflow": "TensorFlow",
    "python": "Python",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "os": "system",
    "libc": "glibc",
    "nccl": "NCCL",
    "compiler": "compiler of Python",
}
"""What is compared, and what it is called; in the order in which it counts."""


@dataclass(frozen=True)
class PythonArchive:
    """A build of python-build-standalone: the name of its archive, which names version and release, and its SHA-256."""

    file: str
    sha256: str


@dataclass(frozen=True)
class Candidate:
    """A base image for a lock.

    Attributes:
        holds: what comes with it, and with what is installed on it, by the names of `SUBJECTS`.
        lead: what it is, in a sentence.
        exact: the lock's very build of TensorFlow is in it, or can be installed on it.
        apart: months between its release and that of the lock's label.
        obstacles: why it cannot do what the lock does, as its source or its registry tells.
        floors: what TensorFlow itself needs and it has not.
        mismatches: facts of it that the lock's policy does not accept.
        refuses_wheels: what is known or expected of it keeps the locked wheels from being installed at all.
        doubts: what may keep it from running on the lock's GPUs.
        driver: how the lock's driver gets on with its CUDA.
        notes: what else is worth knowing.
        lowest: compute capability of the lowest GPU that it is for.
        python_from: the image to take Python from, where the base image has none.
        python_archive: the build of Python to install, where neither has one.
    """

    route: Route
    reference: Reference
    holds: dict[str, Value]
    lead: str
    exact: bool = False
    apart: int = 0
    obstacles: tuple[str, ...] = ()
    floors: tuple[str, ...] = ()
    mismatches: tuple[str, ...] = ()
    refuses_wheels: bool = False
    doubts: tuple[str, ...] = ()
    driver: str | None = None
    notes: tuple[str, ...] = ()
    lowest: str | None = None
    python_from: Reference | None = None
    python_archive: PythonArchive | None = None
    newest: tuple[int, ...] = ()

    @property
    def able(self) -> bool:
        """Whether it can do what the lock does."""
        return not self.obstacles and not self.floors

    @property
    def usable(self) -> bool:
        """Whether nothing that is known speaks against it."""
        return self.able and not self.mismatches and not self.doubts


Rank = tuple[bool, bool, bool, int, int, bool, tuple[Likeness, ...], int, tuple[int, ...], str]


def rank(candidate: Candidate, asked: Wanted) -> Rank:
    """Return what candidates are ordered by; the greatest is the best.

    It can do it; the locked wheels can be installed on it; the very build of TensorFlow, or the nearest release; the
    fewest facts that the lock's policy does not accept; no doubts; then how like what is asked for its parts are, one
    after the other; then how much of it is more than expected; then the newer one.
    """
    names = [name for name in SUBJECTS if name != "nccl"]
    names.insert(
        names.index("os" if asked.gpus > 1 else "compiler"), "nccl"
    )  # one GPU never calls NCCL
    held = [(name, candidate.holds.get(name, Value())) for name in names]
    return (
        candidate.able,
        not candidate.refuses_wheels,
        candidate.exact,
        -candidate.apart,
        -len(candidate.mismatches),
        not candidate.doubts,
        tuple(_counted(getattr(asked, name), value) for name, value in held),
        sum(not value.expected for _, value in held),
        candidate.newest,
        str(candidate.reference),
    )


def _counted(asked: str | None, held: Value) -> Likeness:
    """Return how much a likeness counts: a value that is only expected is no match, but may be another one."""
    like = likeness(asked, held)
    return Likeness(UNKNOWN, 0, 0) if held.expected and like.grade > UNKNOWN else like


def reason(candidate: Candidate, asked: Wanted) -> str:
    """Return why it stands where it stands, in sentences."""
    driver = [candidate.driver] if candidate.driver else []
    against = (
        *candidate.obstacles,
        *candidate.floors,
        *cannot_match(candidate, asked),
        *candidate.doubts,
    )
    return " ".join(
        [candidate.lead, *_compared(candidate, asked), *against, *driver, *candidate.notes]
    )


def cannot_match(candidate: Candidate, asked: Wanted) -> tuple[str, ...]:
    """Return the sentence that the lock's policy does not accept it; none where it may."""
    if not candidate.mismatches:
        return ()
    return (f"Cannot match under policy {asked.policy}: {'; '.join(candidate.mismatches)}.",)


def _compared(candidate: Candidate, asked: Wanted) -> Iterable[str]:
    """Yield a sentence for each kind of likeness."""
    kinds: dict[str, list[str]] = {"same": [], "expected": [], "other": [], "unknown": []}
    for name, title in SUBJECTS.items():
        held, want = candidate.holds.get(name), getattr(asked, name)
        if held is None or want is None or (name == "tensorflow" and candidate.exact):
            continue
        grade = likeness(want, held).grade
        text = f"{title} {held.version}"
        if name == "compiler" and grade != SAME:
            continue  # no policy holds it
        if grade == UNKNOWN:
            kinds["unknown"].append(f"{title} (locked {want})")
        elif grade == SAME:
            kinds["expected" if held.expected else "same"].append(text)
        else:
            expected = ", expected" if held.expected else ""
            close = ", of the same minor version" if grade == NEAR and numbers(want) else ""
            kinds["other"].append(f"{text}{expected} (locked {want}{close})")
    heads = {
        "same": "As locked",
        "expected": "Expected as locked, by other images of that month",
        "other": "Not as locked",
        "unknown": "Unknown",
    }
    for kind, texts in kinds.items():
        if texts:
            yield f"{heads[kind]}: {', '.join(texts)}."
