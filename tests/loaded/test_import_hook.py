"""What waits for an import: it finds what the others find, calls back once, and leaves nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path

import pytest

from envlock.runtime.loaded.import_hook import ImportHook

NAMES = ("computes_a", "computes_b")


class Refusal(Exception):  # noqa: N818
    pass


class Told:
    """Notes the calls of a hook; `refuses` makes them raise."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.refuses = False
        self.hook = ImportHook(NAMES, lambda: self.tell("before"), self.tell)

    def tell(self, name: str) -> None:
        self.calls.append(name)
        if self.refuses and name != "before":
            raise Refusal(name)


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text("X = 1\n", encoding="utf-8")
    (tmp_path / "computes_a.py").write_text("import json\nX = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    made, before = Told(), list(sys.meta_path)
    yield made
    sys.meta_path[:] = before
    for name in NAMES:
        sys.modules.pop(name, None)


def test_it_calls_after_each_import_and_removes_itself(told: Told) -> None:
    told.hook.start()
    module = importlib.import_module("computes_a")
    assert (told.calls, told.hook in sys.meta_path) == (["before", "computes_a"], True)
    assert isinstance(module.__loader__, SourceFileLoader)
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__
    importlib.import_module("computes_b")
    assert told.calls[2:] == ["before", "computes_b"]
    assert told.hook not in sys.meta_path


def test_a_question_where_a_module_is_does_not_use_it_up(told: Told) -> None:
    told.hook.start()
    spec = find_spec("computes_a")
    assert spec is not None
    assert spec.loader is not None
    assert spec.loader.get_source("computes_a") == "import json\nX = 1\n"  # type: ignore[attr-defined]
    assert told.calls == []
    importlib.import_module("computes_a")
    assert told.calls == ["before", "computes_a"]


def test_a_module_that_does_not_exist_is_not_found(told: Told, tmp_path: Path) -> None:
    (tmp_path / "computes_b.py").unlink()
    told.hook.start()
    importlib.invalidate_caches()
    assert find_spec("computes_b") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("computes_b")
    assert told.calls == []


def test_what_is_imported_is_not_waited_for(told: Told) -> None:
    importlib.import_module("computes_a")
    importlib.import_module("computes_b")
    told.hook.start()
    assert told.hook not in sys.meta_path


def test_a_refused_import_has_not_happened_and_is_tried_again(told: Told) -> None:
    told.hook.start()
    told.refuses = True
    for _ in range(2):
        with pytest.raises(Refusal):
            importlib.import_module("computes_a")
        assert "computes_a" not in sys.modules
    told.refuses = False
    importlib.import_module("computes_a")
    assert told.calls.count("computes_a") == 3


def test_a_module_that_fails_by_itself_is_waited_for_still(told: Told, tmp_path: Path) -> None:
    (tmp_path / "computes_b.py").write_text("raise OSError\n", encoding="utf-8")
    told.hook.start()
    with pytest.raises(OSError):  # noqa: PT011
        importlib.import_module("computes_b")
    assert (told.calls, told.hook in sys.meta_path) == (["before"], True)


def test_what_another_one_imports_is_looked_at_together_with_it(told: Told, tmp_path: Path) -> None:
    (tmp_path / "computes_a.py").write_text("import computes_b\n", encoding="utf-8")
    told.hook.start()
    importlib.import_module("computes_a")
    assert (told.calls, told.hook in sys.meta_path) == (["before", "before", "computes_a"], False)


def test_several_wait_for_the_same_module(told: Told) -> None:
    others: list[str] = []
    other = ImportHook(NAMES, lambda: None, others.append)
    told.hook.start()
    other.start()
    importlib.import_module("computes_a")
    assert (told.calls, others) == (["before", "computes_a"], ["computes_a"])
    other.stop()
    other.stop()
    assert other not in sys.meta_path
