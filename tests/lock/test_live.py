"""Another interpreter: what lies in its way over there, and what it is given from here."""

from __future__ import annotations

import json
import venv
from pathlib import Path
from typing import Any

import pytest

from envlock.lock.live_facts import collect_live, parse_snapshot
from envlock.runtime.errors import FactError
from envlock.runtime.gpu import probe
from envlock.runtime.host import Host
from tests.conftest import Command
from tests.machines import distribution, write

pytestmark = pytest.mark.processes

FOREIGN = "raise SystemExit('not the one that is meant')\n"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment of its own without anything in it."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    return folder


def site_of(environment: Path) -> Path:
    return next(environment.glob("lib/python*/site-packages"))


@pytest.mark.parametrize("name", ["envlock/__init__.py", "envlock.py", "json.py", "importlib/__init__.py"])
@pytest.mark.parametrize("safe", ["1", ""])
def test_a_file_in_the_current_folder_is_not_imported(
    name: str, safe: str, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {name: FOREIGN})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONSAFEPATH", safe)
    assert collect_live(bare / "bin/python").facts["python"]["prefix_kind"] == "venv"


def test_another_package_called_envlock_does_not_stand_in(tmp_path: Path) -> None:
    venv.create(tmp_path, symlinks=True)
    site = site_of(tmp_path)
    distribution(site, "envlock", "9.9")
    write(site, {"envlock/__init__.py": "", "envlock/runtime/__init__.py": "", "auto.pth": "import envlock.runtime\n"})
    assert collect_live(tmp_path / "bin/python").facts["packages"]["envlock"]["version"] == "9.9"


def test_nothing_of_this_environment_is_seen_in_that_one(bare: Path) -> None:
    assert collect_live(bare / "bin/python").facts["packages"] == {}


def test_an_environment_without_a_binding_is_asked_with_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("", encoding="utf-8")
    host = Host(path=[str(tmp_path / "first")])
    assert probe._build_command("python", host)[-1] == str(tmp_path / "first")
    monkeypatch.setattr(probe, "LAST_RESORT", [str(tmp_path)])
    assert probe._build_command("python", host)[-2:] == [str(tmp_path / "first"), str(tmp_path)]


def test_the_folder_of_our_binding_is_handed_over(envlock: Command, tmp_path: Path) -> None:
    """A stand-in for the interpreter notes what it is started with."""
    program = tmp_path / "python"
    answer = 'envlock-answer:{"facts": {}, "unavailable": {}, "tooling": []}'
    program.write_text(f"#!/bin/sh\nprintf '%s' \"$5\" > argument\necho '{answer}'\n", encoding="utf-8")
    program.chmod(0o755)
    write(tmp_path / "ours", {"pynvml.py": ""})
    done = envlock("capture", "-o", "-", "--python", str(program), environ={"PYTHONPATH": str(tmp_path / "ours")})
    assert (done.returncode, json.loads(done.stdout)["facts"]) == (0, {})
    asked = json.loads((tmp_path / "argument").read_text(encoding="utf-8"))
    assert asked["binding"] == str(tmp_path / "ours")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"facts": [], "unavailable": {}},
        {"facts": {}, "unavailable": {"cpu": "no"}},
        {"facts": {}, "unavailable": {"cpu": {"reason": 1, "code": "x"}}},
        {"facts": {}, "unavailable": {}, "tooling": "pip"},
    ],
)
def test_an_answer_that_is_not_one_is_refused(answer: dict[str, Any]) -> None:
    with pytest.raises(FactError) as caught:
        parse_snapshot(answer, "hostile:1")
    assert str(caught.value) == (
        "hostile:1 gave an answer that is not one\nhint: envlock needs Python 3.8 or newer there"
    )


def test_an_answer_without_tooling_is_one() -> None:
    untold = {"cpu": {"reason": "no", "code": "x"}}
    found = parse_snapshot({"facts": {"python": None}, "unavailable": untold}, "image:1")
    assert (found.facts, found.unavailable, list(found.tooling)) == ({"python": None}, untold, [])
