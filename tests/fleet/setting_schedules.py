"""Jobs whose ranks have asked for different checks: `python -m tests.fleet.setting_schedules FOLDER FIRST COUNT`.

Each rank draws what it asks for (policy, the lockfile's own rules, mode) and what it has (variables, data, installed
files, a copy of the lockfile), and calls at its own time. Whoever trains must have got what it asked for: with its
settings, `assert_locked()` must accept the environment of every rank. Ranks are forks, so that a job takes a moment.
A line is printed for each job that is wrong, and the number of jobs of each end.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import envlock
from envlock.fleet.fleet_assertion import assert_fleet
from envlock.runtime.assertion import assert_locked
from envlock.runtime.files import deep
from envlock.runtime.report import ERROR, Finding

POLICIES = ("", "strict", "same-arch", "functional", "nonesuch")
MODES = ("", "", "", "", "", "", "deep", "deep", "warn", "off", "of")
BROKEN = "ENVLOCK_TEST_BROKEN"
"""Says that an installed file is not as recorded: reading all of them would take seconds a rank."""
VARIABLES: tuple[dict[str, str], ...] = (
    {},
    {"OMP_NUM_THREADS": "1"},  # ignored by a rule of the lockfile
    {"TF_ENABLE_ONEDNN_OPTS": "0"},
    {"CUDA_CACHE_DISABLE": "1"},
    {BROKEN: "1"},
)
PROJECT = """\
[project]
name = "p"
version = "1"
[tool.envlock]
data = ["data.csv"]
[tool.envlock.policy]
data = "exact"
"environ.OMP_NUM_THREADS" = "ignore"
"""
TRAINS, REFUSES = 0, 7


@dataclass(frozen=True)
class Asked:
    """What a rank has asked for."""

    policy: str
    is_argument: bool
    no_overrides: bool
    mode: str

    def environ(self) -> dict[str, str]:
        found = {"ENVLOCK_MODE": self.mode, "ENVLOCK_NO_OVERRIDES": "1" if self.no_overrides else ""}
        if not self.is_argument:
            found["ENVLOCK_POLICY"] = self.policy
        return found

    @property
    def is_loose(self) -> bool:
        return self.mode in ("warn", "off")


@dataclass(frozen=True)
class Has:
    """What a rank has: a project, and variables."""

    project: str
    variables: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Plan:
    """A rank of a job."""

    asked: Asked
    has: Has
    comes: float


def draw_job(seed: int) -> list[Plan]:
    """Return the ranks of a job, most of which ask for the same and have the same."""
    draw = random.Random(seed)

    def draw_asked(like: Asked | None) -> Asked:
        fresh = Asked(
            draw.choice(POLICIES[:-1] if draw.random() < 0.9 else POLICIES),
            draw.random() < 0.5,
            draw.random() < 0.4,
            draw.choice(MODES[:-1] if draw.random() < 0.9 else MODES),
        )
        if like is None:
            return fresh
        which = draw.randrange(3)
        return Asked(
            fresh.policy if which == 0 else like.policy,
            fresh.is_argument,
            fresh.no_overrides if which == 1 else like.no_overrides,
            fresh.mode if which == 2 else like.mode,
        )

    def draw_has() -> Has:
        variables = draw.choice(VARIABLES)
        return Has(draw.choice(["a", "a", "a", "b"]), tuple(variables.items()))

    common, usual = draw_asked(None), Has("a", ())
    if draw.random() < 0.3:
        usual = draw_has()
    plans = []
    for _ in range(draw.randint(2, 5)):
        asked = draw_asked(common) if draw.random() < 0.3 else common
        has = draw_has() if draw.random() < 0.2 else usual
        plans.append(Plan(asked, has, draw.choice([0.0, 0.0, 0.05, 0.3])))
    return plans


def prepare(folder: Path) -> None:
    """Write two projects with one lockfile; the second has other data."""
    for name in ("a", "b"):
        project = folder / name
        project.mkdir()
        (project / "pyproject.toml").write_text(PROJECT)
        (project / "data.csv").write_text("1\n")
    words = [sys.executable, "-m", "envlock", "capture", "--without-tensorflow", "-q"]
    subprocess.run(words, cwd=folder / "a", check=True)
    (folder / "b" / "envlock.lock").write_bytes((folder / "a" / "envlock.lock").read_bytes())
    (folder / "b" / "data.csv").write_text("22\n")


def run_child(folder: Path, has: Has, asked: Asked, call: object) -> int:
    """Return the process that calls a function with these variables in a project, and ends with its answer."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        os.chdir(folder / has.project)
        os.environ.update({**asked.environ(), **dict(has.variables)})
        said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(said, 2)
        code = call()  # type: ignore[operator]
    finally:
        os._exit(code)


