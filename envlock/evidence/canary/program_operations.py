"""A program's own operations: recorded while it runs once, and then each computed on its own, in
child processes.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envlock.evidence.canary.canary_run import TIMEOUT, Settings
from envlock.evidence.conditions import SEED, describe_conditions
from envlock.evidence.session import Host, run_once
from envlock.guest import launch
from envlock.guest.target import Target
from envlock.lock.numerics import Coverage, Program, is_noted
from envlock.lock.temporary import open_draft_folder
from envlock.runtime.errors import FactError

SECONDS = 60.0
"""How long a program is traced, and how long its operations may take, during a capture."""
MOST_SECONDS = 10 * SECONDS
"""How long the operations of a lockfile may take, which can come from anyone. A capture keeps those
that took `SECONDS` together.
"""
STEPS = 2  # the first step creates variables, often with operations that the others lack
# Each operation can crash its process.
MOST_CHILDREN = 10
POISON = ("85", "170")
"""The byte with which glibc fills memory before use: bytes of a result that no kernel writes then
differ, and become visible.

Source: https://man7.org/linux/man-pages/man3/mallopt.3.html (M_PERTURB)
"""
_NO_NAME = re.compile(r"[^A-Za-z0-9 _.()/+-]")
_TEXTS = ("failed", "begin", "device", "name", "left_out")
"""Fields of an answer that are strings."""

Operations = dict[str, dict[str, Any]]
"""Operations by name, in the form of a lockfile."""
Counts = dict[str, dict[str, int]]
"""How many operations of each type are left out, by reason."""
Say = Callable[[str], None]


@dataclass
class Results:
    """The answers of child processes: results of operations, or the reasons for missing ones, by
    name; the device.
    """

    device: str = "cpu"
    results: Operations = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def compute_programs(
    targets: Mapping[str, Target],
    python: Path | None,
    settings: Settings,
    *,
    gpus: bool,
    say: Say,
) -> dict[str, object]:
    """Return the section `program`: the operations that these programs run, each computed on its
    own, twice.

    Raises:
        UsageError: a program cannot be run.
        FactError: it fails, or TensorFlow does not show its operations, or cannot be imported.
    """
    operations: Operations = {}
    answers: dict[str, dict[str, Any]] = {}
    for name, target in targets.items():
        limits = f"{STEPS} steps eagerly, at most {SECONDS:g} s{describe_conditions(SEED)}"
        say(f"noting the operations of {name} (runs {limits})")
        answer = select_noted(record(target, python))
        answer["names"] = [_add_operation(operations, each) for each in answer.pop("operations")]
        answers[name] = answer
    say(f"computing {len(operations)} operations, each alone (at most {SECONDS:g} s)")
    runs = []
    for poison in POISON:
        poisoned = {**os.environ, "MALLOC_PERTURB_": poison}
        run = replay(operations, python, settings, gpus=gpus, seconds=SECONDS, environ=poisoned)
        runs.append(run)
    first, second = runs
    left_out = {**first.left_out, **second.left_out}
    for name, result in first.results.items():
        if name not in left_out and result != second.results.get(name):
            left_out[name] = "unstable"
    kept = {}
    for name, operation in operations.items():
        if name not in left_out:
            kept[name] = {**operation, "result": first.results[name]}
    covered = {}
    for name, answer in answers.items():
        covered[name] = _make_coverage(answer, operations, left_out)
    return {
        "conditions": settings.conditions(first.device, "eager"),
        "targets": covered,
        "operations": kept,
    }


def recompute_program(
    program: Program,
    python: Path | None,
    settings: Settings,
    *,
    gpus: bool,
    say: Say,
) -> dict[str, object]:
    """Return the section of a lockfile with the results on this machine; an operation without a
    result has failed.
    """
    document = program.model_dump(mode="json", exclude_unset=True)
    operations: Operations = {}
    for name, operation in document["operations"].items():
        operations[name] = {
            "type": operation["type"],
            "inputs": operation["inputs"],
            "attributes": operation["attributes"],
        }
    say(f"computing {len(operations)} operations of {', '.join(program.targets)}, each alone")
    found = replay(operations, python, settings, gpus=gpus, seconds=MOST_SECONDS, environ=None)
    for name, operation in operations.items():
        result = found.results.get(name)
        if result is None:
            result = {"failed": found.left_out.get(name, "failed")}
        operation["result"] = result
    return {
        "conditions": settings.conditions(found.device, "eager"),
        "targets": document["targets"],
        "operations": operations,
    }


def record(target: Target, python: Path | None) -> dict[str, Any]:
    """Run a program and return what is noted of its operations (envlock/guest/operations/inventory.py).

    Raises:
        UsageError: it cannot be run in this way.
        FactError: it fails.
    """
    with open_draft_folder(None) as folder:
        asked = {
            "observer": "operations",
            "folder": str(folder),
            "seed": SEED,
            "steps": STEPS,
            "seconds": SECONDS,
        }
        return run_once(target, asked, Host(python), 2 * SECONDS + TIMEOUT)


def select_noted(inventory: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inventory of a program, in which what a lockfile cannot represent counts as left out."""
    answer = {**inventory, "left_out": {**inventory["left_out"]}}
    kept = []
    for operation in answer["operations"]:
        if is_noted(operation):
            kept.append(operation)
        else:  # an attribute or a shape that the format cannot represent
            _count_left_out(answer["left_out"], "unlisted", operation["type"])
    return {**answer, "operations": kept}


