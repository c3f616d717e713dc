"""Build the environment that the rules examine, from a live environment or from a lockfile."""

from __future__ import annotations

import mmap
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from envlock.data import determinism
from envlock.data.runtime_tables import load_variables
from envlock.diagnosis.diagnosed_environment import (
    Environment,
    GpuHealth,
    Requirement,
    SharedFiles,
)
from envlock.diagnosis.fatbin import read_gpu_code
from envlock.diagnosis.flag_checks import list_flags
from envlock.diagnosis.remedies import choose_installer
from envlock.lock.live_facts import ask
from envlock.lock.models import Lockfile
from envlock.packages.file_verification import survey
from envlock.packages.installation import (
    collect_distributions,
    find_installation,
    iter_requirements,
    read_field,
)
from envlock.runtime.collectors import Snapshot
from envlock.runtime.distributions import is_metadata_name, is_remnant, normalise
from envlock.runtime.errors import FactError
from envlock.runtime.files.findings import make_relative

LIBRARY = "libtensorflow_cc.so.2"
LEAST = 1 << 20
"""Bytes: smaller libraries of TensorFlow register no flags."""


def build_from_lock(lock: Lockfile) -> Environment:
    """Return the environment of a lockfile; variables that no lockfile has are unknown."""
    document = lock.to_document()
    environment = Environment(
        document["facts"], document["unavailable"], dict(lock.facts.environ or {})
    )
    locked = environment.get("keras.config.backend")
    return replace(
        environment, installer=choose_installer(environment, has_uv=True), locked_backend=locked
    )


def list_requirements(python: Path | None = None) -> list[Requirement]:
    """Return the requirements of the distributions in this environment, or in that of another
    interpreter.

    Raises:
        UsageError: that interpreter cannot be run.
        FactError: it did not answer.
    """
    place = find_installation(python)
    requirements = []
    for name, distribution in collect_distributions(place).items():
        # The first access parses the whole METADATA.
        version = read_field(distribution, "Version") or "(version unknown)"
        for requirement, extra in iter_requirements(distribution, place.markers):
            requirements.append(
                Requirement(
                    by=name,
                    version=version,
                    name=normalise(requirement.name),
                    takes=str(requirement.specifier),
                    extras=tuple(sorted(requirement.extras)),
                    url=requirement.url or "",
                    extra=extra,
                )
            )
    return requirements


def find_shared_files(python: Path | None = None) -> list[SharedFiles]:
    """Return the files that several distributions have installed with different contents, by their
    RECORDs, in this environment or in that of another interpreter.

    Raises:
        UsageError: that interpreter cannot be run.
        FactError: it did not answer.
    """
    installed = survey(find_installation(python))
    groups: dict[tuple[str, ...], list[str]] = {}
    for path, claims in installed.claims.items():
        if len(claims) < 2:
            continue
        hashed = [claim for claim in claims if claim.hash is not None]
        names = sorted({claim.package.partition(" ")[0] for claim in hashed})
        if len(names) > 1 and len({claim.hash for claim in hashed}) > 1:
            groups.setdefault(tuple(names), []).append(make_relative(path, installed.sites))
    return [SharedFiles(names, tuple(sorted(paths))) for names, paths in sorted(groups.items())]


def find_remnants(python: Path | None = None) -> list[str]:
    """Return the paths of the metadata folders, files and links that describe no distribution, or one
    of which another version has the files, in this environment or in that of another interpreter.

    Raises:
        UsageError: that interpreter cannot be run.
        FactError: it did not answer.
    """
    found = []
    for folder in find_installation(python).folders:
        paths = [path for path in sorted(folder.iterdir()) if is_metadata_name(path.name)]
        owners = {_get_name(path) for path in paths if (path / "RECORD").is_file()}
        for path in paths:
            # Without RECORD no installer can remove it: `pip install --force-reinstall` fails, uv leaves it.
            is_beside = path.suffix == ".dist-info" and _get_name(path) in owners
            if is_remnant(str(path)) or (is_beside and not (path / "RECORD").exists()):
                found.append(str(path))
    return found


def _get_name(path: Path) -> str:
    return normalise(path.name.partition("-")[0])


def build_from_live(
    found: Snapshot,
    environ: Mapping[str, str],
    python: Path | None = None,
    requirements: Sequence[Requirement] = (),
) -> Environment:
    """Return the live environment.

    Args:
        found: its facts.
        environ: all current variables; only names and values in the tables are used.
        python: the interpreter of the environment; this one when not given.
        requirements: those of the distributions there.
    """
    known = {row.name for row in load_variables()}
    known.update(row.name for row in determinism.load_variable_table().variable)
    values = {}
    for name in known:
        # A variable that changed after the start has no value to judge.
        if f"environ.{name}" not in found.unavailable:
            values[name] = environ.get(name)
    environment = Environment(
        found.facts,
        found.unavailable,
        values,
        others=sorted(name for name in environ if name not in known),
        missing_flag_file=_is_missing_file(values.get("XLA_FLAGS") or ""),
        requirements=requirements,
    )
    installing = describe_installation(found, python)
    environment = replace(environment, installer=installing.installer, python=installing.python)
    unlisted = _list_unlisted_flags(environment)
    has_gpu = environment.gpus and environment.get("tensorflow.cuda_build")
    if environment.tensorflow is None or not (unlisted or has_gpu):
        return environment
    folder = _find_tensorflow(python)
    ptx = _read_ptx_cuda(folder) if has_gpu else None
    return replace(environment, strange_flags=find_missing_flags(folder, unlisted), ptx_cuda=ptx)


