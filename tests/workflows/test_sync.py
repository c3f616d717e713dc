"""`envlock sync` with the real uv and the real pip, on an index of this machine: what is installed, what never is, and
what a failure leaves.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from envlock.lock.document import validate
from envlock.lock.locks import load_lock
from envlock.packages.pins import list_pins, render_pins
from envlock.runtime.collectors import Snapshot
from envlock.runtime.judgement import judge
from envlock.workflows import sync
from envlock.workflows.sync import UNFINISHED, list_machine_differences
from tests.conftest import Command, absent
from tests.exhaustive import exhaustive
from tests.locks import document, encode
from tests.packages.projects import BACKEND, PROJECT, make_archive, make_project
from tests.packages.wheels import make_wheel

pytestmark = [pytest.mark.processes, pytest.mark.longer]

UV = str(Path(sys.executable).with_name("uv"))
INSTALLERS = ("uv", "pip")
MAIN = '[project]\nname = "train"\nversion = "1"\n'
SLEEPING = "import time\nopen({mark!r}, 'w').close()\ntime.sleep(60)\n"


@dataclass(frozen=True)
class World:
    """A project with a lockfile, and an index that is a folder; nothing else is asked."""

    root: Path
    envlock: Command
    installer: str

    @property
    def index(self) -> Path:
        return self.root / "index"

    @property
    def project(self) -> Path:
        return self.envlock.folder

    @property
    def lock(self) -> Path:
        return self.project / "envlock.lock"

    def make(self, name: str, *install: str) -> Path:
        """Make an environment as its installer does, install into it, and return its interpreter."""
        folder = self.root / name
        python = folder / "bin" / "python"
        if self.installer == "uv":
            self.run(UV, "venv", "--quiet", "--python", sys.executable, str(folder))
        else:
            shutil.copytree(_make_template(), folder, symlinks=True)
        if install:
            self.install(python, *install)
        return python

    def install(self, python: Path, *words: str) -> None:
        """Install by the installer, without what is needed."""
        pip = [UV, "pip", "install", "--python", str(python)]
        if self.installer == "pip":
            pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
        self.run(*pip, "--quiet", "--no-deps", *words)

    def run(self, *argv: str) -> str:
        environ = {**os.environ, **self.envlock.environ}
        done = subprocess.run(argv, cwd=self.project, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{argv}\n{done.stdout}{done.stderr}"
        return done.stdout

    def capture(self, python: Path, *, hashes: bool = False) -> dict[str, Any]:
        """Lock an environment, and return the lockfile."""
        done = self.envlock("capture", *("--hashes",)[:hashes], "--python", str(python))
        assert done.returncode == 0, done.stderr
        return self.read()

    def begin(self, name: str) -> tuple[Path, list[str]]:
        """Return the interpreter of an environment that is new, or empty where `python -m venv` would take seconds, and
        the words that name it.
        """
        if self.installer == "uv":
            return self.root / name / "bin" / "python", ["--new", str(self.root / name)]
        python = self.make(name)
        return python, ["--python", str(python)]

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.lock.read_bytes())
        return found

    def edit(self, change: Callable[[dict[str, Any]], object]) -> None:
        lock = self.read()
        change(lock)
        self.lock.write_bytes(validate(lock, "envlock.lock").to_bytes())

    def sync(self, *words: str, code: int = 0, environ: dict[str, str] | None = None) -> tuple[str, str]:
        """Run the command; return what it prints for programs and for people."""
        done = self.envlock("sync", *words, environ=environ, timeout=120)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout, done.stderr


def list_installed(python: Path) -> dict[str, str]:
    """Return what an environment has, without what it was made with."""
    program = "import importlib.metadata as m; print({d.metadata['Name']: d.version for d in m.distributions()})"
    done = subprocess.run([str(python), "-I", "-c", program], capture_output=True, text=True, check=True)
    found: dict[str, str] = eval(done.stdout)
    return {name: version for name, version in found.items() if name not in ("pip", "setuptools")}


@cache
def _make_template() -> Path:
    """Return an environment of `python -m venv`: to copy one is quicker than to make one."""
    import tempfile

    folder = Path(tempfile.mkdtemp()) / "template"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
    return folder


@pytest.fixture(params=INSTALLERS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(MAIN)
    index = tmp_path / "index"
    for name, version in (("thing", "1.0"), ("thing", "2.0"), ("more", "1.0"), ("other", "1.0")):
        make_wheel(index, name, version)
    (tmp_path / "uv.toml").write_text(f'no-index = true\nfind-links = ["{index}"]\n')
    own = {
        "PIP_FIND_LINKS": str(index),
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "UV_CONFIG_FILE": str(tmp_path / "uv.toml"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "PIP_CACHE_DIR": str(tmp_path / "pip"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "ENVLOCK_WITHOUT_TENSORFLOW": "1",
    }
    return World(tmp_path, Command([sys.executable, "-m", "envlock"], project, own), request.param)


def test_a_new_environment_is_the_locked_one_without_any_proof(world: World) -> None:
    world.capture(world.make("theirs", "thing==1.0", "more"))
    out, err = world.sync()
    assert out.startswith("matches under policy strict")
    assert len(out.splitlines()) == 1, "a yes is one line"
    assert list_installed(world.project / ".venv/bin/python") == {"thing": "1.0", "more": "1.0"}
    assert f"installing with {world.installer}\n" in err
    # The line can be typed: it names the environment, and where this envlock comes from.
    words = shlex.split(err.partition("for a script that imports it: `")[2].partition("`")[0])
    python = str(world.project / ".venv/bin/python")
    begin = {"uv": ["uv", "pip", "install", "--python", python], "pip": [python, "-m", "pip", "install"]}
    assert words[:-1] == begin[world.installer]
    assert (Path(words[-1]) / "envlock/__init__.py").is_file()
    assert not (world.project / ".venv" / UNFINISHED).exists()
    _, err = world.sync("--dry-run")
    assert f"new environment: {world.project}/.venv-locked, with Python" in err, "the first one is not touched"


def test_a_named_environment_is_shown_and_changed_to_the_locked_one(world: World) -> None:
    world.capture(world.make("theirs", "thing==1.0", "more"))
    mine = world.make("mine", "thing==2.0", "other")
    before = world.lock.read_bytes()
    _, err = world.sync("--python", str(mine), "--dry-run")
    shown = "  + more 1.0\n  - other 1.0\n  ~ thing 2.0 -> 1.0\n"
    assert shown in err
    assert list_installed(mine) == {"thing": "2.0", "other": "1.0"}
    _, err = world.sync("--python", str(mine))
    assert shown in err
    assert list_installed(mine) == {"thing": "1.0", "more": "1.0"}
    _, err = world.sync("--python", str(mine.parents[1]))
    assert "the packages are as locked\n" in err, "named by its folder"
    assert world.lock.read_bytes() == before


def test_into_an_environment_of_conda_goes_what_conda_has_not_installed(world: World) -> None:
    def make(name: str, *more: str) -> Path:
        python = world.make(name, "other", *more)
        (python.parents[1] / "conda-meta").mkdir()
        (installer,) = python.parents[1].glob("lib/*/site-packages/other-1.0.dist-info/INSTALLER")
        installer.write_text("conda\n")
        return python

    world.capture(make("theirs", "thing==1.0", "more"))
    _, err = world.sync("--dry-run", code=1)
    version = ".".join(map(str, sys.version_info[:3]))
    assert f"with conda first: `conda create --name locked python={version} other=1.0`" in err
    mine = make("mine", "thing==2.0")
    out, _ = world.sync("--python", str(mine))
    assert out.startswith("matches under policy strict")
    assert list_installed(mine) == {"thing": "1.0", "more": "1.0", "other": "1.0"}
    plain = world.make("plain")
    _, err = world.sync("--python", str(plain), "--dry-run", code=1)
    assert f"with conda first: `conda create --name locked python={version} other=1.0`" in err
    (world.root / "plain" / "conda-meta").mkdir()
    _, err = world.sync("--python", str(plain), "--dry-run", code=1)
    assert f"with conda first: `conda install --prefix {world.root / 'plain'} other=1.0`" in err


def test_a_folder_of_wheels_that_only_a_colleague_has_is_named_by_the_printed_variable(world: World) -> None:
    world.capture(world.make("theirs", "thing==1.0"))
    for cached in ("uv", "pip"):
        shutil.rmtree(world.root / cached, ignore_errors=True)
    (world.root / "unnamed.toml").write_text("no-index = true\n")
    unnamed = {"PIP_FIND_LINKS": "", "UV_CONFIG_FILE": str(world.root / "unnamed.toml")}
    python, words = world.begin("mine")
    _, err = world.sync(*words, code=5, environ=unnamed)
    variable = err.partition("for wheels in a folder, set ")[2].partition(";")[0]
    world.sync(*words, environ={**unnamed, variable: str(world.index)})
    assert list_installed(python) == {"thing": "1.0"}


def test_another_wheel_of_the_same_version_is_refused_by_its_hash(world: World) -> None:
    world.capture(world.make("theirs", "thing==1.0"), hashes=True)
    make_wheel(world.index, "thing", "1.0", files={"thing.py": b"VERSION = 'other'\n"})
    shutil.rmtree(world.root / "cache")
    mine = world.make("mine", "other")
    _, err = world.sync("--python", str(mine), code=5)
    assert "the environment is as it was" in err
    assert "hash" in err.lower()
    assert list_installed(mine) == {"other": "1.0"}
    if world.installer == "uv":
        world.sync(code=5)
    assert not (world.project / ".venv").exists(), "a new environment is removed where its installation fails"


@exhaustive
def test_another_build_of_the_same_version_is_told_and_what_is_said_is_done(world: World) -> None:
    world.capture(world.make("theirs", "thing==1.0"), hashes=True)
    locked = next(world.index.glob("thing-1.0-*.whl"))
    before = locked.read_bytes()
    make_wheel(world.index, "thing", "1.0", files={"thing.py": b"VERSION = 'other'\n"})
    again = ["--force-reinstall", "--no-cache-dir"] if world.installer == "pip" else ["--reinstall", "--no-cache"]
    mine = world.make("mine", *again, "thing==1.0")
    asked = ("verify", "--deep", "--format", "json", "--python", str(mine))
    told = json.loads(world.envlock(*asked).stdout)["findings"]
    (fix,) = {each["fix"] for each in told if each["rule"] == "file-not-locked"}
    assert fix.startswith("Install the locked wheel (its sha256 is in the lockfile)")
    locked.write_bytes(before)
    world.install(mine, *again, "thing==1.0")
    assert json.loads(world.envlock(*asked).stdout)["match"]


@exhaustive
def test_the_same_version_from_another_wheel_is_replaced_by_the_locked_one(world: World) -> None:
    wheel = make_wheel(world.root / "patched", "thing", "1.0", files={"thing.py": b"VERSION = 'other'\n"})
    mine = world.make("mine", str(wheel))
    world.capture(world.make("theirs", "thing==1.0"), hashes=True)
    _, err = world.sync("--python", str(mine))
    assert "  ~ thing 1.0 (from the locked source)\n" in err
    assert "VERSION = '1.0'" in next(mine.parents[1].glob("lib/*/site-packages/thing.py")).read_text()


@exhaustive
def test_a_commit_is_installed_as_this_commit(world: World) -> None:
    repository = make_project(world.root / "repository" / "inner", "vcs").parent
    git = ("git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b")
    for step in (("init", "-q"), ("add", "."), ("commit", "-qm", "one")):
        world.run(*git, *step)
    config = world.root / "gitconfig"
    config.write_text(f'[url "file://{repository}"]\n\tinsteadOf = https://git.example/team/vcs\n')
    world.envlock.environ["GIT_CONFIG_GLOBAL"] = str(config)
    line = "vcs @ git+https://git.example/team/vcs#subdirectory=inner"
    world.capture(world.make("theirs", line))
    (repository / "inner" / "vcs.py").write_text("VALUE = 2\n")
    world.run(*git, "commit", "-qam", "two")
    python, words = world.begin("mine")
    world.sync(*words)
    assert world.run(str(python), "-c", "import vcs; print(vcs.VALUE)") == "1\n"


@exhaustive
def test_folders_are_installed_as_they_lie_here(world: World) -> None:
    """An editable package of the project's folder, and the project itself."""
    (world.project / "pyproject.toml").unlink()
    make_project(world.root / "made", "train")
    shutil.copytree(world.root / "made", world.project, dirs_exist_ok=True)
    library = make_project(world.project / "libraries" / "lib", "lib")
    world.capture(world.make("theirs", "-e", str(library), "-e", str(world.project), "more"))
    python, words = world.begin("mine")
    _, err = world.sync(*words)
    assert f"  lib: {library}, as it is now\n" in err
    program = "import lib, train; print(lib.__file__, train.__file__)"
    assert world.run(str(python), "-I", "-c", program) == f"{library}/lib.py {world.project}/train.py\n"
    library.rename(world.root / "moved")
    python, words = world.begin("second")
    _, err = world.sync(*words, code=1)
    assert "error: 1 package not installed:\n  lib 1.0: its folder was not found here: install it with" in err
    assert list_installed(python) == {"more": "1.0", "train": "1.0"}, "all the others are there"
    line = err.partition("install it with `")[2].partition("`")[0]
    typed = line.replace("PYTHON", str(python)).replace("FOLDER", str(world.root / "moved"))
    world.run("env", f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}", *shlex.split(typed))
    assert list_installed(python)["lib"] == "1.0"


