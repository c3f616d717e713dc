"""The environment's own installer, uv or pip, as a child: it makes environments and changes what is
in them. Nothing that an installer does is done here.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from envlock.guest import launch
from envlock.lock.temporary import open_draft_folder
from envlock.runtime.errors import EnvlockError, OutsideError, UsageError
from envlock.runtime.host import read_text

LIMIT = 7200.0  # seconds: TensorFlow with CUDA has 4 GB
QUICK = 60.0
ELSEWHERE = (
    "TARGET",
    "PREFIX",
    "ROOT",
    "USER",
    "CONSTRAINT",
    "BUILD_CONSTRAINT",
    "OVERRIDE",
    "DRY_RUN",
    "REQUIRE_HASHES",
)
"""Settings of pip and uv, by variables, with which something else would be changed or installed."""
IN_PIP_FILES = {
    "PIP_CONSTRAINT": os.devnull,
    "PIP_BUILD_CONSTRAINT": os.devnull,
    "PIP_DRY_RUN": "0",
    "PIP_REQUIRE_HASHES": "0",
    "PIP_ROOT": "/",
    "PIP_USER": "0",
}
"""The same in files of pip, which variables override, if they are not empty. Source:
https://pip.pypa.io/en/stable/topics/configuration/#precedence-override-order
"""
CONFIG = "pyvenv.cfg"
SETUPTOOLS_SETTINGS = "DIST_EXTRA_CONFIG"
"""A variable that names a file of settings. Source: https://github.com/pypa/distutils/pull/177"""
QUIET = ("-I", "--disable-pip-version-check", "--no-input", "--quiet")
"""Options that a person does not type."""
MARKS = " \u00d7\u2502\u251c\u2500\u25b6\u2570"
"""What uv draws before the lines of an error."""
VERSION = (
    "import platform, sys; print(sys.implementation.name); print(platform.python_version());"
    "print(getattr(sys, '_base_executable', None) or sys.executable)"
)
"""A program that says what an interpreter is, and which one its virtual environment is made of."""


class Installer(NamedTuple):
    """An installer of an environment: its name, the program, and the words before each request."""

    name: str
    program: Path
    install: tuple[str, ...]
    uninstall: tuple[str, ...]


class Interpreter(NamedTuple):
    """An interpreter that environments can be made of."""

    implementation: str
    version: str
    path: Path


def find_uv() -> Path | None:
    """Return the program uv: of PATH, or beside the Python that runs envlock."""
    found = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    return None if found is None else Path(found)


def choose_installer(python: Path, wanted: str) -> Installer:
    """Return the installer of an environment: uv if uv made it, else its own pip, else uv.

    Args:
        python: its interpreter.
        wanted: uv or pip, for an environment that nothing made yet.

    Raises:
        UsageError: it has none, and there is no uv.
    """
    uv = find_uv()
    if wanted == "uv" and uv is not None:
        return _describe_uv(uv, python)
    if _has_pip(python):
        # Isolated: neither PYTHONPATH nor the current folder has another pip or module.
        words = ("-I", "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet")
        return Installer("pip", python, (*words, "install"), (*words, "uninstall", "--yes"))
    if uv is not None:
        return _describe_uv(uv, python)
    raise UsageError(
        f"no installer for {python}: it has no pip, and there is no uv on PATH",
        hint=f"run `{python} -m ensurepip`, or install uv",
    )


def find_maker(python: Path) -> str:
    """Return which of uv and pip an environment was made for."""
    # Made by `uv venv`, it says so: https://docs.astral.sh/uv/pip/environments/
    lines = (read_text(str(python.parent.parent / CONFIG)) or "").splitlines()
    if any(line.partition("=")[0].strip() == "uv" for line in lines):
        return "uv"
    return "pip"


def _describe_uv(uv: Path, python: Path) -> Installer:
    where = ("--quiet", "--python", str(python))
    return Installer("uv", uv, ("pip", "install", *where), ("pip", "uninstall", *where))


def _has_pip(python: Path) -> bool:
    return launch.ask(["-I", "-m", "pip", "--version"], python, timeout=QUICK).code == 0


def make_command(installer: Installer, requirement: str) -> list[str]:
    """Return the words with which a person installs something into the environment."""
    program = "uv" if installer.name == "uv" else str(installer.program)
    return [program, *(word for word in installer.install if word not in QUIET), requirement]


def install(
    installer: Installer,
    text: str,
    *,
    hashes: bool = False,
    links: Path | None = None,
    target: Path | None = None,
) -> None:
    """Install the lines of a requirements file, and nothing that they require.

    Args:
        installer: the one of the environment.
        text: the requirements file.
        hashes: every line has a hash.
        links: a folder with wheels that no index has.
        target: a folder to install into instead of the environment.

    Raises:
        OutsideError: it failed. Both installers download and build everything before they change
            anything.
    """
    options = ["--no-deps", *_choose_place(installer, target)]
    if hashes:
        options.append("--require-hashes")
        # By default, uv takes a package from the first index that has any version.
        if installer.name == "uv":
            options += ["--index-strategy", "unsafe-best-match"]
    if links is not None:
        options += ["--find-links", str(links)]
    _run_with_file(installer, [*installer.install, *options], text)


