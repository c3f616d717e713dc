"""A build takes what lies in a folder now, or refuses: the project itself, editable installs, folders that were copied."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.lock.models import Lockfile
from envlock.lock.settings import describe_project
from envlock.packages.folder_packages import renew_folders
from envlock.runtime.errors import EnvironmentMismatch, OutsideError, UsageError
from envlock.workflows.capture import capture, capture_live_lock
from envlock.workflows.capture_requests import Contents
from envlock.workflows.verify import verify
from tests.image.test_supply import Told
from tests.packages.projects import make_project

pytestmark = pytest.mark.slow
Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return what installs projects into an environment of their own, as pip does, and returns its interpreter."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")

    def make(*projects: Path, editable: bool = True) -> Path:
        environment = tmp_path / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
        python = environment / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
        for project in projects:
            words = ["-e", str(project)] if editable else [str(project)]
            subprocess.run([*pip, "--no-build-isolation", *words], check=True)
            (project / "left-behind").unlink(missing_ok=True)
        return python

    return make


def locked(python: Path, own: str | None = None, earlier: Lockfile | None = None) -> Lockfile:
    """Return a lockfile of an environment; `own` is the project's own package."""
    project = {} if own is None else {"name": own}
    return capture(contents=Contents(project=project), python=python, earlier=earlier)


def read(lock: Lockfile, name: str, folder: Path) -> str:
    """Return the module in the recorded wheel of a package."""
    assert lock.identity is not None
    wheel = lock.identity.packages[name].wheel
    assert wheel is not None
    with zipfile.ZipFile(folder / "cache/envlock/wheels" / wheel.sha256 / wheel.name) as archive:
        return archive.read(f"{name}.py").decode()


def test_the_project_is_taken_as_it_lies_there_now(install: Install, tmp_path: Path) -> None:
    own = make_project(tmp_path / "own", "own")
    python = install(own)
    told = Told()
    first = renew_folders(locked(python, "own"), python, told)
    assert told.said[0].startswith("own: its folder as it is now, source sha256:")
    assert told.said[1:] == ["built own-1.0-py3-none-any.whl"]
    (own / "own.py").write_text("VALUE = 2\n")
    told = Told()
    second = renew_folders(first, python, told)
    assert told.said[1:] == ["built own-1.0-py3-none-any.whl"]
    assert (read(first, "own", tmp_path), read(second, "own", tmp_path)) == ("VALUE = 1\n", "VALUE = 2\n")