def test_what_was_left_out_is_not_to_be_installed_by_the_same_command(world: World) -> None:
    python = world.make("theirs", "more")
    world.capture(world.make("others", "more", "thing==1.0"))
    world.edit(lambda lock: lock["facts"]["packages"]["thing"].update(installer="conda"))
    out, err = world.sync("--python", str(python), code=1)
    assert "nothing to install\n" in err
    assert "fix: Install it in another way: installed by conda, whose packages are not wheels.\n" in out
    assert "envlock sync" not in out


def test_a_project_that_old_setuptools_installed_from_its_folder_is_installed(world: World) -> None:
    """Its metadata lies in the current folder, in which nothing counts as installed."""
    (world.project / "setup.py").write_text("from setuptools import setup\nsetup(name='train', version='1')\n")
    python = world.make("theirs", "more")
    site = next((world.root / "theirs" / "lib").glob("python*")) / "site-packages"
    (world.project / "train.egg-info").mkdir()
    (world.project / "train.egg-info" / "PKG-INFO").write_text("Name: train\nVersion: 1\n")
    (site / "train.egg-link").write_text(f"{world.project}\n.")
    (site / "easy-install.pth").write_text(f"{world.project}\n")
    world.capture(python)
    _, err = world.sync("--python", str(python))
    assert "the packages are as locked\n" in err


