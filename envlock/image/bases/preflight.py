"""Whether a base image can become the locked environment, under the lockfile's own policy. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from envlock.image.bases.candidate import NEAR, SAME, Candidate, Value, compare_versions
from envlock.image.bases.needs import BaseNeeds, list_outside_libraries
from envlock.image.bases.reference import get_machine
from envlock.runtime.compare import compare
from envlock.runtime.comparison_rules import RULES
from envlock.runtime.errors import ImageMismatch
from envlock.runtime.policies import Policy
from envlock.runtime.release import minor, parse_release
from envlock.runtime.report import ERROR, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.runtime.compare import Side

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


NOT_IN_RUNTIME = ("cupti", "ptxas", "tensorrt")
"""Parts of CUDA that NVIDIA's `runtime` images do not have; its `devel` images have the first two.

Source: https://hub.docker.com/r/nvidia/cuda, and its Dockerfiles, which install `cuda-libraries` in
`runtime`, and `cuda-command-line-tools` in `devel`.
"""
LEFT_BEHIND = "capture where the CUDA toolkit is not visible, or name an image that has it with `--base IMAGE`"
NOT_FOUND = {"resolved_by": "not found", "file": None, "version": None, "wheel_version": None}
"""What is collected of a library that is not there."""


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
    locked, planned = predict_base(candidate, needs)
    left_behind = {}
    for name in list_left_behind(candidate, needs):
        left_behind[f"cuda.{name}"] = needs.libraries[0]["cuda"][name]["file"]
    for finding in compare(locked, planned, policy):
        path = str(finding.where)
        if finding.severity != ERROR:
            continue
        library = path.rpartition(".")[0]
        if library not in left_behind:
            yield f"{path} is {show(finding.actual)}, locked {show(finding.expected)}"
        elif left_behind[library]:
            # One sentence for each library, instead of one for each property of its file.
            yield f"{library} is absent, locked {left_behind[library]}"
            left_behind[library] = ""
    yield from _find_other_build(candidate, needs, policy)
    for refusal in _explain_refused_wheels(candidate, needs):
        if not refusal.expected:
            yield refusal.sentence


def predict_base(candidate: Candidate, needs: BaseNeeds) -> tuple[Side, Side]:
    """Return the locked facts that a base image determines, and what they are in it.

    They are compared by the function that judges the image once it is built. A value that is not
    known, or only expected, is as locked.
    """
    libraries: dict[str, Any] = dict(needs.libraries[0].get("cuda") or {})
    unavailable = {
        path: reason for path, reason in needs.libraries[1].items() if path.startswith("cuda")
    }
    locked: dict[str, dict[str, Any]] = {"cuda": libraries.copy()}
    planned: dict[str, dict[str, Any]] = {"cuda": libraries.copy()}
    for subject, paths in FACTS.items():
        held, wanted = candidate.holds.get(subject, Value()), getattr(needs, subject)
        if held.version is None or held.expected:
            continue
        if wanted is not None and not _can_be_same(subject, wanted, held):
            if len(paths) == 1:
                words = [(paths[0], wanted, held.version)]
            else:
                words = list(zip(paths, wanted.split(" "), held.version.split(" "), strict=False))
            for path, left, right in words:
                _put(locked, path, left)
                _put(planned, path, right)
        elif wanted is None and _is_not_found(libraries, paths[0].split(".")[1]):
            _put(planned, paths[0], held.version)
            _put(planned, paths[0].replace("version", "file"), "/usr/local/cuda")
    if needs.machine is not None:
        _put(locked, "system.machine", needs.machine)
        _put(planned, "system.machine", get_machine(needs.platform))
    unknown = unavailable.copy()
    for name in list_left_behind(candidate, needs):
        planned["cuda"][name] = {"linkage": libraries[name].get("linkage"), **NOT_FOUND}
        unknown.pop(f"cuda.{name}.version", None)
    return (locked, unavailable), (planned, unknown)


def _put(tree: dict[str, dict[str, Any]], path: str, value: object) -> None:
    """Set the fact at a path of two or three steps; what the tree shares with others stays as it is."""
    section, *steps, name = path.split(".")
    node = tree.setdefault(section, {})
    for step in steps:
        node[step] = {**(node.get(step) or {})}
        node = node[step]
    node[name] = value


def _is_not_found(libraries: Mapping[str, Any], name: str) -> bool:
    library = libraries.get(name)
    return isinstance(library, dict) and library.get("resolved_by") == "not found"


def list_left_behind(candidate: Candidate, needs: BaseNeeds) -> list[str]:
    """Return the locked CUDA libraries from outside of the environment that an image lacks."""
    # Of an image that the tables do not have, nothing is known.
    if "os" not in candidate.holds or candidate.route not in ("cuda", "wheels"):
        return []
    outside = list_outside_libraries(needs)
    if candidate.route == "wheels":
        return outside
    is_runtime = "-runtime-" in (candidate.reference.tag or "")
    return [name for name in outside if is_runtime and name in NOT_IN_RUNTIME]


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
        # Without a TensorFlow in the lockfile, none is the exact one.
        is_exact = other.exact or needs.tensorflow is None
        if other.able and is_exact and not other.mismatches:
            raise CannotMatchError(
                f"{under}: {facts} ({best.reference})",
                hint=f"use {other.reference}, which can: `--base {other.reference}`",
            )
    if list_left_behind(best, needs):
        hint = LEFT_BEHIND
    else:
        hint = "accept the facts with `envlock ignore`, or choose a less strict policy"
    if any(other.reference == best.reference for other in others):
        raise CannotMatchError(
            f"no known base image can match under policy {needs.policy}; "
            f"the nearest, {best.reference}: {facts}",
            hint=hint,
        )
    raise CannotMatchError(f"{under}: {facts} ({best.reference})", hint=hint)
