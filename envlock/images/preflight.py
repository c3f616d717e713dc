"""Whether a base image can become the locked environment, under the lockfile's own policy. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from envlock.images.candidate import NEAR, SAME, Candidate, Value, compare_versions
from envlock.images.needs import BaseNeeds
from envlock.images.reference import get_machine
from envlock.runtime.comparison_rules import RULES
from envlock.runtime.errors import ImageMismatch
from envlock.runtime.policies import Policy
from envlock.runtime.release import minor, parse_release

FACTS = {
    "python": ("python.version",),
    "compiler": ("python.compiler",),
    "cuda": ("cuda.cudart.version",),
    "cudnn": ("cuda.cudnn.version",),
    "nccl": ("cuda.nccl.version",),
    "libc": ("system.libc_version",),
    "os": ("system.os", "system.os_version"),
}
"""The facts that each part of a candidate determines; several are the words of its value."""


class CannotMatchError(ImageMismatch):
    """No known image can be the locked environment, or the named one cannot: the answer is no."""


def add_mismatches(candidate: Candidate, needs: BaseNeeds) -> Candidate:
    """Return the candidate with those of its facts that the policy does not accept."""
    return replace(
        candidate,
        mismatches=tuple(find_mismatches(candidate, needs)),
        refuses_wheels=bool(_explain_refused_wheels(candidate, needs)),
    )


def find_mismatches(candidate: Candidate, needs: BaseNeeds) -> Iterator[str]:
    """Yield each fact that certainly differs in the image and that the policy does not accept.

    A value that is only expected in an image does not count.
    """
    policy = _load_policy(needs.policy, needs.overrides)
    for subject, paths in FACTS.items():
        held, locked = candidate.holds.get(subject, Value()), getattr(needs, subject)
        if held.version is None or held.expected or locked is None:
            continue
        if not _can_be_same(subject, locked, held):
            yield from _compare_facts(paths, locked, held.version, policy)
    machine = get_machine(needs.platform)
    is_other_machine = needs.machine not in (None, machine)
    if is_other_machine and not _is_accepted(policy, "system.machine", needs.machine, machine):
        yield f"system.machine is {machine}, locked {needs.machine}"
    yield from _find_other_build(candidate, needs, policy)
    for refusal in _explain_refused_wheels(candidate, needs):
        if not refusal.expected:
            yield refusal.sentence


def _compare_facts(paths: tuple[str, ...], locked: str, live: str, policy: Policy) -> Iterator[str]:
    """Yield each fact that a value determines and that the policy does not accept."""
    if len(paths) == 1:
        locked_words, live_words = [locked], [live]
    else:
        locked_words, live_words = locked.split(" "), live.split(" ")
    for path, left, right in zip(paths, locked_words, live_words, strict=False):
        if left != right and not _is_accepted(policy, path, left, right):
            yield f"{path} is {right}, locked {left}"


def _find_other_build(candidate: Candidate, needs: BaseNeeds, policy: Policy) -> Iterator[str]:
    """Yield how the TensorFlow in one of NVIDIA's images differs: nothing is installed over it."""
    held = candidate.holds.get("tensorflow", Value()).version
    if candidate.route != "ngc" or candidate.exact:
        return
    differs = held is not None and compare_versions(needs.tensorflow, Value(held)).grade != SAME
    if differs and not _is_accepted(policy, "tensorflow.version", needs.tensorflow, held):
        yield f"tensorflow.version is {held}, locked {needs.tensorflow}"
    if _is_accepted(policy, "tensorflow.nvidia_build", needs.label, "another"):
        return
    if needs.label:
        yield f"tensorflow.nvidia_build is another one of NVIDIA's, locked {needs.label}"
    else:
        yield (
            "tensorflow.nvidia_build is another one of NVIDIA's, and the locked one is not NVIDIA's"
        )


class _Refusal(NamedTuple):
    """Why the locked wheels cannot be installed on an image, and whether that is only expected."""

    expected: bool
    sentence: str


def _explain_refused_wheels(candidate: Candidate, needs: BaseNeeds) -> list[_Refusal]:
    """Return why the locked wheels cannot be installed on an image; empty if they can."""
    refusals = []
    python, libc = candidate.holds.get("python", Value()), candidate.holds.get("libc", Value())
    if python.version is not None:
        # Wheels that contradict the lockfile's own Python are not held against a base image.
        usable = (minor(python.version), *find_stray_pythons(needs))
        foreign = [version for version in needs.wheel_pythons if version not in usable]
        if foreign:
            wheels = ", ".join(foreign)
            sentence = f"the locked wheels are for Python {wheels}, and it has {python.version}"
            refusals.append(_Refusal(python.expected, sentence))
    oldest = parse_release(needs.wheel_libc or "")
    if libc.version is not None and parse_release(libc.version) < oldest:
        sentence = f"the locked wheels need glibc {needs.wheel_libc}, and it has {libc.version}"
        refusals.append(_Refusal(libc.expected, sentence))
    return refusals


def find_stray_pythons(needs: BaseNeeds) -> tuple[str, ...]:
    """Return the Pythons of locked wheels that differ from the locked Python."""
    if not needs.python:
        return ()
    locked = minor(needs.python)
    return tuple(version for version in needs.wheel_pythons if version != locked)


def _can_be_same(subject: str, locked: str, held: Value) -> bool:
    """Return whether two versions can be the same one."""
    grade = compare_versions(locked, held).grade
    if subject == "cuda":
        return grade >= NEAR  # a tag of CUDA and its library have different third numbers
    return grade >= SAME


@lru_cache(8)
def _load_policy(name: str, overrides: tuple[tuple[str, str], ...]) -> Policy:
    return Policy(name, dict(overrides))


def _is_accepted(policy: Policy, path: str, locked: object, live: object) -> bool:
    return RULES[policy.row(path)["rule"]](locked, live)


def check_base(best: Candidate, others: Sequence[Candidate], needs: BaseNeeds) -> None:
    """Check that an image can become the locked environment, as far as that is known.

    Args:
        best: the image to build on.
        others: all known images, the best first.
        needs: those of the lockfile.

    Raises:
        CannotMatchError: it cannot; the message names the facts, the hint the best image that can.
            Or no image can, because the lockfile has wheels for a Python other than its own.
    """
    stray = find_stray_pythons(needs)
    if stray:
        raise CannotMatchError(
            f"no image can match: the locked wheels are for Python {', '.join(stray)}, "
            f"and the locked Python is {needs.python}",
            hint="capture the environment again",
        )
    if not best.mismatches:
        return
    under, facts = f"cannot match under policy {needs.policy}", "; ".join(best.mismatches)
    for other in others:
        if other.able and other.exact and not other.mismatches:
            raise CannotMatchError(
                f"{under}: {facts} ({best.reference})",
                hint=f"use {other.reference}, which can: `--base {other.reference}`",
            )
    hint = "accept the facts with `envlock ignore`, or lock them less closely with another policy"
    if any(other.reference == best.reference for other in others):
        raise CannotMatchError(
            f"no known base image can match under policy {needs.policy}; "
            f"the nearest, {best.reference}: {facts}",
            hint=hint,
        )
    raise CannotMatchError(f"{under}: {facts} ({best.reference})", hint=hint)