def test_a_folder_with_setup_py_alone_is_a_project_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(MAIN)
    library = tmp_path / "libraries" / "lib"
    library.mkdir(parents=True)
    (library / "setup.py").write_text("from setuptools import setup\nsetup(name='my_lib', version='1.0')\n")
    assert list(sync._list_projects(tmp_path, sync.DEEP)) == [("train", tmp_path), ("my-lib", library)]


@pytest.mark.parametrize(
    "table",
    ["", "[tool.poetry]\npackage-mode = false", "[tool.uv]\npackage = false", "[tool.pdm]\ndistribution = false"],
)
def test_a_project_that_its_tool_does_not_install_is_left_out(table: str, tmp_path: Path) -> None:
    project = '[project]\nname = "train"\nversion = "1"\n[build-system]\nrequires = ["poetry-core"]\n'
    (tmp_path / "pyproject.toml").write_text(f"{project}{table}\n")
    lock = load_lock(encode(document(project={"name": "train"})))
    assert (sync._find_own_project(lock, tmp_path, {}, None) is None) == bool(table)


@exhaustive
def test_a_wheel_from_a_file_needs_that_wheel(world: World) -> None:
    wheel = make_wheel(world.root / "downloads", "local", "1.0")
    world.capture(world.make("theirs", str(wheel), "more"), hashes=True)
    kept = world.root / "kept"
    shutil.move(world.root / "cache", kept)
    make_wheel(world.project / "wheelhouse", "local", "1.0", files={"local.py": b"VERSION = 'forged'\n"})
    python, words = world.begin("first")
    _, err = world.sync(*words, code=1)
    assert "  local 1.0: its wheel is neither in the cache nor in `wheelhouse` beside the lockfile\n" in err
    assert list_installed(python) == {"more": "1.0"}
    shutil.copy(wheel, world.project / "wheelhouse")
    words = ["--python", str(python)]
    world.sync(*words)
    assert list_installed(python) == {"more": "1.0", "local": "1.0"}
    shutil.rmtree(world.project / "wheelhouse")
    shutil.move(kept, world.root / "cache")
    _, words = world.begin("second")
    world.sync(*words)


