"""Count false reds: environments of many kinds are captured, and asked again after the events of ordinary days.

    python benchmarks/days.py FOLDER --envlock COMMAND --wheel WHEEL --python PYTHON ... --tensorflow REQUIREMENT ...
        [--installer uv pip] [--only TEXT]

COMMAND is envlock's command line, outside of the environments, and WHEEL the same envlock for their scripts. Each
requirement is installed by uv and by pip, in an environment of each PYTHON and in one that also sees the packages of
the first PYTHON. Each is captured under `strict`, moved, and gets other packages. Then ask: a script of another user
with hardly any variable, pytest with its plugins in a desktop's terminal, a notebook's kernel, `-m` with a spawned, a
forked and a fork server's child, a worker of Dask with its user's thread counts, and `envlock verify`; and a script with
another number of threads, which has to be refused. Runs as root, with uv on PATH; every user has to be able to read
PYTHON. Exit code 1: anything else was refused, or that was not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TIMEOUT = 1800  # seconds
SYSTEM = "with the system's packages"
ADDED = (
    "pytest",
    "pytest-xdist",
    "pytest-cov",
    "pytest-timeout",
    "ipykernel",
    "distributed",
    "tqdm",
)
FILES = {
    "pyproject.toml": '[project]\nname = "days"\nversion = "1"\n',
    "train.py": """
import envlock

envlock.assert_locked(policy="strict")
import tensorflow as tf

envlock.assert_loaded(policy="strict")
print("sum", tf.reduce_sum(tf.ones([8, 8])).numpy())


def ask(_=None):
    envlock.assert_locked(policy="strict")
    envlock.assert_loaded(policy="strict")
    return 1
""",
    "test_train.py": "def test_train():\n    import train\n\n    assert train.ask() == 1\n",
    "workers.py": """
import multiprocessing
import train

