"""One package in a folder of its own, which PYTHONPATH puts before an environment: another version without a rebuild."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from envlock.guest import launch
from envlock.lock.temporary import open_draft_folder
from envlock.runtime.errors import OutsideError, UsageError
from envlock.runtime.user_cache import is_own, make_cache

OVERLAYS = "overlays"
"""The part of the user's cache that holds them."""
ABOUT = """
import sys, sysconfig
print(sys.implementation.cache_tag)
print(sysconfig.get_config_var("SOABI"))
print(sysconfig.get_platform())
"""
"""A program that says which wheels an interpreter takes."""
INDEX_VARIABLES = (
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "UV_INDEX",
    "UV_DEFAULT_INDEX",
)
LIMIT = 1800.0  # seconds: a wheel of TensorFlow has 600 MB
MODE = "ENVLOCK_MODE"
"""A script that asserts its lockfile on line 1 would refuse every environment but one."""
BESIDE = ("nvidia", "tensorflow-plugins", "jax_plugins")
"""Folders that are found beside TensorFlow or in site-packages, and not by PYTHONPATH.

Source of the first: the RUNPATH of TensorFlow's libraries, `$ORIGIN/../nvidia/...`; of the others: `PLUGINS` in closure.py.
"""


class Wanted(NamedTuple):
    """A package to install in an overlay: name, version, and the SHA-256 of its wheel where a lockfile
    proves it.
    """

    name: str
    version: str
    sha256: str | None = None


def make_overlay_folder() -> Path:
    """Return the folder of the user's cache in which overlays are kept, and create it.

    Raises:
        WriteError: it cannot be created.
    """
    return Path(make_cache(os.environ, OVERLAYS))


def install_overlay(wanted: Wanted, folder: Path, python: Path | None) -> Path:
    """Return a folder with this version of a package and none of its requirements; it is created
    once for each interpreter, platform, hash, and list of indexes in variables.

    Only wheels are used, so that no code of the package runs. The environment's pip installs it, or
    uv if there is no pip; where the hash is known, both refuse another wheel.

    Args:
        wanted: the package.
        folder: contains the overlays.
        python: the interpreter of the environment; this one when not given.

    Raises:
        OutsideError: there is no installer, or it finds no wheel of this version for this Python.
        UsageError: another user can have written the folder of this version.
        WriteError: the folder cannot be written.
    """
    interpreter = python or Path(sys.executable)
    key = _make_key(wanted, interpreter)
    made = folder / f"{wanted.name}-{wanted.version}-{key}"
    if made.is_dir():
        if not is_own(str(made)):
            raise UsageError(
                f"other users can have written {made}, and it would be run", hint="remove it"
            )
        return made
    with open_draft_folder(folder) as draft:
        target = draft / "site"
        _install(wanted, interpreter, target, draft / "requirements.txt")
        target.chmod(0o700)  # the umask may let others write to it
        # At the end: a folder of this name is taken to be complete by every later call.
        try:
            target.rename(made)
        except OSError:  # another process has made it meanwhile
            if not is_own(str(made)):
                raise
    return made


def _install(wanted: Wanted, interpreter: Path, target: Path, requirements: Path) -> None:
    """Install a package into a folder; `requirements` is written, because a hash can only stand in a file.

    Raises:
        OutsideError: there is no installer, or it finds no wheel of this version for this Python.
    """
    requirement = f"{wanted.name}=={wanted.version}"
    options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--target", str(target)]
    if wanted.sha256 is None:
        hint = "check that an index has a wheel for this Python, and that pip or uv is installed"
    else:
        hint = f"check that an index has the locked wheel, sha256 {wanted.sha256}"
        requirement += f" --hash=sha256:{wanted.sha256}"
        options.append("--require-hashes")
    requirements.write_text(f"{requirement}\n", encoding="utf-8")
    options += ["-r", str(requirements)]
    words = ["-m", "pip", "install", "--disable-pip-version-check", *options]
    done = launch.ask(words, interpreter, timeout=LIMIT)
    # An environment of `uv venv` has no pip, unless it was made with `--seed`.
    uv = shutil.which("uv")
    if done.code != 0 and b"No module named pip" in done.errors and uv is not None:
        words = ["pip", "install", "--python", str(interpreter), *options]
        done = launch.ask(words, Path(uv), timeout=LIMIT)
    if done.code != 0:
        raise OutsideError(
            f"cannot install {wanted.name} {wanted.version} beside the environment: {done.last_words}",
            hint=hint,
        )


def _make_key(wanted: Wanted, interpreter: Path) -> str:
    """Return a digest of what decides, beside name and version, which wheel is installed.

    Raises:
        OutsideError: the interpreter does not answer.
    """
    asked = launch.ask(["-I", "-c", ABOUT], interpreter, timeout=LIMIT)
    about = asked.output.decode("utf-8", "replace").splitlines()
    if len(about) != 3:
        raise OutsideError(f"{interpreter} does not say what it is: {asked.last_words}")
    # A wheel of this hash is the same one, whichever index has it.
    indexes = {name: os.environ.get(name) for name in INDEX_VARIABLES if wanted.sha256 is None}
    key = json.dumps([about, [wanted.sha256, indexes]])
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def build_environ(overlays: Sequence[Path], variables: Mapping[str, str | None]) -> dict[str, str]:
    """Return the variables of a run in which these overlays come first; a variable that is None is unset."""
    wanted = {**os.environ, **variables, MODE: "off"}
    environ = {name: value for name, value in wanted.items() if value is not None}
    folders = [*map(str, overlays), environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(filter(None, folders))
    return {**environ, "PYTHONPATH": path} if path else environ


def find_unreached(overlay: Path) -> str | None:
    """Return the part of an overlay that a program takes from the environment nevertheless; None if it takes all."""
    for name in BESIDE:
        if (overlay / name).is_dir():
            return f"{name}/"
    # Python reads them in site-packages only.
    for file in sorted(overlay.glob("*.pth")):
        return file.name
    return None
