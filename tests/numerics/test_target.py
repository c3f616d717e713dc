"""SCRIPT[:FUNCTION] as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.numerics.repeat import Target, target
from envlock.runtime.errors import UsageError


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("", encoding="utf-8")
    return path


def test_a_script_and_a_function_of_it(script: Path) -> None:
    assert target(str(script)) == Target(script, None, ())
    assert target(f"{script}:step", ("--fast",)) == Target(script, "step", ("--fast",))
    assert target(f"{script}:Trainer.step").function == "Trainer.step"
    assert [str(target(str(script))), str(target(f"{script}:step"))] == [str(script), f"{script}:step"]


def test_a_file_whose_name_has_a_colon(tmp_path: Path) -> None:
    path = tmp_path / "a:b"
    path.write_text("", encoding="utf-8")
    assert target(str(path)) == Target(path, None, ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("none.py", "the script none.py is not there"),
        ("none.py:step", "the script none.py is not there"),
        ("{folder}", "the script {folder} is a folder"),
        ("{folder}/train.py:", "`` is no name of a function"),
        ("{folder}/train.py:a-b", "`a-b` is no name of a function"),
        ("{folder}/train.py:a..b", "`a..b` is no name of a function"),
    ],
)
def test_what_is_not_there(text: str, message: str, script: Path) -> None:
    with pytest.raises(UsageError) as caught:
        target(text.format(folder=script.parent))
    assert caught.value.message == message.format(folder=script.parent)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("write SCRIPT.py")
