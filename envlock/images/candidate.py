"""How well a base image meets what a lock asks for, in versions and words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from envlock.images.needs import BaseNeeds
from envlock.images.reference import Reference
from envlock.lock.route import Route
from envlock.runtime.release import parse_release


class Value(NamedTuple):
    """A version that an image holds.

    Attributes:
        version: None where no source states it.
        expected: whether it is inferred, from other images of that month, and not stated of this
            image itself.
    """

    version: str | None = None
    expected: bool = False


class Likeness(NamedTuple):
    """How much two versions have in common; of two, the greater one is more alike.

    Attributes:
        grade: `SAME` as far as both are known, `NEAR`, `UNKNOWN` where one is, or `OTHER`.
        shared: how many numbers from the first on are equal.
        nearness: how far apart they are, as a negative number; 0 where the grade is `SAME`.
    """

    grade: int
    shared: int
    nearness: int


SAME, NEAR, UNKNOWN, OTHER = 3, 2, 1, 0
"""`NEAR`: the major and the minor number are equal."""


def compare_versions(locked: str | None, held: Value) -> Likeness:
    """Return how much the version that an image holds has in common with the locked one."""
    if locked is None or held.version is None:
        return Likeness(UNKNOWN, 0, 0)
    left, right = parse_release(locked), parse_release(held.version)
    if not left or not right:
        return _compare_words(locked, held.version)
    shared = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        shared += 1
    length = min(len(left), len(right))
    if shared == length:  # `12.5` is the same as `12.5.1`, as far as it is known
        return Likeness(SAME, shared, 0)
    nearness = -_measure_distance(left[:length], right[:length])
    if shared >= 2:
        return Likeness(NEAR, shared, nearness)
    return Likeness(OTHER, shared, nearness)


def _compare_words(locked: str, held: str) -> Likeness:
    """Return how alike two texts such as `ubuntu 22.04` are; the first word counts most."""
    if locked == held:
        return Likeness(SAME, 0, 0)
    if locked.split(" ")[0] == held.split(" ")[0]:
        return Likeness(NEAR, 0, 0)
    return Likeness(OTHER, 0, 0)


def _measure_distance(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """Return how far two versions are apart, the major number first, then the minor one."""
    distance = 0
    weights = (10**6, 10**3, 1)
    for a, b, weight in zip((*left, 0, 0, 0), (*right, 0, 0, 0), weights, strict=False):
        distance += abs(a - b) * weight
    return distance


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
"""What is compared, and its name in sentences; in the order of its weight."""


@dataclass(frozen=True)
class PythonArchive:
    """A build of python-build-standalone: its archive, by name and SHA-256."""

    file: str
    sha256: str


@dataclass(frozen=True)
class Candidate:
    """A base image for a lock.

    Attributes:
        holds: what comes with it, and with what is installed on it, by the names of `SUBJECTS`.
        lead: what it is, in a sentence.
        exact: the lock's very build of TensorFlow is in it, or can be installed on it.
        months_apart: months between its release and that of the lock's label.
        obstacles: why it cannot do what the lock does, by its source or its registry.
        unmet_requirements: requirements of TensorFlow itself that it does not meet.
        mismatches: facts of it that the lock's policy does not accept.
        refuses_wheels: whether the locked wheels cannot be installed on it, as far as is known or
            expected.
        doubts: why it may not run on the lock's GPUs.
        driver: a sentence on the lock's driver under its CUDA; None where nothing is known.
        notes: further sentences.
        lowest: compute capability of the lowest GPU that it is for.
        python_from: the image to take Python from, where the base image has none.
        python_archive: the build of Python to install, where neither has one.
        newest: what is compared last; the greater, the newer.
    """

    route: Route
    reference: Reference
    holds: dict[str, Value]
    lead: str
    exact: bool = False
    months_apart: int = 0
    obstacles: tuple[str, ...] = ()
    unmet_requirements: tuple[str, ...] = ()
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
        return not self.obstacles and not self.unmet_requirements

    @property
    def usable(self) -> bool:
        """Whether nothing that is known speaks against it."""
        return self.able and not self.mismatches and not self.doubts


Rank = tuple[bool, bool, bool, int, int, bool, tuple[Likeness, ...], int, tuple[int, ...], str]


def compute_rank(candidate: Candidate, needs: BaseNeeds) -> Rank:
    """Return what candidates are ordered by; the greatest is the best.

    First whether it can do what the lock does, and whether the locked wheels can be installed on
    it; then whether it has the very build of TensorFlow, or the nearest release; then the fewest
    facts that the lock's policy does not accept, and no doubts; then how alike its parts are, one
    after the other, and how many of them are stated rather than expected; then the newer one.
    """
    subjects = [name for name in SUBJECTS if name != "nccl"]
    # One GPU never calls NCCL: there it counts last but for the compiler.
    position = subjects.index("os") if needs.gpus > 1 else subjects.index("compiler")
    subjects.insert(position, "nccl")
    likenesses = []
    stated = 0
    for name in subjects:
        value = candidate.holds.get(name, Value())
        likenesses.append(_measure_likeness(getattr(needs, name), value))
        if not value.expected:
            stated += 1
    return (
        candidate.able,
        not candidate.refuses_wheels,
        candidate.exact,
        -candidate.months_apart,
        -len(candidate.mismatches),
        not candidate.doubts,
        tuple(likenesses),
        stated,
        candidate.newest,
        str(candidate.reference),
    )


def _measure_likeness(locked: str | None, held: Value) -> Likeness:
    """Return the likeness that counts in a rank."""
    likeness = compare_versions(locked, held)
    # An expected value is no match, but it may well be another version.
    if held.expected and likeness.grade > UNKNOWN:
        return Likeness(UNKNOWN, 0, 0)
    return likeness


def explain_candidate(candidate: Candidate, needs: BaseNeeds) -> str:
    """Return why a candidate has its place among the others, in sentences."""
    sentences = [
        candidate.lead,
        *_describe_likenesses(candidate, needs),
        *candidate.obstacles,
        *candidate.unmet_requirements,
        *explain_mismatches(candidate, needs),
        *candidate.doubts,
    ]
    if candidate.driver:
        sentences.append(candidate.driver)
    return " ".join([*sentences, *candidate.notes])


def explain_mismatches(candidate: Candidate, needs: BaseNeeds) -> tuple[str, ...]:
    """Return the sentence that the lock's policy does not accept a candidate; none where it may."""
    if not candidate.mismatches:
        return ()
    return (f"Cannot match under policy {needs.policy}: {'; '.join(candidate.mismatches)}.",)


