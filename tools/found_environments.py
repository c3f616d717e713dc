"""Which environment commands take: ten ways in which people keep one, set up by the tools themselves.

    python tools/found_environments.py [--tools DIR]     # Linux, Python 3.11 or newer; a minute

Every environment has a TensorFlow whose local version names it, so that a lockfile says which one was taken. envlock is
installed as a tool of its own, by `uv tool install`. The table goes to stdout.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MANAGERS = ("poetry", "pdm", "hishel<2", "pipenv", "uv", "virtualenv", "ipykernel", "nbclient")
"""PDM 2.29.4 does not start with hishel 2.0.0, which it does not exclude."""
REFUSED = "refused"
NOTEBOOK = """
import sys, nbclient, nbformat
from jupyter_client import kernelspec
cells = [nbformat.v4.new_code_cell(cell) for cell in sys.argv[2:]]
book = nbformat.v4.new_notebook(cells=cells)
nbclient.NotebookClient(book, kernel_name=sys.argv[1]).execute()
for cell in book.cells:
    for output in cell.outputs:
        print(output.get("text", ""), end="")
"""


@dataclass
class Case:
    """A command in a folder with variables, and the environment that it must take.

    Attributes:
        expected: the local version of TensorFlow in it; `REFUSED` where none can be meant.
    """

    name: str
    shown: str
    argv: list[str]
    folder: Path
    expected: str
    environ: dict[str, str] = field(default_factory=dict)


class Room:
    """Where all is set up: a home, the tools, envlock as one of them, and a folder for each project."""

    def __init__(self, folder: Path, tools: Path) -> None:
        self.folder, self.home, self.tools = folder, folder / "home", tools
        self.bin = self.home / ".local" / "bin"
        self.home.mkdir()
        self.program = str(self.bin / "envlock")

    def variables(self, **more: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("PIP_", "UV_", "SSL_", "REQUESTS_"))
        }
        path = f"{self.bin}:{self.tools}/bin:/usr/local/bin:/usr/bin:/bin"
        return {**kept, "HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", **more}

    def run(self, *words: str | Path, folder: Path, **more: str) -> str:
        argv = [str(word) for word in words]
        done = subprocess.run(
            argv,
            cwd=folder,
            env=self.variables(**more),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"error: {shlex.join(argv)}: {done.stdout}{done.stderr}")
        return done.stdout

    def project(self, name: str) -> Path:
        """Return a new folder with a project in it."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").write_text(
            f'[project]\nname = "{name}"\nversion = "1.0"\nrequires-python = ">=3.11"\ndependencies = []\n',
            encoding="utf-8",
        )
        return folder

    def wheel(self, mark: str) -> Path:
        """Return a wheel of a TensorFlow that does nothing, whose local version is this mark."""
        version = f"2.21.0+{mark}"
        info = f"tensorflow_cpu-{version}.dist-info"
        files = {
            "tensorflow/__init__.py": f'__version__ = "{version}"\n',
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tensorflow-cpu\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = ""
        for name, text in files.items():
            digest = (
                base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
                .decode()
                .rstrip("=")
            )
            record += f"{name},sha256={digest},{len(text)}\n"
        files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
        path = self.folder / "wheels" / f"tensorflow_cpu-{version}-py3-none-any.whl"
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return path

    def venv(self, prefix: Path, mark: str, *more: str) -> Path:
        """Return a new virtual environment with such a TensorFlow."""
        self.run("uv", "venv", "-q", prefix, folder=self.folder)
        python = prefix / "bin" / "python"
        self.run(
            "uv",
            "pip",
            "install",
            "-q",
            "--python",
            python,
            self.wheel(mark),
            *more,
            folder=self.folder,
        )
        return prefix

    def case(
        self, name: str, shown: str, folder: Path, expected: str, *words: str, **more: str
    ) -> Case:
        argv = [*(words or (self.program,)), "capture", "-o", "-"]
        return Case(name, shown, argv, folder, expected, self.variables(**more))


def poetry(room: Room) -> Iterator[Case]:
    """Poetry's default: an environment in its cache."""
    folder = room.project("poetry")
    room.run("poetry", "add", "-q", "--no-interaction", room.wheel("poetry"), folder=folder)
    yield room.case("poetry", "a new shell", folder, "poetry")
    (folder / "src" / "deep").mkdir(parents=True)
    yield room.case("poetry", "a folder below", folder / "src" / "deep", "poetry")
    yield room.case("poetry", "`poetry run`", folder, "poetry", "poetry", "run", room.program)


def pdm(room: Room) -> Iterator[Case]:
    """PDM's default, and an environment outside of the project."""
    folder = room.project("pdm")
    # Never `pdm use` of the interpreter that runs this: it would install into that environment.
    room.run("pdm", "add", "-q", room.wheel("pdm"), folder=folder)
    yield room.case("pdm", "a new shell", folder, "pdm")
    yield room.case("pdm", "`pdm run`", folder, "pdm", "pdm", "run", room.program)
    away = room.project("pdm-away")
    room.run("pdm", "config", "-q", "--local", "venv.in_project", "false", folder=away)
    room.run("pdm", "venv", "create", sys.executable, folder=away)
    (prefix,) = (room.home / ".local/share/pdm/venvs").iterdir()
    room.run("pdm", "use", "-q", prefix / "bin" / "python", folder=away)
    room.run("pdm", "add", "-q", room.wheel("pdmaway"), folder=away)
    yield room.case("pdm", "an environment elsewhere", away, "pdmaway")


def pipenv(room: Room) -> Iterator[Case]:
    """Pipenv's default: an environment in WORKON_HOME."""
    folder = room.folder / "pipenv"
    folder.mkdir()
    room.run("pipenv", "install", "--quiet", room.wheel("pipenv"), folder=folder)
    yield room.case("pipenv", "a new shell", folder, "pipenv")
    yield room.case("pipenv", "`pipenv run`", folder, "pipenv", "pipenv", "run", room.program)


def uv(room: Room) -> Iterator[Case]:
    """A project of uv."""
    folder = room.project("uv")
    room.run("uv", "add", "-q", room.wheel("uv"), folder=folder)
    yield room.case("uv", "a new shell", folder, "uv")
    yield room.case("uv", "`uv run`", folder, "uv", "uv", "run", room.program)


def conda(room: Room) -> Iterator[Case]:
    """conda's layout and variables: its own environment, and one of a project."""
    base = room.venv(room.home / "miniforge3", "condabase")
    named = room.venv(base / "envs" / "train", "conda")
    for prefix in (base, named):
        (prefix / "conda-meta").mkdir()
    folder = room.project("conda")
    active = {"CONDA_PREFIX": str(named), "CONDA_DEFAULT_ENV": "train"}
    yield room.case("conda's layout", "`conda activate train`", folder, "conda", **active)
    own = {"CONDA_PREFIX": str(base), "CONDA_DEFAULT_ENV": "base"}
    yield room.case("conda's layout", "only `base` is active", folder, REFUSED, **own)


def nested(room: Room) -> Iterator[Case]:
    """Projects and environments inside each other."""
    outer = room.project("outer")
    room.venv(outer / ".venv", "outer")
    inner = room.project("outer/packages/inner")
    room.venv(inner / ".venv", "inner")
    yield room.case("nested venvs", "the inner project", inner, "inner")
    yield room.case("nested venvs", "the outer project", outer, "outer")
    member = room.project("outer/packages/member")
    yield room.case("nested venvs", "a project without one in a project with one", member, REFUSED)
    active = {"VIRTUAL_ENV": str(outer / ".venv")}
    yield room.case(
        "nested venvs", "the outer one is active in the inner project", inner, "outer", **active
    )
    both = {"CONDA_PREFIX": str(inner / ".venv"), "CONDA_DEFAULT_ENV": "x", **active}
    yield room.case(
        "nested venvs", "a venv activated over an environment of conda", member, "outer", **both
    )


def nothing(room: Room) -> Iterator[Case]:
    """No environment at all, or one that is gone."""
    folder = room.project("none")
    yield room.case("none active", "no environment", folder, REFUSED)
    gone = {"VIRTUAL_ENV": str(folder / "gone")}
    yield room.case("none active", "the active one was deleted", folder, REFUSED, **gone)


def two(room: Room) -> Iterator[Case]:
    """An environment with the runtime half of envlock, whose `envlock` comes first on the PATH."""
    folder = room.project("two")
    prefix = room.venv(folder / ".venv", "two", str(ROOT))
    stacked = room.venv(room.folder / "stacked", "stacked", str(ROOT))
    usual = room.variables()["PATH"]
    first = {"PATH": f"{prefix}/bin:{usual}", "VIRTUAL_ENV": str(prefix)}
    yield room.case(
        "two envlocks", "the active environment has one", folder, "two", "envlock", **first
    )
    three = {**first, "PATH": f"{prefix}/bin:{stacked}/bin:{usual}"}
    yield room.case("two envlocks", "a third one between them", folder, "two", "envlock", **three)
    module = (f"{prefix}/bin/python", "-m", "envlock")
    yield room.case(
        "two envlocks", "`python -m envlock` of the environment", folder, "two", *module
    )
    other = {"PATH": f"{stacked}/bin:{usual}"}
    yield room.case(
        "two envlocks",
        "only that of another environment, none active",
        folder,
        "stacked",
        "envlock",
        **other,
    )


def notebook(room: Room) -> Iterator[Case]:
    """A kernel that Jupyter starts from another environment."""
    folder = room.project("notebook")
    kernels = room.venv(room.folder / "kernels", "kernel", f"{ROOT}[notebook]", "ipykernel")
    python = kernels / "bin" / "python"
    room.run(python, "-m", "ipykernel", "install", "--user", "--name", "own", folder=folder)
    server = str(room.tools / "bin" / "python")
    start = [server, "-c", NOTEBOOK, "own"]
    shell = f"!{shlex.quote(room.program)} capture -o -"
    for shown, cell, more in (
        ("`!envlock capture`, its environment not active", shell, {}),
        (
            "`!envlock capture`, the server's environment active",
            shell,
            {"VIRTUAL_ENV": str(room.tools)},
        ),
        (
            "`envlock.capture()`",
            "import json, envlock\nprint(json.dumps(envlock.capture().to_document()))",
            {},
        ),
    ):
        yield Case("notebook", shown, [*start, cell], folder, "kernel", room.variables(**more))


def container(room: Room) -> Iterator[Case]:
    """As in an image: TensorFlow in the system's Python, and no environment at all."""
    folder = room.folder / "app"
    folder.mkdir()
    system = room.venv(room.folder / "usr", "image", str(ROOT))
    path = {"PATH": f"{room.bin}:{system}/bin:/usr/bin:/bin"}
    yield room.case("container", "the tool beside the system's Python", folder, REFUSED, **path)
    named = {**path, "ENVLOCK_PYTHON": f"{system}/bin/python"}
    yield room.case("container", "`ENV ENVLOCK_PYTHON=...`", folder, "image", **named)
    room.run(
        *("uv", "pip", "install", "-q", "--python", system / "bin" / "python", f"{ROOT}[cli]"),
        folder=folder,
    )
    inside = (f"{system}/bin/envlock",)
    yield room.case("container", "envlock beside TensorFlow", folder, "image", *inside, **path)


WAYS: tuple[Callable[[Room], Iterator[Case]], ...] = (
    *(poetry, pdm, pipenv, uv, conda, nested, nothing, two, notebook, container),
)


def main() -> int:
    """Print the table; return 1 if an environment was taken that is not the right one."""
    parser = argparse.ArgumentParser(description="Which environment does envlock take?")
    parser.add_argument("--tools", type=Path, help="an environment with the package managers")
    parser.add_argument("--only", choices=[way.__name__ for way in WAYS], help="one of the ten")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="envlock-found-") as name:
        folder = Path(name).resolve()
        tools = arguments.tools or folder / "managers"
        if not tools.is_dir():
            subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True)
            subprocess.run([f"{tools}/bin/pip", "install", "-q", *MANAGERS], check=True)
        room = Room(folder, tools.absolute())
        room.run("uv", "tool", "install", "-q", f"{ROOT}[cli]", folder=folder)
        print("| kept by | situation | taken | |\n|---|---|---|---|")
        verdicts = [
            judge(case, room)
            for way in WAYS
            if arguments.only in (None, way.__name__)
            for case in way(room)
        ]
    return int(not all(verdicts))


def judge(case: Case, room: Room) -> bool:
    """Print what a command took; return whether it is the right one."""
    done = subprocess.run(
        case.argv, cwd=case.folder, env=case.environ, capture_output=True, text=True, check=False
    )
    text = done.stdout + done.stderr
    taken, origin = f"exit {done.returncode}", text.strip().replace("\n", " ")
    if done.returncode == 2 and "no environment found; looked at: " in text:
        taken, origin = REFUSED, "a list of what was looked at"
    elif '"facts": {' in done.stdout:
        lock = json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])
        version = (lock["facts"].get("tensorflow") or {}).get("version") or "no TensorFlow"
        taken = version.partition("+")[2] or version
        lines = [line for line in text.splitlines() if line.startswith("environment: ")]
        origin = lines[0].rpartition("(")[2].rstrip(")") if lines else "not printed"
    right = taken == case.expected
    verdict = "right" if right else f"WRONG, not {case.expected}"
    print(f"| {case.name} | {case.shown} | {taken}: {origin} | {verdict} |", flush=True)
    return right


if __name__ == "__main__":
    if shutil.which("git") is None:
        sys.exit("error: needs git")
    sys.exit(main())
