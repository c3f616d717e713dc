"""Every command once in a process that nobody warmed up, and what it has loaded when it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envlock import __version__
from envlock.cli import COMMANDS
from tests.evidence.diverge.test_trace import HEADER, MATMUL, written
from tests.exhaustive import exhaustive
from tests.image.plans import lock, without
from tests.locks import document, encode
from tests.packages.identified import lock_document, proof, wheel

pytestmark = pytest.mark.processes

INTERNET = {"pypi_simple", "requests", "urllib3"}
DEAR = INTERNET | {"docker", "jinja2", "matplotlib", "numpy", "packaging", "pydantic", "rich", "tomli_w", "tomlkit"}
"""What only some commands need; together half a second."""

MODELS = "envlock.lock.models"
"""Building them takes a tenth of a second; these read a lockfile as the runtime half reads it, or none."""
WITHOUT_MODELS = {"verify", "run", "lint", "repeat", "diverge"}

CALLS: dict[str, tuple[str, int, set[str]]] = {
    "init": ("", 0, {"tomlkit"}),
    "capture": ("--without-tensorflow --python {python} -o new.lock", 0, {"packaging"}),
    "show": ("x.lock", 0, set()),
    "verify": ("x.lock", 1, set()),
    "diff": ("x.lock x.lock", 0, set()),
    "explain": ("python.version --lock x.lock", 0, {"packaging"}),
    "ignore": ("cpu.flags --lock x.lock --reason measured", 0, {"tomlkit"}),
    "sync": ("x.lock --new .", 2, INTERNET | {"packaging"}),
    "run": ("x.lock -- python a.py", 1, set()),
    "fleet": ("check .", 4, set()),
    "doctor": ("x.lock", 1, {"packaging"}),
    "lint": ("a.py", 0, {"packaging"}),
    "repeat": ("a.py:f --runs 2", 0, set()),
    "diverge": ("compare a.trace b.trace", 0, {"packaging"}),
    "bisect": ("x.lock x.lock a.py:f", 2, {"packaging"}),
    "upgrade": ("x.lock a.py --with keras", 1, {"packaging"}),
    "canary": ("absent.lock", 3, set()),
    "export": ("proven.lock --format pylock", 0, INTERNET | {"packaging", "tomli_w"}),
    "images": ("built.lock", 0, {"packaging"}),
    "build": ("built.lock --dry-run", 0, INTERNET | {"docker", "jinja2", "packaging", "tomli_w"}),
}
"""A real call of each command, its exit code, and what of the dear it may load besides pydantic."""

TELL = """
import atexit, sys
def tell():
    if sys.argv[0].endswith("envlock/__main__.py"):
        open("modules", "w").write(" ".join(sys.modules))
atexit.register(tell)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all that the calls read."""
    folder = tmp_path_factory.mktemp("cold")
    for name in ("a.trace", "b.trace"):
        (folder / name).write_bytes(written((MATMUL, [1, 2], [3]), header={**HEADER, "mode": "eager"}))
    (folder / "a.py").write_text("def f():\n    return {'x': [0.5]}\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text("[tool.envlock]\n", encoding="utf-8")
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(TELL, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "environment"], check=True)
    (folder / "x.lock").write_bytes(encode(document()))
    (folder / "built.lock").write_bytes(encode(without(lock(), "mine")))
    name = "aa-1.0-py3-none-any.whl"
    proven = {"aa": proof("1.0", wheel(name, b"a wheel", url=f"https://example.org/{name}"))}
    (folder / "proven.lock").write_bytes(encode(lock_document(proven)))
    (folder / "wheelhouse").mkdir()
    (folder / "wheelhouse" / name).write_bytes(b"a wheel")  # which is there need not be fetched
    return folder


def start(folder: Path, *args: str) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Return how a command line ended, and what it has loaded."""
    (folder / "modules").unlink(missing_ok=True)
    nobody = {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "XDG_CACHE_HOME": str(folder / "cache")}
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": "site", **nobody}
    argv = [sys.executable, "-m", "envlock", *args]
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False)
    return done, set((folder / "modules").read_text(encoding="utf-8").split())


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_what_every_shell_asks_loads_no_command(option: str, folder: Path) -> None:
    done, loaded = start(folder, option)
    assert (done.returncode, done.stderr) == (0, "")
    assert "envlock" in loaded  # or the next line could not fail
    assert loaded & ({f"envlock.cli.{name}" for name in COMMANDS} | DEAR) == set()


def test_the_version_is_printed_without_the_parser(folder: Path) -> None:
    done, loaded = start(folder, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"envlock {__version__}\n", "")
    assert loaded & {"typer", "envlock.cli"} == set()


@exhaustive
@pytest.mark.slow
def test_every_command_starts_and_loads_what_it_needs(folder: Path) -> None:
    """All are called, in an order in which each has what it reads; all that go wrong are listed."""
    wrong = {}
    for name, (args, code, needed) in CALLS.items():
        done, loaded = start(folder, name, *args.format(python=folder / "environment" / "bin" / "python").split())
        others = {other for other in COMMANDS if f"envlock.cli.{other}" in loaded} - {name}
        allowed = needed | {"pydantic"} | (set() if name in WITHOUT_MODELS else {MODELS})
        found = (done.returncode, loaded & ({MODELS} | DEAR) - allowed, others, "Traceback" in done.stderr)
        if found != (code, set(), set(), False):
            wrong[name] = (*found, done.stderr)
    assert wrong == {}


def test_no_module_of_the_current_folder_is_imported_in_place_of_pythons_own(tmp_path: Path) -> None:
    """`python -m` looks there first; inside Keras lies a `random/`."""
    (tmp_path / "random.py").write_text("raise SystemExit('run')")
    argv = [sys.executable, "-m", "envlock", "lint", "."]
    environ = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(argv, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_command_is_called() -> None:
    assert CALLS.keys() == COMMANDS.keys()
