"""Let child processes compute the battery in the interpreter of an environment, with a bounded wait."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envlock.guest import launch
from envlock.lock.numerics import Conditions, Numerics, answered
from envlock.numerics.canary import ENVIRONMENT
from envlock.runtime.errors import FactError
from envlock.runtime.report import clean

TIMEOUT = 300.0  # seconds a child: 5 are usual, most of them `import tensorflow`
THREADS = 2
"""What the canary pins, so that machines with other numbers of processors compare."""
MOST_CHILDREN = 20  # a device has five groups, each of which can end one
CPU = "cpu"
LIBRARY = "library"


@dataclass(frozen=True)
class Settings:
    """What the canary sets for itself; None: as the environment has it."""

    threads: int | None = THREADS
    determinism: bool | None = True

    def conditions(self, device: str, execution: str) -> dict[str, Any]:
        """Return the header of a group that was computed so."""
        threads: int | str = ENVIRONMENT if self.threads is None else self.threads
        determinism = {True: "on", False: "off", None: ENVIRONMENT}[self.determinism]
        if execution == LIBRARY:  # NumPy: one thread for its BLAS, and no op determinism
            threads, determinism = (
                min(threads, 1) if isinstance(threads, int) else threads,
                ENVIRONMENT,
            )
        pinned = {
            "intra_op_threads": threads,
            "inter_op_threads": threads,
            "determinism": determinism,
        }
        return {
            "device": device,
            "execution": execution,
            **pinned,
            "onednn": ENVIRONMENT,
            "xla": ENVIRONMENT,
        }

    @classmethod
    def of(cls, conditions: Conditions) -> Settings:
        """Return what was set for a group of TensorFlow."""
        threads = conditions.intra_op_threads
        return cls(
            threads if isinstance(threads, int) else None,
            {"on": True, "off": False, ENVIRONMENT: None}[conditions.determinism],
        )


@dataclass
class Canary:
    """What was computed, and how long it took from the end of TensorFlow's import on (processor time of the process
    beside it); None where a group ended the process."""

    numerics: Numerics
    seconds: float | None
    cpu_seconds: float | None


@dataclass
class _Heard:
    """What children have said so far of one device."""

    head: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    begun: list[str] | None = None
    seconds: dict[str, float] = field(default_factory=dict)


def compute(
    python: Path | None, settings: Settings, *, gpus: bool = False, program: str | None = None
) -> Canary:
    """Return the exact results of the battery in the interpreter `python`; each visible GPU too, with `gpus`.

    A group that ends its process is a result with the signal, and the groups after it are computed by another.
    `program` takes the battery's place, in tests.

    Raises:
        UsageError: there is no such interpreter.
        FactError: TensorFlow or NumPy cannot be imported, or the answer is not one.
    """
    text = program or launch.read("battery")
    heard = _on_device(python, settings, CPU, text)
    groups = _grouped(heard, settings, "cpu")
    number = 0
    while gpus:
        on_gpu = _on_device(python, settings, number, text)
        names = on_gpu.head["devices"]
        if number >= len(names):
            break
        groups.update(
            _grouped(on_gpu, settings, re.sub(r"[^A-Za-z0-9 _.()/+-]", "_", names[number]))
        )
        number += 1
    head = {key: heard.head[key] for key in ("battery", "tensorflow", "numpy")}
    try:
        numerics = answered({**head, "groups": groups})
    except ValueError as error:
        raise _invalid(str(error)) from None
    return Canary(numerics, heard.seconds.get("seconds"), heard.seconds.get("cpu_seconds"))


FATAL = "bf16"
"""The group that can end its process: of a job, a launcher would end all other processes, too."""


def asked_of(settings: Settings) -> dict[str, Any]:
    """Return what the battery is asked as a rank of a job: all but one group, on the processor."""
    threads = {"intra_op_threads": settings.threads, "inter_op_threads": settings.threads}
    return {"device": CPU, "skip": [FATAL], "determinism": settings.determinism, **threads}


def heard_from(ended: launch.Ended, settings: Settings) -> Numerics:
    """Return what a battery has answered that ran elsewhere; a group in which it ended has the word `ended`.

    Raises:
        FactError: TensorFlow or NumPy cannot be imported there, or the answer is not one.
    """
    heard = _Heard()
    for said in ended.answers:
        _take(said, heard)
    if heard.begun is not None:
        heard.groups[heard.begun[0]] = {
            "execution": heard.begun[1],
            "operations": {},
            "ended": f"no answer within {TIMEOUT:g} s",
        }
    if not heard.head:
        raise FactError("the canary did not answer", hint="run `envlock canary` there")
    head = {key: heard.head[key] for key in ("battery", "tensorflow", "numpy")}
    try:
        return answered({**head, "groups": _grouped(heard, settings, CPU)})
    except ValueError as error:
        raise FactError(
            f"invalid answer of the canary: {clean(str(error))[:300]}", hint="try again"
        ) from None


def _grouped(heard: _Heard, settings: Settings, device: str) -> dict[str, Any]:
    return {
        name: {"conditions": settings.conditions(device, group.pop("execution")), **group}
        for name, group in heard.groups.items()
    }


def _on_device(python: Path | None, settings: Settings, device: str | int, program: str) -> _Heard:
    """Return all that can be computed on a device, in as many processes as it takes."""
    heard = _Heard()
    for _ in range(MOST_CHILDREN):
        ended = _child(python, settings, device, program, heard)
        if heard.begun is not None:
            name, execution = heard.begun
            heard.groups[name] = {
                "execution": execution,
                "operations": {},
                "ended": _signal(ended.code),
            }
            heard.begun = None
        elif not _complete(heard):
            when = "was complete" if heard.head or heard.groups else "began"
            raise FactError(
                f"TensorFlow {ended.ending} before the canary {when}: {ended.last_words}",
                hint="run `envlock doctor` to find the variable or flag",
            )
        if _complete(heard):
            return heard
    raise FactError(
        f"the canary crashed its process {MOST_CHILDREN} times",
        hint="run `envlock doctor` to find the cause",
    )


def _complete(heard: _Heard) -> bool:
    return bool(heard.head) and set(heard.head["groups"]) <= set(heard.groups)


def _child(
    python: Path | None, settings: Settings, device: str | int, program: str, heard: _Heard
) -> launch.Ended:
    """Run the program once, and add what it says to `heard`."""
    threads = {"intra_op_threads": settings.threads, "inter_op_threads": settings.threads}
    asked = {
        "device": device,
        "skip": list(heard.groups),
        "determinism": settings.determinism,
        **threads,
    }
    ended = launch.ask_python(launch.text(program, asked), python, timeout=TIMEOUT)
    for said in ended.answers:
        _take(said, heard)
    return ended


def _take(said: dict[str, Any], heard: _Heard) -> None:
    if "failed" in said:
        hint = "name the interpreter of an environment with TensorFlow: `--python .venv/bin/python`"
        raise FactError(f"the canary cannot be computed: {said['failed']}", hint=hint)
    if "head" in said:
        heard.head = _checked(said["head"], HEAD)
    if "begin" in said:
        heard.begun = _texts(said["begin"], 2)
    if "group" in said:
        heard.groups[_checked(said, GROUP).pop("group")] = said
        heard.begun = None
    if "seconds" in said:
        heard.seconds = {name: said[name] for name in TIMES if isinstance(said.get(name), float)}


HEAD = {"battery": int, "tensorflow": str, "numpy": str, "groups": list, "devices": list}
GROUP = {"group": str, "execution": str}
"""What is used of an answer before the whole is checked as a section of a lockfile."""
TIMES = ("seconds", "cpu_seconds")


def _checked(said: Any, wanted: Mapping[str, type]) -> dict[str, Any]:
    if not isinstance(said, dict) or not all(
        isinstance(said.get(name), kind) for name, kind in wanted.items()
    ):
        raise _invalid(f"it must have {', '.join(wanted)}")
    for each in said.values():
        if isinstance(each, list):
            _texts(each)
    return said


def _texts(said: Any, count: int | None = None) -> list[str]:
    fits = isinstance(said, list) and all(isinstance(each, str) for each in said)
    if not fits or (count is not None and len(said) != count):
        raise _invalid("a list of names holds something else")
    return list(said)


def _invalid(why: str) -> FactError:
    return FactError(f"invalid answer of the canary: {clean(why)[:300]}", hint="try again")


def _signal(code: int | None) -> str:
    if code is None:
        return f"no answer within {TIMEOUT:g} s"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"