def wait(child: int) -> int:
    """Return the exit code of a child."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


KNOWN: dict[tuple[Asked, Has], bool] = {}


def is_accepted(folder: Path, asked: Asked, has: Has) -> bool:
    """Return whether `assert_locked()`, as a rank has asked for it, accepts what another one has."""

    def check() -> int:
        try:
            assert_locked(policy=asked.policy if asked.is_argument else None)
        except envlock.EnvlockError:
            return REFUSES
        return TRAINS

    if (asked, has) not in KNOWN:
        KNOWN[asked, has] = wait(run_child(folder, has, asked, check)) == TRAINS
    return KNOWN[asked, has]


def run_job(folder: Path, number: int, plans: list[Plan]) -> list[int]:
    """Return how the ranks of a job end."""

    def make(rank: int) -> object:
        def call() -> int:
            time.sleep(plans[rank].comes)
            asked = plans[rank].asked
            try:
                assert_fleet(
                    policy=(asked.policy or None) if asked.is_argument else None,
                    timeout=30,
                    folder=folder / "fleet",
                    rank=rank,
                    size=len(plans),
                    node=f"n{rank}",
                    job=f"job-{number}",
                )
            except envlock.EnvlockError:
                return REFUSES
            return TRAINS

        return call

    children = [run_child(folder, plan.has, plan.asked, make(rank)) for rank, plan in enumerate(plans)]
    return [wait(child) for child in children]


def find_wrong(folder: Path, plans: list[Plan], ends: list[int]) -> list[str]:
    """Return what may not be: ranks that enforce end alike, and whoever trains has got what it asked for."""
    wrong = []
    if not set(ends) <= {TRAINS, REFUSES}:
        wrong.append(f"a rank failed: {ends}")
    strict = [rank for rank, plan in enumerate(plans) if not plan.asked.is_loose]
    if len({ends[rank] for rank in strict}) > 1:
        wrong.append(f"some train, and others refuse: {ends}")
    for rank in strict:
        if ends[rank] != TRAINS:
            continue
        for other, plan in enumerate(plans):
            if plan.asked.is_loose:
                wrong.append(f"rank {rank} trains beside rank {other}, which goes on whatever is found")
            elif not is_accepted(folder, plans[rank].asked, plan.has):
                wrong.append(f"rank {rank} trains, and would not have accepted rank {other}")
    return wrong


def break_file(lock: object) -> tuple[list[Finding], int]:
    """Stand in for reading every installed file."""
    if not os.environ.get(BROKEN):
        return [], 1
    return [
        Finding("files", ERROR, "files", message="1 file is not as recorded", why="why", fix="fix", source="source")
    ], 1


def main(folder: Path, first: int, count: int) -> int:
    """Run jobs; return 1 if one is wrong."""
    deep.verify_files = break_file
    prepare(folder)
    ends: Counter[str] = Counter()
    is_wrong = 0
    for number in range(first, first + count):
        plans = draw_job(number)
        found = run_job(folder, number, plans)
        loose = [plan.asked.is_loose for plan in plans]
        kind = "loose" if all(loose) else "all train" if not any(found) else "none trains" if all(found) else "mixed"
        ends[kind] += 1
        ends["with different settings"] += len({plan.asked for plan in plans}) > 1
        wrong = find_wrong(folder, plans, found)
        if wrong:
            is_wrong = 1
            print(json.dumps({"seed": number, "wrong": wrong, "ranks": [str(plan) for plan in plans]}))
    print(json.dumps(ends))
    return is_wrong


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