def test_what_is_installed_from_the_projects_folder_is_the_project(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no file gives its name: a setup.py may compute it."""
    own = make_project(tmp_path / "own", "own")
    settings = (own / "pyproject.toml").read_text()
    (own / "pyproject.toml").write_text(settings.partition("[project]")[0])
    python = install(own)
    monkeypatch.chdir(own)
    assert describe_project(own, None) == {}
    lock = locked(python)
    assert lock.project is not None
    assert (lock.project.name, lock.facts.packages) == ("own", {})
    assert capture_live_lock(python).project == lock.project
    first = renew_folders(lock, python, Told())
    (own / "own.py").write_text("VALUE = 2\n")
    assert read(renew_folders(first, python, Told()), "own", tmp_path) == "VALUE = 2\n"


def test_what_is_installed_from_another_folder_is_not_the_project(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = install(make_project(tmp_path / "beside", "beside"))
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    assert locked(python).project is None


def test_what_has_not_changed_is_not_built_again(install: Install, tmp_path: Path) -> None:
    own, beside = (make_project(tmp_path / name, name) for name in ("own", "beside"))
    python = install(own, beside)
    first = renew_folders(locked(python, "own"), python, Told())
    told = Told()
    assert renew_folders(first, python, told) == first
    assert [line.partition(":")[0] for line in told.said] == ["beside", "own"]


def test_the_lockfile_itself_is_no_source(install: Install, tmp_path: Path) -> None:
    own = make_project(tmp_path / "own", "own")
    python = install(own)
    first = renew_folders(locked(python, "own"), python, Told())
    (own / "envlock.lock").write_bytes(first.to_bytes())
    assert renew_folders(first, python, Told()) == first


def test_a_wheel_that_the_cache_lost_is_built_again_with_the_same_bytes(install: Install, tmp_path: Path) -> None:
    own = make_project(tmp_path / "own", "own")
    python = install(own)
    first = renew_folders(locked(python, "own"), python, Told())
    for wheel in (tmp_path / "cache/envlock/wheels").rglob("*.whl"):
        wheel.unlink()
    told = Told()
    assert renew_folders(first, python, told) == first
    assert told.said[1:] == ["built own-1.0-py3-none-any.whl"]


def test_an_editable_dependency_is_a_fact_and_a_build_refuses_another_source(install: Install, tmp_path: Path) -> None:
    beside = make_project(tmp_path / "beside", "beside")
    python = install(beside)
    lock = renew_folders(locked(python), python, Told())
    assert lock.identity is not None
    assert lock.facts.packages is not None
    source = lock.facts.packages["beside"].source
    assert source is not None
    assert lock.identity.packages["beside"].source == source
    (beside / "beside.py").write_text("VALUE = 2\n")
    report = verify(lock, python=python)
    assert [str(finding.where) for finding in report.of("error")] == ["packages.beside.source"]
    with pytest.raises(EnvironmentMismatch, match=r"the source of beside is not the locked one") as raised:
        renew_folders(lock, python, Told())
    assert raised.value.hint is not None
    assert "envlock capture" in raised.value.hint
    again = renew_folders(locked(python, earlier=lock), python, Told())
    assert read(again, "beside", tmp_path) == "VALUE = 2\n"


def test_a_renewed_lockfile_keeps_no_wheel_of_another_source(install: Install, tmp_path: Path) -> None:
    beside = make_project(tmp_path / "beside", "beside")
    python = install(beside)
    lock = renew_folders(locked(python), python, Told())
    assert locked(python, earlier=lock).identity == lock.identity
    (beside / "beside.py").write_text("VALUE = 2\n")
    assert locked(python, earlier=lock).identity is None


def test_the_wheel_of_a_source_is_that_source_elsewhere(install: Install, tmp_path: Path) -> None:
    """As in an image, where there is no folder and no hook; of another source it is not."""
    beside = make_project(tmp_path / "beside", "beside")
    python = install(beside)
    lock = renew_folders(locked(python), python, Told())
    assert lock.identity is not None
    wheel = lock.identity.packages["beside"].wheel
    assert wheel is not None
    site = next(python.parent.parent.glob("lib/python3.*/site-packages"))
    for file in [*site.glob("beside.pth"), *site.glob("beside-1.0.dist-info/*")]:
        file.unlink()
    with zipfile.ZipFile(tmp_path / "cache/envlock/wheels" / wheel.sha256 / wheel.name) as archive:
        archive.extractall(site)
    assert verify(lock, python=python).of("error") == []
    document = lock.to_document()
    document["facts"]["packages"]["beside"]["source"] = "sha256:" + "0" * 64
    other = verify(Lockfile.model_validate(document), python=python)
    assert [str(finding.where) for finding in other.of("error")] == ["packages.beside.source"]


def test_a_folder_that_was_copied_must_be_installed_again(install: Install, tmp_path: Path) -> None:
    beside = make_project(tmp_path / "beside", "beside")
    python = install(beside, editable=False)
    told = Told()
    lock = renew_folders(locked(python), python, told)
    assert told.said[0].startswith("beside: its folder as it is now, files sha256:")
    assert renew_folders(lock, python, Told()) == lock
    (beside / "beside.py").write_text("VALUE = 2\n")
    with pytest.raises(OutsideError, match=r"beside has no wheel: .*beside\.py has a different hash") as raised:
        renew_folders(lock, python, Told())
    assert raised.value.hint == "install it again from its folder, and run `envlock capture`"


def test_without_the_folder_the_recorded_wheel_is_taken_and_a_line_says_so(install: Install, tmp_path: Path) -> None:
    own = make_project(tmp_path / "own", "own")
    python = install(own)
    lock = renew_folders(locked(python, "own"), python, Told())
    own.rename(tmp_path / "moved")
    told = Told()
    assert renew_folders(lock, python, told) == lock
    assert len(told.said) == 1
    assert told.said[0].startswith("own: the recorded wheel (sha256:")
    assert told.said[0].endswith("); its folder was not found here")


def test_offline_nothing_is_built(install: Install, tmp_path: Path) -> None:
    own = make_project(tmp_path / "own", "own")
    python = install(own)
    lock = locked(python, "own")
    with pytest.raises(UsageError, match="own must be built from sources that have changed"):
        renew_folders(lock, python, Told(), offline=True)
    lock = renew_folders(lock, python, Told())
    assert renew_folders(lock, python, Told(), offline=True) == lock


def test_a_file_that_git_does_not_know_yet_is_taken(install: Install, tmp_path: Path) -> None:
    own = make_project(tmp_path / "own", "own")
    subprocess.run(["git", "init", "-q", str(own)], check=True)
    (own / ".gitignore").write_text("own.py\n")
    git = ["git", "-C", str(own), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    python = install(own)
    told = Told()
    lock = renew_folders(locked(python, "own"), python, told)
    assert "commit " in told.said[0]
    assert read(lock, "own", tmp_path) == "VALUE = 1\n"
    (own / "own.py").write_text("VALUE = 2\n")
    assert read(renew_folders(lock, python, Told()), "own", tmp_path) == "VALUE = 2\n"


def test_a_new_lockfile_is_no_change_of_the_project(install: Install, tmp_path: Path) -> None:
    own = make_project(tmp_path / "own", "own")
    subprocess.run(["git", "init", "-q", str(own)], check=True)
    (own / ".gitignore").write_text("*.egg-info\n__pycache__\n")
    git = ["git", "-C", str(own), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    python = install(own)
    (own / "envlock.lock").write_bytes(locked(python, "own").to_bytes())
    told = Told()
    renew_folders(locked(python, "own"), python, told)
    assert "commit " in told.said[0]
    assert "with changes" not in told.said[0]
    (own / "own.py").write_text("VALUE = 2\n")
    told = Told()
    renew_folders(locked(python, "own"), python, told)
    assert "with changes" in told.said[0]


def test_a_project_that_cannot_be_built_is_named(install: Install, tmp_path: Path) -> None:
    own = make_project(tmp_path / "own", "own")
    python = install(own)
    (own / "pyproject.toml").write_text("[build-system\n")
    with pytest.raises(OutsideError, match="own has no wheel: "):
        renew_folders(locked(python, "own"), python, Told())


def test_modules_that_the_build_leaves_out_are_told(install: Install, tmp_path: Path) -> None:
    own = make_project(tmp_path / "own", "own")
    for module in ("pack/__init__.py", "pack/inner/__init__.py", "pack/tests/__init__.py", "tools/__init__.py"):
        (own / module).parent.mkdir(parents=True, exist_ok=True)
        (own / module).touch()
    backend = (own / "backend.py").read_text()
    backend = backend.replace('os.listdir() if name == NAME + ".py"', '["pack/__init__.py"]')
    (own / "backend.py").write_text(backend)
    python = install(own)
    told = Told()
    renew_folders(locked(python, "own"), python, told)
    assert told.said[2:] == [
        "warning: own: its build leaves out 1 module that the editable install can import, such as "
        "pack/inner/__init__.py; the image will not have them"
    ]


def test_a_note_is_made_for_line_1(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envlock.runtime.data_contents.SETTLED", -(10**18))  # as if the files were old
    beside = make_project(tmp_path / "beside", "beside")
    python = install(beside)
    lock = locked(python)
    assert lock.facts.packages is not None
    (note,) = (tmp_path / "cache/envlock/data").iterdir()
    assert str(lock.facts.packages["beside"].source) in note.read_text()
