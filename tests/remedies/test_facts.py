"""Facts that can be changed here: the state is made for real, the printed line is read and obeyed, and the answer is yes.

Packages are installed by tests/workflows/test_sync.py, which `envlock sync` is the remedy of.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import Command, absent
from tests.locks import encode
from tests.machines import BUILD_INFO_CPU_2_21, distribution, write

pytestmark = [pytest.mark.processes, pytest.mark.longer]


@cache
def make_template() -> Path:
    """Return an environment without packages, made once."""
    folder = Path(os.environ["HOME"]) / "remedies-template"
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


class World:
    """A project, and an environment of its own with a TensorFlow and a Keras made of files.

    Attributes:
        site: where its packages are.
        beside: a folder of PYTHONPATH.
        keras: the folder of keras.json.
        environ: the variables of the shell.
        start: the words that a command is started with.
    """

    def __init__(self, envlock: Command, folder: Path) -> None:
        self.project, self.argv = envlock.folder, envlock.argv
        env = folder / "env"
        shutil.copytree(make_template(), env, symlinks=True)
        self.python = env / "bin" / "python"
        (self.site,) = env.glob("lib/python3*/site-packages")
        for name, version in {"tensorflow": "2.21.0", "numpy": "2.3.0", "keras": "3.12.0"}.items():
            distribution(self.site, name, version)
        write(self.site / "tensorflow", {"__init__.py": "", "python/platform/build_info.py": BUILD_INFO_CPU_2_21})
        self.beside, self.keras = folder / "beside", folder / "keras"
        self.beside.mkdir()
        self.keras.mkdir()
        plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self.environ = {**plain, "PYTHONHASHSEED": "0", "PYTHONPATH": str(self.beside), "KERAS_HOME": str(self.keras)}
        self.start: list[str] = []

    def envlock(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of this checkout; what it looks at are this environment and these variables."""
        argv = [*self.start, *self.argv, words[0], "--python", str(self.python), *words[1:]]
        return subprocess.run(
            argv, cwd=self.project, env=self.environ, capture_output=True, text=True, timeout=120, check=False
        )


class Case(NamedTuple):
    """A state that is not the locked one.

    Attributes:
        fact: the path of the fact that differs.
        make: makes it.
        says: what the printed line has to have.
        obey: does what the line says.
        before: what is so when the lockfile is written.
    """

    fact: str
    make: Callable[[World], object]
    says: str
    obey: Callable[[World], object]
    before: Callable[[World], object] = lambda world: None


def put(folder: str, name: str, text: str) -> Callable[[World], object]:
    """Return what writes a file into a folder of the world."""
    return lambda world: (getattr(world, folder) / name).write_text(text, encoding="utf-8")


def remove(folder: str, name: str) -> Callable[[World], object]:
    """Return what removes a file or a folder."""

    def do(world: World) -> None:
        path = getattr(world, folder) / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return do


def variable(name: str, value: str | None) -> Callable[[World], object]:
    """Return what sets or unsets a variable."""

    def do(world: World) -> None:
        world.environ.pop(name, None)
        if value is not None:
            world.environ[name] = value

    return do


def start(*words: str) -> Callable[[World], object]:
    """Return what starts each command with words before it."""
    return lambda world: setattr(world, "start", list(words))


def plugin(world: World) -> None:
    """Put a library where `import tensorflow` opens it."""
    write(world.site / "tensorflow-plugins", {"libplugin.so": b"\x7fELF"})


SETTINGS = '{{"floatx": "{0}", "epsilon": {1}, "image_data_format": "{2}", "backend": "{3}"}}'
LOCKED = SETTINGS.format("float32", 1e-7, "channels_last", "tensorflow")
DATA = '[project]\nname = "x"\nversion = "1"\n\n[tool.envlock]\ndata = ["in.csv"]\n\n[tool.envlock.policy]\ndata = "exact"\n'


def keras(*values: object) -> Callable[[World], object]:
    """Return what writes keras.json."""
    return put("keras", "keras.json", SETTINGS.format(*values))


