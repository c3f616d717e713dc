"""Hints of errors, obeyed: what failed says what to type, and what is typed ends otherwise.

Commands run in this process, so that the file that raised an error is known. What starts another program in place of
this one is a process of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import numpy as np
import pytest

import envlock as package
from envlock.cli import app
from envlock.evidence import session
from envlock.evidence.canary.canary_run import Settings
from envlock.evidence.canary.program_operations import replay
from envlock.evidence.diverge import observed_runs
from envlock.evidence.diverge.observed_runs import Request
from envlock.evidence.repeat.matrices import compute_matrices
from envlock.evidence.results import iter_differing
from envlock.fleet.jobs import choose_job
from envlock.fleet.ranks import find_rank
from envlock.fleet.reduction import choose_policy
from envlock.guest import launch
from envlock.guest.target import parse_target as parse_program
from envlock.image import images, quoting, standalone, supply
from envlock.image.additions import parse_additions
from envlock.image.base import resolve_offline
from envlock.image.bases.base_request import BaseRequest
from envlock.image.bases.candidate import PythonArchive
from envlock.image.bases.choose import candidates, choose_offline
from envlock.image.bases.logins import find_login
from envlock.image.bases.manifest import find_manifest
from envlock.image.bases.needs import collect_lock_needs, collect_needs
from envlock.image.bases.preflight import check_base
from envlock.image.bases.reference import name_local_image, parse_mirror, parse_platform
from envlock.image.bases.reference import parse as parse_image
from envlock.image.bases.registry import Registry
from envlock.image.copies import collect
from envlock.image.debian import parse_apt_request
from envlock.image.engines import buildx, daemon
from envlock.image.engines.container_run import Finished, Start
from envlock.image.engines.engine import check_name
from envlock.image.engines.engine_errors import EngineError, explain
from envlock.image.engines.find import find as find_engine
from envlock.image.engines.process import ask, call
from envlock.image.foresight import find_overwritten
from envlock.image.forms import deployment, slsa
from envlock.image.ignore_files import IgnoreFiles
from envlock.image.image_verification import ask_entrypoint
from envlock.image.inside import ensure_image, look_inside
from envlock.image.layers import Wheel
from envlock.image.local_base import make_finder
from envlock.image.payload import list_wheels
from envlock.image.plan import plan
from envlock.image.push import parse_target
from envlock.image.supply import BuildSources
from envlock.integrations import jupyter
from envlock.linter.baseline import parse_baseline
from envlock.lock.locks import load_lock
from envlock.lock.models import DebianPackage, Lockfile
from envlock.lock.settings import load
from envlock.packages import overlay
from envlock.packages.archives import fetch_debian
from envlock.packages.folder_packages import renew_folders
from envlock.packages.hash import _refuse_lost_proofs
from envlock.packages.index import PackageIndex, Target
from envlock.packages.installer import choose_installer
from envlock.packages.local_wheels import find_named_wheels
from envlock.packages.upgrade_resolution import parse_wishes
from envlock.packages.web.client import Client
from envlock.packages.web.web_errors import WebError
from envlock.packages.wheelhouse import fetch_wheels
from envlock.reports import render
from envlock.reports.progress import SILENT
from envlock.runtime.environment_line import parse_line
from envlock.runtime.errors import EnvlockError
from envlock.runtime.files import image_baseline
from envlock.runtime.image_questions import check_loaded
from envlock.runtime.user_cache import require_cache
from tests.cli.test_verify_command import captured
from tests.conftest import Command, activate
from tests.evidence.diverge import traces
from tests.evidence.test_matrices import runs_of
from tests.exhaustive import exhaustive
from tests.image import plans
from tests.image.bases.asking import TABLES
from tests.image.bases.experts import UBUNTUS, locked
from tests.image.forms.pushed import pushed
from tests.locks import document
from tests.packages.identified import doubt, lock_of, proof, wheel
from tests.packages.projects import make_project
from tests.packages.wheels import make_wheel
from tests.remedies.rows import UNSAID, list_hints, load_hints

pytestmark = [pytest.mark.processes, pytest.mark.longer]

OWN = Path(sys.prefix) / "bin" / "python"
DIGEST = "sha256:" + "0" * 64
Act = Callable[[Path], object]


class Code(int):
    """How a command ends."""


class Case(NamedTuple):
    """What fails, and what is obeyed.

    Attributes:
        file: of the package, that raises the error.
        typed: the words after `envlock`, or what is called with the current folder.
        hint: what the hint has.
        obeyed: what is typed or called then.
        code: how an obeyed command ends.
        another: what the error has that is raised then: another one, which goes further.
        locked: whether there is a lockfile.
    """

    file: str
    typed: str | Act
    hint: str
    obeyed: str | Act
    code: int = 0
    another: str = ""
    locked: bool = True


def write(name: str, text: str) -> Act:
    """Return what writes a file."""
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def both(*acts: str | Act) -> Act:
    """Return what does one thing after another."""

    def do(folder: Path) -> object:
        return [run(each, folder) for each in acts][-1]

    return do


def settings(text: str) -> Act:
    """Return what reads the settings of a project that has these."""
    return both(write("pyproject.toml", f"[tool.envlock]\n{text}\n"), lambda folder: load(folder))


def without(variable: str, act: str | Act) -> Act:
    """Return what is done where a variable is unset."""

    def do(folder: Path) -> object:
        value = os.environ.pop(variable)
        try:
            return run(act, folder)
        finally:
            os.environ[variable] = value

    return do


def with_variables(act: str | Act, **variables: str) -> Act:
    """Return what is done where variables are set."""

    def do(folder: Path) -> object:
        os.environ.update(variables)
        try:
            return run(act, folder)
        finally:
            for name in variables:
                del os.environ[name]

    return do


def make_model(folder: Path) -> Path:
    """Write what envlock takes for a SavedModel, and return its folder."""
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "saved_model.pb").write_bytes(b"graph")
    return folder / "model"


def break_lock(folder: Path) -> object:
    """Let the lockfile have a number where a name belongs, and show it."""
    lock = json.loads((folder / "envlock.lock").read_bytes())
    lock["facts"]["python"]["implementation"] = 1
    (folder / "envlock.lock").write_text(json.dumps(lock), encoding="utf-8")
    return run("show", folder)


def leave_folder(folder: Path) -> object:
    """Verify in a folder that is removed."""
    (folder / "gone").mkdir()
    os.chdir(folder / "gone")
    (folder / "gone").rmdir()
    return run("verify", folder)


def change_lock(folder: Path) -> object:
    """Write a lockfile of another environment beside the lockfile."""
    lock = json.loads((folder / "envlock.lock").read_bytes())
    lock["facts"]["cpu"]["model"] = "999"
    return (folder / "other.lock").write_text(json.dumps(lock), encoding="utf-8")


def edit(change: Callable[[dict[str, Any]], object]) -> Act:
    """Return what changes the lockfile."""

    def do(folder: Path) -> object:
        lock = json.loads((folder / "envlock.lock").read_bytes())
        change(lock)
        return (folder / "envlock.lock").write_text(json.dumps(lock), encoding="utf-8")

    return do


def rank(act: str | Act, **numbers: int) -> Act:
    """Return what is done as rank 0 of a job."""
    variables = {f"ENVLOCK_FLEET_{name.upper()}": str(number) for name, number in numbers.items()}
    return with_variables(act, ENVLOCK_FLEET_JOB="a", ENVLOCK_FLEET_RANK="0", **variables)


def make_bare_environment(folder: Path) -> Path:
    """Return the interpreter of an environment without pip."""
    python = folder / "bare" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "bare"], check=True)
    return python


def choose_its_installer(folder: Path) -> object:
    """Choose the installer of an environment where there is no uv."""
    python = make_bare_environment(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "/usr/bin:/bin")
        patch.setattr(sys, "executable", str(folder / "python"))
        return choose_installer(python, "pip")


def write_program(name: str, text: str) -> Act:
    """Return what writes a program."""

    def do(folder: Path) -> object:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
        return name

    return do


def open_to_others(folder: Path) -> object:
    """Ask for a package whose folder another user can have written."""
    made = folder / f"six-1.0-{overlay._make_key(SIX, OWN)}"
    made.mkdir()
    made.chmod(0o777)
    return overlay.install_overlay(SIX, folder, OWN)


def install_six(folder: Path) -> object:
    """Ask for a package where there is no index, after its folder was removed."""
    for made in folder.glob("six-1.0-*"):
        made.rmdir()
    return with_variables(
        lambda _: overlay.install_overlay(SIX, folder, OWN), PIP_NO_INDEX="1", UV_OFFLINE="1", UV_NO_INDEX="1"
    )(folder)


def find_damaged(folder: Path) -> object:
    """Look for files that wheels overwrite, where one is damaged."""
    (folder / "x.whl").write_bytes(b"PK")
    return list(find_overwritten([Wheel("x", "1", "x.whl", "0" * 64)], folder))


def find_renewed(folder: Path) -> object:
    """Look again, after the wheel was removed and made again."""
    (folder / "x.whl").unlink()
    make_wheel(folder, "x").rename(folder / "x.whl")
    return list(find_overwritten([Wheel("x", "1", "x.whl", "0" * 64)], folder))


def fetch_into(name: str) -> Act:
    """Return what puts a package of Debian that was downloaded before into a folder."""

    def do(folder: Path) -> object:
        package = DebianPackage(
            name="xx", version="1", architecture="all", size=0, sha256="0" * 64, url="http://127.0.0.1:1/x.deb"
        )
        (folder / "debs").mkdir(exist_ok=True)
        (folder / "debs" / package.file).touch()
        return fetch_debian(package, folder / name)

    return do


def write_trace(name: str, mode: str = "eager") -> Act:
    """Return what writes a trace of one operation."""
    return lambda folder: traces.write(folder / name, [traces.op("Mul", 1, [1], [2])], mode=mode)


def ensure_pip(folder: Path) -> object:
    """Install pip into the environment without it, by what is printed."""
    return subprocess.run([make_bare_environment(folder), "-m", "ensurepip"], check=True, capture_output=True)


def with_programs(act: Act) -> Act:
    """Return what is done where the programs of the folder `bin` are found first."""
    return lambda folder: with_variables(act, PATH=f"{folder}/bin:/usr/bin:/bin")(folder)


def run_in_buildah(*, gpus: bool) -> Act:
    """Return what runs a program in a container of buildah."""
    return lambda _: find_engine("buildah").run("the:1", ["true"], Start(gpus=gpus))


def fail_to_build(folder: Path) -> object:
    """Fail as an engine does that cannot read a Dockerfile."""
    raise explain("dockerfile parse error on line 3: unknown instruction: FORM")


def ask_for_runs(steps: int | None = None) -> Request:
    """Return the request for two runs of a program."""
    return Request(parse_program("step.py:step"), None, 2, fresh=False, mode="eager", steps=steps)


def run_once(folder: Path) -> object:
    """Make one run that fails."""
    with pytest.MonkeyPatch.context() as patch:
        failed = {"ends": {0: {"end": "failed", "message": "no more memory"}}}
        patch.setattr(session.Session, "make_runs", lambda *_: failed)
        return session.run_once(parse_program("step.py:step"), {}, session.Host(None, {}), 1.0)


def make_tensorflow_that_crashes(folder: Path) -> object:
    """Write a TensorFlow that ends its process when it is imported."""
    (folder / "crashes" / "tensorflow").mkdir(parents=True)
    return (folder / "crashes" / "tensorflow" / "__init__.py").write_text("import os\nos._exit(3)\n", encoding="utf-8")


def make_engine(*images: str, ended: Finished | None = None) -> Mock:
    """Return an engine of this machine that has images, and says how their programs end."""

    def inspect(image: str) -> dict[str, object]:
        if image not in images:
            raise EngineError("No such image")
        return {"Id": DIGEST, "Os": "linux", "Architecture": image.partition("-")[2] or "amd64", "Config": {}}

    return Mock(inspect=inspect, platform="linux/amd64", run=Mock(return_value=ended))


def choose_base(reference: str) -> Act:
    """Return what checks an image for a lockfile of Ubuntu, which another image fits."""

    def do(folder: Path) -> None:
        needs = collect_needs(locked("2.19.1", "3.11.7", UBUNTUS, "ubuntu 22.04"))
        known = candidates(needs, TABLES)
        check_base(next(each for each in known if str(each.reference) == reference), known, needs)

    return do


def unpack_python(folder: Path) -> None:
    """Write the tar of a build of Python."""
    standalone.write(PythonArchive("python.tar.gz", sha256(PYTHON_ARCHIVE).hexdigest()), folder, 0, BytesIO())


def make_archive() -> bytes:
    """Return a build of Python with one folder."""
    made = BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        member = tarfile.TarInfo("python")
        member.type = tarfile.DIRTYPE
        tar.addfile(member)
    return made.getvalue()


def log_to_wandb(run: object) -> Act:
    """Return what adds the environment to a run, with a stand-in for Weights & Biases."""

    def do(folder: Path) -> object:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "wandb", Mock(run=run))
            patch.delitem(sys.modules, "envlock.integrations.wandb", raising=False)
            return import_module("envlock.integrations.wandb").log_lock()

    return do


def compare_with_distances(python: Callable[[Path], Path]) -> Act:
    """Return what asks an interpreter how far two runs are apart."""

    def do(folder: Path) -> object:
        quantities = list(iter_differing(runs_of(folder, {"w": np.zeros(1)}, {"w": np.ones(1)})))
        return compute_matrices(quantities, [folder / "arrays"], python(folder))

    return do


def hold_wheel(folder: Path) -> object:
    """Write a lockfile that holds one wheel, of an index that is not there."""
    made, index = make_wheel(folder, "six"), "http://127.0.0.1:1/"
    held = wheel(made.name, made.read_bytes(), url=f"{index}{made.name}", index=f"{index}simple/")
    return (folder / "envlock.lock").write_bytes(lock_of({"six": proof("1.0", held)}).to_bytes())


def put_into_wheelhouse(folder: Path) -> object:
    """Put the wheel where an interrupted download would have left it."""
    (folder / "wheels").mkdir(exist_ok=True)
    return (folder / "six-1.0-py3-none-any.whl").rename(folder / "wheels" / "six-1.0-py3-none-any.whl")


def fill_wheelhouse(folder: Path) -> object:
    """Fill the wheelhouse of a build."""
    sources = BuildSources(wheelhouse=folder / "wheels")
    lock = load_lock(folder / "envlock.lock")
    return supply._fill(lock, plan(lock, plans.BASES["wheels"], None), ["six"], [], sources, SILENT)


def refuse_lost_proofs(now: dict[str, Any]) -> Act:
    """Return what compares the proofs of the lockfile with those of now."""
    return lambda folder: _refuse_lost_proofs(load_lock(folder / "envlock.lock"), lock_of({"six": now}))


def see_import(name: str) -> Act:
    """Return what imports a module that the program of the lockfile imports."""
    return both(
        edit(lambda lock: lock["facts"].update(loaded={"imports": [name]})),
        lambda folder: check_loaded(str(folder / "envlock.lock"), import_module),
    )


def lock_newer_python() -> Lockfile:
    """Return a lockfile of a Python that no table has."""
    held = {
        "python": {"version": "3.14.99", "compiler": "Clang 30.1.0"},
        "tensorflow": {"version": "2.21.0", "cuda_build": False},
        "system": {"os": "ubuntu", "os_version": "20.04", "libc": "glibc", "libc_version": "2.31"},
        "packages": {},
    }
    return plans.model(document(facts=held, unavailable={}))


def choose_with_newest_release(folder: Path) -> object:
    """Choose a base where the newest release of python-build-standalone has this Python."""
    needs = collect_lock_needs(lock_newer_python(), None)
    build = TABLES.standalone.build[0].model_copy(
        update={"python": "3.14.99", "compiler": "Clang 30.1.0", "machine": "x86_64"}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("envlock.packages.archives.find_newest_python", lambda *_: build)
        return choose_offline(needs, BaseRequest(), images.refresh_tables(needs))


def install_beside(folder: Path) -> object:
    """Install a package from its folder, editable, into the environment without pip."""
    words = ["install", "-q", "--no-deps", "--no-index", "--no-build-isolation", "-e"]
    pip = [sys.executable, "-m", "pip", "--python", str(make_bare_environment(folder)), *words]
    environ = {**os.environ, "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run([*pip, str(make_project(folder / "beside", "beside"))], check=True, env=environ)


def renew_beside(folder: Path) -> object:
    """Build the wheels of packages from folders."""
    return renew_folders(load_lock(folder / "envlock.lock"), make_bare_environment(folder), SILENT)


PYTHON_ARCHIVE = make_archive()
SLIM = "docker.io/library/python:3.11.7-slim-bookworm"
UBUNTU = "docker.io/library/ubuntu:22.04"
SIX = overlay.Wanted("six", "1.0")
MANIFESTS = {"manifests": [{"platform": {"os": "linux", "architecture": "arm64"}, "digest": DIGEST}]}
PYTHON_IMAGE = parse_image("registry.example/python")
ANSWER = launch.MARK + json.dumps({"facts": {}, "unavailable": {}})
LOCAL_BASE = name_local_image("0" * 64)
BARE = "--python bare/bin/python"

CASES = (
    # The command line.
    Case(
        "cli/export.py",
        both(hold_wheel, "export --wheelhouse wheels -o pylock.toml"),
        "finished files are kept",
        both(put_into_wheelhouse, "export --wheelhouse wheels -o pylock.toml"),
    ),
    Case("cli/capture.py", "capture --check -o -", "`--output`", "capture --check --output envlock.lock"),
    Case("cli/capture.py", "capture --add-machine -o -", "`--output`", "capture --add-machine --output envlock.lock"),
    Case("cli/__init__.py", leave_folder, "change to another folder", both(os.chdir, "verify")),
    Case("cli/capture.py", "capture --build", "add `--hashes`", "capture --hashes --build"),
    Case("cli/diff.py", "diff - -", "name a file or `live`", "diff envlock.lock live"),
    Case("cli/doctor.py", "doctor --setup x:y", "add `--prove`", "doctor --prove --setup x:y", another="TensorFlow"),
    Case("cli/options.py", "show --line --summary", "remove `--summary`", "show --line"),
    Case("cli/parser.py", "verfy", "did you mean `verify`", "verify"),
    Case(
        "runtime/errors.py", "verify -p strickt", "choose from: strict, bits, same-arch, functional", "verify -p strict"
    ),
    Case("cli/repeat.py", "repeat", "`envlock repeat SCRIPT[:FUNCTION]`", "repeat step.py:step --runs 2"),
    Case("cli/repeat.py", "repeat --compare a b step.py", "`envlock repeat SCRIPT", "repeat step.py:step --runs 2"),
    # Lockfiles.
    Case("runtime/lockfile.py", "show envlock.lok", "`envlock capture`", "capture -o envlock.lok"),
    Case(
        "runtime/lockfile.py",
        both(write("a.lock", ""), "verify a.lock"),
        "again with `envlock capture`",
        "capture -o a.lock",
    ),
    Case("lock/document.py", break_lock, "again with `envlock capture`", both("capture", "show")),
    Case("runtime/assertion.py", "verify", "create one with `envlock capture`", "capture", locked=False),
    Case(
        "runtime/assertion.py",
        with_variables(lambda _: package.assert_locked(), ENVLOCK_MODE="loud"),
        "choose from: enforce",
        with_variables(lambda _: package.assert_locked(static=True), ENVLOCK_MODE="enforce"),
    ),
    Case(
        "lock/writer.py",
        "capture -o far/envlock.lock",
        "create the folder first: far",
        both(lambda folder: (folder / "far").mkdir(), "capture -o far/envlock.lock"),
    ),
    Case(
        "workflows/capture.py",
        "capture --only numpy",
        "run `envlock capture` without it first",
        "capture",
        locked=False,
    ),
    Case(
        "workflows/capture.py", "capture --only nothing", "`envlock diff envlock.lock live`", "diff envlock.lock live"
    ),
    Case(
        "workflows/capture.py",
        without("ENVLOCK_WITHOUT_TENSORFLOW", "capture"),
        "add `--without-tensorflow`",
        without("ENVLOCK_WITHOUT_TENSORFLOW", "capture --without-tensorflow"),
        locked=False,
    ),
    Case(
        "workflows/entry_points.py",
        "capture --for step.py:step",
        "add `--canary`",
        "capture --for step.py:step --canary",
        another="TensorFlow",
    ),
    Case("packages/imports.py", "capture --for nothing.py", "name a file of the project", "capture --for step.py"),
    Case(
        "evidence/canary/canary.py",
        "verify --numerics",
        "`envlock capture --canary`",
        "capture --canary",
        another="TensorFlow",
    ),
    Case(
        "workflows/pastes.py",
        "diff step.py live",
        "requirements as `name==version`",
        both(write("a.txt", "typer==0.1\n"), "diff a.txt live"),
        code=1,
    ),
    Case(
        "workflows/observed_run.py",
        "run --observe -- python step.py",
        "envlock capture --for train.py",
        "capture --for step.py",
    ),
    Case("guest/launch.py", "verify --python nothing", "name the interpreter", f"verify --python {OWN}"),
    Case(
        "workflows/data_capture.py",
        both(settings('data = ["x"]'), "capture"),
        "correct `data`",
        both(settings('data = ["step.py"]'), "capture"),
    ),
    Case(
        "runtime/judgement.py",
        both(edit(lambda lock: lock["policy"].update(name="loose")), lambda _: package.assert_locked(static=True)),
        "capture again",
        both("capture", lambda _: package.assert_locked(static=True)),
    ),
    Case(
        "lock/machine_profiles.py",
        both(
            edit(lambda lock: lock["facts"]["cpu"].update(model="999")),
            "capture --add-machine",
            edit(lambda lock: lock["machines"][0]["facts"]["cpu"].update(model="998")),
            "capture",
        ),
        "add it with `envlock capture --add-machine`",
        both("capture --add-machine", "capture"),
    ),
    Case(
        "lock/live_facts.py",
        both(write_program("old/python", "echo SyntaxError >&2; exit 1"), "verify --python old/python"),
        "Python 3.8 or newer",
        f"verify --python {OWN}",
    ),
    Case(
        "packages/live_environment.py",
        both(
            edit(lambda lock: lock["facts"]["packages"]["typer"].update(version="0.0")),
            "upgrade envlock.lock step.py:step --with six==1.0",
        ),
        "`envlock capture` to lock this one",
        both("capture", with_variables("upgrade envlock.lock step.py:step --with six==1.0", PIP_NO_INDEX="1")),
        another="no versions fit six",
    ),
    Case(
        "runtime/data_files.py",
        both(lambda folder: (folder / "gone").symlink_to("nowhere"), settings('data = ["gone"]'), "capture"),
        "leave it out of `data`",
        both(settings('data = ["step.py"]'), "capture"),
    ),
    Case(
        "packages/folder_packages.py",
        both(install_beside, f"capture {BARE}", write("beside/beside.py", "VALUE = 2\n"), renew_beside),
        "run `envlock capture` to lock the present source",
        both(f"capture {BARE}", renew_beside),
    ),
    # Policies.
    Case(
        "runtime/errors.py",
        lambda _: package.verify(policy="strickt"),
        "choose from: strict",
        lambda _: package.verify(policy="strict"),
    ),
    Case(
        "runtime/errors.py",
        lambda _: render(package.verify(), "txt"),
        "choose from: text",
        lambda _: render(package.verify(), "text"),
    ),
    Case(
        "runtime/errors.py",
        lambda _: choose_policy(None, "strickt"),
        "choose from: strict",
        lambda _: choose_policy(None, "strict"),
    ),
    Case(
        "runtime/errors.py",
        lambda _: find_engine("dokcer"),
        "choose from: auto",
        lambda _: find_engine("podman"),
        another="podman|engine",
    ),
    Case("workflows/ignore.py", "ignore numpy --reason x", "`envlock capture --only numpy`", "capture --only numpy"),
    Case("workflows/ignore.py", "ignore cpu.quota --reason ''", "say in one line", "ignore cpu.quota --reason slow"),
    Case("lock/settings.py", "ignore cpu.flag --reason x", "did you mean `cpu.flags`", "ignore cpu.flags --reason x"),
    Case("lock/settings.py", "explain cpu.flag", "did you mean `cpu.flags`", "explain cpu.flags"),
    Case("diagnosis/codes.py", "explain ENV2O1", "did you mean `ENV201`", "explain ENV201"),
    Case("lock/settings.py", settings('polcy = "strict"'), "`policy`", settings('policy = "strict"')),
    Case(
        "lock/settings.py",
        settings('policy = {a = "b"}'),
        '"cpu.flags" = "superset"',
        settings('policy = {"cpu.flags" = "superset"}'),
    ),
    Case("lock/settings.py", settings('entry = "a.py"'), 'entry = ["', settings('entry = ["step.py"]')),
    Case(
        "lock/settings_changes.py",
        both(settings('policy = {"cpu.flags" = "superset"}'), "ignore cpu.quota --reason x"),
        "write it as `[tool.envlock.policy]`",
        both(settings('[tool.envlock.policy]\n"cpu.flags" = "superset"'), "ignore cpu.quota --reason x"),
    ),
    # The linter.
    Case("linter/lint.py", "lint --tf two", "such as 2.16.2", "lint --tf 2.16.2"),
    Case(
        "linter/lint.py",
        "lint --baseline a.json",
        "`envlock lint --baseline FILE --write-baseline`",
        both("lint --baseline a.json --write-baseline", "lint --baseline a.json"),
    ),
    Case(
        "linter/baseline.py",
        lambda _: parse_baseline([]),
        "`envlock lint --baseline FILE --write-baseline`",
        both(
            "lint --baseline a.json --write-baseline",
            lambda folder: parse_baseline(json.loads((folder / "a.json").read_bytes())),
        ),
    ),
    Case("linter/files.py", "lint nothing.py", "name existing files", "lint step.py"),
    Case("linter/linter.py", "lint --select ENV9", "a prefix such as ENV2", "lint --select ENV2"),
    # Runs and evidence.
    Case("guest/target.py", "repeat nothing.py:step", "write SCRIPT.py[:FUNCTION]", "repeat step.py:step --runs 2"),
    Case("guest/target.py", "repeat step.py:nothing", "`envlock repeat --help`", "repeat --help"),
    Case("evidence/repeat/repeat.py", "repeat step.py:step --runs 1", "use `--runs 2`", "repeat step.py:step --runs 2"),
    Case(
        "evidence/repeat/repeat.py",
        "repeat step.py:step --save old",
        "name a new folder",
        "repeat step.py:step --runs 2 --save new",
    ),
    Case(
        "evidence/repeat/repeat.py",
        "repeat step.py:step --save far/new",
        "create it first",
        both(lambda folder: (folder / "far").mkdir(), "repeat step.py:step --runs 2 --save far/new"),
    ),
    Case("evidence/repeated_runs.py", "repeat step.py --runs 2", "name a function", "repeat step.py:step --runs 2"),
    Case(
        "evidence/results.py",
        "repeat --compare a b",
        "`envlock repeat --save`",
        both("repeat step.py:step --runs 2 --save a", "repeat step.py:step --runs 2 --save b", "repeat --compare a b"),
    ),
    Case(
        "evidence/bisect/bisect.py",
        "bisect envlock.lock envlock.lock step.py:step",
        "`envlock diff A B`",
        both(change_lock, "diff envlock.lock other.lock"),
        code=1,
    ),
    Case(
        "evidence/upgrade/upgrade.py",
        "upgrade envlock.lock step.py:step",
        "add `--with NAME==VERSION`",
        "upgrade envlock.lock step.py:step --with six=1",
        another="not a package with a version",
    ),
    Case(
        "packages/upgrade_resolution.py",
        lambda _: parse_wishes(["six=1"], []),
        "`NAME==VERSION`",
        lambda _: parse_wishes(["six==1"], []),
    ),
    Case(
        "evidence/repeat/matrices.py",
        compare_with_distances(make_bare_environment),
        "`--python .venv/bin/python`",
        compare_with_distances(lambda _: OWN),
    ),
    Case(
        "image/supply.py",
        both(hold_wheel, fill_wheelhouse),
        "finished files are kept",
        both(put_into_wheelhouse, fill_wheelhouse),
    ),
    Case(
        "packages/hash.py",
        both(hold_wheel, refuse_lost_proofs(doubt("1.0", "it has no RECORD"))),
        "run `envlock capture` to accept the installed files",
        both("capture", refuse_lost_proofs(doubt("1.0", "it has no RECORD"))),
    ),
    Case(
        "runtime/image_questions.py", see_import("nothing_here"), "where the lockfile was captured", see_import("json")
    ),
    # Images.
    Case("image/bases/cards.py", "images --gpu foo", "such as sm_120", "images --gpu sm_120"),
    Case("image/bases/cards.py", "images --gpu Jetson", "such as Jetson Orin NX", "images --gpu 'Jetson Orin NX'"),
    Case(
        "image/bases/reference.py",
        lambda _: parse_image("A B"),
        "like nvcr.io/nvidia/tensorflow:25.02-tf2-py3",
        lambda _: parse_image("nvcr.io/nvidia/tensorflow:25.02-tf2-py3"),
    ),
    Case(
        "image/bases/reference.py",
        lambda _: parse_mirror("nvcr.io"),
        "such as nvcr.io=harbor.example/nvcr",
        lambda _: parse_mirror("nvcr.io=harbor.example/nvcr"),
    ),
    Case(
        "image/bases/reference.py",
        lambda _: parse_platform("mips"),
        "linux/amd64",
        lambda _: parse_platform("linux/amd64"),
    ),
    Case(
        "image/push.py",
        lambda _: parse_target(None),
        "add `--tag registry/name:tag`",
        lambda _: parse_target("registry.example/name:tag"),
    ),
    Case(
        "image/bases/logins.py",
        both(write("config.json", "{"), with_variables(lambda _: find_login("ghcr.io"), DOCKER_CONFIG=".")),
        "name another folder in DOCKER_CONFIG",
        with_variables(lambda _: find_login("ghcr.io"), DOCKER_CONFIG="old"),
    ),
    Case(
        "image/engines/engine.py",
        lambda _: check_name("Team/train:1"),
        "such as team/train:1",
        lambda _: check_name("team/train:1"),
    ),
    Case(
        "image/additions.py",
        lambda _: parse_additions({"command": "python"}, [], "x"),
        'command = ["python"]',
        lambda _: parse_additions({"command": ["python"]}, [], "x"),
    ),
    Case(
        "image/additions.py",
        lambda _: parse_additions({"workdir": "/app/../x"}, [], "x"),
        'workdir = "/app"',
        lambda _: parse_additions({"workdir": "/app"}, [], "x"),
    ),
    Case(
        "image/additions.py",
        lambda _: parse_additions({"user": "me"}, [], "x"),
        'such as "1000"',
        lambda _: parse_additions({"user": "1000"}, [], "x"),
    ),
    Case(
        "image/debian.py",
        lambda _: parse_apt_request({"apt": "ffmpeg"}, "x"),
        'apt = ["libgl1", "ffmpeg=7:5.1.6-0"]',
        lambda _: parse_apt_request({"apt": ["libgl1", "ffmpeg=7:5.1.6-0"]}, "x"),
    ),
    Case(
        "image/ignore_files.py",
        lambda folder: IgnoreFiles(folder, ["["]),
        "write it like `data/**`",
        lambda folder: IgnoreFiles(folder, ["data/**"]),
    ),
    Case(
        "image/copies.py",
        lambda folder: collect(folder, ["../x"], folder / "env"),
        "such as `copy = [",
        lambda folder: collect(folder, ["step.py"], folder / "env"),
    ),
    # Forms.
    Case(
        "packages/identity.py",
        "export --format requirements",
        "--no-hashes` need no hashes",
        "export --format requirements --no-hashes",
    ),
    Case(
        "workflows/export.py",
        "export --format pylock --no-hashes",
        "leave out `--no-hashes`",
        "export --format pylock",
        another="does not name the wheels",
    ),
    Case(
        "workflows/export.py",
        "export --format compose --wheelhouse w",
        "leave out `--wheelhouse`",
        "export --format compose",
        another="names no image",
    ),
    Case(
        "workflows/export.py",
        "export --format pylock -o x.toml",
        "name it pylock.toml",
        "export --format pylock -o pylock.toml",
        another="does not name the wheels",
    ),
    Case(
        "packages/local_wheels.py",
        lambda folder: find_named_wheels([folder / "x.whl"]),
        "name a .whl file",
        lambda folder: find_named_wheels([make_wheel(folder, "x")]),
    ),
    Case(
        "workflows/sync.py",
        "sync --new step.py",
        "name another folder with `--new`",
        "sync --new other --dry-run",
        another="",
    ),
    Case(
        "image/bases/choose.py", "build --base foo --dry-run", "use foo:TAG", "build --base foo:1 --dry-run --offline"
    ),
    Case(
        "packages/web/client.py",
        with_variables(lambda _: Client(), SSL_CERT_FILE="nothing.pem"),
        "SSL_CERT_FILE",
        both(write("own.pem", ""), with_variables(lambda _: Client(), SSL_CERT_FILE="own.pem")),
    ),
    Case(
        "packages/index.py",
        both(write("uv.toml", "index ="), lambda folder: PackageIndex(Target("3.11", "cp", ()), folder).list_options()),
        "correct the file",
        both(
            write("uv.toml", 'index = [{url = "https://a.example/"}]'),
            lambda folder: PackageIndex(Target("3.11", "cp", ()), folder).list_options(),
        ),
    ),
    Case("packages/installer.py", choose_its_installer, "-m ensurepip", both(ensure_pip, choose_its_installer)),
    Case("packages/overlay.py", open_to_others, "remove it", install_six, another="cannot install six"),
    Case(
        "packages/wheelhouse.py",
        lambda folder: list(fetch_wheels([], folder / "step.py", Mock(), cache=folder / "cache")),
        "name another one",
        lambda folder: list(fetch_wheels([], folder / "wheels", Mock(), cache=folder / "cache")),
    ),
    Case("packages/archives.py", fetch_into("step.py"), "name a writable folder", fetch_into("debs")),
    Case("image/foresight.py", find_damaged, "remove it", find_renewed),
    Case(
        "image/quoting.py",
        lambda _: quoting.safe("1; rm", "version", "facts.python.version"),
        "again with `envlock capture`",
        both(
            "capture",
            lambda _: quoting.safe(package.load().to_document()["facts"]["python"]["version"], "version", "x"),
        ),
    ),
    Case(
        "image/engines/process.py",
        lambda _: ask("no-engine", "info"),
        "install no-engine",
        both(
            write_program("bin/no-engine", "true"),
            lambda folder: with_variables(lambda _: ask("no-engine"), PATH=f"{folder}/bin:/bin")(folder),
        ),
    ),
    Case(
        "image/bases/registry.py",
        lambda _: Registry(Client()).find(PYTHON_IMAGE, "linux/amd64"),
        "add a tag",
        lambda _: Registry(Mock(get=Mock(side_effect=WebError("no route")))).find(
            parse_image("registry.example/python:3"), "linux/amd64"
        ),
        another="cannot look up",
    ),
    Case(
        "image/bases/manifest.py",
        lambda _: find_manifest("linux/amd64", MANIFESTS, PYTHON_IMAGE),
        "`--platform`",
        lambda _: find_manifest("linux/arm64", MANIFESTS, PYTHON_IMAGE),
    ),
    # Engines and images, of which stand-ins say what real ones do.
    Case(
        "image/engines/buildah.py",
        both(
            write_program("bin/buildah", '[ $1 != inspect ] && echo \'{"version": "1"}\''),
            with_programs(run_in_buildah(gpus=True)),
        ),
        "or leave out `--gpus`",
        with_programs(run_in_buildah(gpus=False)),
        another="the container engine failed|cannot",
    ),
    Case(
        "image/engines/buildx.py",
        both(write_program("bin/docker", "exit 1"), with_programs(lambda _: buildx.require_plugin())),
        "install the buildx plugin",
        both(
            write_program("bin/docker", "echo github.com/docker/buildx v0.12.0 x"),
            with_programs(lambda _: buildx.require_plugin()),
        ),
    ),
    Case(
        "image/engines/daemon.py",
        both(
            write_program(
                "bin/docker", "[ -z $DOCKER_CONTEXT ] && echo '\"unix:///x\"' || { echo not found >&2; exit 1; }"
            ),
            with_programs(with_variables(lambda _: daemon._find_context_host(), DOCKER_CONTEXT="gone")),
        ),
        "or unset DOCKER_CONTEXT",
        with_programs(lambda _: daemon._find_context_host()),
    ),
    Case(
        "image/engines/engine_errors.py",
        fail_to_build,
        "let envlock write it again",
        "build --dry-run --offline",
    ),
    Case(
        "image/engines/engine_errors.py",
        both(
            write_program("bin/podman", "[ $1 = version ] && echo '\"5.4.2\"' || { echo Error: lost >&2; exit 125; }"),
            with_programs(lambda _: find_engine("podman").run("the:1", ["true"], Start())),
        ),
        "see `podman info`",
        both(write_program("bin/podman", "[ $1 = info ]"), with_programs(lambda _: call("podman", "info"))),
    ),
    Case(
        "image/base.py",
        lambda _: resolve_offline(lock_newer_python(), BaseRequest()),
        "`envlock build --pin`",
        choose_with_newest_release,
    ),
    Case(
        "image/image_verification.py",
        lambda _: ask_entrypoint(lambda argv: Finished(1, "", "no Python"), []),
        "start the image by hand",
        lambda _: ask_entrypoint(lambda argv: Finished(0, "[]", ""), []),
    ),
    Case(
        "image/inside.py",
        lambda _: ensure_image(make_engine("x-arm64"), "x-arm64", print),
        "name the image for linux/amd64",
        lambda _: ensure_image(make_engine("x-amd64"), "x-amd64", print),
    ),
    Case(
        "image/inside.py",
        lambda _: look_inside(make_engine("x", ended=Finished(127, "", "")), "x"),
        "name its interpreter with `--python`",
        lambda _: look_inside(make_engine("x", ended=Finished(0, ANSWER, "")), "x", "/opt/conda/bin/python"),
    ),
    Case(
        "image/local_base.py",
        lambda _: make_finder(make_engine(), Mock())(LOCAL_BASE, "linux/amd64"),
        "load or build it there",
        lambda _: make_finder(make_engine("0" * 64), Mock())(LOCAL_BASE, "linux/amd64"),
    ),
    Case("image/bases/preflight.py", choose_base(SLIM), f"`--base {UBUNTU}`", choose_base(UBUNTU)),
    Case(
        "image/forms/deployment.py",
        "export --format compose",
        "`envlock build` to build and record one",
        lambda _: deployment.describe_deployment(plans.model(pushed()), local=True),
    ),
    Case(
        "image/forms/slsa.py",
        "export --format slsa",
        "`envlock build` to build and record one",
        lambda _: slsa.render(plans.model(pushed())),
    ),
    Case(
        "image/build.py",
        "build --rebuild",
        "`envlock build` to build and record one",
        "build --dry-run --offline",
    ),
    Case(
        "runtime/files/image_baseline.py",
        both(write("files.json", "[[1]]"), lambda folder: image_baseline.read(f"{folder}/files.json")),
        "build the image again",
        both(
            lambda folder: image_baseline.write([], f"{folder}/files.json"),
            lambda folder: image_baseline.read(f"{folder}/files.json"),
        ),
    ),
    Case(
        "image/payload.py",
        lambda folder: list_wheels(folder / "step.py"),
        "name a folder",
        lambda folder: list_wheels(folder / "old"),
    ),
    Case(
        "image/plan.py",
        lambda _: plan(plans.model(plans.lock(identity=...)), plans.BASES["wheels"], []),
        "`envlock capture --hashes`",
        lambda _: plans.planned("wheels"),
    ),
    Case(
        "image/standalone.py",
        both(write("python.tar.gz", "cut off"), unpack_python),
        "remove it and run `envlock build` again",
        both(lambda folder: (folder / "python.tar.gz").write_bytes(PYTHON_ARCHIVE), unpack_python),
    ),
    # TensorFlow, which is not in this environment, or crashes where a stand-in does.
    Case(
        "evidence/diverge/observed_runs.py",
        lambda _: observed_runs._check_answers({"callbacks": "it has none"}, ask_for_runs()),
        "use `envlock repeat`",
        "repeat step.py:step --runs 2",
    ),
    Case("evidence/session.py", run_once, "try `envlock repeat step.py:step`", "repeat step.py:step"),
    Case(
        "evidence/canary/program_operations.py",
        lambda _: replay({}, OWN, Settings(), gpus=False, seconds=1.0, environ=None),
        "run `envlock doctor`",
        "doctor",
        code=1,
    ),
    Case(
        "evidence/canary/canary_run.py",
        both(make_tensorflow_that_crashes, with_variables("capture --canary", PYTHONPATH="crashes")),
        "run `envlock doctor`",
        with_variables("doctor", PYTHONPATH="crashes"),
        code=1,
    ),
    Case(
        "diagnosis/tensorflow_state.py",
        both(make_tensorflow_that_crashes, with_variables("doctor --prove", PYTHONPATH="crashes")),
        "run `envlock doctor` without `--prove`",
        with_variables("doctor", PYTHONPATH="crashes"),
        code=1,
    ),
    Case("integrations/wandb.py", log_to_wandb(None), "call `wandb.init()` first", log_to_wandb(Mock())),
    # Traces.
    Case(
        "evidence/diverge/trace.py",
        both(write_trace("a.jsonl"), write_trace("b.jsonl"), "diverge compare a.json b.jsonl"),
        "check the path",
        "diverge compare a.jsonl b.jsonl",
    ),
    Case(
        "evidence/diverge/two_traces.py",
        both(write_trace("a", mode="graph"), write_trace("b"), "diverge compare a b"),
        "record both with this envlock",
        both(write_trace("a"), "diverge compare a b"),
    ),
    # Models.
    Case(
        "runtime/stamp.py",
        lambda folder: run(f"show {make_model(folder)}", folder),
        "`envlock.stamp(path)`",
        both(lambda folder: package.stamp(make_model(folder)), "show model"),
    ),
    Case(
        "runtime/stamp.py",
        lambda folder: package.stamp(folder / "step.py"),
        "save the model first",
        lambda folder: package.stamp(make_model(folder)),
    ),
    Case(
        "workflows/model.py",
        both(lambda folder: package.stamp(make_model(folder), whole=False), "diff model live"),
        "`envlock show LOCK --line`",
        "show envlock.lock --line",
    ),
    Case(
        "runtime/environment_line.py",
        lambda _: parse_line("envlock"),
        "give the whole line",
        lambda _: parse_line(f"envlock:1:{DIGEST}"),
    ),
    Case(
        "runtime/activation.py",
        lambda _: package.activate(seed=-1),
        "a whole number",
        lambda _: package.activate(seed=1, locked=False),
        another="TensorFlow is not installed",
    ),
    Case(
        "runtime/user_cache.py",
        lambda _: require_cache({"HOME": "nowhere"}),
        "XDG_CACHE_HOME",
        lambda folder: require_cache({"XDG_CACHE_HOME": str(folder)}),
    ),
    # Jobs.
    Case(
        "fleet/ranks.py",
        lambda _: find_rank({}, "host"),
        "set ENVLOCK_FLEET_RANK, ENVLOCK_FLEET_SIZE and ENVLOCK_FLEET_JOB",
        lambda _: find_rank({"ENVLOCK_FLEET_RANK": "0", "ENVLOCK_FLEET_SIZE": "1", "ENVLOCK_FLEET_JOB": "a"}, "host"),
    ),
    Case(
        "fleet/jobs.py",
        lambda _: choose_job(["a", "b"], "here", {}),
        "ENVLOCK_FLEET_JOB",
        lambda _: choose_job(["a", "b"], "here", {"ENVLOCK_FLEET_JOB": "a"}),
    ),
    Case(
        "fleet/folder.py",
        "fleet check here",
        "`envlock fleet report --to`",
        both(
            with_variables(
                "fleet report --to here", ENVLOCK_FLEET_RANK="0", ENVLOCK_FLEET_SIZE="1", ENVLOCK_FLEET_JOB="a"
            ),
            "fleet check here",
        ),
    ),
    Case(
        "fleet/fleet_assertion.py",
        rank(lambda _: package.assert_fleet()),
        "set ENVLOCK_FLEET_SIZE",
        rank(lambda _: package.assert_fleet(), size=1),
    ),
    Case(
        "workflows/fleet.py",
        both(rank("fleet report --to here"), "fleet check here"),
        "`--ranks`",
        "fleet check here --ranks 1",
    ),
    Case(
        "integrations/jupyter.py",
        lambda _: jupyter._execute("verfy"),
        "write `%envlock [verify|doctor|line]",
        lambda _: jupyter._execute("verify"),
    ),
    Case(
        "cli/fleet.py",
        'fleet run --options "\'" -- true',
        "quote the whole text once",
        "fleet run --options '-N 4 -n 8' -- true",
        another="cannot find the launcher",
    ),
    Case(
        "fleet/engines/__init__.py",
        "fleet run -- true",
        "name one with `--launcher`",
        "fleet run --launcher mpi --ranks 8 -- true",
        another="cannot find mpi",
    ),
)


def run(act: str | Act, folder: Path) -> object:
    """Run the words of a command in this process, or call a function; return the exit code or the result."""
    if not isinstance(act, str):
        return act(folder)
    return Code(app(shlex.split(act), prog_name="envlock", standalone_mode=False) or 0)


@pytest.fixture
def folder(envlock: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a project and its lockfile."""
    (tmp_path / "envlock.lock").write_bytes(captured(tuple(envlock.argv)))
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\n', encoding="utf-8")
    (tmp_path / "step.py").write_text("def step():\n    return 1.0\n", encoding="utf-8")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """Return the file of the package that has made each error, by the error's identity."""
    files: dict[int, str] = {}
    begin, home = EnvlockError.__init__, f"{Path(package.__file__).parent}{os.sep}"

    def remember(self: EnvlockError, *args: object, **words: object) -> None:
        frame = sys._getframe(1)
        while frame.f_locals.get("self") is self:
            assert frame.f_back is not None
            frame = frame.f_back
        files[id(self)] = frame.f_code.co_filename.removeprefix(home)
        begin(self, *args, **words)  # type: ignore[arg-type]

    monkeypatch.setattr(EnvlockError, "__init__", remember)
    return files


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.typed if isinstance(case.typed, str) else case.hint)
def test_a_hint_is_obeyed(case: Case, folder: Path, made: dict[int, str], capfd: pytest.CaptureFixture[str]) -> None:
    if not case.locked:
        (folder / "envlock.lock").unlink()
    with pytest.raises(EnvlockError) as failed:
        run(case.typed, folder)
    first = failed.value
    assert case.hint in (first.hint or ""), first
    assert made[id(first)] == case.file
    if not case.another:
        found = run(case.obeyed, folder)
        assert not isinstance(found, Code) or found == case.code
        return
    with pytest.raises(EnvlockError, match=case.another) as failed:
        run(case.obeyed, folder)
    assert failed.value.message != first.message