@exhaustive
def test_what_was_built_is_built_and_what_was_a_wheel_is_never_built(world: World) -> None:
    make_archive(world.index, "built")
    make_wheel(world.index, "native", "1.0", tag="cp311-cp311-manylinux2014_x86_64")
    names = ["built"]
    if sys.version_info[:2] == (3, 11):
        names.append("native")
    world.capture(world.make("theirs", *names))
    python, words = world.begin("first")
    world.sync(*words)
    assert sorted(list_installed(python)) == names
    if "native" not in names:
        pytest.skip("the tag of the wheel is that of Python 3.11")
    next(world.index.glob("native*.whl")).unlink()
    make_archive(world.index, "native")
    # Not those that were downloaded before.
    for cached in ("uv", "pip"):
        shutil.rmtree(world.root / cached, ignore_errors=True)
    python, words = world.begin("second")
    world.sync(*words, code=5)
    assert not python.exists() or not list_installed(python)


@exhaustive
def test_without_an_index_a_named_environment_is_as_it_was(world: World) -> None:
    world.capture(world.make("theirs", "thing==1.0", "more"))
    mine = world.make("mine", "thing==2.0", "other")
    before = list_installed(mine)
    (world.index / "more-1.0-py3-none-any.whl").unlink()
    for cached in ("uv", "pip"):
        shutil.rmtree(world.root / cached, ignore_errors=True)
    _, err = world.sync("--python", str(mine), code=5)
    assert err.count("error:") == 1
    assert "more" in err
    assert "the environment is as it was" in err
    assert list_installed(mine) == before