def with_data(world: World) -> None:
    """Name an input file in the settings of the project.

    There is no cache: on a slow machine the first question alone would find a note of the contents.
    """
    put("project", "pyproject.toml", DATA)(world)
    put("project", "in.csv", "1,2\n")(world)
    world.environ["XDG_CACHE_HOME"] = os.devnull


def with_user_site(world: World) -> None:
    """Let the environment be one that has the user's own packages, as the system's Python is."""
    settings = world.site.parents[2] / "pyvenv.cfg"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace("site-packages = false", "site-packages = true"), encoding="utf-8")


def with_startup_module(world: World) -> None:
    """Let a module run at the start of Python."""
    put("site", "late.pth", "import late\n")(world)
    put("site", "late.py", "X = 1\n")(world)


def with_editable(world: World) -> None:
    """Install a package as `pip install --editable` does."""
    folder = world.project / "lib"
    write(folder, {"part.py": "X = 1\n"})
    origin = {"url": folder.as_uri(), "dir_info": {"editable": True}}
    distribution(world.site, "part", "1.0", {"direct_url.json": json.dumps(origin), "INSTALLER": "pip\n"})
    put("site", "__editable__.part-1.0.pth", f"{folder}\n")(world)


def with_flags(world: World) -> None:
    """Name a file with flags for XLA."""
    put("project", "flags", "--xla_cpu_enable_fast_math=false")(world)
    variable("XLA_FLAGS", str(world.project / "flags"))(world)


def with_jax(world: World) -> None:
    """Install JAX."""
    for name in ("jax", "jaxlib"):
        distribution(world.site, name, "0.4.30")


def without_environ(world: World) -> None:
    """Take a section out of the lockfile."""
    path = world.project / "envlock.lock"
    lock = json.loads(path.read_bytes())
    del lock["facts"]["environ"]
    path.write_bytes(encode(lock))