def test_a_run_that_took_too_long_is_not_told_again_what_was_done(folder: Path) -> None:
    waits = Mock(make_runs=Mock(side_effect=TimeoutError))
    hints = []
    for steps in (None, 3, 1):
        with pytest.raises(observed_runs.RunTimeoutError) as failed:
            observed_runs._run_batch(ask_for_runs(steps), [0], folder, waits)
        hints.append(failed.value.hint)
    assert hints[0] == "stop after fewer steps: `--steps 3`"
    assert hints[1:] == ["let a step of the function do less"] * 2


STARTERS = {
    "cli/run.py",
    "workflows/run.py",
    "lock/interpreter.py",
    "fleet/command.py",
    "fleet/rank_process.py",
}
"""Files whose hints are obeyed by processes of their own."""
STARTED = {
    "run envlock.lock true": ("envlock run envlock.lock -- ", "run envlock.lock -- true"),
    "run a b -- true": ("envlock run -- python train.py", "run -- true"),
    "run nothing-here": ("check its spelling and PATH", "run true"),
    "run --": ("envlock run -- python train.py", "run -- true"),
}


@pytest.mark.parametrize("typed", STARTED)
def test_a_hint_on_what_is_started_is_obeyed(typed: str, envlock: Command, folder: Path) -> None:
    hint, obeyed = STARTED[typed]
    done = envlock(*shlex.split(typed))
    assert done.returncode == 2
    assert hint in done.stderr.partition("hint: ")[2]
    assert envlock(*shlex.split(obeyed)).returncode == 0


