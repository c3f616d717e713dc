"""What is known of a base image against the lock, under the lock's own policy, before anything is fetched. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from envlock.images.candidate import NEAR, SAME, Candidate, Value, likeness
from envlock.images.reference import MACHINES
from envlock.images.wanted import Wanted
from envlock.runtime.errors import ImageMismatch
from envlock.runtime.policy import Policy
from envlock.runtime.release import minor, numbers
from envlock.runtime.rules import RULES

FACTS = {
    "python": ("python.version",),
    "compiler": ("python.compiler",),
    "cuda": ("cuda.cudart.version",),
    "cudnn": ("cuda.cudnn.version",),
    "nccl": ("cuda.nccl.version",),
    "libc": ("system.libc_version",),
    "os": ("system.os", "system.os_version"),
}
"""The facts that each part of a candidate decides; several are the words of one value."""


class CannotMatchError(ImageMismatch):
    """No image that is known, or not the one that was named, can be the locked environment: the answer is no."""


def checked(candidate: Candidate, asked: Wanted) -> Candidate:
    """Return the candidate with the facts that the policy does not accept."""
    found = tuple(mismatches(candidate, asked))
    return replace(
        candidate,
        mismatches=found,
        refuses_wheels=any(True for _ in _wheels_refused(candidate, asked)),
    )


def mismatches(candidate: Candidate, asked: Wanted) -> Iterator[str]:
    """Yield each fact that is surely another one in the image, where the policy does not accept that.

    What is only expected of an image is no reason.
    """
    policy = _policy(asked.policy, asked.overrides)
    for subject, paths in FACTS.items():
        held, want = candidate.holds.get(subject, Value()), getattr(asked, subject)
        if held.version is None or held.expected or want is None or _may_be(subject, want, held):
            continue
        words = (
            [(want, held.version)]
            if len(paths) == 1
            else zip(want.split(" "), held.version.split(" "), strict=False)
        )
        for path, (locked, live) in zip(paths, words, strict=False):
            if locked != live and not _accepts(policy, path, locked, live):
                yield f"{path} is {live}, locked {locked}"
    machine = next(name for name, platform in MACHINES.items() if platform == asked.platform)
    if asked.machine not in (None, machine) and not _accepts(
        policy, "system.machine", asked.machine, machine
    ):
        yield f"system.machine is {machine}, locked {asked.machine}"
    yield from _other_build(candidate, asked, policy)
    for expected, sentence in _wheels_refused(candidate, asked):
        if not expected:
            yield sentence


def _other_build(candidate: Candidate, asked: Wanted, policy: Policy) -> Iterator[str]:
    """Yield that an image of NVIDIA's has another TensorFlow: nothing is installed over it, so it stays another one."""
    held = candidate.holds.get("tensorflow", Value()).version
    if candidate.route != "ngc" or candidate.exact:
        return
    differs = held is not None and likeness(asked.tensorflow, Value(held)).grade != SAME
    if differs and not _accepts(policy, "tensorflow.version", asked.tensorflow, held):
        yield f"tensorflow.version is {held}, locked {asked.tensorflow}"
    if not _accepts(policy, "tensorflow.nvidia_build", asked.label, "another"):
        locked = f"locked {asked.label}" if asked.label else "and the locked one is not NVIDIA's"
        yield f"tensorflow.nvidia_build is another one of NVIDIA's, {locked}"


def _wheels_refused(candidate: Candidate, asked: Wanted) -> Iterator[tuple[bool, str]]:
    """Yield why the locked wheels cannot be installed on an image, and whether that is only expected of it."""
    python, libc = candidate.holds.get("python", Value()), candidate.holds.get("libc", Value())
    stray = strays(
        asked
    )  # wheels that contradict the lock's own Python are no reason against a base
    foreign = [version for version in asked.wheel_pythons if version not in stray]
    if python.version is not None and any(version != minor(python.version) for version in foreign):
        wheels = ", ".join(version for version in foreign if version != minor(python.version))
        yield (
            python.expected,
            f"the locked wheels are for Python {wheels}, and it has {python.version}",
        )
    if (
        libc.version is not None
        and asked.wheel_libc
        and numbers(libc.version) < numbers(asked.wheel_libc)
    ):
        yield (
            libc.expected,
            f"the locked wheels need glibc {asked.wheel_libc}, and it has {libc.version}",
        )


def strays(asked: Wanted) -> tuple[str, ...]:
    """Return the Pythons of locked wheels that are not the locked Python."""
    return tuple(
        version
        for version in asked.wheel_pythons
        if asked.python and version != minor(asked.python)
    )


def _may_be(subject: str, want: str, held: Value) -> bool:
    """Return whether the two can be one: a tag of CUDA and its library count their third number apart."""
    return likeness(want, held).grade >= (NEAR if subject == "cuda" else SAME)


@lru_cache(8)
def _policy(name: str, overrides: tuple[tuple[str, str], ...]) -> Policy:
    return Policy(name, dict(overrides))


def _accepts(policy: Policy, path: str, locked: Any, live: Any) -> bool:
    return RULES[policy.row(path)["rule"]](locked, live)


def admitted(best: Candidate, others: Sequence[Candidate], asked: Wanted) -> None:
    """Make sure that an image can become the locked environment, as far as that is known.

    Args:
        best: what would be built on.
        others: all that are known, the best first.
        asked: by the lock.

    Raises:
        CannotMatchError: it cannot; the message names the facts, the hint the best image that can. Or none can, since
            the lock holds wheels for another Python than its own.
    """
    if stray := strays(asked):
        raise CannotMatchError(
            f"no image can match: the locked wheels are for Python {', '.join(stray)}, and the locked Python is "
            f"{asked.python}",
            hint="capture the environment again",
        )
    if not best.mismatches:
        return
    way = next(
        (other for other in others if other.able and other.exact and not other.mismatches), None
    )
    accept = "accept the facts with `envlock ignore`, or lock them less closely with another policy"
    under, facts = f"cannot match under policy {asked.policy}", "; ".join(best.mismatches)
    if way is not None:
        raise CannotMatchError(
            f"{under}: {facts} ({best.reference})",
            hint=f"use {way.reference}, which can: `--base {way.reference}`",
        )
    if best.reference in [other.reference for other in others]:
        raise CannotMatchError(
            f"no known base image can match under policy {asked.policy}; the nearest, {best.reference}: {facts}",
            hint=accept,
        )
    raise CannotMatchError(f"{under}: {facts} ({best.reference})", hint=accept)