KERAS_LOCKED = put("keras", "keras.json", LOCKED)
NNX = LOCKED.replace("}", ', "nnx_enabled": true}')
CASES = (
    Case(
        "python.startup.pth.late",
        put("site", "late.pth", "import sys\n"),
        "remove it where none was locked",
        remove("site", "late.pth"),
    ),
    Case(
        "python.startup.sitecustomize",
        put("beside", "sitecustomize.py", "X = 1\n"),
        "Remove sitecustomize.py",
        remove("beside", "sitecustomize.py"),
    ),
    Case(
        "python.shadows.colorsys",
        put("beside", "colorsys.py", ""),
        "Remove the module",
        remove("beside", "colorsys.py"),
    ),
    Case(
        "python.optimize",
        variable("PYTHONOPTIMIZE", "1"),
        "Start Python without -O and PYTHONOPTIMIZE, or with them as locked",
        variable("PYTHONOPTIMIZE", None),
    ),
    Case(
        "environ.PYTHONHASHSEED",
        variable("PYTHONHASHSEED", "5"),
        "Set PYTHONHASHSEED=0",
        variable("PYTHONHASHSEED", "0"),
    ),
    Case(
        "keras.config.floatx",
        keras("float16", 1e-7, "channels_last", "tensorflow"),
        "Let `floatx` in ~/.keras/keras.json be float32",
        KERAS_LOCKED,
        KERAS_LOCKED,
    ),
    Case(
        "keras.config.epsilon",
        keras("float32", 1e-3, "channels_last", "tensorflow"),
        "Let `epsilon` in ~/.keras/keras.json be 1e-07",
        KERAS_LOCKED,
        KERAS_LOCKED,
    ),
    Case(
        "keras.config.image_data_format",
        keras("float32", 1e-7, "channels_first", "tensorflow"),
        "Let `image_data_format` in ~/.keras/keras.json be channels_last",
        KERAS_LOCKED,
        KERAS_LOCKED,
    ),
    Case(
        "keras.config.backend",
        keras("float32", 1e-7, "channels_last", "jax"),
        "choose tensorflow, as locked",
        KERAS_LOCKED,
        KERAS_LOCKED,
    ),
    Case(
        "keras.config.nnx_enabled",
        put("keras", "keras.json", NNX),
        "Let `nnx_enabled` in ~/.keras/keras.json be false",
        put("keras", "keras.json", NNX.replace("true", "false")),
        KERAS_LOCKED,
    ),
    Case(
        "keras.config",
        lambda world: (world.keras / "keras.json").mkdir(),
        "Remove the cause",
        remove("keras", "keras.json"),
    ),
    Case(
        "python.startup.usercustomize",
        put("beside", "usercustomize.py", "X = 1\n"),
        "set PYTHONNOUSERSITE=1",
        variable("PYTHONNOUSERSITE", "1"),
        with_user_site,
    ),
    Case(
        "python.startup.modules.late",
        put("site", "late.py", "X = 2\n"),
        "Put back the module of this name as it was locked",
        with_startup_module,
        with_startup_module,
    ),
    Case(
        "python.startup.replaced",
        variable("LATE", "1"),
        "Find what replaces it (a .pth file",
        variable("LATE", None),
        put(
            "site", "late.pth", "import math, os; os.environ.get('LATE') and setattr(math, 'sin', math.cos.__call__)\n"
        ),
    ),
    Case(
        "jax.settings.JAX_NEW",
        variable("JAX_NEW", "1"),
        "Unset JAX_NEW before the process starts",
        variable("JAX_NEW", None),
        with_jax,
    ),
    Case(
        "packages.part.source",
        put("project", "lib/part.py", "X = 2\n"),
        "Restore the locked source",
        put("project", "lib/part.py", "X = 1\n"),
        with_editable,
    ),
    Case(
        "named.XLA_FLAGS",
        put("project", "flags", "--xla_cpu_enable_fast_math=true"),
        "Put back the file that the variable of this name leads to",
        with_flags,
        with_flags,
    ),
    Case(
        "python.rounding",
        put("beside", "sitecustomize.py", "import ctypes\nctypes.CDLL('libm.so.6').fesetround(0x800)\n"),
        "Find what sets it (a library that is preloaded, or that is imported), and remove that",
        remove("beside", "sitecustomize.py"),
    ),
    Case("environ", without_environ, "Capture again", lambda world: world.envlock("capture", "--static")),
    Case("tensorflow.plugins", plugin, "Remove `tensorflow-plugins`", remove("site", "tensorflow-plugins")),
    Case(
        "cpu.affinity_count",
        start(),
        "Give the process 1 CPUs, as locked (taskset",
        start("taskset", "-c", "0"),
        start("taskset", "-c", "0"),
    ),
    Case("data", put("project", "in.csv", "1,2,3\n"), "Restore", put("project", "in.csv", "1,2\n"), with_data),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fact)
def test_a_remedy_that_is_obeyed_is_one(case: Case, envlock: Command, tmp_path: Path) -> None:
    if case.fact == "python.rounding" and platform.machine() != "x86_64":
        absent("the number that says `upward` is that of x86_64")
    if case.fact.startswith("cpu.") and (shutil.which("taskset") is None or len(os.sched_getaffinity(0)) < 2):
        absent("no taskset, or one processor")
    world = World(envlock, tmp_path)
    case.before(world)
    done = world.envlock("capture", "--static")
    assert done.returncode == 0, done.stderr
    first = world.envlock("verify")
    assert first.returncode == 0, first.stdout
    case.make(world)
    report = json.loads(world.envlock("verify", "--format", "json").stdout)
    assert not report["match"]
    fixes = {each["where"].get("fact"): each["fix"] for each in report["findings"] if each["severity"] != "info"}
    assert case.says in fixes[case.fact], fixes
    case.obey(world)
    again = world.envlock("verify")
    assert (again.returncode, again.stdout) == (0, first.stdout), again.stdout