WITH_TENSORFLOW = {"evidence/diverge/debug.py", "evidence/diverge/live_dataset.py"}
"""Files whose hints are obeyed where there is TensorFlow."""
DATASETS = """
import envlock, sys
import tensorflow as tf
dataset = tf.data.Dataset.range(4)
try:
    envlock.lint_dataset(iter(dataset))
except envlock.EnvlockError as error:
    print(error.hint)
print(envlock.lint_dataset(dataset).match)
"""


@pytest.mark.tensorflow
def test_a_dataset_is_passed_before_it_is_iterated_over(folder: Path, tensorflow_python: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])}
    argv = [str(tensorflow_python), "-c", DATASETS]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["pass the dataset before it is distributed or iterated over", "True"], (
        done.stderr
    )


PROGRAM = """
import envlock
import tensorflow as tf


def train():
    return {"x": tf.constant(2.0) * 3.0}


def step():
    SAY
"""


@exhaustive
@pytest.mark.tensorflow
def test_a_program_that_shows_nothing_is_told_what_to_name(folder: Path, tensorflow_python: Path) -> None:
    tool = activate(tensorflow_python, folder)
    write("program.py", PROGRAM.replace("SAY", "pass"))(folder)
    done = tool("diverge", "program.py:step")
    assert done.returncode == 4
    assert "name the function that trains, as SCRIPT:FUNCTION, or call envlock.record() in it" in done.stderr
    assert tool("diverge", "program.py:train").returncode == 0
    write("program.py", PROGRAM.replace("SAY", "envlock.record(x=1.0)"))(folder)
    assert tool("diverge", "program.py:step").returncode == 0


