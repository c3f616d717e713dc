"""Which environment is meant: the ways in which people keep one, and what is refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envlock import __main__
from envlock.cli import options
from envlock.cli.options import name_interpreter
from envlock.lock import interpreter
from envlock.lock.environments import _hash
from envlock.lock.interpreter import MAKE, Environment, find_environment, is_found
from envlock.runtime.errors import UsageError
from tests.conftest import Command
from tests.locks import document, encode
from tests.machines import distribution

HINT = "hint: activate the environment, or name its interpreter: `--python PATH`\n"


@pytest.fixture(autouse=True)
def _as_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of its own is looked at, and not `python -m envlock`."""
    monkeypatch.setattr(sys, "argv", ["/tools/bin/envlock", "capture"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "Mine"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "My_Project"\n', encoding="utf-8")
    return folder


def made(prefix: Path) -> Path:
    """Make what looks like an environment; return its interpreter."""
    python = prefix / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    return python


def taken(found: Environment) -> tuple[Path | None, str]:
    return found.python, found.origin


def poetry(home: Path, project: Path, version: str = "3.11") -> Path:
    name = f"my-project-{_hash(os.path.realpath(project), 32)}-py{version}"
    return home / ".cache" / "pypoetry" / "virtualenvs" / name


def pipenv(home: Path, project: Path) -> Path:
    (project / "Pipfile").touch()
    return home / ".local" / "share" / "virtualenvs" / f"Mine-{_hash(f'{project}/Pipfile', 6)}"


def pdm(home: Path, project: Path) -> Path:
    (project / ".pdm-python").write_text(f"{home}/pdm/bin/python\n", encoding="utf-8")
    return home / "pdm"


PLACES: dict[str, tuple[Callable[[Path, Path], Path], str]] = {
    "venv": (lambda _, project: project / ".venv", ".venv of the project"),
    "poetry": (poetry, "Poetry's of the project"),
    "pipenv": (pipenv, "Pipenv's of the project"),
    "pdm": (pdm, "PDM's of the project"),
    "pixi": (lambda _, project: project / ".pixi" / "envs" / "default", "pixi's of the project"),
}


@pytest.mark.parametrize("name", PLACES)
def test_the_environment_of_a_project(name: str, project: Path, tmp_path: Path) -> None:
    place, origin = PLACES[name]
    python = made(place(tmp_path, project))
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    for folder in (project, below):
        assert taken(find_environment({"HOME": str(tmp_path)}, folder)) == (python, origin)


@pytest.mark.parametrize("name", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_the_active_one_comes_first(name: str, project: Path, tmp_path: Path) -> None:
    made(project / ".venv")
    python = made(tmp_path / "active")
    environ = {"HOME": str(tmp_path), name: str(tmp_path / "active")}
    assert taken(find_environment(environ, project)) == (python, name)


def test_the_own_environment_of_conda_is_not_the_projects(project: Path, tmp_path: Path) -> None:
    made(tmp_path / "conda")
    python = made(project / ".venv")
    environ = {"CONDA_PREFIX": str(tmp_path / "conda"), "CONDA_DEFAULT_ENV": "base"}
    assert taken(find_environment(environ, project)) == (python, ".venv of the project")


def test_of_several_of_poetry_the_one_is_taken_that_was_chosen(project: Path, tmp_path: Path) -> None:
    old, new = (made(poetry(tmp_path, project, version)) for version in ("3.9", "3.12"))
    environ, cache = {"HOME": str(tmp_path)}, old.parents[2]
    with pytest.raises(UsageError) as caught:
        find_environment(environ, project)
    name = f"my-project-{_hash(os.path.realpath(project), 32)}"
    assert f"{cache / name}-* (several: py3.12, py3.9; `poetry env use` chooses)" in caught.value.message
    (cache / "envs.toml").write_text(f'[other]\nminor = "3.12"\n\n[{name}]\nminor = "3.9"\npatch = "3.9.1"\n')
    assert taken(find_environment(environ, project)) == (old, "Poetry's of the project")
    (cache / "envs.toml").write_text(f'[{name}]\nminor = "3.12"\npatch = "3.12.4"\n')
    assert taken(find_environment(environ, project)) == (new, "Poetry's of the project")


def test_folders_are_known_by_the_names_that_poetry_and_pipenv_gave_them() -> None:
    """As `poetry env info --path` and `pipenv --venv` have printed them."""
    assert _hash("/tmp/pp", 32) == "Vi2u4BIR"
    assert _hash("/tmp/pe/sub [x] y/Pipfile", 6) == "8D6mRqvI"


def test_where_there_is_none_all_that_was_looked_at_is_listed(project: Path, tmp_path: Path) -> None:
    (project / "Pipfile").touch()
    with pytest.raises(UsageError) as caught:
        find_environment({"HOME": str(tmp_path), "VIRTUAL_ENV": str(tmp_path / "gone")}, project)
    poetrys = f"{tmp_path}/.cache/pypoetry/virtualenvs/my-project-{_hash(os.path.realpath(project), 32)}-*"
    pipenvs = f"{tmp_path}/.local/share/virtualenvs/Mine-{_hash(f'{project}/Pipfile', 6)}"
    assert f"error: {caught.value}\n" == (
        f"error: no environment found; looked at: VIRTUAL_ENV ({tmp_path}/gone), CONDA_PREFIX (unset), "
        f"{project}/.venv, {poetrys}, {pipenvs}, {project}/.pdm-python, {project}/.pixi/envs/default\n{HINT}"
    )


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("PYTHON\0-m\0ipykernel_launcher\0-f\0/x.json\0", True),
        ("PYTHON\0-Xfrozen_modules=off\0-m\0ipykernel\0", True),
        ("PYTHON\0train.py\0-m\0other\0", False),
        ("python\0-m\0ipykernel_launcher\0", False),
        ("", False),
    ],
)
def test_in_a_cell_of_a_notebook_it_is_the_kernels(
    words: str, found: bool, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell's shell has the variables of Jupyter's server, whose environment it is not."""
    server, kernel = made(tmp_path / "server"), made(tmp_path / "kernel")
    parent, shell = str(os.getppid()), "/bin/sh\0-c\0envlock capture\0"
    files = {
        f"/proc/{parent}/cmdline": shell,
        f"/proc/{parent}/status": "Name:\tsh\nPPid:\t70\n",
        "/proc/70/cmdline": words.replace("PYTHON", str(kernel)),
        "/proc/70/status": "Name:\tx\nPPid:\t1\n",
    }
    monkeypatch.setattr(interpreter, "read_text", lambda path, _: files.get(path))
    environ = {"VIRTUAL_ENV": str(tmp_path / "server"), "JPY_PARENT_PID": "60"}
    expected = (kernel, "the notebook's kernel") if found else (server, "VIRTUAL_ENV")
    assert taken(find_environment(environ, project)) == expected
    assert taken(find_environment({"VIRTUAL_ENV": str(tmp_path / "server")}, project)) == (server, "VIRTUAL_ENV")


def test_python_m_envlock_names_its_own_interpreter(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/site-packages/envlock/__main__.py", "capture"])
    assert taken(find_environment({"HOME": str(tmp_path)}, project)) == (None, "")


def test_the_one_that_runs_envlock_is_taken_where_it_is_active(project: Path) -> None:
    assert taken(find_environment({"VIRTUAL_ENV": sys.prefix}, project)) == (None, "VIRTUAL_ENV")


@pytest.mark.parametrize("name", PLACES)
def test_the_interpreter_of_another_user_is_not_run(
    name: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "_list_trusted_users", lambda _: {2**30})
    monkeypatch.setattr(interpreter, "_get_user_name", lambda _: "mallory")
    python = made(PLACES[name][0](tmp_path, project))
    with pytest.raises(UsageError) as caught:
        find_environment({"HOME": str(tmp_path)}, project)
    first = project / ".pdm-python" if name == "pdm" else python.parent.parent
    assert (caught.value.message, caught.value.hint) == (
        f"{first} belongs to another user, mallory, so {python} is not run",
        f"if you trust it, name it: `--python {python}`",
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("part", ["", "bin", "bin/python"])
def test_one_part_that_another_user_owns_is_enough(part: str, project: Path) -> None:
    python = made(project / ".venv")
    os.chown(project / ".venv" / part, 65534, -1)
    with pytest.raises(UsageError, match=" belongs to another user, "):
        find_environment({}, project)
    assert find_environment({"VIRTUAL_ENV": str(project / ".venv")}, project).python == python


def test_two_modules_name_one_variable() -> None:
    """`python -m envlock` warns where another module has imported `envlock.__main__`."""
    assert options.FORWARDED == __main__.FORWARDED


# --- as a shell sees it


def test_a_tool_never_locks_its_own_environment(envlock: Command, tmp_path: Path) -> None:
    """In a shell without an environment, as with conda's and Poetry's own: what is locked already stays."""
    lock = encode(document())
    (tmp_path / "envlock.lock").write_bytes(lock)
    tool = Command([sys.executable, "-c", "from envlock.__main__ import main; main()"], tmp_path)
    for words in (["capture"], ["verify"], ["diff", "envlock.lock", "live"]):
        done = tool(*words, environ={"HOME": str(tmp_path)})
        assert (done.returncode, done.stdout) == (2, "")
        looked = f"VIRTUAL_ENV (unset), CONDA_PREFIX (unset), {tmp_path}/.venv"
        assert done.stderr.startswith(f"error: no environment found; looked at: {looked}, ")
        # There is a lockfile to make one of, as after a clone.
        assert done.stderr.endswith(f"\nhint: {MAKE}; or {HINT.removeprefix('hint: ')}")
    assert (tmp_path / "envlock.lock").read_bytes() == lock


READS_FILES_ONLY = (
    (["diff", "envlock.lock", "envlock.lock"], 0),
    (["show", "envlock.lock"], 0),
    (["doctor", "envlock.lock"], 1),
    (["explain", "ENV205"], 0),
)


@pytest.mark.parametrize(("words", "code"), READS_FILES_ONLY)
def test_what_reads_files_only_needs_no_environment(
    envlock: Command, tmp_path: Path, words: list[str], code: int
) -> None:
    (tmp_path / "envlock.lock").write_bytes(encode(document()))
    tool = Command([sys.executable, "-c", "from envlock.__main__ import main; main()"], tmp_path)
    done = tool(*words, environ={"HOME": str(tmp_path)})
    assert (done.returncode, "environment" in done.stderr) == (code, False)


def test_what_was_taken_is_said_where_there_was_a_choice(envlock: Command, tmp_path: Path) -> None:
    tool = Command([sys.executable, "-c", "from envlock.__main__ import main; main()"], tmp_path)
    (tmp_path / "here").symlink_to(sys.prefix)
    found = (("VIRTUAL_ENV", sys.prefix, f"{sys.prefix}/bin/python"), ("CONDA_PREFIX", "here", "here/bin/python"))
    for name, value, _ in found:
        done = tool("capture", "-o", "-", environ={name: str(tmp_path / value)})
        assert (done.returncode, done.stderr) == (0, "")
    made(tmp_path / ".venv")
    for name, value, shown in (*found, ("ENVLOCK_PYTHON", sys.executable, sys.executable)):
        done = tool("capture", "-o", "-", environ={name: str(tmp_path / value)})
        assert (done.returncode, done.stderr) == (0, f"environment: {shown} ({name})\n")
    named = tool("capture", "-o", "-", "--python", sys.executable)
    assert (named.returncode, named.stderr) == (0, "")
    assert tool("capture", "-o", "-", "--python", sys.prefix).stdout == named.stdout, "by its folder, as for uv"
    # Called as that environment's own, it was named, too.
    handed = {"ENVLOCK_PYTHON": sys.executable, options.FORWARDED: os.path.realpath(Path(sys.executable).parent)}
    assert tool("capture", "-o", "-", environ=handed).stderr == ""


# --- without TensorFlow

ASK_FOR_IT = {"ENVLOCK_WITHOUT_TENSORFLOW": "0"}


def test_an_environment_without_tensorflow_is_locked_only_if_asked_for(envlock: Command, tmp_path: Path) -> None:
    done = envlock("capture", environ=ASK_FOR_IT)
    first, hint = done.stderr.splitlines()
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (2, "", [])
    assert first.startswith(f"error: no TensorFlow, JAX or PyTorch in {sys.executable}; looked in /")
    assert first.endswith("/site-packages") or ", /" in first
    assert hint == (
        "hint: activate the environment that has it or name it with `--python`, or add `--without-tensorflow`"
    )
    assert envlock("capture", "-q", "--without-tensorflow", environ=ASK_FOR_IT).returncode == 0
    assert envlock("capture", "-q", environ=ASK_FOR_IT).returncode == 0  # the lockfile says that there is none


def test_a_lockfile_with_tensorflow_is_not_renewed_without_it(envlock: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    distribution(site, "tensorflow_cpu", "2.17.1", {})
    (site / "tensorflow").mkdir()
    (site / "tensorflow" / "__init__.py").touch()
    there = {**ASK_FOR_IT, "PYTHONPATH": str(site)}
    assert envlock("capture", "-q", environ=there).returncode == 0
    before = (tmp_path / "envlock.lock").read_bytes()
    assert envlock("capture", environ=ASK_FOR_IT).returncode == 2
    assert (tmp_path / "envlock.lock").read_bytes() == before
    done = envlock("verify", environ=ASK_FOR_IT)
    assert done.returncode == 1
    assert done.stdout.splitlines()[:4] == [
        f"does not match under policy strict: no TensorFlow in {sys.executable}, but 2.17.1 in the lockfile, and 1 "
        "more fact differs",
        f"  x no TensorFlow in {sys.executable}, but 2.17.1 in the lockfile; 1 locked package missing (2 facts)",
        "      why: This is another environment than the locked one, or its installation has not finished.",
        "      fix: Activate the locked environment, or name it with `--python`; or `envlock sync` makes one, and `envlock "
        f"sync --python {sys.executable}` installs into this one.",
    ]


def test_the_option_names_a_folder_a_file_or_a_program_of_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = made(tmp_path / "ve")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(python.parent))
    monkeypatch.chdir(tmp_path)
    assert {name_interpreter(Path(name)) for name in ("ve", "ve/bin/python", "python")} == {python}
    # As the shell would for `./python`, whose path is the same.
    (tmp_path / "python").touch()
    assert name_interpreter(Path("python")) == tmp_path / "python"
    assert name_interpreter(Path("nowhere")) == Path("nowhere")


def test_of_two_interpreters_in_a_folder_one_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("python3.11", "python3.12"):
        (tmp_path / name).touch()
    monkeypatch.setenv("ENVLOCK_PYTHON", str(tmp_path / "python3.11"))
    assert [is_found(tmp_path / name) for name in ("python3.11", "python3.12")] == [True, False]