if __name__ == "__main__":
    for method in ("spawn", "fork", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.map(train.ask, [1]) == [1]
""",
    "dask_worker.py": """
import dask
import train
from distributed import Client, LocalCluster

if __name__ == "__main__":
    # Its workers have one thread each otherwise, which changes bits.
    dask.config.set({"distributed.nanny.pre-spawn-environ": {}})
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        assert client.submit(train.ask).result(timeout=900) == 1
""",
    "notebook.py": """
from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel()
reply = client.execute_interactive("import train; train.ask()", timeout=900)
manager.shutdown_kernel(now=True)
if reply["content"]["status"] != "ok":
    raise SystemExit(reply["content"]["evalue"])
""",
}
USUAL = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "LANG": "C.UTF-8", "TERM": "xterm"}
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
CRON = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "SHELL": "/bin/sh",
    "LOGNAME": "nobody",
    "TERM": "dumb",
}
DESKTOP = """
TERM=xterm-256color COLORTERM=truecolor DISPLAY=:0 SHELL=/usr/bin/zsh SHLVL=3 LANG=de_DE.UTF-8 LC_TIME=en_GB.UTF-8
SSH_AUTH_SOCK=/tmp/agent XDG_SESSION_TYPE=wayland VIRTUAL_ENV=/elsewhere CONDA_DEFAULT_ENV=base EDITOR=vi PAGER=less
LS_COLORS=di=34 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/bus HISTSIZE=1 PS1=> no_proxy=localhost
"""


@dataclass(frozen=True)
class Day:
    """Who asks, and how.

    Attributes:
        name: as it is printed.
        words: the command, in which `python` stands for the interpreter of the environment.
        variables: its variables.
    """

    name: str
    words: tuple[str, ...]
    variables: dict[str, str]


def list_days(command: str) -> list[Day]:
    """Return the days; the last one has to be refused."""
    desktop = dict(each.split("=", 1) for each in DESKTOP.split())
    return [
        Day("a script of another user, as cron starts it", (*NOBODY, "python", "train.py"), CRON),
        Day(
            "pytest in a desktop's terminal",
            ("python", "-m", "pytest", "-q", "-n", "1", "--cov", "train", "."),
            {**USUAL, **desktop},
        ),
        Day("a notebook's kernel", ("python", "notebook.py"), USUAL),
        Day("-m, and children of three kinds", ("python", "-m", "workers"), USUAL),
        Day("a worker of Dask", ("python", "dask_worker.py"), USUAL),
        Day(
            "envlock verify", (command, "verify", "--policy", "strict", "--python", "python"), USUAL
        ),
        Day("one thread", ("python", "train.py"), {**USUAL, "OMP_NUM_THREADS": "1"}),
    ]


def run(
    words: tuple[object, ...], folder: Path, variables: dict[str, str] = USUAL
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder."""
    return subprocess.run(
        [str(each) for each in words],
        cwd=folder,
        env={"TF_CPP_MIN_LOG_LEVEL": "3", **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def must(*words: object, folder: Path) -> None:
    """Run a command that has to succeed.

    Raises:
        RuntimeError: it failed.
    """
    done = run(words, folder, dict(os.environ))
    if done.returncode:
        raise RuntimeError(f"{words}: {done.stderr[-2000:]}")


def install(installer: str, python: Path, requirement: str, wheel: Path, folder: Path) -> Path:
    """Return a new environment with TensorFlow and the envlock of scripts."""
    base = folder / "base"
    if installer == "uv":
        must("uv", "venv", "-q", "--python", python, base, folder=folder)
        pip: tuple[object, ...] = ("uv", "pip", "install", "-q", "--python", base)
    else:
        must(python, "-m", "venv", base, folder=folder)
        pip = (base / "bin/python", "-m", "pip", "install", "-q", "--no-compile")
    must(*pip, requirement, folder=folder)
    must(*pip, "--no-deps", wheel, folder=folder)
    must(
        base / "bin/python", "-c", "import tensorflow", folder=folder
    )  # once, as it writes the compiled files for all
    return base


def list_layouts(base: Path, pythons: list[Path], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield environments with the files of one: each in a folder of its own."""
    kinds = [(f"of {python}", python, "--without-pip") for python in pythons]
    kinds.append((SYSTEM, pythons[0], "--system-site-packages"))
    for number, (name, python, option) in enumerate(kinds):
        made = folder / f"layout{number}"
        must(python, "-m", "venv", "--without-pip", option, made, folder=folder)
        (source,), (target,) = (
            list(each.glob("lib/python3*/site-packages")) for each in (base, made)
        )
        must("cp", "-al", f"{source}/.", target, folder=folder)
        yield name, made


def ask(
    name: str, environment: Path, command: str, pip: tuple[object, ...], folder: Path
) -> tuple[int, int]:
    """Return how many days were asked, and how many of them had the wrong answer, which is printed."""
    project = folder / "project"
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir()
    for file, text in FILES.items():
        (project / file).write_text(text, encoding="utf-8")
    python = environment / "bin/python"
    capture = (
        command,
        "capture",
        "-q",
        "--policy",
        "strict",
        "--for",
        "train.py",
        "--python",
        python,
    )
    done = run(capture, project)
    if done.returncode:
        print(f"BROKEN {name}: {done.stderr[-600:]}", flush=True)
        return 1, 1
    moved = folder / "moved"
    environment.rename(moved)
    python = moved / "bin/python"
    if name.endswith(
        SYSTEM
    ):  # uv does not see what the system has, and would put newer versions over that
        must(*pip, "--python", python, "install", "-q", *ADDED, folder=project)
    else:
        must("uv", "pip", "install", "-q", "--python", python, *ADDED, folder=project)
    days = list_days(command)
    wrong = 0
    for day in days:
        words = [python if word == "python" else word for word in day.words]
        done = run(tuple(words), project, day.variables)
        is_last = day is days[-1]
        if (done.returncode == 0) == is_last:
            wrong += 1
            print(f"WRONG {name}, {day.name}: {(done.stdout + done.stderr)[-1500:]}", flush=True)
    shutil.rmtree(moved)
    print(f"{len(days) - wrong} of {len(days)} as they should be: {name}", flush=True)
    return len(days), wrong


def main() -> int:
    """Make the environments, ask each, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("folder", type=Path, help="new folder; some GB")
    parser.add_argument("--envlock", required=True, help="envlock's command line")
    parser.add_argument("--wheel", type=Path, required=True, help="the same envlock, for scripts")
    parser.add_argument(
        "--python", type=Path, nargs="+", required=True, help="of one minor version"
    )
    parser.add_argument(
        "--tensorflow", nargs="+", required=True, help="requirements: tensorflow-cpu==2.20.0"
    )
    parser.add_argument("--installer", nargs="+", default=["uv", "pip"])
    parser.add_argument("--only", default="", help="environments with this text")
    options = parser.parse_args()
    environments = asked = wrong = 0
    for requirement in options.tensorflow:
        for installer in options.installer:
            folder = options.folder.absolute() / f"{requirement}-{installer}"
            folder.mkdir(parents=True)
            wheel = options.wheel.absolute()
            base = install(installer, options.python[0], requirement, wheel, folder)
            for layout, made in list_layouts(base, options.python, folder):
                name = f"{requirement} by {installer} {layout}"
                if options.only not in name:
                    continue
                pip = (options.python[0], "-m", "pip")
                counts = ask(name, made, options.envlock, pip, folder)
                environments, asked, wrong = environments + 1, asked + counts[0], wrong + counts[1]
            shutil.rmtree(folder)
    print(f"{environments} environments, {asked} days asked, {wrong} with the wrong answer")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