@pytest.mark.parametrize("world", ["pip"], indirect=True)
def test_settings_of_pip_neither_lead_elsewhere_nor_install_something_else(world: World) -> None:
    world.capture(world.make("theirs", "thing==1.0"))
    elsewhere = world.root / "elsewhere"
    (world.root / "limits.txt").write_text("thing==2.0\n")
    settings = world.root / "pip.conf"
    settings.write_text(
        f"[install]\ntarget = {elsewhere}\nprefix = {elsewhere}\nroot = {elsewhere}\nuser = true\n"
        f"constraint = {world.root}/limits.txt\ndry-run = true\nrequire-hashes = true\n"
    )
    python = world.make("mine")
    world.sync("--python", str(python), environ={"PIP_CONFIG_FILE": str(settings)})
    assert (list_installed(python), elsewhere.exists()) == ({"thing": "1.0"}, False)


def test_another_python_is_said_first_with_the_command_for_it(world: World) -> None:
    world.capture(world.make("theirs", "thing==1.0"))
    world.edit(lambda lock: lock["facts"]["python"].update(version="3.11.99"))
    for start, folder in {"run": Path(UV).parent, "install uv, run": world.project}.items():
        _, err = world.sync(code=2, environ={"PATH": f"{folder}:/usr/bin:/bin"})
        assert "error: Python 3.11.99 is locked, and here is " in err
        assert f"hint: {start} `uv venv --python 3.11.99 {world.project}/.venv`" in err
    assert not (world.project / ".venv").exists()
    mine = world.make("mine", "thing==2.0")
    _, err = world.sync("--python", str(mine), code=1)
    assert "python.version: locked 3.11.99" in err
    assert "hint: run `envlock sync`, which makes one with the locked Python; nothing was changed\n" in err
    assert list_installed(mine) == {"thing": "2.0"}
    world.sync("--python", str(mine), "-p", "functional")
    assert list_installed(mine) == {"thing": "1.0"}


@pytest.mark.parametrize("world", ["uv"], indirect=True)
def test_the_printed_workflow_is_green_on_another_machine_and_red_for_another_package(world: World) -> None:
    """Its lines as a runner's shell runs them, on one processor of another kind; envlock is already installed."""
    if shutil.which("jq") is None:
        absent("needs jq, which a runner has")
    world.capture(world.make("theirs", "thing==1.0"))
    world.edit(lambda lock: lock["facts"]["cpu"].update(vendor="Other", family="1", model="1", flags=["sse4_1"]))
    world.edit(lambda lock: lock["facts"]["system"].update(os="ubuntu", os_version="24.04", libc_version="2.99"))
    workflow = world.envlock("init").stdout.split("\n\n")[1]
    steps = [step["run"] for step in yaml.safe_load(workflow)["jobs"]["environment"]["steps"] if "run" in step]
    assert steps[0] == 'uv tool install "$ENVLOCK"'
    processor = str(min(os.sched_getaffinity(0)))
    path = f"{Path(sys.executable).parent}:{sys.base_prefix}/bin:{os.environ['PATH']}"
    environ = {**os.environ, **world.envlock.environ, "PATH": path}

    def run(step: str) -> subprocess.CompletedProcess[str]:
        argv = ["taskset", "--cpu-list", processor, "bash", "-e", "-c", step]
        return subprocess.run(argv, cwd=world.project, env=environ, capture_output=True, text=True, check=False)

    first = run(steps[1])
    assert first.returncode == 0, first.stderr
    done = run(steps[2])
    assert done.returncode == 0, done.stderr
    assert "differences that policy functional allows" in done.stdout
    assert "::error" not in done.stdout
    world.edit(lambda lock: lock["facts"]["packages"]["thing"].update(version="3.0"))
    assert run(steps[2]).returncode != 0