RANK = {"ENVLOCK_FLEET_JOB": "a", "ENVLOCK_FLEET_RANK": "0", "ENVLOCK_FLEET_SIZE": "1"}
"""The only rank of a job."""


def test_a_hint_on_what_a_rank_starts_is_obeyed(folder: Path) -> None:
    node = Command(
        [sys.executable, "-c", "import sys; from envlock.fleet.command import main; sys.exit(main(sys.argv[1:]))"],
        folder,
        RANK,
    )
    for typed, hint in {"fleet run": "write one after `--`", "fleet run -- nothing-here": "check its spelling"}.items():
        done = node(*shlex.split(typed))
        assert (done.returncode, hint in done.stderr) == (2, True), done.stderr
    assert node("fleet", "run", "--", "true").returncode == 0


def test_an_environment_that_is_not_found_is_named(folder: Path) -> None:
    tool = Command([sys.executable, "-c", "from envlock.__main__ import main; main()"], folder, {"VIRTUAL_ENV": ""})
    done = tool("verify")
    assert (done.returncode, "`--python PATH`" in done.stderr) == (2, True), done.stderr
    assert tool("verify", "--python", str(OWN)).returncode == 0


def test_each_file_with_hints_is_obeyed_here_or_has_a_reason() -> None:
    hints = load_hints()
    assert set(hints.obeyed) == {case.file for case in CASES} | STARTERS | WITH_TENSORFLOW
    assert set(hints.obeyed) <= set(list_hints())
    # Each other file has a reason, and each reason a file.
    groups = hints.group(list_hints())
    assert groups.pop(UNSAID) == []
    assert all(groups.values())
