"""How well a base image meets the needs of a lockfile, in versions and in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from envlock.image.bases.needs import BaseNeeds
from envlock.image.bases.reference import Reference
from envlock.lock.route import Route
from envlock.runtime.release import parse_release


class Value(NamedTuple):
    """A version in an image.

    Attributes:
        version: None if no source states it.
        expected: whether it is inferred from other images of that month, and not stated for this
            image itself.
    """

    version: str | None = None
    expected: bool = False


class Likeness(NamedTuple):
    """How much two versions have in common; the greater of two likenesses is the better one.

    Attributes:
        grade: `SAME` as far as both are known, `NEAR`, `UNKNOWN` if one is unknown, or `OTHER`.
        shared: how many numbers are equal, counted from the first.
        nearness: their distance as a negative number; 0 if the grade is `SAME`.
    """

    grade: int
    shared: int
    nearness: int


SAME, NEAR, UNKNOWN, OTHER = 3, 2, 1, 0
"""`NEAR`: the major and the minor number are equal."""


def compare_versions(locked: str | None, held: Value) -> Likeness:
    """Return how much the version in an image has in common with the locked one."""
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
    if shared == length:  # `12.5` equals `12.5.1`, as far as it is known
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
    """Return the distance of two versions: of the major numbers first, then of the minor ones."""
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
"""The parts that are compared, with their names in sentences, in the order of their weight."""


@dataclass(frozen=True)
class PythonArchive:
    """A build of python-build-standalone: its archive, by name and SHA-256."""

    file: str
    sha256: str


@dataclass(frozen=True)
class Candidate:
    """A base image for a lockfile.

    Attributes:
        holds: the versions in the image, and in what is installed on it, by the names of
            `SUBJECTS`.
        lead: a sentence that describes it.
        exact: the locked build of TensorFlow is in it, or can be installed on it.
        months_apart: months between its release and that of the locked label.
        obstacles: why it cannot be the locked environment, according to its source or its registry.
        unmet_requirements: requirements of TensorFlow itself that it does not meet.
        mismatches: its facts that the lockfile's policy does not accept.
        refuses_wheels: whether the locked wheels cannot be installed on it, as far as is known or
            expected.
        doubts: why it may not run on the locked GPUs.
        driver: a sentence on the locked driver with its CUDA; None if nothing is known.
        notes: further sentences.
        lowest: the lowest compute capability that it supports.
        python_from: the image to copy Python from, if the base image has no Python.
        python_archive: the build of Python to install, if neither image has one.
        newest: the last sort key; the greater, the newer.
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
        """Whether it can be the locked environment."""
        return not self.obstacles and not self.unmet_requirements

    @property
    def usable(self) -> bool:
        """Whether there is no known reason against it."""
        return self.able and not self.mismatches and not self.doubts


Rank = tuple[
    bool, bool, bool, int, bool, bool, int, tuple[Likeness, ...], int, tuple[int, ...], str
]


def compute_rank(candidate: Candidate, needs: BaseNeeds) -> Rank:
    """Return the sort key of candidates; the greatest is the best.

    First whether it can be the locked environment, and whether the locked wheels can be installed
    on it; then whether it has the locked build of TensorFlow, or the nearest release; then whether
    the lockfile's policy accepts it; then whether there are no doubts that it runs on the locked
    GPUs; then the fewest facts that the policy does not accept; then how alike its parts are, one
    after the other, and how many of them are stated rather than expected; then the newer one.
    """
    subjects = [name for name in SUBJECTS if name != "nccl"]
    # A single GPU never uses NCCL: with one, only the compiler weighs less.
    position = subjects.index("os") if needs.gpus > 1 else subjects.index("compiler")
    subjects.insert(position, "nccl")
    likenesses = []
    stated = 0
    for name in subjects:
        value = candidate.holds.get(name, Value())
        wanted = getattr(needs, name)
        # Where none was found, those that TensorFlow was built with are the likeliest.
        if name == "cuda":
            wanted = wanted or needs.built_for
        elif name == "cudnn":
            wanted = wanted or needs.compiled_against
        likenesses.append(_measure_likeness(wanted, value))
        if not value.expected:
            stated += 1
    return (
        candidate.able,
        not candidate.refuses_wheels,
        candidate.exact,
        -candidate.months_apart,
        not candidate.mismatches,
        not candidate.doubts,
        -len(candidate.mismatches),
        tuple(likenesses),
        stated,
        candidate.newest,
        str(candidate.reference),
    )


def _measure_likeness(locked: str | None, held: Value) -> Likeness:
    """Return the likeness that counts in the sort key."""
    likeness = compare_versions(locked, held)
    # An expected value is never a match, but it can show that the version differs.
    if held.expected and likeness.grade > UNKNOWN:
        return Likeness(UNKNOWN, 0, 0)
    return likeness


def explain_candidate(candidate: Candidate, needs: BaseNeeds) -> str:
    """Return why a candidate has its place in the order, in sentences."""
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
    """Return the sentence that the lockfile's policy does not accept a candidate; empty if it does."""
    if not candidate.mismatches:
        return ()
    return (f"Cannot match under policy {needs.policy}: {'; '.join(candidate.mismatches)}.",)


_HEADS = {
    "same": "As locked",
    "expected": "Expected as locked, by other images of that month",
    "other": "Not as locked",
    "unknown": "Unknown",
}
"""The beginnings of the sentences on each kind of likeness, in their order."""


def _describe_likenesses(candidate: Candidate, needs: BaseNeeds) -> Iterable[str]:
    """Yield a sentence for each kind of likeness."""
    texts: dict[str, list[str]] = {kind: [] for kind in _HEADS}
    for name, title in SUBJECTS.items():
        held, locked = candidate.holds.get(name), getattr(needs, name)
        if held is None or locked is None:
            continue
        if name == "tensorflow" and candidate.exact:
            continue  # the lead says so already
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