def install_folder(installer: Installer, folder: Path, *, editable: bool) -> None:
    """Install the project in a folder, as a copy or editable, and nothing that it requires.

    setuptools leaves neither `*.egg-info` nor `build` in the folder.

    Raises:
        OutsideError: it failed.
    """
    place = ["--editable", str(folder)] if editable else [str(folder)]
    with open_draft_folder(None) as draft:
        environ = dict(os.environ)
        # Without pyproject.toml, pip may run `setup.py develop`, which needs both in the folder.
        if installer.name == "uv" or (folder / "pyproject.toml").is_file():
            settings = draft / "setup.cfg"
            text = f"[egg_info]\negg_base = {draft}\n[build]\nbuild_base = {draft / 'build'}\n"
            settings.write_text(text, encoding="utf-8")
            environ.setdefault(SETUPTOOLS_SETTINGS, str(settings))
        options = ["--no-deps", *_choose_place(installer, None)]
        _run(installer, [*installer.install, *options, *place], environ)


def _choose_place(installer: Installer, target: Path | None) -> list[str]:
    """Return the options that install into a folder or, whatever pip's files say, into the environment."""
    if target is not None:
        return ["--target", str(target)]
    if installer.name != "pip":
        return []
    options = ["--target", ""]
    prefix = installer.program.parent.parent
    # Elsewhere, as for Debian's own Python, the place is not below the prefix.
    if (prefix / CONFIG).is_file():
        options += ["--prefix", str(prefix)]
    return options


def uninstall(installer: Installer, names: Sequence[str]) -> None:
    """Remove packages.

    Raises:
        OutsideError: it failed.
    """
    _run_with_file(installer, installer.uninstall, "\n".join([*names, ""]))


def _run_with_file(installer: Installer, words: Sequence[str], text: str) -> None:
    # In a file, because a hash can only stand there; and no name in it can be an option.
    with open_draft_folder(None) as draft:
        file = draft / "requirements.txt"
        file.write_text(text, encoding="utf-8")
        _run(installer, [*words, "-r", str(file)])


def _run(
    installer: Installer, words: Sequence[str], environ: Mapping[str, str] = os.environ
) -> None:
    done = launch.ask(words, installer.program, timeout=LIMIT, environ=drop_settings(environ))
    if done.code != 0:
        hint = (
            f"correct what it names; for wheels in a folder, set {installer.name.upper()}_FIND_LINKS; "
            "then run `envlock sync` again"
        )
        raise OutsideError(f"{installer.name} {done.ending}: {find_reason(done)}", hint=hint)


def find_reason(done: launch.Ended) -> str:
    """Return the lines of an installer's errors that say what failed, as one."""
    lines = [line.strip(MARKS) for line in done.errors.decode("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line]
    for number, line in enumerate(lines):
        if line.lower().startswith("error:"):
            told = [line[len("error:") :].strip(), *lines[number + 1 :]]
            return " ".join(told)[: launch.LONGEST * 2]
    return " ".join(lines)[: launch.LONGEST * 2] or "no output"


def drop_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those settings of pip and uv, and with those that override
    pip's files.
    """
    dropped = {f"{tool}_{name}" for tool in ("PIP", "UV") for name in ELSEWHERE}
    kept = {name: value for name, value in environ.items() if name not in dropped}
    return {**kept, **IN_PIP_FILES}


def make_environment(folder: Path, interpreter: Path, wanted: str) -> Installer:
    """Make a virtual environment in a folder, and return its installer.

    Args:
        folder: it exists, and has nothing of an environment.
        interpreter: the Python that it is made of.
        wanted: uv or pip.

    Raises:
        OutsideError: it failed.
        UsageError: there is no installer.
    """
    uv = find_uv()
    python = folder / "bin" / "python"
    if uv is not None and wanted == "uv":
        words = ["venv", "--quiet", "--no-project", "--allow-existing", "--python"]
        done = launch.ask([*words, str(interpreter), str(folder)], uv, timeout=QUICK)
    else:
        done = launch.ask(["-I", "-m", "venv", str(folder)], interpreter, timeout=LIMIT)
    if done.code != 0:
        hint = "this Python may lack `venv` (on Debian: apt install python3-venv); uv needs none"
        raise OutsideError(f"no environment in {folder}: {find_reason(done)}", hint=hint)
    return choose_installer(python, wanted)


def list_interpreters(version: str, others: Sequence[Path]) -> list[Interpreter]:
    """Return the Pythons here that can be of a version, the likeliest first; nothing is downloaded.

    Args:
        version: such as 3.11.7.
        others: interpreters that are asked, too.
    """
    names = []
    uv = find_uv()
    if uv is not None:
        words = ["python", "find", "--no-project", "--no-python-downloads", "--quiet", version]
        found = launch.ask(words, uv, timeout=QUICK).output.decode("utf-8", "replace").strip()
        if found:
            names.append(Path(found))
    minor = ".".join(version.split(".")[:2])
    for name in (f"python{minor}", "python3"):
        program = shutil.which(name)
        if program is not None:
            names.append(Path(program))
    asked = [ask_version(path) for path in dict.fromkeys([*names, *others])]
    return [answer for answer in asked if answer is not None]


def ask_version(python: Path) -> Interpreter | None:
    """Return what an interpreter is; None if it does not answer."""
    try:
        done = launch.ask(["-I", "-c", VERSION], python, timeout=QUICK)
    except EnvlockError:
        return None
    lines = done.output.decode("utf-8", "replace").splitlines()
    if done.code != 0 or len(lines) != 3:
        return None
    return Interpreter(lines[0], lines[1], Path(lines[2]))
