"""A program's own operations: noted while it runs once, and each computed alone, in child processes."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envlock.guest import launch
from envlock.lock.drafts import draft_folder
from envlock.lock.numerics import Coverage, Program, is_noted
from envlock.numerics.canary.run import TIMEOUT, Settings
from envlock.numerics.target import Target
from envlock.runtime.errors import FactError
from envlock.runtime.report import clean

SECONDS = 60.0
"""How long a program is looked at, and how long its operations may take, at a capture."""
MOST_SECONDS = 10 * SECONDS
"""How long the operations of a lockfile may take: it may be anybody's. A capture keeps what took `SECONDS` in all."""
STEPS = 2
MOST_CHILDREN = 10  # each of which an operation can end
POISON = ("85", "170")
"""What glibc fills memory with before use: bytes of a result that no kernel writes then differ, and show themselves.

Source: https://man7.org/linux/man-pages/man3/mallopt.3.html (M_PERTURB)
"""

Named = dict[str, dict[str, Any]]
Say = Callable[[str], None]


@dataclass
class Results:
    """What children said of operations: results, and why there is none, by name; and the device."""

    device: str = "cpu"
    results: Named = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def extended(
    targets: Mapping[str, Target], python: Path | None, settings: Settings, *, gpus: bool, say: Say
) -> dict[str, Any]:
    """Return the section `program`: what these programs run, each operation computed alone, twice.

    Raises:
        UsageError: a program cannot be run.
        FactError: it fails, or TensorFlow does not show its operations.
    """
    operations: Named = {}
    noted: dict[str, dict[str, Any]] = {}
    for name, target in targets.items():
        say(f"noting the operations of {name} (runs {STEPS} steps eagerly, at most {SECONDS:g} s)")
        answer = record(target, python)
        answer["names"] = [_add(operations, each) for each in answer.pop("operations")]
        noted[name] = answer
    say(f"computing {len(operations)} operations, each alone (at most {SECONDS:g} s)")
    first, second = (
        replay(operations, python, settings, gpus=gpus, seconds=SECONDS, poison=poison)
        for poison in POISON
    )
    left_out = {**first.left_out, **second.left_out}
    for name in first.results:
        if name not in left_out and first.results[name] != second.results.get(name):
            left_out[name] = "unstable"
    kept = {
        name: {**each, "result": first.results[name]}
        for name, each in operations.items()
        if name not in left_out
    }
    covered = {name: _coverage(each, operations, left_out) for name, each in noted.items()}
    return {
        "conditions": settings.conditions(first.device, "eager"),
        "targets": covered,
        "operations": kept,
    }


def again(
    program: Program, python: Path | None, settings: Settings, *, gpus: bool, say: Say
) -> dict[str, Any]:
    """Return the section of a lock with what its operations give here; one without a result has failed."""
    operations = program.model_dump(mode="json", exclude_unset=True)["operations"]
    plain = {
        name: {key: each[key] for key in ("type", "inputs", "attributes")}
        for name, each in operations.items()
    }
    say(f"computing {len(plain)} operations of {', '.join(program.targets)}, each alone")
    found = replay(plain, python, settings, gpus=gpus, seconds=MOST_SECONDS, poison=None)
    results = {
        name: found.results.get(name, {"failed": found.left_out.get(name, "failed")})
        for name in plain
    }
    targets = program.model_dump(mode="json", exclude_unset=True)["targets"]
    return {
        "conditions": settings.conditions(found.device, "eager"),
        "targets": targets,
        "operations": {name: {**each, "result": results[name]} for name, each in plain.items()},
    }


def record(target: Target, python: Path | None) -> dict[str, Any]:
    """Run a program under the eye of TensorFlow's callbacks, and return what `guest/operations/record_program.py` says.

    Raises:
        UsageError: it cannot be run so.
        FactError: it fails.
    """
    with draft_folder(None) as folder:
        asked = {"folder": str(folder), **target.to_json(), "steps": STEPS, "seconds": SECONDS}
        words = launch.module("operations.record_program", asked)
        ended = launch.ask_python(words, python, timeout=2 * SECONDS + TIMEOUT)
        try:
            answer: dict[str, Any] = json.loads((folder / "operations.json").read_bytes())
        except (OSError, ValueError):
            answer = {"failed": f"it {ended.ending}: {ended.last_words}"}
    if "unusable" in answer:
        raise target.unusable(answer["unusable"], "repeat")
    if "failed" in answer:
        raise FactError(
            f"{target} failed: {clean(answer['failed'])[:300]}",
            hint=f"try `envlock repeat {target}`",
        )
    kept = []
    for each in answer["operations"]:
        if is_noted(each):
            kept.append(each)
        else:  # an attribute or a shape that the format has no room for
            _count(answer["left_out"], "unlisted", each["type"])
    return {**answer, "operations": kept}


