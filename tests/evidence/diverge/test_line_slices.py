"""The statement that made a value which differs, found by what statements read and left; the programs run in this process."""

from __future__ import annotations

import importlib.util
import itertools
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envlock.data.determinism import load_origins
from envlock.evidence.diverge.line_slices import Made, find_made, parse_lines
from envlock.evidence.diverge.trace import Place
from envlock.guest.tracing import line_values
from envlock.guest.tracing.line_values import LineValues, hash_any, read_statements
from envlock.guest.tracing.source_lines import Places

RUNS = 3
HEAD = "import random, threading, queue, types\nimport numpy as np\nfrom drawn import differs, entry\n"
"""`differs()` gives another number in each run; `entry(value)` is where the runs differ."""


class Program:
    """A program in a file, which can be watched."""

    def __init__(self, folder: Path, text: str) -> None:
        self.folder = folder
        self.path = folder / "train.py"
        self.path.write_text(HEAD + text)
        self.entries = 0
        self.run_number = 0

    def watch(self, number: int, until: int = 0) -> dict[str, Any]:
        """Return what is written of one run."""
        self.entries, self.run_number = 0, number
        seen = LineValues(Places(str(self.folder)), lambda: self.entries, until)
        spec = importlib.util.spec_from_file_location("train", self.path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        with seen.watch():
            spec.loader.exec_module(module)
            module.step()
        seen.write(str(self.folder / "lines"))
        found: dict[str, Any] = json.loads((self.folder / "lines").read_text())
        return found

    def find(self, until: int = 0) -> Made | None:
        """Return the statement that made the value."""
        runs = [parse_lines(self.watch(number, until)) for number in range(RUNS)]
        assert None not in runs
        return find_made([run for run in runs if run is not None])


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Program]]:
    def make(text: str) -> Program:
        found = Program(tmp_path, text)
        module = type(sys)("drawn")
        # Without a name of their own, they are no calls of the user's.
        vars(module).update(differs=lambda: found.run_number * 7, entry=lambda value: setattr(found, "entries", 1))
        monkeypatch.setitem(sys.modules, "drawn", module)
        return found

    yield make
    assert sys.gettrace() is None or "line_values" not in str(sys.gettrace())


