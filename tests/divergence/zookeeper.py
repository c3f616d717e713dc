"""Runs programs of the zoo in one process that stays: importing TensorFlow for each of them would take minutes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import envlock
from envlock.divergence.comparison import compare
from envlock.divergence.debug import AGAIN, debug
from envlock.divergence.observe import Observed, Request, answers
from envlock.divergence.trace import read
from envlock.guest.launch import BORROWED
from envlock.numerics.target import target
from envlock.runtime.report import Report
from tests.divergence.animals import ZOO

LOOP = """
import json, os
from envlock.guest.tracing.trace_program import work
answer_to = os.dup(1)  # what programs print goes to stderr
os.dup2(2, 1)
for line in sys.stdin:
    work(json.loads(line))
    os.write(answer_to, b"done\\n")
"""


class Keeper:
    """Looks after two processes: one in which graphs race, and one in which they cannot."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._python = python
        self._folder = folder
        self._children: dict[bool, subprocess.Popen[bytes]] = {}
        self._count = 0

    def ask(self, name: str, *, runs: int, zoo: Path = ZOO, fresh: bool = False) -> Report:
        """Return what is said of a program of the zoo; `fresh`: with a process of its own for each run."""
        request = Request(target(f"{zoo}:{name}"), self._python, runs, fresh=fresh)
        return debug(request, lambda text: None, None if fresh else self._observe)

    def close(self) -> None:
        """End both."""
        for child in self._children.values():
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.close()
            child.stdout.close()
            child.kill()
            child.wait(10)
        self._children.clear()

    def _observe(self, request: Request, into: Path) -> Observed:
        if into.name.endswith(AGAIN):
            self.close()
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        asked = {**_plain(request), "folder": str(folder), "runs": list(range(request.runs))}
        child = self._children.get(request.serial) or self._start(serial=request.serial)
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(asked).encode() + b"\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"done\n", (self._folder / "output").read_text()[-2000:]
        said = answers(folder)
        assert {each["end"] for each in said["ends"].values()} == {"finished"}, said
        traces = [folder / f"{number}.trace" for number in range(request.runs)]
        return Observed(request, folder, read(traces[0]).header, compare([read(each) for each in traces]), said)

    def _start(self, *, serial: bool) -> subprocess.Popen[bytes]:
        command = [str(self._python), "-c", BORROWED + LOOP, str(Path(envlock.__file__).parent)]
        with (self._folder / "output").open("ab") as log:
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self._children[serial] = child
        return child


def _plain(request: Request) -> Mapping[str, Any]:
    names = ("seed", "mode", "steps", "generators", "held", "serial")
    fields = asdict(request)
    return {**request.target.to_json(), **{name: fields[name] for name in names}, "conditions": {}}


@contextmanager
def keeper(python: Path, folder: Path) -> Iterator[Keeper]:
    """Give somebody who runs programs of the zoo."""
    found = Keeper(python, folder)
    try:
        yield found
    finally:
        found.close()
