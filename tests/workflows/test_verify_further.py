"""What each further look of `verify` is given, and what the report keeps of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.diagnosis import loaded_cuda
from envlock.lock.locks import load_lock
from envlock.packages import bytecode_comparison, installation
from envlock.reports.progress import Advance, Silent
from envlock.runtime.collectors import Snapshot
from envlock.runtime.extent import Extent
from envlock.runtime.host import Host
from envlock.runtime.report import ERROR, Finding, Report
from envlock.workflows import verify, verify_further
from tests.evidence.canaries import section
from tests.locks import document, encode
from tests.packages.installed import Prefix

PACKAGE = {"version": "1.17.0", "origin": None, "wheel_tags": None, "installer": "pip"}
FACTS: dict[str, Any] = {
    "python": {"version": "3.11.7"},
    "packages": {"six": PACKAGE, "mine": PACKAGE},
    "tensorflow": {"version": "2.21.0"},
}
LOCK = document(facts=FACTS, unavailable={}, numerics=section())
SIX = {"six.py": "PY3 = True\n"}
OTHER = {
    "version": "1.17.0",
    "origin": "index",
    "proof": None,
    "wheel": None,
    "reason": "Not asked.",
    "content": "0" * 64,
}
"""An identity whose files are others than those that are installed."""
NOT_LOCKED = ("file-not-locked", "six-1.17.0.dist-info: its RECORD differs from the locked one")


class Shown(Silent):
    """Keeps what is shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        """Keep a sentence."""
        self.lines.append(text)

    @contextmanager
    def bar(self, title: str, total: int, *, in_bytes: bool = False) -> Iterator[Advance]:
        """Keep the title of a task."""
        self.lines.append(title)
        yield lambda _: None


class World:
    """An environment of another interpreter, and its lockfile, which is not in the current folder."""

    def __init__(self, folder: Path) -> None:
        self.prefix = Prefix(folder / "venv")
        self.shown = Shown()
        self.compiled: list[Path] = []
        self.file = folder / "project" / "envlock.lock"
        self.file.parent.mkdir()

    def verify(self, lock: Any = LOCK, facts: Any = FACTS, **looks: Any) -> Report:
        """Return what `verify` says of these facts."""
        self.file.write_bytes(encode(lock))
        self.facts = facts
        return verify.verify(self.file, python=self.prefix.python, progress=self.shown, **looks)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)

    def compare(python: Path, asked: list[object], *_: object) -> tuple[bool, list[str]]:
        world.compiled.append(python)
        return True, ["fine"] * len(asked)

    places = {world.prefix.python: world.prefix.place}
    monkeypatch.setattr(installation, "find_installation", places.__getitem__)
    monkeypatch.setattr(bytecode_comparison, "_ask", compare)
    monkeypatch.setattr(verify, "collect_live_for", lambda lock, python: Snapshot(world.facts, {}))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return world


def finding(where: str) -> Finding:
    return Finding(
        "planted", ERROR, where, message=f"{where} differs", why="It was planted.", fix="Remove it.", source=""
    )


def list_errors(report: Report) -> list[tuple[str, str]]:
    return [(each.rule, each.message) for each in report.of(ERROR)]


def test_deep_reads_the_files_of_the_environment_that_was_named(world: World) -> None:
    recorded = len(world.prefix.install("six", "1.17.0", SIX).read_text().splitlines())
    world.prefix.compile()
    report = world.verify(deep=True)
    assert (report.to_text(), (report.compared or {})["files"]) == ("matches under policy strict", recorded)
    assert world.shown.lines == ["reading files", "comparing bytecode"]
    assert world.compiled == [world.prefix.python]


def test_a_changed_file_comes_with_the_command_that_mends_it(world: World) -> None:
    world.prefix.install("six", "1.17.0", SIX)
    (world.prefix.site / "six.py").write_text("PY3 = None\n")
    report = world.verify(deep=True)
    assert list_errors(report) == [("file-modified", "six.py: different content of the same size")]
    pip = f"pip --python {world.prefix.python}"
    command = f"{pip} uninstall --yes six && {pip} install --no-deps --no-cache-dir six==1.17.0"
    (found,) = report.of(ERROR)
    assert (found.fix, found.commands) == (f"Reinstall the package: {command}", [command])


@pytest.mark.parametrize(
    ("project", "identity", "found"),
    [
        (..., ["six"], [NOT_LOCKED]),
        ({"entry": ["train.py"], "held": {}}, ["six"], [NOT_LOCKED]),
        ({"name": "six"}, ["six"], []),
        ({"name": "mine"}, ["six"], [NOT_LOCKED]),
        ({"name": "mine"}, ["six", "mine"], [NOT_LOCKED]),
    ],
)
def test_deep_holds_each_package_but_the_project_itself_against_the_lock(
    project: Any, identity: list[str], found: list[Any], world: World
) -> None:
    world.prefix.install("six", "1.17.0", SIX)
    world.prefix.install("mine", "1.17.0", {"mine.py": "x = 1\n"})
    lock = {**LOCK, "identity": {"packages": dict.fromkeys(identity, OTHER)}}
    if project is not ...:
        lock["project"] = project
    assert list_errors(world.verify(lock, deep=True)) == found


def test_deep_asks_the_tensorflow_of_the_environment_which_libraries_it_loads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def ask(host: Host, *, python: Path | None = None) -> dict[str, str | None]:
        asked.append((type(host), python))
        return {"cudart": "12.4"}

    monkeypatch.setattr(loaded_cuda, "ask_tensorflow", ask)
    world.prefix.install("six", "1.17.0", SIX)
    (world.prefix.site / "six.py").write_text("PY3 = None\n")
    facts = {**FACTS, "cuda": {"cudart": {"version": "12.3"}}}
    report = world.verify({**LOCK, "facts": facts}, facts, deep=True)
    assert list_errors(report) == [
        ("deep", "cuda.cudart.version: 12.3 by its files, 12.4 by TensorFlow's loader"),
        ("file-modified", "six.py: different content of the same size"),
    ]
    assert asked == [(Host, world.prefix.python)]
    sentence = "asking TensorFlow which CUDA libraries it loads"
    assert world.shown.lines == ["reading files", "comparing bytecode", sentence]


def test_the_canary_is_that_of_the_lockfile_in_the_environment_that_was_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def ask_canary(lock: object, name: str, environment: Any, *question: object, overrides: bool) -> Any:
        asked.append((lock, name, environment.python, *question))
        bits = Report([finding("numerics")], notes=["2 results"], extent=Extent(operations=2))
        return SimpleNamespace(report=bits, equal=2)

    monkeypatch.setattr(verify_further, "compare_with_lock", ask_canary)
    report = world.verify(policy="bits", numerics=True)
    assert sorted(str(each.where) for each in report.of(ERROR)) == ["numerics"]
    assert report.notes[:1] == ["2 results"]
    assert (report.compared or {})["operations"] == 2
    locked = load_lock(world.file)
    assert asked == [
        (locked, str(world.file), world.prefix.python, "bits", world.shown),
    ]
