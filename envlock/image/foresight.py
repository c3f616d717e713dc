"""What an image cannot be, known before its first layer is built.

The facts of the image are predicted from the lockfile, its base and its plan, and judged by the
function that judges them inside the image afterwards. What only the image can show is predicted to
be as locked, so that each finding is certain.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

from envlock.image.bases.reference import MACHINES
from envlock.image.image_verification import is_of_machine
from envlock.image.layers import Wheel
from envlock.image.plan import BuildPlan
from envlock.lock.route import COMPLETE
from envlock.runtime.archives import DamagedArchiveError, open_zip
from envlock.runtime.collectors import Snapshot
from envlock.runtime.collectors.keras_settings import DEFAULTS, WORDS
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS
from envlock.runtime.errors import FactError, OutsideError
from envlock.runtime.files.record_rows import find_common_path, parse_rows
from envlock.runtime.judgement import judge
from envlock.runtime.release import parse_release
from envlock.runtime.report import ERROR, Finding
from envlock.runtime.startup import make_key

SIDES = ("locked", "in the image")
KERAS = {"version": ("keras",), "legacy_version": ("tf-keras",)}
CUSTOMIZATIONS = ("sitecustomize", "usercustomize")


def find_differences(plan: BuildPlan, folder: Path | None = None) -> list[Finding]:
    """Return the facts of the planned image that the policy of its lockfile is certain not to accept.

    Args:
        plan: the plan of the image of a lockfile.
        folder: the wheelhouse; None if it is not filled yet.
    """
    document = plan.document
    facts, unavailable = document["facts"], document["unavailable"]
    predicted = {
        **facts,
        "environ": _predict_variables(facts.get("environ"), plan),
        "named": _predict_variables(facts.get("named"), plan),
        "keras": _predict_versions(_predict_keras(facts, plan), plan, KERAS),
        "numpy": _predict_versions(facts.get("numpy"), plan, {"version": ("numpy",)}),
        "tensorflow": _predict_versions(facts.get("tensorflow"), plan, {"version": DISTRIBUTIONS}),
        "packages": _predict_packages(facts, plan),
        "python": _predict_python(facts, plan, folder),
    }
    kept = {name: value for name, value in predicted.items() if name in facts}
    report = judge(document, Snapshot(kept, unavailable), sides=SIDES)
    return [
        finding
        for finding in report.findings
        if finding.severity == ERROR and not is_of_machine(finding.where.fact)
    ]


def _predict_variables(locked: object, plan: BuildPlan) -> object:
    """Return the variables, or what they name: those that are locked without their value cannot be
    set.
    """
    # Only its config says what a base sets itself.
    if plan.base.environ is None or not isinstance(locked, dict):
        return locked
    known = {**dict(plan.base.environ), **dict(plan.environ), **dict(plan.added.environ)}
    return {name: value if name in known else None for name, value in locked.items()}


def _predict_keras(facts: Mapping[str, Any], plan: BuildPlan) -> object:
    """Return Keras' settings: an image has no keras.json of this machine's."""
    locked = facts.get("keras")
    variables = dict(plan.environ)
    if plan.base.route in COMPLETE or "KERAS_HOME" in variables or not isinstance(locked, dict):
        return locked
    config = locked.get("config")
    if not isinstance(config, dict):
        return locked
    defaults = {name: DEFAULTS.get(name, value) for name, value in config.items()}
    if variables.get("KERAS_BACKEND") in WORDS["backend"]:
        defaults["backend"] = variables["KERAS_BACKEND"]
    return {**locked, "config": defaults}


def _predict_packages(facts: Mapping[str, Any], plan: BuildPlan) -> object:
    """Return the packages: without those that are not installed, where the base has none."""
    locked = facts.get("packages")
    if plan.base.route in COMPLETE or not plan.wheels or not isinstance(locked, dict):
        return locked
    absent = {name for name, _ in plan.skipped}
    if plan.base.route == "cuda":
        absent = {name for name in absent if not name.startswith("nvidia-")}
    packages = {name: value for name, value in locked.items() if name not in absent}
    for wheel in plan.wheels:
        package = packages.get(wheel.name)
        if isinstance(package, dict) and _is_other(package.get("version"), wheel.version):
            packages[wheel.name] = {**package, "version": str(wheel.version)}
    return packages


def _is_other(locked: object, wheel: str) -> bool:
    """Return whether a wheel brings another version; the local part (`+nv25.2`) does not count."""
    return isinstance(locked, str) and wheel not in (locked, locked.partition("+")[0])


def _predict_versions(
    section: object, plan: BuildPlan, names: Mapping[str, Sequence[str]]
) -> object:
    """Return a section with the versions of the wheels that bring them."""
    if not isinstance(section, dict):
        return section
    versions = {wheel.name: wheel.version for wheel in plan.wheels}
    brought = {}
    for fact, packages in names.items():
        installed = [versions[name] for name in packages if name in versions]
        if len(installed) == 1 and _is_other(section.get(fact), installed[0]):
            brought[fact] = str(installed[0])
    return {**section, **brought}


def _predict_python(facts: Mapping[str, Any], plan: BuildPlan, folder: Path | None) -> object:
    """Return the interpreter: that of Python's own images, and of python-build-standalone, is
    CPython with its usual ABI, and runs nothing at its start that no wheel brings.
    """
    locked = facts.get("python")
    if not _has_known_python(plan) or not isinstance(locked, dict):
        return locked
    python = {**locked, "implementation": "cpython"}
    version, machine = parse_release(str(locked.get("version") or "")), _get_machine(facts)
    if len(version) >= 2 and machine:
        flags = "m" if version[:2] < (3, 8) else ""
        python["abi"] = f"cpython-{version[0]}{version[1]}{flags}-{machine}-linux-gnu"
    startup = locked.get("startup")
    if folder is not None and plan.wheels and isinstance(startup, dict):
        python["startup"] = _predict_startup(startup, list_root_files(plan.wheels, folder))
    return {name: value for name, value in python.items() if name in locked}


def _has_known_python(plan: BuildPlan) -> bool:
    base = plan.base
    has_own = base.route == "wheels" and base.reference.startswith("docker.io/library/python:")
    is_brought = base.python_from is not None or base.python_archive is not None
    return base.route not in COMPLETE and (has_own or is_brought)


def _get_machine(facts: Mapping[str, Any]) -> str | None:
    system = facts.get("system")
    machine = system.get("machine") if isinstance(system, dict) else None
    return machine if machine in MACHINES else None


def _predict_startup(startup: Mapping[str, Any], files: set[str]) -> dict[str, Any]:
    """Return what runs before a program, without the hooks that no wheel has."""
    predicted = dict(startup)
    hooks = startup.get("pth")
    if isinstance(hooks, dict):
        brought = {make_key(name) for name in files if name.endswith(".pth")}
        predicted["pth"] = {key: value for key, value in hooks.items() if key in brought}
    for name in CUSTOMIZATIONS:
        if name in startup and f"{name}.py" not in files:
            predicted[name] = None
    return predicted


# --- wheels


def list_root_files(wheels: Sequence[Wheel], folder: Path) -> set[str]:
    """Return the names of the files that wheels put right into site-packages."""
    names: set[str] = set()
    for wheel in wheels:
        with _open_wheel(folder / wheel.file) as archive:
            for name in archive.namelist():
                parts = name.split("/")
                # <https://packaging.python.org/en/latest/specifications/binary-distribution-format/>
                if len(parts) == 3 and parts[0].endswith(".data") and parts[1].endswith("lib"):
                    names.add(parts[2])
                elif len(parts) == 1:
                    names.add(name)
    return names


def find_foreign_wheels(plan: BuildPlan) -> list[str]:
    """Return the planned wheels that the locked interpreter cannot use, with their packages."""
    facts = plan.document["facts"]
    python = facts.get("python") or {}
    version, machine = parse_release(str(python.get("version") or ""))[:2], _get_machine(facts)
    if len(version) < 2 or machine is None or python.get("implementation") not in (None, "cpython"):
        return []
    interpreter = f"cp{version[0]}{version[1]}"
    if f"{version[1]}t-" in str(python.get("abi")):
        abis = [f"{interpreter}t"]
    else:
        abis = [interpreter, f"{interpreter}m"]
    platforms = _list_platforms(machine, (facts.get("system") or {}).get("libc_version"))
    usable: set[Tag] = set(cpython_tags(version, abis, platforms))
    usable.update(compatible_tags(version, interpreter, platforms))
    foreign = []
    for wheel in plan.wheels:
        *_, tags = parse_wheel_filename(wheel.file)
        if not tags & usable:
            foreign.append(f"{wheel.name} ({wheel.file})")
    return foreign


def _list_platforms(machine: str, libc: object) -> list[str]:
    """Return the tags of wheels for Linux on a machine, with this glibc or an unknown one.

    Source: https://peps.python.org/pep-0600/
    """
    newest = (parse_release(libc) if isinstance(libc, str) else ()) or (2, 99)
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(5, newest[1] + 1)]
    platforms += [f"manylinux{name}_{machine}" for name in ("1", "2010", "2014")]
    return [*platforms, f"linux_{machine}"]


def find_overwritten(wheels: Sequence[Wheel], folder: Path) -> Iterator[str]:
    """Yield the pairs of wheels that install one file with different contents, and of which the
    lockfile does not say whose file is installed.
    """
    owners: dict[str, tuple[str, str]] = {}
    pairs: dict[tuple[str, str], list[str]] = {}
    for wheel in wheels:
        settled = {path for path, _ in wheel.overwritten}
        for path, digest in _read_record(folder / wheel.file):
            if path in settled:
                continue
            name, known = owners.setdefault(path, (wheel.name, digest))
            if name != wheel.name and known != digest:
                pairs.setdefault((name, wheel.name), []).append(path)
    for (one, other), paths in pairs.items():
        yield f"{one} and {other} install {len(paths)} same files, such as {min(paths)}"


def _read_record(wheel: Path) -> Iterator[tuple[str, str]]:
    """Yield path in `site-packages` and hash of each file that a wheel installs there."""
    with _open_wheel(wheel) as archive:
        for name in archive.namelist():
            if name.count("/") == 1 and name.endswith(".dist-info/RECORD"):
                text = archive.read(name).decode("utf-8", "replace")
                # What a publisher got wrong is a finding of its own.
                with contextlib.suppress(FactError):
                    for row in parse_rows(text):
                        path = find_common_path(row)
                        if path is not None and row.hash is not None and path[:3] != "../":
                            yield path, row.hash
                return


@contextmanager
def _open_wheel(wheel: Path) -> Iterator[ZipFile]:
    try:
        with open_zip(str(wheel)) as archive:
            yield archive
    except (OSError, DamagedArchiveError) as error:
        raise OutsideError(
            f"cannot read the wheel {wheel}: {error}", hint="remove it, and run the command again"
        ) from None
