"""The CUDA libraries that TensorFlow itself loads, in a child process, compared with its files."""

from __future__ import annotations

from pathlib import Path

from envlock.guest import launch
from envlock.runtime.errors import UsageError
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.report import ABSENT, DEEP, ERROR, UNKNOWN, Finding, Severity, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.runtime.facts import Tree


Answers = dict[str, str | None]
TIMEOUT = 120.0
"""Seconds: importing tensorflow for the first time took 8, and takes far longer on a busy network
disk.
"""


def ask_tensorflow(
    host: Host, timeout: float = TIMEOUT, python: Path | None = None
) -> Answers | Unavailable:
    """Return the version of each library that TensorFlow loads; None for one that it cannot load.

    Args:
        host: provides the variables and the import path.
        timeout: seconds.
        python: the interpreter; this one when not given.
    """
    # Another interpreter has its own import path.
    path = host.path if python is None else None
    words = launch.build_text_arguments(launch.read("cuda_versions"), {"path": path})
    try:
        ended = launch.ask_python(words, python, timeout=timeout, environ=_build_environ(host))
    except UsageError:
        return Unavailable(
            "the child process with TensorFlow could not be started", "child-not-started"
        )
    if ended.code is None:
        return Unavailable(f"TensorFlow did not answer within {timeout:g} s", "child-timeout")
    if ended.code != 0:
        return Unavailable(f"the child process with TensorFlow {ended.ending}", "child-failed")
    try:
        return {key: spell(key, int(number)) for key, number in ended.answers[-1].items()}
    except (AttributeError, IndexError, TypeError, ValueError):
        return Unavailable("the child process with TensorFlow did not answer", "child-failed")


def _build_environ(host: Host) -> dict[str, str]:
    """Return the child's variables: the loader's as they were at this process's start, the others
    current.
    """
    current, at_start = host.environ, host.start_environ()
    environ = {name: current[name] for name in current if not name.startswith("LD_")}
    # The loader has read its own when this process started; a later change has no effect here.
    environ.update({name: at_start[name] for name in at_start if name.startswith("LD_")})
    environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    return environ


def spell(key: str, number: int) -> str | None:
    """Return a library's version number as text; None for 0, which means that it could not be
    loaded.

    cuDNN uses major x 10000 + minor x 100 + patch from 9 on and major x 1000 before
    (cudnn_version.h), as NCCL does from 2.9 on (nccl.h); CUDA's runtime major x 1000 + minor x 10;
    cuFFT major x 1000 + minor x 100 + patch; cuBLAS major x 10000 + minor x 100 + patch.
    """
    if number <= 0:
        return None
    if key == "cudart":
        return f"{number // 1000}.{number % 1000 // 10}"
    unit = 1000 if key == "cufft" or (key in ("cudnn", "nccl") and number < 10000) else 10000
    return f"{number // unit}.{number % unit // 100}.{number % 100}"


def find_contradictions(cuda: Tree, answers: Answers) -> list[Finding]:
    """Return a finding for every library on which the files and TensorFlow's own answer disagree.

    Args:
        cuda: the section `cuda` of the live facts, collected from files.
        answers: the result of `ask_tensorflow`. A library that other code loaded into *this*
            process first (`resolved_by` "loaded") is left out: the child does not have it.
    """
    findings: list[Finding] = []
    for key, answer in answers.items():
        facts = cuda.get(key)
        if not isinstance(facts, dict) or "version" not in facts:
            continue
        if facts.get("resolved_by") == "loaded" or facts.get("linkage") == "absent":
            continue
        version = None if "problem" in facts else facts["version"]
        if not _is_consistent(version, answer):
            path = f"cuda.{key}.version"
            message = f"{path}: {show(version)} by its files, {show(answer)} by TensorFlow's loader"
            findings.append(_make_finding(path, message, version, answer))
    return findings


def report_no_answer(reason: Unavailable) -> Finding:
    """Return the finding that TensorFlow could not be asked."""
    message = f"cuda: not checked with TensorFlow: {reason.reason}"
    return _make_finding("cuda", message, ABSENT, reason, UNKNOWN)


def _make_finding(
    path: str, message: str, expected: object, actual: object, severity: Severity = ERROR
) -> Finding:
    return Finding(
        DEEP,
        severity,
        path,
        message=message,
        why="TensorFlow computes with the libraries that its loader finds, whatever the files suggest.",
        fix="Report it with the output of `envlock show`, and look for LD_AUDIT, a sitecustomize or a "
        ".pth file.",
        source="https://man7.org/linux/man-pages/man3/dlopen.3.html",
        expected=expected,
        actual=actual,
        weight=100,
    )


def _is_consistent(version: str | None, answer: str | None) -> bool:
    """Return whether two versions are equal as far as both are given."""
    if version is None or answer is None:
        return version is answer
    parts, answer_parts = version.split("."), answer.split(".")
    length = min(len(parts), len(answer_parts))
    return parts[:length] == answer_parts[:length]
