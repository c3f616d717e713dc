"""Each page of docs/guides/fleet is run as it is written, on the launcher that it is about."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Command, absent
from tests.exhaustive import exhaustive, first
from tests.fleet import bed, pages
from tests.fleet.conftest import MPIS, mpi_python_of, mpirun_of
from tests.image.bed.debian import BedError
from tests.image.forms.pushed import pushed
from tests.locks import encode
from tests.test_documentation import FENCE

NETWORK = Path(__file__).with_name("network.py")
LANE = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.processes]


def active(folder: Path, python: Path) -> dict[str, str]:
    """Return the variables of a shell where the environment of an interpreter is active, and envlock is a tool."""
    (folder / "bin").mkdir()
    (folder / "bin" / "envlock").write_text(f'#!/bin/sh\nexec {sys.executable} -m envlock "$@"\n')
    (folder / "bin" / "envlock").chmod(0o755)
    path = f"{folder}/bin:{python.parent}:/usr/sbin:/usr/bin:/sbin:/bin"
    return {"PATH": path, "VIRTUAL_ENV": str(python.parent.parent)}


def check(page: str, folder: Path, run: Callable[[list[str | Path], Path], bed.Started]) -> None:
    """Run a page in a folder of its own."""
    (folder / "page").mkdir()
    commands, printed = pages.prepared(page, folder / "page")
    assert len(commands) > 1
    done = run(["bash", pages.script(commands, folder)], folder / "page")
    assert pages.differences(commands, printed, done.output) == [], done.output


@pytest.mark.parametrize(
    ("expected", "text", "is_fitting"),
    [
        ("a\nb\n", "a\nb", True),
        ("a\nb\n", "a\nb\nc", False),
        ("a\n...\n", "a\nb\nc", True),
        ("...\nc\n", "a\nb\nc", True),
        ("a\n...\n", "b", False),
        ("a [...] c\n", "a b c", True),
        ("a [...] c\n", "a b\nc", False),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_what_a_page_expects(expected: str, text: str, is_fitting: bool) -> None:
    assert pages.fits(expected, text) == is_fitting


def test_kubernetes(envlock: Command) -> None:
    """What the page shows is in the manifests, which other tests hold to the schemas of Kubernetes."""
    (envlock.folder / "envlock.lock").write_bytes(encode(pushed()))
    commands, printed = pages.prepared("kubernetes", envlock.folder)
    assert commands[0] == "envlock export --format kubernetes-fleet > job.yaml"
    made = envlock("export", "--format", "kubernetes-fleet").stdout
    assert re.findall("^kind:.*$", made, re.MULTILINE) == printed[1].split("\n")[:-1]
    page = (pages.PAGES / "kubernetes.md").read_text(encoding="utf-8")
    lines = "\n".join(line.strip() for line in made.splitlines())
    shown = [block for language, block in FENCE.findall(page) if language == "yaml"]
    assert [block for block in shown if "\n".join(line.strip() for line in block.splitlines()) not in lines] == []
    assert len(shown) == 2


@pytest.mark.processes
def test_torchrun(tmp_path: Path) -> None:
    environ = active(tmp_path, Path(sys.executable))
    torchrun = tmp_path / "bin" / "torchrun"
    torchrun.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name("torchrun.py")} "$@"\n')
    torchrun.chmod(0o755)
    check("torchrun", tmp_path, lambda words, cwd: bed.run(words, cwd, environ))


@pytest.mark.processes
def test_node_check(tmp_path: Path) -> None:
    """Each script of the page does what the page says, with a `scontrol` and a `logger` that print their arguments."""
    environ = active(tmp_path, Path(sys.executable))
    for name in ("scontrol", "logger"):
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    check("node-check", tmp_path, lambda words, cwd: bed.run(words, cwd, environ))


def test_every_page_is_run() -> None:
    run = {name.removeprefix("test_") for name in vars(TestRun) if name.startswith("test_")}
    stems = {page.stem.replace("-", "_") for page in pages.PAGES.glob("*.md")}
    assert stems == {*run, "index", "kubernetes", "node_check", "torchrun"}


@pytest.fixture
def run_with_dask(tmp_path: Path) -> Callable[[list[str | Path], Path], bed.Started]:
    """Return what runs a command beside Dask, in a name space of processes, so that no worker outlives it."""
    try:
        environ = active(tmp_path, bed.python("dask"))
    except BedError as reason:
        absent(f"no Dask: {reason}")
    own: list[str | Path] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return lambda words, cwd: bed.run([*own, *words], cwd, environ, timeout=500)


@exhaustive  # its environment takes a minute to make
@pytest.mark.fleet
@pytest.mark.slow
@pytest.mark.processes
def test_the_program_of_the_page_on_workers(
    run_with_dask: Callable[[list[str | Path], Path], bed.Started], tmp_path: Path
) -> None:
    """Where it stands it starts, and on line 1 the workers say what the page says. The environment has no TensorFlow."""
    page = (pages.PAGES.parent / "workers.md").read_text(encoding="utf-8")
    ((_, block),) = (found for found in FENCE.findall(page) if found[0] == "python")
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").touch()
    program = project / "train.py"
    program.write_text(block.replace("import tensorflow as tf", "import math"), encoding="utf-8")
    assert run_with_dask(["envlock", "capture", "-q", "--without-tensorflow"], project).code == 0
    done = run_with_dask(["python", "train.py"], project)
    assert (done.code, done.output) == (0, "None\n"), done.errors
    below = program.read_text(encoding="utf-8").replace("    import envlock\n\n    envlock.assert_locked()\n", "")
    program.write_text(f"import envlock\nenvlock.assert_locked()\n{below}", encoding="utf-8")
    refused = run_with_dask(["python", "train.py"], project)
    (said,) = re.findall(r"^    (this process is a worker .*?), \.\.\.$", page, re.MULTILINE)
    errors = refused.errors.replace(f"{project}/", "")
    assert (refused.code, said in errors) == (1, True), errors


class TestRun:
    """On real launchers."""

    pytestmark = LANE

    @exhaustive
    def test_slurm(self, slurm: bed.Slurm, tmp_path: Path) -> None:
        environ = active(tmp_path, Path(sys.executable))
        check("slurm", tmp_path, lambda words, cwd: slurm.run(words, cwd, environ))

    @exhaustive
    @pytest.mark.parametrize("kind", first(1, MPIS))
    def test_mpi(self, kind: str, tmp_path: Path) -> None:
        mpirun, environ = mpirun_of(kind), active(tmp_path, mpi_python_of(kind))
        if kind == "mpich":  # it does not name the job
            environ["ENVLOCK_FLEET_JOB"] = "mpich"
        check("mpi", tmp_path, lambda words, cwd: mpirun(words, cwd, environ))

    def test_files(self, tmp_path: Path) -> None:
        check("files", tmp_path, lambda words, cwd: bed.run(words, cwd, active(tmp_path, Path(sys.executable))))

    @exhaustive  # its environment takes a minute to make
    def test_dask(self, run_with_dask: Callable[[list[str | Path], Path], bed.Started], tmp_path: Path) -> None:
        check("dask", tmp_path, run_with_dask)

    @exhaustive  # its environment takes minutes to make
    def test_ray(self, ray_python: Path, tmp_path: Path) -> None:
        """In name spaces where `ray stop` finds no other cluster, and what it leaves ends with the page."""
        alone = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        own: list[str | Path] = [
            *alone,
            "sh",
            "-c",
            'mount -t tmpfs none /dev/shm; exec "$0" "$@"',
            sys.executable,
            NETWORK,
        ]
        environ = {**active(tmp_path, ray_python), "TF_CPP_MIN_LOG_LEVEL": "3"}
        check("ray", tmp_path, lambda words, cwd: bed.run([*own, *words], cwd, environ, timeout=500))

    @exhaustive
    @pytest.mark.tensorflow
    def test_tensorflow(self, tensorflow_python: Path, tmp_path: Path) -> None:
        environ = {**active(tmp_path, tensorflow_python), "TF_CPP_MIN_LOG_LEVEL": "3"}
        check("tensorflow", tmp_path, lambda words, cwd: bed.run(words, cwd, environ, timeout=400))