def replay(
    operations: Operations,
    python: Path | None,
    settings: Settings,
    *,
    gpus: bool,
    seconds: float,
    environ: Mapping[str, str] | None,
) -> Results:
    """Compute operations in child processes, each on its own; one that crashes its process is left
    out.

    After `seconds` no operation begins, in any of the processes.

    Raises:
        FactError: TensorFlow or NumPy cannot be imported.
    """
    found = Results()
    device = "gpu" if gpus else "cpu"
    with open_draft_folder(None) as folder:
        file = folder / "operations.json"
        file.write_text(json.dumps(operations), encoding="utf-8")
        until = time.monotonic() + seconds
        for _ in range(MOST_CHILDREN):
            left = max(0.0, until - time.monotonic())
            request = {
                "file": str(file),
                "device": device,
                "intra_op_threads": settings.threads,
                "inter_op_threads": settings.threads,
                "determinism": settings.determinism,
                "seconds": left,
                "skip": [*found.results, *found.left_out],
            }
            # The limit is that of the operations; the import of TensorFlow comes on top.
            words = launch.build_module_arguments("operations.replay_program", request)
            ended = launch.ask_python(words, python, timeout=left + TIMEOUT, environ=environ)
            if _take_answers(ended, found):
                return found
    for name in operations:
        if name not in found.results:
            found.left_out.setdefault(name, "ended")
    return found


def _take_answers(ended: launch.Ended, found: Results) -> bool:
    """Add the answers of a child, and return whether they are complete.

    Raises:
        FactError: TensorFlow or NumPy cannot be imported, or TensorFlow crashed before an
            operation.
    """
    begun: str | None = None
    for answer in ended.answers:
        if not all(isinstance(answer.get(name, ""), str) for name in _TEXTS):
            continue  # not from the program of envlock
        if "failed" in answer:
            message = f"the program's operations cannot be computed: {answer['failed']}"
            raise FactError(message, hint="run `envlock doctor`")
        begun = answer.get("begin", begun)
        found.device = _NO_NAME.sub("_", answer.get("device", found.device))
        if "name" in answer:
            begun = None
            if "result" in answer:
                found.results[answer["name"]] = answer["result"]
            else:
                found.left_out[answer["name"]] = answer.get("left_out", "ended")
        if "done" in answer:
            return True
    if begun is None:
        message = f"TensorFlow {ended.ending} before an operation: {ended.last_words}"
        raise FactError(message, hint="run `envlock doctor`")
    found.left_out[begun] = "ended"
    return False


def _add_operation(operations: Operations, noted: dict[str, Any]) -> str:
    """Add an operation unless an equal one exists, and return its name."""
    number = 1
    for name, operation in operations.items():
        if operation == noted:
            return name
        if operation["type"] == noted["type"]:
            number += 1
    name = f"{noted['type'].lower()}_{number}"
    operations[name] = noted
    return name


def _make_coverage(
    answer: Mapping[str, Any], operations: Operations, left_out: Mapping[str, str]
) -> dict[str, object]:
    reasons: Counts = answer["left_out"]
    for name in answer["names"]:
        if name in left_out:
            _count_left_out(reasons, left_out[name], operations[name]["type"])
    missing = sum(sum(counts.values()) for counts in reasons.values())
    section = {
        "distinct": answer["distinct"],
        "covered": answer["distinct"] - missing,
        "left_out": reasons,
    }
    if answer["cut"]:
        section["cut"] = True
    return Coverage.model_validate(section).model_dump(mode="json", exclude_unset=True)


def _count_left_out(reasons: Counts, reason: str, kind: str) -> None:
    counts = reasons.setdefault(reason, {})
    counts[kind] = counts.get(kind, 0) + 1
