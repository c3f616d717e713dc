"""Compute the battery in child processes of an environment, with a time limit."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envlock.evidence.canary import ENVIRONMENT
from envlock.guest import launch
from envlock.lock.numerics import Conditions, Numerics, parse_numerics
from envlock.runtime.errors import FactError
from envlock.runtime.report import clean

# Five seconds are usual, most of them for `import tensorflow`.
TIMEOUT = 300.0
"""Seconds that a child may take."""
THREADS = 2
"""The numbers of threads that the canary fixes, so that machines with different numbers of
processors can be compared.
"""
# A device has five groups, each of which can end its process.
MOST_CHILDREN = 20
CPU = "cpu"
LIBRARY = "library"

HEAD = {"battery": int, "tensorflow": str, "numpy": str, "groups": list, "devices": list}
GROUP = {"group": str, "execution": str}
"""The parts of an answer that are used before the whole is validated as a section of a lockfile."""
TIMES = ("seconds", "cpu_seconds")
_NO_NAME = re.compile(r"[^A-Za-z0-9 _.()/+-]")
"""Characters that a lockfile does not accept in a device's name."""


@dataclass(frozen=True)
class Settings:
    """The settings of the canary; None leaves one to the environment."""

    threads: int | None = THREADS
    determinism: bool | None = True

    def conditions(self, device: str, execution: str) -> dict[str, object]:
        """Return the header of a group that was computed with these settings."""
        threads: int | str = self.threads if self.threads is not None else ENVIRONMENT
        determinism = {True: "on", False: "off", None: ENVIRONMENT}[self.determinism]
        if execution == LIBRARY:  # NumPy: one thread for its BLAS, and no op determinism
            determinism = ENVIRONMENT
            if self.threads is not None:
                threads = min(self.threads, 1)
        return {
            "device": device,
            "execution": execution,
            "intra_op_threads": threads,
            "inter_op_threads": threads,
            "determinism": determinism,
            "onednn": ENVIRONMENT,
            "xla": ENVIRONMENT,
        }

    @property
    def variables(self) -> dict[str, str]:
        """What the battery sets before it imports NumPy and TensorFlow on a processor."""
        variables = {"CUDA_VISIBLE_DEVICES": "-1"}
        if self.threads is not None:
            for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
                variables[name] = "1"
        if self.determinism is not None:
            variables["TF_DETERMINISTIC_OPS"] = str(int(self.determinism))
        return variables

    @classmethod
    def of(cls, conditions: Conditions) -> Settings:
        """Return the settings of a group of TensorFlow."""
        threads = (
            conditions.intra_op_threads if isinstance(conditions.intra_op_threads, int) else None
        )
        states = {"on": True, "off": False, ENVIRONMENT: None}
        return cls(threads, states[conditions.determinism])


@dataclass
class Canary:
    """The results, and the time that they took after TensorFlow's import.

    `cpu_seconds` is CPU time; both are None if a group crashed the process.
    """

    numerics: Numerics
    seconds: float | None
    cpu_seconds: float | None


@dataclass
class _Answers:
    """The answers of child processes so far about one device.

    Attributes:
        head: the versions, and the names of groups and devices; empty until the first answer.
        groups: the groups that are done, by name.
        begun: the name and the execution of a group that has begun and is not finished.
        seconds: how long it took.
    """

    head: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    begun: list[str] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def take(self, answer: dict[str, Any]) -> None:
        """Add one line of a child's answer.

        Raises:
            FactError: it says that TensorFlow or NumPy cannot be imported, or is malformed.
        """
        if "failed" in answer:
            python = "`--python .venv/bin/python`"
            hint = f"name the interpreter of an environment with TensorFlow: {python}"
            raise FactError(f"the canary cannot be computed: {answer['failed']}", hint=hint)
        if "head" in answer:
            self.head = _check_fields(answer["head"], HEAD)
        if "begin" in answer:
            self.begun = _check_texts(answer["begin"], 2)
        if "group" in answer:
            name = _check_fields(answer, GROUP).pop("group")
            self.groups[name] = answer
            self.begun = None
        if "seconds" in answer:
            self.seconds = {}
            for name in TIMES:
                if isinstance(answer.get(name), float):
                    self.seconds[name] = answer[name]

    def end_group(self, reason: str) -> None:
        """Record a result for the group that had begun: it has crashed its process."""
        if self.begun is not None:
            name, execution = self.begun
            self.groups[name] = {"execution": execution, "operations": {}, "ended": reason}
            self.begun = None

    def is_complete(self) -> bool:
        """Return whether every group has a result."""
        return bool(self.head) and set(self.head["groups"]) <= set(self.groups)

    def render_groups(self, settings: Settings, device: str) -> dict[str, dict[str, object]]:
        """Return the groups in the form of a lockfile."""
        groups: dict[str, dict[str, object]] = {}
        for name, group in self.groups.items():
            results = {key: value for key, value in group.items() if key != "execution"}
            groups[name] = {
                "conditions": settings.conditions(device, group["execution"]),
                **results,
            }
        return groups

    def render_head(self) -> dict[str, object]:
        """Return the versions in the form of a lockfile."""
        return {
            "battery": self.head["battery"],
            "tensorflow": self.head["tensorflow"],
            "numpy": self.head["numpy"],
        }


