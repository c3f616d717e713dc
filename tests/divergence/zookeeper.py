"""Runs programs of the zoo in one process that stays: importing TensorFlow for each of them would take minutes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import envlock
from envlock.divergence.comparison import compare
from envlock.divergence.debug import debug
from envlock.divergence.observe import Observed, Request, answers
from envlock.divergence.trace import read
from envlock.guest.launch import BORROWED
from envlock.numerics.target import target
from envlock.runtime.report import Report

ZOO = Path(__file__).with_name("zoo.py")
THREAD_ZOO = Path(__file__).with_name("thread_zoo.py")
LOOP = """
import json
from envlock.guest.tracing.trace_program import work
for line in sys.stdin:
    work(json.loads(line))
    print("done", flush=True)
"""


@dataclass(frozen=True)
class Animal:
    """A program of the zoo, and what is to be said of it.

    Attributes:
        name: of the function; a comment with it marks the lines that may be named.
        verdict: the right one.
        types: the operations that may be named; any, where it is empty.
        zoo: the file that it lives in.
    """

    name: str
    verdict: str
    types: tuple[str, ...] = ()
    zoo: Path = ZOO

    def is_right(self, report: Report) -> bool:
        """Return whether a report names the cause and its line."""
        seen = report.attachments
        named = seen["verdict"] == self.verdict and (not self.types or seen["culprit"] in self.types)
        return named and seen["place"] is not None and seen["place"]["line"] in lines(self.name, self.zoo)


_RANDOM = ("RandomUniform", "RandomStandardNormal")
ANIMALS = (
    Animal("scatter", "operation", ("ResourceScatterSub",)),
    Animal("embedding_sgd", "operation", ("ResourceScatterSub", "ResourceScatterAdd")),
    Animal("bincount", "operation", ("DenseBincount",)),
    Animal("crop", "operation", ("CropAndResizeGradImage",)),
    Animal("numpy_function", "outside", ("PythonFunction",)),
    Animal("numpy_weights", "outside", ("MatMul",)),
    Animal("dropout", "operation", _RANDOM),
    Animal("keras_initializer", "outside"),
    Animal("map_fn", "graph", _RANDOM),
    Animal("data_order", "data"),
    Animal("data_shuffle", "data", ("IteratorGetNext",)),
    Animal("random_branch", "sequence"),
    Animal("clock", "outside", ("Mul",)),
    Animal("addn", "graph", ("AddN",)),
    Animal("xla_random", "graph", _RANDOM),
)
IN_THREADS = (
    Animal("mirrored_dropout", "operation", ("RandomUniform",), THREAD_ZOO),
    Animal("hogwild", "race", ("AssignSubVariableOp",), THREAD_ZOO),
    Animal("thread_dropout", "operation", ("RandomUniform",), THREAD_ZOO),
    Animal("thread_numpy", "outside", ("Sin",), THREAD_ZOO),
    Animal("queue_loader", "outside", ("AddV2",), THREAD_ZOO),
    Animal("late_seed", "outside", ("Sin",), THREAD_ZOO),
)
CLEAN_IN_THREADS = ("clean_threads", "clean_pool", "clean_turns", "clean_mirrored", "clean_undefined")
KERAS_2 = (Animal("keras_dropout", "operation", ("RandomUniform",)),)
KERAS_3 = (
    Animal("keras_dropout", "outside"),
    Animal("embedding_adagrad", "operation", ("ResourceScatterAdd", "ResourceScatterSub")),
)


def lines(name: str, zoo: Path = ZOO) -> set[int]:
    """Return the numbers of the lines that are marked with a name."""
    return {n for n, line in enumerate(zoo.read_text().splitlines(), 1) if line.endswith(f"# {name}")}


class Keeper:
    """Looks after two processes: one in which graphs race, and one in which they cannot."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._python = python
        self._folder = folder
        self._children: dict[bool, subprocess.Popen[bytes]] = {}
        self._count = 0

    def ask(self, name: str, *, runs: int, zoo: Path = ZOO) -> Report:
        """Return what is said of a program of the zoo."""
        return debug(
            Request(target(f"{zoo}:{name}"), self._python, runs, fresh=False), lambda text: None, self._observe
        )

    def close(self) -> None:
        """End both."""
        for child in self._children.values():
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.close()
            child.stdout.close()
            child.kill()
            child.wait(10)

    def _observe(self, request: Request, _: Path) -> Observed:
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
    names = ("seed", "mode", "steps", "generators", "serial")
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