_HEADS = {
    "same": "As locked",
    "expected": "Expected as locked, by other images of that month",
    "other": "Not as locked",
    "unknown": "Unknown",
}
"""What the sentence on each kind of likeness begins with, in the order of the sentences."""


def _describe_likenesses(candidate: Candidate, needs: BaseNeeds) -> Iterable[str]:
    """Yield a sentence for each kind of likeness."""
    texts: dict[str, list[str]] = {kind: [] for kind in _HEADS}
    for name, title in SUBJECTS.items():
        held, locked = candidate.holds.get(name), getattr(needs, name)
        if held is None or locked is None or (name == "tensorflow" and candidate.exact):
            continue
        grade = compare_versions(locked, held).grade
        if name == "compiler" and grade != SAME:
            continue  # no policy compares it
        if grade == UNKNOWN:
            texts["unknown"].append(f"{title} (locked {locked})")
        elif grade != SAME:
            texts["other"].append(_describe_difference(title, held, locked, grade))
        elif held.expected:
            texts["expected"].append(f"{title} {held.version}")
        else:
            texts["same"].append(f"{title} {held.version}")
    for kind, head in _HEADS.items():
        if texts[kind]:
            yield f"{head}: {', '.join(texts[kind])}."


def _describe_difference(title: str, held: Value, locked: str, grade: int) -> str:
    text = f"{title} {held.version}"
    if held.expected:
        text += ", expected"
    if grade == NEAR and parse_release(locked):
        return f"{text} (locked {locked}, of the same minor version)"
    return f"{text} (locked {locked})"
