"""Which environment is meant, where envlock is installed outside of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from envlock.runtime import lockfile


def project_python(environ: Mapping[str, str], folder: Path) -> tuple[Path, str] | None:
    """Return the interpreter of the project's environment and where it is known from; None for this process's own.

    An envlock that is installed beside TensorFlow means its own environment. Else it is found as uv finds it: the
    active environment, then a `.venv` in the folder or above it in the project.
    Source: https://docs.astral.sh/uv/pip/environments/#discovery-of-python-environments
    """
    if find_spec("tensorflow") is not None:
        return None
    for prefix, origin in _prefixes(environ, folder):
        python = prefix / "bin" / "python"
        if python.is_file():
            return None if prefix.resolve() == Path(sys.prefix).resolve() else (python, origin)
    return None


def _prefixes(environ: Mapping[str, str], folder: Path) -> Iterator[tuple[Path, str]]:
    if environ.get("VIRTUAL_ENV"):
        yield Path(environ["VIRTUAL_ENV"]), "VIRTUAL_ENV"
    if environ.get("CONDA_PREFIX") and environ.get("CONDA_DEFAULT_ENV") not in ("base", "root"):
        yield Path(environ["CONDA_PREFIX"]), "CONDA_PREFIX"
    border = Path(lockfile.project(str(folder)))
    for parent in (folder, *folder.parents):
        yield parent / ".venv", ".venv of the project"
        if parent == border:
            return