PROGRAMS = {
    "local": "def step():\n    x = differs()  # here\n    y = x + 1\n    entry(y)\n",
    "noise": "def step():\n    t = differs()\n    x = 1\n    y = differs() + x  # here\n    entry(y)\n",
    "argument": "def use(v):\n    entry(v)\ndef step():\n    v = differs()  # here\n    use([v])\n",
    "returned": "def make():\n    n = 1\n    x = differs()  # here\n    return x\ndef step():\n    y = make()\n    entry(y)\n",
    "object": """
class Box:
    def __init__(self):
        self.size = 1
        self.number = differs()  # here
def step():
    box = Box()
    entry(box.number)
""",
    "container": "def step():\n    x = []\n    x.append(1)\n    x.append(differs())  # here\n    entry(x)\n",
    "loop": "def step():\n    total = 0\n    for x in (1, differs()):  # here\n        total += x\n    entry(total)\n",
    "branch": "def step():\n    n = 1\n    limit = differs()  # here\n    while n < limit:\n        n += 1\n    entry(n)\n",
    "decision": """
def step():
    n = 1
    if differs() > 6:  # here
        n = 2
    else:
        n = 3
    m = n
    entry(m)
""",
    "thread": """
def step():
    found = []
    def work():
        found.append(differs())  # here
    one = threading.Thread(target=work)
    one.start()
    one.join()
    entry(found)
""",
    "generator": """
def numbers():
    yield 1
    yield differs()  # here
def step():
    last = 0
    for x in numbers():
        last = x
    entry(last)
""",
    "lines": """
def step():
    x = dict(  # here
        a=1,
        b=differs(),
    )
    with open(__file__) as file:
        y = x
    entry(y)
""",
    "drawn": "def step():\n    random.seed(differs())  # here\n    x = random.random()\n    entry(x)\n",
    "drawn by numpy": "def step():\n    np.random.seed(differs())  # here\n    x = np.random.rand(3)\n    entry(x)\n",
    "generator object": "def step():\n    rng = np.random.default_rng(differs())  # here\n    x = rng.random(3)\n    entry(x)\n",
    "drawn in a call": """
def draw(rows):
    order = list(range(9))
    random.shuffle(order)  # here
    return order[:3]
def step():
    first = random.random()
    x = draw([1, 2])
    y = x
    entry(y)
""",
    "seeded elsewhere": """
def set_up():
    random.seed(differs())  # here
def draw():
    return random.random()
def step():
    set_up()
    x = draw()
    entry(x)
""",
    "module": "SIZE = differs()  # here\ndef step():\n    x = 1\n    entry(x * SIZE)\n",
    "handled": """
def step():
    try:
        x = differs()  # here
    except ValueError:
        x = 1
    y = x
    entry(y)
""",
    "returned from a with": """
def load():
    with open(__file__) as file:
        n = 1
        return [n, differs()]  # here
def step():
    x = load()
    entry(x)
""",
    "argument that the same statement makes": """
def split(rows):
    keys = [differs() for _ in rows]  # here
    for number in (0, 1):
        yield keys[number], number
def fit(train, test):
    random.random()
    entry(train)
    return 1
def step():
    random.seed(0)
    return [fit(train, test) for train, test in split([1, 2])]
""",
    "coroutine": """
import asyncio
async def collect():
    await asyncio.sleep(0)
    return [await number() for _ in range(2)]
async def number():
    return differs()  # here
def step():
    x = asyncio.run(collect())
    entry(x)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_statement_that_made_a_value_is_found(name: str, program: Callable[[str], Program]) -> None:
    watched = program(PROGRAMS[name])
    made = watched.find()
    assert made is not None
    (line,) = [
        number for number, text in enumerate(watched.path.read_text().splitlines(), 1) if text.endswith("# here")
    ]
    if name == "module":
        # A name of the module is followed to the statement that reads it.
        assert made.place.line in (line, line + 3)
    else:
        assert made.place.line == line, made


def test_where_the_runs_differ_nothing_more_is_said(program: Callable[[str], Program]) -> None:
    assert program("def step():\n    entry(differs())\n").find() is None


def test_what_draws_from_a_generator_that_nothing_seeds_is_named(program: Callable[[str], Program]) -> None:
    watched = program("def step():\n    x = 1\n    y = random.random()\n    z = y\n    entry(z)\n")
    random.seed()
    made = watched.find()
    assert made is not None
    assert (made.place.line, made.name) == (HEAD.count("\n") + 3, "random.random")


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("for box in boxes:\n        last = box", "set"),
        ("last = list(boxes)[0]", "set"),
        ("for box in shelf.boxes:\n        last = box", "set"),
        ("last = first(boxes)", "first"),
        ("last = [box.number for box in {b for b in boxes}][0]", "set"),
        ("last = ' '.join('a b'.split())", "the statement"),
        ("last = list(ordered)[0]", "the statement"),
    ],
    ids=["loop", "list", "attribute", "call", "comprehension", "text", "not of a set"],
)
def test_the_order_of_a_set_that_has_a_name_is_called_a_set(
    statement: str, name: str, program: Callable[[str], Program]
) -> None:
    # What the set holds is the same in each run, and its order is not, as where its elements lie.
    text = f"""
class Box:
    def __init__(self, number):
        self.number = number
    def __hash__(self):
        return (self.number + differs()) % 9
def step():
    boxes = set()
    ordered = [1, 2]
    for number in (1, 2, 3):
        boxes.add(Box(number))
    shelf = types.SimpleNamespace(boxes=boxes)
    {statement}
    entry(last)
def first(found):
    return [each for each in found][0]
"""
    watched = program(text)
    events = [parse_lines(watched.watch(number)) for number in range(2)]
    line = watched.path.read_text().splitlines().index(f"    {statement.splitlines()[0]}") + 1
    made = [Made(each.place, each.calls) for run in events if run for each in run.events.values()]
    assert {each.name for each in made if each.place.line == line} == {name}


@pytest.mark.parametrize("given", ["empty", "functools.partial(empty, 3)"])
def test_a_function_that_is_called_by_another_name_is_known_by_its_own(
    given: str, program: Callable[[str], Program]
) -> None:
    text = f"""
import functools
from numpy import empty
def step(alloc={given}):
    rows = alloc() if alloc.__class__ is functools.partial else alloc(3)
    rows[:] = differs()
    entry(rows[0])
"""
    watched = program(text)
    run = parse_lines(watched.watch(0))
    assert run is not None
    line = next(at for at, each in enumerate(watched.path.read_text().splitlines(), 1) if "rows = alloc" in each)
    made = [Made(each.place, each.calls) for each in run.events.values() if each.place.line == line]
    assert [(each.name, each.fix[:14]) for each in made] == [("empty", "Fill the array")]


def test_what_is_recorded_at_the_end_is_what_the_program_returned(program: Callable[[str], Program]) -> None:
    made = program("def step():\n    x = differs()\n    y = x\n    return y\n").find(until=5)
    assert made is not None
    assert made.place.line == HEAD.count("\n") + 2


def test_too_many_statements_are_not_looked_at(
    program: Callable[[str], Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_values, "MOST", 50)
    watched = program("def step():\n    x = 0\n    for n in range(100):\n        x += n\n    entry(x)\n")
    assert parse_lines(watched.watch(0)) is None


def test_the_call_that_says_most_has_a_remedy() -> None:
    place = Place("train.py", 3, "step")
    made = Made(place, ("sorted", "os.scandir", "file.stat"))
    assert (made.name, made.fix) == ("os.scandir", "Sort files by their names, and do not compute from their times.")
    assert (Made(place, ("len",)).name, Made(place, ("len",)).fix) == ("the statement", "")
    workers = "Where workers run it, seed in their function, by the number of the task: what they draw and read is not traced."
    assert (Made(place, ("np.stack", "pool.map")).name, Made(place, ("np.stack", "pool.map")).fix) == (
        "pool.map",
        workers,
    )
    names = list(itertools.chain.from_iterable(row.calls for row in load_origins()))
    assert len(names) == len(set(names))


class Variable:
    """As TensorFlow's: known by its shape, as is a reference to it. Its number is another one in each run of a process."""

    __module__ = "tensorflow.python"

    def __init__(self, held: object) -> None:
        if isinstance(held, Variable):
            self._wrapped = held
        else:
            self._unique_id = f"Variable_{id(self)}"
            self.shape = held


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 2),
        ([1, 2], [2, 1]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.arange(3), np.arange(4)),
        (np.float32(1), np.float64(1)),
        (random.Random(1), random.Random(2)),
        (np.random.default_rng(1), np.random.default_rng(2)),
        (np.random.RandomState(1), np.random.RandomState(2)),
        (np.array([1, "a"], object), np.array([1, "b"], object)),
        (Path("a"), Path("b")),
        (Variable((2, 3)), Variable((3,))),
        (Variable(Variable((2, 3))), Variable(Variable((3,)))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_differ_have_other_fingerprints(a: object, b: object) -> None:
    assert hash_any(a) != hash_any(b)
    assert hash_any(a) == hash_any(a) is not None


def test_sets_have_no_order_and_objects_no_address() -> None:
    assert hash_any({8, 16, 24, 1}) == hash_any({24, 1, 16, 8})
    assert hash_any(object()) == hash_any(object())
    assert hash_any(Variable((2, 3))) == hash_any(Variable((2, 3)))
    circle: list[Any] = []
    circle.append(circle)
    assert hash_any(circle) is not None

    class Refusing:
        @property
        def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
            raise ValueError

    assert hash_any(Refusing()) is None


def test_a_file_that_is_not_python_has_no_statements() -> None:
    assert read_statements("def (") == {}