def ask_gpu_health(python: Path | None = None) -> tuple[GpuHealth, ...]:
    """Return the memory errors of the GPUs of this machine; nothing where NVML does not answer.

    Raises:
        UsageError: that interpreter cannot be run.
    """
    try:
        answer = ask(python or Path(sys.executable), "gpu-health")
    except FactError:
        # What is wrong with the driver is a finding of the facts already.
        return ()
    return tuple(map(parse_gpu_health, answer.get("gpus", [])))


def parse_gpu_health(gpu: Mapping[str, object]) -> GpuHealth:
    """Return the memory errors of a GPU; what is not a number of errors is unknown."""
    numbers: dict[str, int | None] = {}
    for name in ("uncorrected", "retired_pages", "remapped_rows"):
        value = gpu.get(name)
        numbers[name] = None
        # Not isinstance: True is an int.
        if type(value) is int:
            numbers[name] = value
    return GpuHealth(
        index=int(str(gpu["index"])),
        name=str(gpu.get("name") or "of unknown model"),
        pending=gpu.get("pending") is True,
        remapping_failed=gpu.get("remapping_failed") is True,
        **numbers,
    )


def _is_missing_file(flags_value: str) -> bool:
    """Return whether a value of XLA_FLAGS names a file of flags that does not exist."""
    value = flags_value.strip()
    if not value or value.startswith("--"):
        return False
    return not Path(value).is_file()


def describe_installation(found: Snapshot, python: Path | None = None) -> Environment:
    """Return the environment with some facts and its installer; all variables are unknown."""
    if python is None:
        name = sys.executable or "python"
    else:
        name = str(Path(shutil.which(python) or python).absolute())
    environment = Environment(found.facts, found.unavailable, python=name)
    has_uv = shutil.which("uv") is not None
    installer = choose_installer(environment, has_uv=has_uv, is_of_uv=_is_made_by_uv(name))
    return replace(environment, installer=installer)


def _is_made_by_uv(python: str) -> bool:
    """Return whether the virtual environment of an interpreter says that uv has made it."""
    try:
        text = (Path(python).parents[1] / "pyvenv.cfg").read_text(
            encoding="utf-8", errors="replace"
        )
    except (IndexError, OSError):
        return False
    return any(line.partition("=")[0].strip() == "uv" for line in text.splitlines())


def _read_ptx_cuda(folder: Path | None) -> str | None:
    """Return the CUDA version that a driver needs for the PTX in TensorFlow's library, or None."""
    if folder is None:
        return None
    try:
        code = read_gpu_code(str(folder / LIBRARY))
    except (OSError, ValueError):
        # It has another layout, or is older than TensorFlow 2.12, which has the section elsewhere.
        return None
    if code is None:
        return None
    return code.get_ptx_cuda()


def _list_unlisted_flags(environment: Environment) -> list[str]:
    """Return the flags that are set and not in the table."""
    listed = set()
    if environment.stock:
        for row in determinism.load_variable_table().flag:
            listed.add((row.variable, row.name))
    unlisted = set()
    for variable, name, _ in list_flags(environment):
        if (variable, name) not in listed:
            unlisted.add(name)
    return sorted(unlisted)


def _find_tensorflow(python: Path | None) -> Path | None:
    folders: Sequence[str] = ()
    if python is not None:
        folders = ask(python, "tensorflow")["folders"]
    else:
        spec = find_spec("tensorflow")
        if spec is not None:
            folders = list(spec.submodule_search_locations or [])
    if not folders:
        return None
    return Path(folders[0])


def find_missing_flags(folder: Path | None, names: Sequence[str]) -> list[str]:
    """Return the flags that none of TensorFlow's libraries contains; [] without libraries.

    A flag is registered by its name without dashes, a C string. Checked with TensorFlow 2.18.1 and
    2.21.0: all of the 198 and 79 flags that XLA lists itself are found, and invented names are not.
    """
    if folder is None:
        return []
    libraries = [file for file in _list_libraries(folder) if file.stat().st_size >= LEAST]
    if not libraries:
        return []
    missing = set(names)
    for file in libraries:
        missing -= _find_contained(file, missing)
    return sorted(missing)


def _list_libraries(folder: Path) -> list[Path]:
    files = [*folder.glob("*.so*"), *(folder / "python").glob("*.so*")]
    return sorted(file for file in files if file.is_file())


def _find_contained(file: Path, names: set[str]) -> set[str]:
    contained = set()
    # Mapped instead of read: the largest library has hundreds of megabytes.
    with (
        file.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        for name in names:
            text = os.fsencode(name.removeprefix("--")) + b"\0"
            if content.find(text) >= 0:
                contained.add(name)
    return contained
