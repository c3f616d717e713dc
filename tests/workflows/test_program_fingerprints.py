"""What a lock keeps of a program, and when it is compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envlock.guest.target import Target
from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from envlock.numerics.programs.parts import Observed, Part
from envlock.numerics.programs.program_comparison import describe_programs
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import FactError, UsageError
from envlock.runtime.report import UNKNOWN
from envlock.workflows import program_fingerprints as fingerprints
from envlock.workflows.entry_points import name_functions
from envlock.workflows.live_environment import LiveEnvironment
from envlock.workflows.progress import SILENT, Progress, Silent
from tests.locks import FACTS, UNAVAILABLE, document

NAME = "train.py:step"
HERE = LiveEnvironment(None, Snapshot(FACTS, UNAVAILABLE))


class Said(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        """Keep a line."""
        self.lines.append(text)


def part(letter: str, name: str = "train") -> Part:
    """Return a part whose digest is this letter."""
    return Part(name, "graph", letter * 64, 3)


@pytest.fixture
def observe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what decides which parts each run of the program has: a letter a run, the last again and again."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def decide(letters: str, version: str = "2.21.0", **changes: Any) -> None:
        left = list(letters)

        def run(target: Target, python: Path | None) -> Observed:
            letter = left.pop(0) if len(left) > 1 else left[0]
            parts = {"train": part(letter), "eager": part("e", "eager")}
            files = changes.get("files", (str(tmp_path / "train.py"),))
            return Observed(version, {"jit": ""}, files, changes.get("parts", parts), changes.get("failed", {}))

        monkeypatch.setattr(fingerprints, "observe_program", run)

    return decide


def capture(earlier: Lockfile | None = None, *, functions: bool = True, progress: Progress = SILENT) -> Lockfile:
    """Return a lock with the program, or with that of an earlier one."""
    targets = name_functions([NAME], Path.cwd()) if functions else {}
    lock = validate(document(), "x.lock")
    return fingerprints.renew_programs(lock, earlier, HERE, targets, progress)


def compare(lock: Lockfile) -> Any:
    """Return what runs otherwise here."""
    return fingerprints.compare_programs(lock, "x.lock", Path.cwd(), HERE, SILENT)


def test_a_program_is_locked_and_compared(observe: Callable[..., None]) -> None:
    observe("a")
    lock = capture()
    assert lock.program is not None
    target = lock.program.targets[NAME]
    assert sorted(target.code) == ["train.py"]
    assert {name: found.digest[0] for name, found in target.parts.items()} == {"train": "a", "eager": "e"}
    assert describe_programs(lock) == ["program of train.py:step: 6 operations in train (graph), eager (graph)"]
    assert describe_programs(validate(document(), "x.lock")) == []
    assert validate(lock.to_document(), "x.lock") == lock
    same = compare(lock)
    assert (same.findings, len(same.equal)) == ([], 2)
    observe("b")
    other = compare(lock)
    assert [str(finding.where) for finding in other.findings] == ["program.train.py:step.train"]


def test_a_part_that_varies_by_itself_is_left_out(observe: Callable[..., None]) -> None:
    observe("ab")
    said = Said()
    lock = capture(progress=said)
    assert lock.program is not None
    assert list(lock.program.targets[NAME].parts) == ["eager"]
    assert said.lines[1:] == ["warning: train.py:step: train is another program in each run: left out"]


def test_nothing_that_compares_is_no_lock(observe: Callable[..., None]) -> None:
    observe("a", parts={}, failed={"train": "no reason"})
    with pytest.raises(FactError, match=r"nothing of train\.py:step can be compared later"):
        capture()


def test_a_file_that_the_format_has_no_room_for(observe: Callable[..., None]) -> None:
    odd = Path("od d.py")
    odd.touch()
    observe("a", files=(str(odd),))
    with pytest.raises(UsageError, match="a lockfile cannot hold this program: `targets"):
        capture()


def test_a_renewed_lock_keeps_it_while_facts_and_code_are_the_same(observe: Callable[..., None]) -> None:
    observe("a")
    lock = capture()
    assert capture(lock, functions=False).program == lock.program
    assert capture(None, functions=False).program is None
    assert capture(validate(document(), "x.lock"), functions=False).program is None

    said = Said()
    other = lock.model_copy(update={"unavailable": {}})
    assert capture(other, functions=False, progress=said).program is None
    Path("train.py").write_text("x = 2\n", encoding="utf-8")
    assert capture(lock, functions=False, progress=said).program is None
    text = "warning: dropped the program of the old lockfile, as {} (`--program` notes a new one)"
    assert said.lines == [text.format("facts differ"), text.format("the code of train.py:step has changed")]


def test_other_code_and_another_tensorflow_are_not_compared(observe: Callable[..., None]) -> None:
    observe("a")
    lock = capture()
    observe("a", version="2.20.0")
    (finding,) = compare(lock).findings
    assert (finding.severity, "is of TensorFlow 2.21.0, here is 2.20.0" in finding.message) == (UNKNOWN, True)
    Path("more.py").touch()
    observe("a", files=(str(Path("train.py").resolve()), str(Path("more.py").resolve())))
    (finding,) = compare(lock).findings
    assert finding.message == "train.py:step: not compared: the code has changed: more.py"
    Path("train.py").unlink()
    (finding,) = compare(lock).findings
    assert finding.message == "train.py:step: not compared: the code has changed: train.py"


def test_a_lock_without_a_program_is_no_answer(observe: Callable[..., None]) -> None:
    observe("a")
    with pytest.raises(FactError, match=r"x\.lock has no program"):
        compare(validate(document(), "x.lock"))


def test_a_function_is_named(observe: Callable[..., None]) -> None:
    observe("a")
    with pytest.raises(UsageError, match=r"`train\.py` names no function"):
        name_functions(["train.py"], Path.cwd())
    assert fingerprints.find_target("json:dumps", Path.cwd()).module == "json"
    assert fingerprints.find_target(NAME, Path.cwd()).script == Path.cwd() / "train.py"