@exhaustive
@pytest.mark.parametrize("world", ["uv"], indirect=True)
def test_another_machine_is_said_first_and_the_verdict_is_the_exit_code(world: World) -> None:
    world.capture(world.make("theirs", "thing==1.0"))
    world.edit(lambda lock: lock["facts"]["cpu"].update(vendor="Other"))
    out, err = world.sync(code=1)
    assert err.startswith("warning: another machine, 1 fact that no installation changes: cpu.vendor\n")
    assert "cpu.vendor: locked Other" in out
    assert list_installed(world.project / ".venv/bin/python") == {"thing": "1.0"}


@pytest.mark.parametrize("world", ["uv"], indirect=True)
def test_what_is_asked_only_where_a_package_is_makes_no_other_machine(world: World) -> None:
    make_wheel(world.root / "index", "joblib", "1.0")
    lock = world.capture(world.make("theirs", "joblib"))
    assert "joblib_count" in lock["facts"]["cpu"]
    out, err = world.sync()
    assert out.startswith("matches under policy strict")
    assert "another machine" not in err


def test_a_gpu_that_is_missing_is_another_machine() -> None:
    devices = {"0": {"name": "NVIDIA H200"}, "1": {"name": "NVIDIA H200"}}
    locked = document(facts={"gpu": {"devices": devices}, "cpu": {"joblib_count": "2"}})
    live = Snapshot({"gpu": {"devices": {"0": devices["0"]}}, "cpu": {}}, {})
    assert list_machine_differences(judge(locked, live)) == ["gpu.devices.1"]


@exhaustive
@pytest.mark.parametrize("world", ["uv"], indirect=True)
def test_nothing_else_is_changed(world: World) -> None:
    """Neither by variables of the installers, nor where the folder of a new environment is taken."""
    world.capture(world.make("theirs", "thing==1.0"))
    target = world.root / "target"
    elsewhere = {"PIP_TARGET": str(target), "UV_TARGET": str(target), "PIP_PREFIX": str(target), "PIP_USER": "1"}
    world.sync(environ=elsewhere)
    assert not target.exists()
    taken = world.project / "taken"
    taken.mkdir()
    (taken / "file").touch()
    _, err = world.sync("--new", "taken", code=2)
    assert "hint: name another folder" in err
    assert [each.name for each in taken.iterdir()] == ["file"]
    _, err = world.sync("--new", str(world.root / "theirs"), code=2)
    assert f"envlock sync --python {world.root}/theirs/bin/python" in err
    _, err = world.sync("--new", "new", "--python", "python", code=2)
    assert "exclude each other" in err


