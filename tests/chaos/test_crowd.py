"""Fifty processes read, write and judge one lockfile at once: no reader ever sees half of one."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from envlock.lock.document import dump, load, validate
from envlock.lock.writer import write_atomically
from envlock.runtime.collectors import Snapshot
from envlock.runtime.judgement import judge
from tests.locks import document

pytestmark = pytest.mark.processes

VERDICT = 4
"""Of this lockfile, whose Keras could not be read, and of a machine that has the same facts."""
Write = Callable[[Path, bytes], object]


def _crowd(path: Path, people: int, seconds: float, write: Write) -> tuple[int, int, list[str]]:
    """Let so many processes work on a file; return the reads, the writes, and what was wrong."""
    context = multiprocessing.get_context("fork")
    ends = []
    for number in range(people):
        ours, theirs = context.Pipe(duplex=False)
        one = context.Process(target=_one, args=(path, number, time.monotonic() + seconds, write, theirs))
        one.start()
        ends.append((one, ours))
    found = [ours.recv() for _, ours in ends]
    for one, _ in ends:
        one.join(60)
    return sum(each[0] for each in found), sum(each[1] for each in found), [w for each in found for w in each[2]]


def _one(path: Path, number: int, until: float, write: Write, said: Connection) -> None:
    reads, writes, wrong = 0, 0, []
    facts = document()["facts"]
    while time.monotonic() < until or not reads:
        if number % 5 == 0:
            lock = validate(document(created_by=f"envlock {number}.{writes}"), "x")
            write(path, dump(lock) + b" " * 200_000)
            writes += 1
        verdict = _verdict(path, facts)
        if verdict != str(VERDICT):
            wrong.append(verdict)
        reads += 1
    said.send((reads, writes, wrong[:5]))
    said.close()


def _verdict(path: Path, facts: dict[str, Any]) -> str:
    try:
        found = load(path).to_document()
        return str(judge(found, Snapshot(facts, found["unavailable"])).exit_code)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]


def _naively(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data[:100])
        file.flush()
        os.sched_yield()
        file.write(data[100:])


@pytest.mark.parametrize(
    ("people", "seconds"), [(8, 0.2), pytest.param(50, 20, marks=pytest.mark.chaos)], ids=["short", "long"]
)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_no_reader_sees_half_of_a_lockfile(people: int, seconds: float, tmp_path: Path) -> None:
    path = tmp_path / "envlock.lock"
    write_atomically(path, dump(validate(document(), "x")))
    reads, writes, wrong = _crowd(path, people, seconds, write_atomically)
    print(f"crowd: {people} processes, {reads} reads, {writes} writes")
    assert (wrong, [each.name for each in tmp_path.iterdir()]) == ([], ["envlock.lock"])
    assert reads >= people
    assert writes > 1


@pytest.mark.chaos
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_without_a_defence_the_attack_succeeds(tmp_path: Path) -> None:
    path = tmp_path / "envlock.lock"
    _naively(path, dump(validate(document(), "x")))
    assert _crowd(path, 20, 3, _naively)[2] != []
