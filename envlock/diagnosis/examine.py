"""From a live environment or a lock to what the rules look at."""

from __future__ import annotations

import mmap
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from envlock.data import determinism, variables
from envlock.diagnosis.environment import Environment, Requirement
from envlock.diagnosis.fatbin import read_gpu_code
from envlock.diagnosis.flags import flags
from envlock.diagnosis.remedies import installer_of
from envlock.lock.live import ask
from envlock.lock.models import Lockfile
from envlock.packages.installation import by_name, header, installation, required
from envlock.runtime.collectors import Snapshot
from envlock.runtime.distributions import normalise

LIBRARY = "libtensorflow_cc.so.2"
LEAST = 1 << 20  # bytes: smaller libraries of TensorFlow register no flag


def of_lock(lock: Lockfile) -> Environment:
    """Return the environment of a lock; of variables that no lock holds nothing is known."""
    document = lock.to_document()
    environment = Environment(
        document["facts"], document["unavailable"], dict(lock.facts.environ or {})
    )
    locked = environment.get("keras.config.backend")
    return replace(
        environment, installer=installer_of(environment, has_uv=True), locked_backend=locked
    )


def requirements_of(python: Path | None = None) -> list[Requirement]:
    """Return what the distributions of this environment, or of another interpreter's, require.

    Raises:
        UsageError: that interpreter cannot be run.
        FactError: it did not answer.
    """
    place = installation(python)
    return [
        Requirement(
            name,
            version,
            normalise(each.name),
            str(each.specifier),
            tuple(sorted(each.extras)),
            each.url or "",
            extra,
        )
        for name, found in by_name(place).items()
        for version in [
            header(found, "Version") or "(version unknown)"
        ]  # which parses its METADATA
        for each, extra in required(found, place.markers)
    ]


def of_live(
    found: Snapshot,
    environ: Mapping[str, str],
    python: Path | None = None,
    requirements: Sequence[Requirement] = (),
) -> Environment:
    """Return the live environment.

    Args:
        found: its facts.
        environ: the variables as they are now, all of them; only names and values of the tables are used.
        python: the interpreter whose environment it is; this one when not given.
        requirements: what the distributions there require.
    """
    known = {row.name for row in variables()} | {
        row.name for row in determinism.variable_table().variable
    }
    late = {path.rpartition(".")[2] for path in found.unavailable if path.startswith("environ.")}
    now = {name: environ.get(name) for name in known - late}
    file = now.get("XLA_FLAGS") or ""
    environment = Environment(
        found.facts,
        found.unavailable,
        now,
        others=sorted(name for name in environ if name not in known),
        missing_flag_file=bool(file.strip())
        and not file.strip().startswith("--")
        and not Path(file.strip()).is_file(),
        requirements=requirements,
    )
    installing = with_installer(found, python)
    environment = replace(environment, installer=installing.installer, python=installing.python)
    unlisted, has_gpu = (
        _unlisted(environment),
        environment.gpus and environment.get("tensorflow.cuda_build"),
    )
    if environment.tensorflow is None or not (unlisted or has_gpu):
        return environment
    folder = _folder(python)
    ptx = _ptx_cuda(folder) if has_gpu else None
    return replace(environment, strange_flags=missing_flags(folder, unlisted), ptx_cuda=ptx)


def with_installer(found: Snapshot, python: Path | None = None) -> Environment:
    """Return what is installed somewhere, and what installs there; of variables nothing is known."""
    name = (
        sys.executable or "python"
        if python is None
        else str(Path(shutil.which(python) or python).absolute())
    )
    environment = Environment(found.facts, found.unavailable, python=name)
    return replace(
        environment, installer=installer_of(environment, has_uv=shutil.which("uv") is not None)
    )


def _ptx_cuda(folder: Path | None) -> str | None:
    """Return the CUDA version that a driver needs for the PTX in TensorFlow's own library; None where it has none."""
    try:
        code = None if folder is None else read_gpu_code(str(folder / LIBRARY))
    except (
        OSError,
        ValueError,
    ):  # of another layout, or from before TensorFlow 2.12, which has it elsewhere
        return None
    return None if code is None else code.ptx_cuda()


def _unlisted(environment: Environment) -> list[str]:
    """Return the flags that the table says nothing about for this TensorFlow."""
    rows = determinism.variable_table().flag
    listed = {
        (row.variable, row.name)
        for row in rows
        if environment.stock and environment.holds(row.tensorflow)
    }
    gone = {
        (row.variable, row.name)
        for row in rows
        if environment.stock and not environment.holds(row.tensorflow)
    }
    return sorted(
        {name for variable, name, _ in flags(environment) if (variable, name) not in listed | gone}
    )


def _folder(python: Path | None) -> Path | None:
    if python is not None:
        folders = ask(python, "tensorflow")["folders"]
    else:
        spec = find_spec("tensorflow")
        folders = list(spec.submodule_search_locations or []) if spec is not None else []
    return Path(folders[0]) if folders else None


def missing_flags(folder: Path | None, names: Sequence[str]) -> list[str]:
    """Return the flags that none of TensorFlow's libraries contains; none where there are no libraries to look at.

    A flag is registered by its name without dashes, a C string. Checked with TensorFlow 2.18.1 and 2.21.0: each of the
    198 and 79 flags that XLA lists itself is found, no name made up is.
    """
    if folder is None:
        return []
    libraries = [file for file in _libraries(folder) if file.stat().st_size >= LEAST]
    left = set(names)
    for file in libraries:
        left -= _contained(file, left)
    return sorted(left) if libraries else []


def _libraries(folder: Path) -> list[Path]:
    return sorted(
        file
        for place in (folder, folder / "python")
        for file in place.glob("*.so*")
        if file.is_file()
    )


def _contained(file: Path, names: set[str]) -> set[str]:
    with (
        file.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return {
            name
            for name in names
            if content.find(os.fsencode(name.removeprefix("--")) + b"\0") >= 0
        }