def compute(
    python: Path | None,
    settings: Settings,
    *,
    gpus: bool = False,
    environ: Mapping[str, str] | None = None,
    program: str | None = None,
) -> Canary:
    """Return the exact results of the battery in an interpreter, with `gpus` also on each visible
    GPU.

    For a group that crashes its process, the signal is the result, and another process computes the
    groups after it. `environ` are the variables to start with, those of this process when not given;
    `program` replaces the battery in tests.

    Raises:
        UsageError: there is no such interpreter.
        FactError: TensorFlow or NumPy cannot be imported, or the answer is malformed.
    """
    text = program or launch.read("battery")
    on_cpu = _compute_on_device(python, settings, CPU, text, environ)
    groups = on_cpu.render_groups(settings, CPU)
    number = 0
    while gpus:
        on_gpu = _compute_on_device(python, settings, number, text, environ)
        # The names of the GPUs are known only from a child that uses one of them.
        names = on_gpu.head["devices"]
        if number >= len(names):
            break
        groups.update(on_gpu.render_groups(settings, _NO_NAME.sub("_", names[number])))
        number += 1
    try:
        numerics = parse_numerics({**on_cpu.render_head(), "groups": groups})
    except ValueError as error:
        raise _refuse_answer(str(error)) from None
    seconds = on_cpu.seconds
    return Canary(numerics, seconds.get("seconds"), seconds.get("cpu_seconds"))


def _make_request(settings: Settings, device: str | int, skipped: list[str]) -> dict[str, object]:
    return {
        "device": device,
        "skip": skipped,
        "determinism": settings.determinism,
        "intra_op_threads": settings.threads,
        "inter_op_threads": settings.threads,
    }


def _compute_on_device(
    python: Path | None,
    settings: Settings,
    device: str | int,
    program: str,
    environ: Mapping[str, str] | None,
) -> _Answers:
    """Return everything that can be computed on a device, in as many processes as necessary."""
    answers = _Answers()
    for _ in range(MOST_CHILDREN):
        request = _make_request(settings, device, list(answers.groups))
        words = launch.build_text_arguments(program, request)
        ended = launch.ask_python(words, python, timeout=TIMEOUT, environ=environ)
        for answer in ended.answers:
            answers.take(answer)
        if answers.begun is not None:
            answers.end_group(_describe_end(ended.code))
        elif not answers.is_complete():
            when = "was complete" if answers.head or answers.groups else "began"
            raise FactError(
                f"TensorFlow {ended.ending} before the canary {when}: {ended.last_words}",
                hint="run `envlock doctor` to find the variable or flag",
            )
        if answers.is_complete():
            return answers
    raise FactError(
        f"the canary crashed its process {MOST_CHILDREN} times",
        hint="run `envlock doctor` to find the cause",
    )


def _check_fields(answer: Any, wanted: Mapping[str, type]) -> dict[str, Any]:
    """Return an answer with the wanted fields and lists of texts; raise FactError for any other."""
    if not isinstance(answer, dict) or not all(
        isinstance(answer.get(name), kind) for name, kind in wanted.items()
    ):
        raise _refuse_answer(f"it must have {', '.join(wanted)}")
    fields: dict[str, Any] = answer
    for value in fields.values():
        if isinstance(value, list):
            _check_texts(value)
    return fields


def _check_texts(answer: object, count: int | None = None) -> list[str]:
    if isinstance(answer, list) and (count is None or len(answer) == count):
        texts = [text for text in answer if isinstance(text, str)]
        if len(texts) == len(answer):
            return texts
    raise _refuse_answer("a list of names holds something else")


def _refuse_answer(why: str) -> FactError:
    return FactError(f"invalid answer of the canary: {clean(why)[:300]}", hint="try again")


def _describe_end(code: int | None) -> str:
    """Return how a process ended, in the form of a lockfile; None if it was ended because it took
    too long.
    """
    if code is None:
        return f"no answer within {TIMEOUT:g} s"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"
