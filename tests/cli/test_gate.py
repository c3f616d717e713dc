"""The gates that `envlock init` prints: green after harmless changes, red after harmful ones, and in agreement."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from envlock.runtime.compare import TAKE_AWAY
from envlock.runtime.machines import get_profile
from envlock.runtime.short_report import INSTALL, LINES
from envlock.workflows import init
from tests.conftest import Command
from tests.exhaustive import exhaustive
from tests.machines import distribution, write

ASSERT = "import envlock; envlock.assert_locked()"
PYPROJECT = '[project]\nname = "mine"\n'


class Project:
    """A project with a captured environment, and the gates as they are printed for it."""

    def __init__(self, envlock: Command, folder: Path) -> None:
        self.folder, self.site, self.envlock = folder, folder / "site", envlock
        self.environ = {"PYTHONPATH": str(self.site)}
        write(folder, {"pyproject.toml": PYPROJECT, "site/tensorflow/__init__.py": ""})
        for name, version in (("tensorflow_cpu", "2.17.1"), ("numpy", "1.26.4"), ("pip", "23.2.1"), ("mine", "0.1")):
            distribution(self.site, name, version, {"INSTALLER": "pip\n"})
        self.run("capture", "-q")

    def run(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = self.envlock(*words, environ=self.environ)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def remove(self, name: str) -> None:
        (folder,) = self.site.glob(f"{name}-*.dist-info")
        shutil.rmtree(folder)

    def upgrade(self, name: str, version: str, files: dict[str, str] | None = None) -> None:
        self.remove(name)
        distribution(self.site, name, version, {"INSTALLER": "pip\n", **(files or {})})

    @property
    def lock(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "envlock.lock").read_bytes())
        return found

    def edit(self, change: Callable[[dict[str, Any]], object]) -> None:
        document = self.lock
        change(document)
        (self.folder / "envlock.lock").write_text(json.dumps(document), encoding="utf-8")

    def codes(self) -> list[int]:
        """Return how the hook and the target, `verify` and line 1 of a script end."""
        hook, target = lines()
        assert hook == target
        script = subprocess.run(
            [sys.executable, "-c", ASSERT], cwd=self.folder, env=self.environ, capture_output=True, check=False
        )
        found = [
            self.envlock(*shlex.split(line)[1:], environ=self.environ).returncode
            for line in (hook, "envlock verify --format github")
        ]
        return [*found, script.returncode]


def lines() -> tuple[str, str]:
    """Return the commands of the hook and the target."""
    hook = yaml.safe_load(init.HOOK)["repos"][0]["hooks"][0]["entry"]
    return hook, init.TARGET.rpartition("\t")[2].strip()


@pytest.fixture
def project(envlock: Command, tmp_path: Path) -> Project:
    return Project(envlock, tmp_path)


def _obeyed(project: Project) -> None:
    project.run("ignore", "environ.TF_ENABLE_ONEDNN_OPTS", "--reason", "measured")
    project.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"


def _loose(project: Project) -> None:
    (project.folder / "pyproject.toml").write_text(
        f'{PYPROJECT}[tool.envlock]\npolicy = "functional"\n', encoding="utf-8"
    )
    project.run("capture", "-q")
    project.environ["TF_CUDNN_DETERMINISTIC"] = "1"


def _second_machine(document: dict[str, Any]) -> None:
    document["machines"] = [get_profile(document)]
    document["facts"]["cpu"] = {**document["facts"]["cpu"], "model_name": "Another", "flags": ["sse"]}


def _add(*names: str) -> Callable[[Project], object]:
    return lambda project: [distribution(project.site, name, "1.0", {}) for name in names]


def _set(name: str, value: str) -> Callable[[Project], object]:
    return lambda project: project.environ.update({name: value})


HARMLESS: dict[str, Callable[[Project], object]] = {
    "pip is upgraded": lambda project: project.upgrade("pip", "26.0"),
    "pip is removed": lambda project: project.remove("pip"),
    "a linter is added": _add("black"),
    "a notebook's kernel is added": _add("ipykernel", "jupyter_client", "psutil"),
    "another installer": lambda project: project.upgrade("numpy", "1.26.4", {"INSTALLER": "uv\n"}),
    "a release of the project": lambda project: project.upgrade("mine", "0.2.dev3+g1234567"),
    "an ignored variable": _obeyed,
    "a looser policy": _loose,
    "one of several machines": lambda project: project.edit(_second_machine),
    "another layout, by another envlock": lambda project: project.edit(
        lambda lock: lock.update(created_by="envlock 0.0.9")
    ),
    "a variable without effect": _set("LANG", "C"),
}
HARMFUL: dict[str, Callable[[Project], object]] = {
    "another NumPy": lambda project: project.upgrade("numpy", "1.25.2"),
    "NumPy from a checkout": lambda project: project.upgrade(
        "numpy", "1.26.4", {"direct_url.json": '{"url": "file:///x", "dir_info": {"editable": true}}'}
    ),
    "no NumPy": lambda project: project.remove("numpy"),
    "another TensorFlow": lambda project: project.upgrade("tensorflow_cpu", "2.17.0"),
    "a package more": _add("scipy"),
    "other kernels": _set("TF_ENABLE_ONEDNN_OPTS", "0"),
    "other threads": _set("OMP_NUM_THREADS", "3"),
    "other flags of XLA": _set("TF_XLA_FLAGS", "--tf_xla_auto_jit=2"),
    "another Python": lambda project: project.edit(lambda lock: lock["facts"]["python"].update(version="3.9.1")),
    "another processor": lambda project: project.edit(lambda lock: lock["facts"]["cpu"].update(flags=["sse"])),
    "another C library": lambda project: project.edit(lambda lock: lock["facts"]["system"].update(libc_version="2.5")),
    "a lockfile that is cut off": lambda project: (project.folder / "envlock.lock").write_bytes(b'{"lock_version": 1'),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_change_keeps_each_gate_green(name: str, project: Project) -> None:
    HARMLESS[name](project)
    assert project.codes() == [0, 0, 0]


@pytest.mark.parametrize("name", HARMFUL)
def test_a_harmful_change_turns_each_gate_red_with_the_same_findings(name: str, project: Project) -> None:
    HARMFUL[name](project)
    codes = project.codes()
    assert codes in ([1, 1, 1], [3, 3, 1])  # what a script raises is always exit 1
    if codes[0] == 1:
        seen, checked = project.run("verify", code=1), project.run("capture", "--check", code=1)
        assert checked.stderr == f"envlock.lock is not up to date:\n{seen.stdout}"
        assert "; for other ways: `envlock explain " in seen.stdout.splitlines()[-1]


def test_changed_settings_are_asked_for_by_the_check_alone(project: Project) -> None:
    text = f'{PYPROJECT}[tool.envlock]\nentry = ["train.py"]\n[tool.envlock.policy]\nname = "bits"\n"cpu.*" = "exact"\n'
    (project.folder / "pyproject.toml").write_text(text, encoding="utf-8")
    project.run("verify")
    assert project.run("capture", "--check", code=1).stderr == (
        "envlock.lock is not up to date:\n"
        "does not match under policy strict, with 1 package of the project: 3 settings differ\n"
        "  x tool.envlock.policy.name: locked strict, pyproject.toml bits\n"
        "  x tool.envlock.policy.cpu.*: locked none, pyproject.toml exact\n"
        "  x tool.envlock.entry: locked none, pyproject.toml train.py\n"
        "      why: A lockfile is compared under what it says itself: other settings have no effect before they are "
        "captured.\n"
        "      fix: Run `envlock capture`, or put the settings back as they were.\n"
    )


def test_what_is_allowed_is_counted_where_the_check_is_green(project: Project) -> None:
    project.upgrade("pip", "26.0")
    done = project.run("capture", "--check")
    said = "importing tensorflow, to see what it loads\nenvlock.lock is up to date; 1 difference that policy strict allows\n"
    assert done.stderr == said
    assert project.run("verify", "--format", "github").stdout == (
        "::notice file=envlock.lock,title=allowed::1 difference that policy strict allows (`envlock verify -v` "
        "lists them)\n"
        "::notice file=envlock.lock,title=exempt::passed with 1 package of the project\n"
    )


def test_an_additional_tool_needs_nothing(project: Project) -> None:
    distribution(project.site, "ipykernel", "1.0", {})
    distribution(project.site, "scipy", "1.0", {})
    found = json.loads(project.run("verify", "--format", "json", code=1).stdout)["findings"]
    fixes = {each["where"]["fact"]: each["fix"] for each in found}
    assert (fixes["packages.ipykernel"], fixes["packages.scipy"]) == ("Nothing to do.", TAKE_AWAY)


def test_the_exception_is_short_begins_with_the_cause_and_ends_with_the_way_out(project: Project) -> None:
    _add(*(f"tool{number}" for number in range(60)), "black", "ipykernel")(project)
    project.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    argv = [sys.executable, "-c", ASSERT]
    done = subprocess.run(argv, cwd=project.folder, env=project.environ, capture_output=True, text=True, check=False)
    said = done.stderr.partition("EnvironmentMismatch: ")[2].splitlines()
    assert len(said) == LINES
    assert said[0].endswith(
        "envlock.lock: does not match under policy strict, with 1 package of the project: 61 facts differ"
    )
    assert said[1] == "  x environ.TF_ENABLE_ONEDNN_OPTS: locked unset, live 0"
    assert said[-3:] == [
        "  and 44 more findings (`envlock verify` lists all)",
        "2 differences that policy strict allows (`envlock verify -v` lists all)",
        f"{INSTALL}; for other ways: `envlock explain packages.tool0`",
    ]


# --- the files


def test_the_files_are_whole(envlock: Command) -> None:
    hook, workflow, target = envlock("init", "-p", "same-arch").stdout.split("\n\n")
    assert [text.partition("\n")[0] for text in (hook, workflow, target)] == [
        "# .pre-commit-config.yaml",
        "# .github/workflows/envlock.yml",
        "# Makefile",
    ]
    assert list(yaml.safe_load(hook)) == ["repos"]
    parsed = yaml.safe_load(workflow)
    assert (parsed["name"], parsed[True]) == ("envlock", ["push", "pull_request"])  # YAML 1.1 reads `on` so
    assert "--policy" not in hook + target


@pytest.mark.parametrize(
    ("policy", "said"), [("strict", '`policy = "bits"`'), ("bits", "`envlock run` sets them"), ("functional", "")]
)
def test_what_fits_several_machines_and_what_that_needs_is_said(policy: str, said: str, envlock: Command) -> None:
    first, *rest = envlock("init", "-p", policy).stderr.splitlines()
    assert first.endswith(f"[tool.envlock] with policy {policy}")
    assert [("`envlock capture --canary --for PROGRAM`" in line, said in line) for line in rest] == [(True, True)][
        : bool(said)
    ]


OFTEN = ("pip is removed", "no NumPy")
"""The changes after which the files are run by every `make test`."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in OFTEN else exhaustive) for name in (*HARMLESS, *HARMFUL)]
)
def test_the_files_run_as_they_are_printed(name: str, project: Project, tmp_path: Path) -> None:
    """By pre-commit and make themselves; a runner's lines are in `test_sync`."""
    hook, _, target = project.run("init").stdout.split("\n\n")
    project.run("capture", "-q")
    (tmp_path / ".pre-commit-config.yaml").write_text(f"{hook}\n", encoding="utf-8")
    (tmp_path / "Makefile").write_text(f"{target}\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", ".pre-commit-config.yaml"], cwd=tmp_path, check=True)
    {**HARMLESS, **HARMFUL}[name](project)
    environ = {**project.environ, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    environ |= {"VIRTUAL_ENV": sys.prefix, "PRE_COMMIT_HOME": str(tmp_path / "home")}
    red = []
    for argv in ([sys.executable, "-m", "pre_commit", "run", "--all-files"], ["make", "envlock"]):
        done = subprocess.run(argv, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
        red.append(done.returncode != 0)
        assert "Traceback" not in done.stdout + done.stderr
    assert red == [name in HARMFUL] * 2
