"""One package in a folder of its own, which PYTHONPATH puts before an environment: another version without a rebuild."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from envlock.guest import launch
from envlock.lock.temporary import open_draft_folder
from envlock.packages.wheel_cache import get_cache_folder
from envlock.runtime.errors import OutsideError, WriteError

LIMIT = 1800.0  # seconds: a wheel of TensorFlow has 600 MB
MODE = "ENVLOCK_MODE"
"""A script that asserts its lockfile on line 1 would refuse every environment but one."""
BESIDE = ("nvidia", "tensorflow-plugins", "jax_plugins")
"""Folders that are found beside TensorFlow or in site-packages, and not by PYTHONPATH.

Source of the first: the RUNPATH of TensorFlow's libraries, `$ORIGIN/../nvidia/...`; of the others: `PLUGINS` in closure.py.
"""


def make_overlay_folder(named: Path | None = None) -> Path:
    """Return the folder in which overlays are kept, and create it: the named one, else one in the user's cache.

    Raises:
        WriteError: it cannot be created.
    """
    folder = named
    if folder is None:
        folder = get_cache_folder(os.environ, Path.home()) / "bisect"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(
            f"cannot create {folder}: {error.strerror}",
            hint="name another folder: XDG_CACHE_HOME, or --state of `envlock bisect`",
        ) from None
    return folder


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
        # An environment of `uv venv` has no pip, unless it was made with `--seed`.
        uv = shutil.which("uv")
        if done.code != 0 and b"No module named pip" in done.errors and uv is not None:
            words = ["pip", "install", "--python", str(interpreter), *wanted, f"{name}=={version}"]
            done = launch.ask(words, Path(uv), timeout=LIMIT)
        if done.code != 0:
            raise OutsideError(
                f"cannot install {name} {version} beside the environment: {done.last_words}",
                hint="check that an index has a wheel for this Python, and that pip or uv is installed",
            )
        # At the end: a folder of this name is taken to be complete by every later call.
        target.rename(made)
    return made


def build_environ(overlays: Sequence[Path], variables: Mapping[str, str | None]) -> dict[str, str]:
    """Return the variables of a run in which these overlays come first; a variable that is None is unset."""
    environ = {name: value for name, value in os.environ.items() if name not in variables}
    environ.update({name: value for name, value in variables.items() if value is not None})
    folders = list(map(str, overlays))
    own = environ.get("PYTHONPATH")
    if own:
        folders.append(own)
    if folders:
        environ["PYTHONPATH"] = os.pathsep.join(folders)
    environ[MODE] = "off"
    return environ


def find_unreached(overlay: Path) -> str | None:
    """Return the part of an overlay that a program takes from the environment nevertheless; None if it takes all."""
    for name in BESIDE:
        if (overlay / name).is_dir():
            return f"{name}/"
    # Python reads them in site-packages only.
    for file in sorted(overlay.glob("*.pth")):
        return file.name
    return None
