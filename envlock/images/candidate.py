"""What a lock asks of a base image, and how well a candidate meets it, in versions and words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from envlock.images.reference import MACHINES, Reference
from envlock.lock.facts import CudaLibraryFacts, Facts, SystemFacts, TensorflowFacts
from envlock.lock.route import Route


class Value(NamedTuple):
    """A version that an image holds, None where nobody tells; `expected`: it is not said of this image itself."""

    version: str | None = None
    expected: bool = False


class Likeness(NamedTuple):
    """How like what is wanted it is; the greater, the liker.

    `grade` 3: the same as far as both are told; 2: the same major and minor number; 1: one is not told; 0: another.
    """

    grade: int
    shared: int
    nearness: int


SAME, NEAR, UNKNOWN, OTHER = 3, 2, 1, 0


@lru_cache(2048)  # to rank its candidates, a choice asks for those of some 300 versions 1,600 times
def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in match[0].split(".")) if match else ()


def minor(version: str) -> str:
    """Return major and minor number."""
    return ".".join(str(number) for number in numbers(version)[:2])


def likeness(asked: str | None, held: Value) -> Likeness:
    """Return how like `asked` the version is that an image holds."""
    if asked is None or held.version is None:
        return Likeness(UNKNOWN, 0, 0)
    one, other = numbers(asked), numbers(held.version)
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    whole = min(len(one), len(other))
    grade = SAME if shared == whole else NEAR if shared >= 2 else OTHER
    return Likeness(grade, shared, 0 if grade == SAME else -_distance(one, other))


def _distance(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    padded = [(*version, 0, 0, 0)[:3] for version in (one, other)]
    return sum(abs(a - b) * weight for a, b, weight in zip(*padded, (10**6, 10**3, 1), strict=True))


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
            kinds["unknown"].append(f"{title} (locked {want})")
        elif grade == SAME:
            kinds["expected" if held.expected else "same"].append(text)
        else:
            expected = ", expected" if held.expected else ""
            close = ", of the same minor version" if grade == NEAR else ""
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


_NVIDIA_WHEEL = re.compile(r"nvidia-(cuda-runtime|cudnn)(-cu\d+)?")


@dataclass(frozen=True)
class Wanted:
    """The facts that choose; None: the lock does not tell.

    Attributes:
        tensorflow: the version without NVIDIA's label.
        label: NVIDIA's, as `nv25.2`.
        gpu: it is a build for CUDA.
        cuda_wheels: CUDA is installed as NVIDIA's wheels, so a base image need not bring it.
        capabilities: compute capabilities of the lock's GPUs.
        platform: of the image, as `linux/amd64`.
    """

    tensorflow: str | None = None
    label: str | None = None
    gpu: bool = False
    python: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    nccl: str | None = None
    cuda_wheels: bool = False
    libc: str | None = None
    driver: str | None = None
    capabilities: tuple[str, ...] = ()
    platform: str = "linux/amd64"


def wanted(facts: Facts, platform: str | None = None) -> Wanted:
    """Return what these facts ask for, on their own platform unless another is named."""
    tensorflow = facts.tensorflow or TensorflowFacts()
    system = facts.system or SystemFacts()
    driver, devices = (facts.gpu.driver_version, facts.gpu.devices or {}) if facts.gpu else (None, {})
    gpu = tensorflow.cuda_build
    if gpu is None:  # its build info was not to be read: what is installed beside it tells
        gpu = tensorflow.version is not None and (tensorflow.nvidia_build is not None or facts.cuda is not None)
    return Wanted(
        tensorflow=_told((tensorflow.version or "").partition("+")[0]),
        label=tensorflow.nvidia_build,
        gpu=gpu,
        python=_told(facts.python.version if facts.python else None),
        cuda=_library(facts, "cudart") or _told(tensorflow.built_with_cuda),
        cudnn=_library(facts, "cudnn") or _told(tensorflow.compiled_against_cudnn),
        nccl=_library(facts, "nccl"),
        cuda_wheels=any(_NVIDIA_WHEEL.fullmatch(name) for name in facts.packages or {}),
        libc=_told(system.libc_version) if system.libc == "glibc" else None,
        driver=_told(driver),
        capabilities=tuple(sorted({told for one in devices.values() if (told := _told(one.compute_capability))})),
        platform=platform or MACHINES.get(system.machine or "", "linux/amd64"),
    )


def _library(facts: Facts, name: str) -> str | None:
    library: CudaLibraryFacts | None = getattr(facts.cuda, name, None)
    return _told(library.version) if library else None


def _told(version: str | None) -> str | None:
    """Return a version that begins with a number; of any other nothing can be said."""
    return version if version and numbers(version) else None
