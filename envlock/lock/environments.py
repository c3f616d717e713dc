"""Where package managers keep the environment of a project; the places are computed, and no package
manager is run.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from envlock.lock.settings import read_project_name
from envlock.runtime.host import read_text
from envlock.runtime.lockfile import SETTINGS

# Poetry's file has two lines for each environment of a user.
LONGEST = 1 << 20  # bytes of a file of a package manager
NAMELESS = "non-package-mode"
"""Poetry's name for a project without a name: https://github.com/python-poetry/poetry-core
(Factory.create_poetry)
"""


class Candidate(NamedTuple):
    """A place where an environment can be.

    Attributes:
        origin: the tool that creates it, in words for a message.
        shown: the place that was examined, in words for a message.
        python: the path of its interpreter, which may not exist; None if no file names one.
        chosen: the paths that name or contain the interpreter; the owner of any of them decides
            which code runs.
    """

    origin: str
    shown: str
    python: Path | None
    chosen: tuple[Path, ...] = ()


def list_candidates(environ: Mapping[str, str], folder: Path) -> Iterator[Candidate]:
    """Yield the places where the environment of the project in a folder can be: its own, Poetry's,
    Pipenv's, PDM's and pixi's.
    """
    yield _make_candidate(folder / ".venv", ".venv of the project")
    if (folder / SETTINGS).is_file():
        yield _find_poetry(environ, folder)
    if (folder / "Pipfile").is_file():
        yield _find_pipenv(environ, folder)
    yield _find_pdm(folder / ".pdm-python")
    yield _make_candidate(folder / ".pixi" / "envs" / "default", "pixi's of the project")


def _make_candidate(prefix: Path, origin: str) -> Candidate:
    python = prefix / "bin" / "python"
    return Candidate(origin, str(prefix), python, (prefix, python.parent, python))


def _find_poetry(environ: Mapping[str, str], folder: Path) -> Candidate:
    """Return the environment of Poetry, `NAME-HASH-pyX.Y` in its cache; of several, the one that
    `poetry env use` selected.

    Source: https://python-poetry.org/docs/managing-environments/, EnvManager.generate_env_name
    """
    name = (read_project_name(folder) or NAMELESS).lower()
    # 42 characters, with which the path of an interpreter fits into the first line of a script. Both
    # Poetry and Pipenv, whose sources say so, cut the name there.
    name = re.sub(r'[ $`!*@"\\\r\n\t]', "_", name)[:42]
    base = f"{name}-{_hash(os.path.realpath(folder), 32)}"
    cache = _find_poetry_cache(environ)
    found = sorted(cache.glob(f"{base}-py*"))
    chosen = _read_chosen_python(cache / "envs.toml", base)
    if chosen is not None:
        found = [prefix for prefix in found if prefix.name == f"{base}-py{chosen}"]
    if len(found) > 1:
        versions = ", ".join(prefix.name.rpartition("-")[2] for prefix in found)
        return Candidate(
            "Poetry's", f"{cache / base}-* (several: {versions}; `poetry env use` chooses)", None
        )
    if not found:
        return Candidate("Poetry's", f"{cache / base}-*", None)
    return _make_candidate(found[0], "Poetry's of the project")


def _find_poetry_cache(environ: Mapping[str, str]) -> Path:
    if environ.get("POETRY_VIRTUALENVS_PATH"):
        return Path(environ["POETRY_VIRTUALENVS_PATH"]).expanduser()
    if environ.get("POETRY_CACHE_DIR"):
        return Path(environ["POETRY_CACHE_DIR"]).expanduser() / "virtualenvs"
    home = Path(environ.get("HOME") or "~").expanduser()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "pypoetry" / "virtualenvs"
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "pypoetry" / "virtualenvs"


def _read_chosen_python(file: Path, base: str) -> str | None:
    """Return the Python version of the environment that was selected last, such as `3.11`; None if
    unknown.
    """
    text = _read_text(file)
    found = re.search(
        rf'^\["?{re.escape(base)}"?\]\s+(?:patch = "[^"]*"\s+)?minor = "([0-9.]+)"',
        text,
        re.MULTILINE,
    )
    if found is None:
        return None
    return found[1]


def _find_pipenv(environ: Mapping[str, str], folder: Path) -> Candidate:
    """Return the environment of Pipenv, `FOLDER-HASH` in WORKON_HOME.

    Source: https://pipenv.pypa.io/en/latest/virtualenv.html, VenvLocator of
    pipenv/utils/venv_locator.py
    """
    home = Path(environ.get("HOME") or "~").expanduser()
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    work = Path(environ.get("WORKON_HOME") or data / "virtualenvs").expanduser()
    name = re.sub(r'[ &$`!*@"()\[\]\\\r\n\t]', "_", folder.name)[:42]
    named = environ.get("PIPENV_CUSTOM_VENV_NAME") or f"{name}-{_hash(str(folder / 'Pipfile'), 6)}"
    return _make_candidate(work / named, "Pipenv's of the project")


def _hash(text: str, size: int) -> str:
    """Return the eight characters by which Poetry and Pipenv identify a folder: the first `size`
    bytes of its SHA-256, in base64.
    """
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:size]).decode()[:8]


def _find_pdm(file: Path) -> Candidate:
    """Return the environment of PDM: the interpreter that a file of the project names.

    Source: https://pdm-project.org/latest/usage/project/#choose-a-python-interpreter
    """
    python = Path(_read_text(file).strip())
    if not python.is_absolute():
        return Candidate("PDM's", str(file), None)
    return Candidate(
        "PDM's of the project",
        str(file),
        python,
        (file, python.parent.parent, python.parent, python),
    )


def _read_text(file: Path) -> str:
    """Return the text of a file; empty if it cannot be read or has bytes that no path has."""
    with suppress(OSError):
        text = read_text(str(file), LONGEST)
        if text is not None and "\0" not in text:
            return text
    return ""