@exhaustive
@pytest.mark.parametrize("named", [False, True], ids=["new", "named"])
def test_what_a_killed_command_leaves(world: World, named: bool) -> None:
    """A new environment is taken for unfinished, and made again; a named one is as it was."""
    if world.installer == "pip" and not named:
        pytest.skip("the same as with uv")
    make_archive(world.index, "slow")
    slow = world.root / "unpacked" / "slow"
    mark = world.root / "building"
    world.capture(world.make("theirs", "slow", "thing==1.0", "more"), hashes=True)
    words = ("--python", str(world.make("mine", "thing==2.0"))) if named else ()
    before = list_installed(world.root / "mine/bin/python") if named else None
    # From here on its build takes a minute.
    (slow / "backend.py").write_text(SLEEPING.format(mark=str(mark)) + BACKEND.format(name="slow"))
    (slow / "pyproject.toml").write_text(PROJECT.format(name="slow"))
    (slow / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n")
    with tarfile.open(world.index / "slow-1.0.tar.gz", "w:gz") as archive:
        archive.add(slow, "slow-1.0")
    for cached in ("uv", "pip"):
        shutil.rmtree(world.root / cached, ignore_errors=True)
    environ = {**os.environ, **world.envlock.environ}
    argv = [sys.executable, "-m", "envlock", "sync", *words]
    child = subprocess.Popen(argv, cwd=world.project, env=environ, stderr=subprocess.DEVNULL)
    for _ in range(600):
        if mark.exists():
            break
        time.sleep(0.1)
    else:
        pytest.fail("the build did not begin")
    child.send_signal(signal.SIGKILL)
    child.wait()
    _kill_children(mark)
    if named:
        assert list_installed(world.root / "mine/bin/python") == before
    else:
        assert (world.project / ".venv" / UNFINISHED).exists()
    (slow / "backend.py").write_text(BACKEND.format(name="slow"))
    with tarfile.open(world.index / "slow-1.0.tar.gz", "w:gz") as archive:
        archive.add(slow, "slow-1.0")
    world.sync(*words)
    if not named:
        assert not (world.project / ".venv" / UNFINISHED).exists()
        assert not (world.project / ".venv-locked").exists()


def _kill_children(mark: Path) -> None:
    """End the installer and the build that the killed command has left, which are in one session."""
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        try:
            words = (process / "cmdline").read_bytes()
            if str(mark.parent).encode() in words and int(process.name) != os.getpid():
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            continue


BAD = {
    "an option after the URL": {"url": "https://a.example/x.whl --extra-index-url http://evil"},
    "a marker": {"url": "https://a.example/x.whl ; python_version > '3'"},
    "a variable": {"url": "https://a.example/${HOME}/x.whl"},
    "an option for ssh": {"url": "ssh://-oProxyCommand=touch/x", "vcs": "git", "commit": "ab" * 20},
    "a command": {"url": "https://a.example/$(touch x)", "vcs": "git", "commit": "ab" * 20},
    "a folder above": {"url": "https://a.example/x", "vcs": "git", "commit": "ab" * 20, "subdirectory": "../../etc"},
    "a fragment": {"url": "https://a.example/x", "vcs": "git", "commit": "ab" * 20, "subdirectory": "a&egg=b #x"},
    "another system": {"url": "https://a.example/x", "vcs": "hg", "commit": "ab" * 20},
    "no commit": {"url": "https://a.example/x", "vcs": "git"},
}


@pytest.mark.parametrize("origin", BAD.values(), ids=BAD)
def test_no_line_has_what_an_installer_would_take_for_something_else(origin: dict[str, str]) -> None:
    packages = {"bad": {"version": "1.0", "origin": {"editable": False, **origin}}, "good": {"version": "1.0"}}
    facts = {**document()["facts"], "packages": packages}
    pins, left_out = list_pins(validate(document(facts=facts), "envlock.lock"))
    assert render_pins(pins, hashes=False) == "good==1.0\n"
    assert [package.name for package in left_out] == ["bad"]


def test_a_version_that_no_installer_knows_is_left_out() -> None:
    packages = {
        "odd": {"version": "1.0-final-2"},
        "none": {"installer": "pip"},
        "of-conda": {"version": "1", "installer": "conda"},
    }
    facts = {**document()["facts"], "packages": packages}
    pins, left_out = list_pins(validate(document(facts=facts), "envlock.lock"))
    assert (pins, {package.name for package in left_out}) == ([], {"none", "odd", "of-conda"})


@exhaustive
@pytest.mark.tensorflow
def test_the_environment_of_tensorflow_is_made_again(tmp_path: Path, tensorflow_python: Path) -> None:
    """By version from the index that pip and uv ask; TensorFlow computes in it."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_", "HTTP"))}
    envlock = Command([sys.executable, "-m", "envlock"], tmp_path, {**kept, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    done = envlock("capture", "--python", str(tensorflow_python), timeout=120)
    assert done.returncode == 0, done.stderr
    done = envlock("sync", timeout=900)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    program = "import tensorflow as tf; print(int(tf.reduce_sum(tf.range(5))))"
    python = str(tmp_path / ".venv" / "bin" / "python")
    out = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert out.stdout == "10\n"
