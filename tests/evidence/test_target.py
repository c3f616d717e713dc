"""SCRIPT[:FUNCTION] as it is written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from envlock.guest.target import Target, parse_target
from envlock.runtime.errors import UsageError


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("", encoding="utf-8")
    return path


def test_a_script_and_a_function_of_it(script: Path) -> None:
    assert parse_target(str(script)) == Target(script, None, ())
    assert parse_target(f"{script}:step", ("--fast",)) == Target(script, "step", ("--fast",))
    assert parse_target(f"{script}:Trainer.step").function == "Trainer.step"
    assert [str(parse_target(str(script))), str(parse_target(f"{script}:step"))] == [str(script), f"{script}:step"]


def test_a_module_and_a_function_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    step = parse_target("pkg.train:Trainer.step", ("--fast",))
    assert step == Target(Path("pkg/train.py"), "Trainer.step", ("--fast",), "pkg.train")
    assert (str(step), step.title, step.folder) == ("pkg.train:Trainer.step", "pkg.train:Trainer.step", Path())
    whole = parse_target("pkg.train")
    assert (whole.name, whole.function) == ("pkg.train", None)
    assert whole.to_json() == {"script": "pkg.train", "module": True, "function": None, "args": []}
    assert parse_target("train:step").module == "train"


def test_a_file_is_no_module(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(script.parent)
    assert parse_target("train.py:step").module is None
    with pytest.raises(UsageError) as caught:
        parse_target("a/train")
    assert caught.value.message == "the script a/train is missing"


@pytest.mark.parametrize(
    ("packages", "function", "folder", "words"),
    [
        (["pkg", "pkg/sub"], "step", ".", "pkg.sub.train:step"),
        (["pkg", "pkg/sub"], None, ".", "pkg.sub.train"),
        (["pkg/sub"], None, "..", "sub.train, in {folder}/pkg"),
        ([], "step", ".", "PACKAGE.train:step, in the folder of the package"),
    ],
)
def test_the_module_of_a_file_is_told(
    packages: list[str],
    function: str | None,
    folder: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "pkg" / "sub" / "train.py"
    path.parent.mkdir(parents=True)
    for package in packages:
        (tmp_path / package / "__init__.py").touch()
    monkeypatch.chdir(tmp_path / folder)
    told = Target(path, function).unusable("train.py cannot be imported: ImportError: attempted relative import", "x")
    assert told.hint == f"run it by its module: envlock x {words.format(folder=tmp_path)}"


def test_a_file_whose_name_has_a_colon(tmp_path: Path) -> None:
    path = tmp_path / "a:b"
    path.write_text("", encoding="utf-8")
    assert parse_target(str(path)) == Target(path, None, ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("none.py", "the script none.py is missing"),
        ("none.py:step", "the script none.py is missing"),
        ("{folder}", "the script {folder} is a folder"),
        (sys.executable, f"{sys.executable} is a compiled program"),
        ("{folder}/train.py:", "`` is not the name of a function"),
        ("{folder}/train.py:a-b", "`a-b` is not the name of a function"),
        ("{folder}/train.py:a..b", "`a..b` is not the name of a function"),
    ],
)
def test_what_is_not_there(text: str, message: str, script: Path) -> None:
    with pytest.raises(UsageError) as caught:
        parse_target(text.format(folder=script.parent))
    assert caught.value.message == message.format(folder=script.parent)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("write SCRIPT.py")
