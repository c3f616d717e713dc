"""`[tool.envlock] entry` and `capture --for`: packages that no program of the project imports may differ."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from envlock.runtime.collectors import Snapshot
from envlock.runtime.judgement import judge
from envlock.runtime.lockfile import read_file
from envlock.runtime.policies import UNUSED
from tests.conftest import Command
from tests.packages.installed import Prefix


class Project:
    """A folder with train.py, in an environment whose packages are files."""

    def __init__(self, envlock: Command, folder: Path) -> None:
        self.envlock = envlock
        self.folder = folder
        self.prefix = Prefix(folder / "env")
        self.install("keras", "3", "try:\n    import pandas\nexcept ImportError: ...\n")
        self.install("flask", "2")
        (folder / "train.py").write_text("import keras\nfrom model import build\n", encoding="utf-8")
        (folder / "model.py").write_text("def build():\n    import h5py\n", encoding="utf-8")

    def install(self, name: str, version: str, source: str = "") -> None:
        """Install a package in the place of another version."""
        for old in self.prefix.site.glob(f"{name}-*.dist-info"):
            shutil.rmtree(old)
        self.prefix.install(name, version, {f"{name}/__init__.py": source})

    def run(self, *words: str) -> Any:
        """Run a command in the environment."""
        return self.envlock(*words, environ={"PYTHONPATH": str(self.prefix.site)})

    @property
    def recorded(self) -> Any:
        """The section of the lockfile."""
        section = json.loads((self.folder / "envlock.lock").read_bytes()).get("project", {})
        return {key: value for key, value in section.items() if key != "tooling"}  # the tests' own may be there, too

    def differing(self, *words: str) -> dict[str, str]:
        """Return what `verify` finds of packages: the severity of each path."""
        done = self.run("verify", "-f", "json", *words)
        return {each["where"]["fact"]: each["severity"] for each in json.loads(done.stdout)["findings"]}


@pytest.fixture
def project(envlock: Command, tmp_path: Path) -> Project:
    return Project(envlock, tmp_path)


def test_capture_records_and_counts_what_programs_import(project: Project) -> None:
    done = project.run("capture", "--for", "train.py", "--for", "model")
    assert project.recorded == {"entry": ["train.py", "model"], "held": {"keras": "imported by train.py"}}
    every = len(json.loads((project.folder / "envlock.lock").read_bytes())["facts"]["packages"])
    assert f"  held: 1 of {every} packages (train.py, model can import them)\n" in done.stderr
    project.install("h5py", "3")
    assert project.run("capture").stderr.startswith("renewed")
    assert project.recorded == {
        "entry": ["train.py", "model"],
        "held": {"h5py": "imported by model.py", "keras": "imported by train.py"},
    }


@pytest.mark.slow
def test_packages_that_no_program_imports_may_differ(project: Project) -> None:
    project.run("capture", "--for", "train.py")
    project.install("flask", "3")
    project.install("jinja", "1")
    assert project.differing() == {"packages.flask.version": "info", "packages.jinja": "info"}
    assert project.run("verify").returncode == 0
    project.install("keras", "4")
    assert project.differing()["packages.keras.version"] == "error"
    done = project.run("verify")
    assert done.returncode == 1
    assert "  x keras 3 -> 4 (2 facts)\n" in done.stdout
    assert "packages.keras.version: locked 3, live 4 (imported by train.py)\n" in project.run("verify", "-v").stdout
    assert "held: 1 of " in done.stdout
    assert "No entry point of this project imports this package" in project.run("explain", "packages.flask").stdout
    assert "(It is held: imported by train.py.)\n" in project.run("explain", "packages.keras").stdout


@pytest.mark.slow
def test_a_package_that_programs_newly_import_is_a_difference(project: Project) -> None:
    """`verify` looks; a script cannot in its milliseconds, and knows what was recorded."""
    project.run("capture", "--for", "train.py")
    project.install("pandas", "2")
    assert project.differing() == {"packages.pandas": "error"}
    assert project.run("verify").returncode == 1
    project.run("capture", "-o", "live.lock", "--for", "train.py")
    lock, live = (read_file(str(project.folder / name)) for name in ("envlock.lock", "live.lock"))
    found = judge(lock, Snapshot(live["facts"], live["unavailable"])).findings
    assert [(each.severity, each.where.fact, each.why) for each in found] == [("info", "packages.pandas", UNUSED)]


@pytest.mark.slow
def test_what_only_a_package_reaches_that_may_be_added_may_be_added_too(project: Project) -> None:
    project.install("keras", "3", "try:\n    import fsspec\nexcept ImportError: ...\n")
    project.run("capture", "--for", "train.py")
    project.install("fsspec", "1", "def open_dask():\n    import dask\n")
    project.install("dask", "1")
    assert project.differing() == {"packages.fsspec": "info", "packages.dask": "info"}
    assert project.run("verify").returncode == 0
    (project.folder / "train.py").write_text("import keras, dask\n", encoding="utf-8")
    assert project.differing()["packages.dask"] == "error"


@pytest.mark.slow
def test_a_locked_package_may_find_nothing_new(project: Project) -> None:
    """Beautiful Soup parses with html5lib where it is installed."""
    project.install("keras", "3", "import bs4\n")
    project.prefix.install(
        "beautifulsoup4", "4", {"bs4/__init__.py": "try:\n    import html5lib\nexcept ImportError: ...\n"}
    )
    project.run("capture", "--for", "train.py")
    project.install("html5lib", "1")
    assert project.differing() == {"packages.html5lib": "error"}


def test_the_own_rules_of_a_lockfile_can_be_disregarded(project: Project) -> None:
    project.run("capture", "--for", "train.py")
    project.install("flask", "3")
    assert project.differing("--no-overrides") == {"packages.flask.version": "error"}


@pytest.mark.slow
def test_without_its_programs_a_lockfile_has_what_was_recorded(project: Project) -> None:
    project.run("capture", "--for", "train.py")
    (project.folder / "train.py").unlink()
    assert project.run("verify").returncode == 0
    project.install("pandas", "2")
    done = project.run("verify")
    assert done.returncode == 0
    assert "no entry point `train.py`" in done.stdout
    done = project.run("capture")
    assert (done.returncode, "no entry point `train.py`" in done.stderr) == (2, True)


def test_settings_name_entry_points_and_take_them_back(project: Project) -> None:
    settings = project.folder / "pyproject.toml"
    settings.write_text('[project]\nname = "mine"\n[tool.envlock]\nentry = ["train.py"]\n', encoding="utf-8")
    project.run("capture")
    assert project.recorded == {"name": "mine", "entry": ["train.py"], "held": {"keras": "imported by train.py"}}
    below = project.folder / "below"
    below.mkdir()
    (below / "other.py").write_text("import flask\n", encoding="utf-8")
    project.run("capture", "--for", "below/other.py")
    assert project.recorded["held"] == {"flask": "imported by below/other.py"}
    settings.write_text("[tool.envlock]\nentry = []\n", encoding="utf-8")
    project.run("capture")
    assert project.recorded == {}


@pytest.mark.parametrize("text", ['entry = "train.py"', "entry = [1]", 'entry = ["missing.py"]'])
def test_settings_that_name_no_entry_point_are_refused(text: str, project: Project) -> None:
    (project.folder / "pyproject.toml").write_text(f"[tool.envlock]\n{text}\n", encoding="utf-8")
    done = project.run("capture")
    assert (done.returncode, done.stderr.count("entry")) == (2, 2 if "missing" not in text else 1)
    assert not (project.folder / "envlock.lock").exists()