def replay(
    operations: Named,
    python: Path | None,
    settings: Settings,
    *,
    gpus: bool,
    seconds: float,
    poison: str | None,
) -> Results:
    """Let children compute operations, each alone; the one that ends its process is left out, and another goes on.

    After `seconds` no operation begins, whichever child it would be.

    Raises:
        FactError: TensorFlow or NumPy cannot be imported.
    """
    found = Results()
    environ = None if poison is None else {**os.environ, "MALLOC_PERTURB_": poison}
    with draft_folder(None) as folder:
        file = folder / "operations.json"
        file.write_text(json.dumps(operations), encoding="utf-8")
        asked: dict[str, Any] = {"file": str(file), "device": "gpu" if gpus else "cpu"}
        asked |= {"intra_op_threads": settings.threads, "inter_op_threads": settings.threads}
        until = time.monotonic() + seconds
        for _ in range(MOST_CHILDREN):
            left = max(0.0, until - time.monotonic())
            told = {
                **asked,
                "seconds": left,
                "determinism": settings.determinism,
                "skip": [*found.results, *found.left_out],
            }
            ended = launch.ask_python(
                launch.module("operations.replay_program", told),
                python,
                timeout=left + TIMEOUT,
                environ=environ,
            )
            if _take(ended, found):
                return found
    for name in operations:
        if name not in found.results:
            found.left_out.setdefault(name, "ended")
    return found


def _take(ended: launch.Ended, found: Results) -> bool:
    """Add what a child has said, and return whether it was all."""
    begun: str | None = None
    for said in ended.answers:
        if not all(
            isinstance(said.get(name, ""), str)
            for name in ("failed", "begin", "device", "name", "left_out")
        ):
            continue  # not from our program
        if "failed" in said:
            raise FactError(
                f"the program's operations cannot be computed: {said['failed']}",
                hint="run `envlock doctor`",
            )
        begun = said.get("begin", begun)
        found.device = re.sub(r"[^A-Za-z0-9 _.()/+-]", "_", said.get("device", found.device))
        if "name" in said:
            begun = None
            if "result" in said:
                found.results[said["name"]] = said["result"]
            else:
                found.left_out[said["name"]] = said.get("left_out", "ended")
        if "done" in said:
            return True
    if begun is None:
        raise FactError(
            f"TensorFlow {ended.ending} before an operation: {ended.last_words}",
            hint="run `envlock doctor`",
        )
    found.left_out[begun] = "ended"
    return False


def _add(operations: Named, noted: dict[str, Any]) -> str:
    """Return the name of an operation among all, where it is kept once."""
    for name, each in operations.items():
        if each == noted:
            return name
    name = f"{noted['type'].lower()}_{1 + sum(each['type'] == noted['type'] for each in operations.values())}"
    operations[name] = noted
    return name


def _coverage(
    answer: dict[str, Any], operations: Named, left_out: Mapping[str, str]
) -> dict[str, Any]:
    reasons: dict[str, dict[str, int]] = answer["left_out"]
    for name in answer["names"]:
        if name in left_out:
            _count(reasons, left_out[name], operations[name]["type"])
    missing = sum(sum(each.values()) for each in reasons.values())
    section = {
        "distinct": answer["distinct"],
        "covered": answer["distinct"] - missing,
        "left_out": reasons,
    }
    return Coverage.model_validate(
        {**section, "cut": True} if answer["cut"] else section
    ).model_dump(mode="json", exclude_unset=True)


def _count(reasons: dict[str, dict[str, int]], reason: str, kind: str) -> None:
    counts = reasons.setdefault(reason, {})
    counts[kind] = counts.get(kind, 0) + 1
