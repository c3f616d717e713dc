"""One package in a folder of its own, which PYTHONPATH puts before an environment: another version without a rebuild."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from envlock.guest import launch
from envlock.lock.temporary import open_draft_folder
from envlock.runtime.errors import OutsideError

LIMIT = 1800.0  # seconds: a wheel of TensorFlow has 600 MB


def install_overlay(name: str, version: str, folder: Path, python: Path | None) -> Path:
    """Return a folder with this version of a package and none of its requirements; it is created
    once.

    Only wheels are used, so that no code of the package runs. The environment's pip installs it, or
    uv if there is no pip.

    Args:
        name, version: those of the package.
        folder: contains the overlays.
        python: the interpreter of the environment; this one when not given.

    Raises:
        OutsideError: there is no installer, or it finds no wheel of this version for this Python.
        WriteError: the folder cannot be written.
    """
    made = folder / f"{name}-{version}"
    if made.is_dir():
        return made
    interpreter = python or Path(sys.executable)
    with open_draft_folder(folder) as draft:
        target = draft / "site"
        wanted = ("--quiet", "--no-deps", "--only-binary", ":all:", "--target", str(target))
        words = ["-m", "pip", "install", "--disable-pip-version-check", *wanted]
        done = launch.ask([*words, f"{name}=={version}"], interpreter, timeout=LIMIT)
        uv = shutil.which("uv")
        if done.code != 0 and b"No module named pip" in done.errors and uv is not None:
            words = ["pip", "install", "--python", str(interpreter), *wanted, f"{name}=={version}"]
            done = launch.ask(words, Path(uv), timeout=LIMIT)
        if done.code != 0:
            raise OutsideError(
                f"cannot install {name} {version} beside the environment: {done.last_words}",
                hint="check that an index has a wheel for this Python, and that pip or uv is installed",
            )
        target.rename(made)
    return made
