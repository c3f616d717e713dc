"""Rules on what is installed beside TensorFlow. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packaging.version import Version

from envlock.data.compatibility import BINDING, PATCH, added, compatibility_table
from envlock.data.determinism import cited
from envlock.data.images import image_tables
from envlock.diagnosis.environment import CHOSEN, Environment, Requirement, fits
from envlock.diagnosis.remedies import Remedy, change, pinned, reinstall
from envlock.diagnosis.requirements import (
    conflict,
    joint,
    joint_with_tensorflow,
    requirers,
    violated,
)
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS
from envlock.runtime.gpu.failures import of_binding
from envlock.runtime.release import minor
from envlock.runtime.report import ERROR, WARNING, Finding

_LEGACY = ("1", "true", "True")  # of TF_USE_LEGACY_KERAS: what TensorFlow takes for yes


def no_tensorflow(environment: Environment) -> Iterator[Finding]:
    """Yield that there is no TensorFlow, or that its version is unknown, so that most rules do not apply."""
    if environment.tensorflow is None:
        entry = environment.unavailable.get("tensorflow") or environment.unavailable.get(
            "tensorflow.version"
        )
        evidence = "TensorFlow is not installed"
        if entry is not None:
            evidence = f"the TensorFlow version is unknown: {entry['reason']}"
        why = "Its requirements depend on its version."
        fix = "name the interpreter of the environment: envlock doctor --python .venv/bin/python"
        yield Finding(
            "tensorflow-missing", "warning", "tensorflow.version", evidence, why, fix, "the facts"
        )


def several_tensorflows(environment: Environment) -> Iterator[Finding]:
    """Yield that several distributions lie over each other."""
    names = environment.get("tensorflow.distributions") or []
    if len(names) > 1:
        evidence = f"{' and '.join(names)} are installed over one another"
        why = "All of them install the folder `tensorflow`, and the last one installed overwrites the others."
        kept = min(names, key=lambda name: _price(environment, name, names))
        fix = reinstall(environment, kept, without=names)
        source, where = "the distributions' own file lists", "tensorflow.distributions"
        yield Finding(
            "tensorflow-twice",
            "error",
            where,
            evidence,
            why,
            fix.text,
            source,
            commands=fix.commands,
        )


def _price(
    environment: Environment, name: str, names: Sequence[str]
) -> tuple[int, int, bool, bool]:
    """Return what it costs to keep one of several distributions of TensorFlow and to remove the others.

    That is: others that require one of the removed by its name, requirements of its own that are not met, a build
    without GPU where there is one, and another version than the one that is imported.
    """
    gone = [each for each in names if each != name]
    asking = {by for each in gone for by in requirers(environment, each, without=names)}
    without_gpu = "cpu" in name and bool(environment.gpus)
    return (
        len(asking),
        _lacking(environment, name),
        without_gpu,
        environment.package(name) != environment.tensorflow,
    )


def _lacking(environment: Environment, name: str) -> int:
    return sum(each.by == name for each in violated(environment))


def python(environment: Environment) -> Iterator[Finding]:
    """Yield that there are no wheels of this TensorFlow for this Python."""
    version = environment.get("python.version")
    if environment.tensorflow is None or not environment.stock or not isinstance(version, str):
        return
    builds = image_tables().builds.build
    build = next(
        (row for row in builds if minor(row.tensorflow) == minor(environment.tensorflow)), None
    )
    if build is not None and minor(version) not in build.python:
        offered = ", ".join(build.python)
        evidence = (
            f"Python is {version}, and TensorFlow {environment.tensorflow} has wheels for {offered}"
        )
        why = "Its extension modules are compiled for one version of Python each."
        fix = f"create the environment with Python {build.python[-1]}"
        source = cited(build.source, image_tables().builds.evidence)
        yield Finding("python-version", "error", "python.version", evidence, why, fix, source)


def companions(environment: Environment) -> Iterator[Finding]:
    """Yield NumPy, protobuf or Keras of a version that this TensorFlow does not take."""
    table = compatibility_table()
    if environment.tensorflow is None or not environment.stock:
        return
    for row in table.needs:
        version = environment.package(row.package)
        if (
            row.tensorflow != minor(environment.tensorflow)
            or version is None
            or fits(version, row.takes)
        ):
            continue
        evidence = (
            f"{row.package} is {version}, and TensorFlow {environment.tensorflow} needs {row.takes}"
        )
        severity, source = WARNING, cited(row.source, table.evidence)
        why = "TensorFlow was not tested with it, and may fail at import or later."
        for each in table.breaks:
            if (
                each.package == row.package
                and environment.holds(each.tensorflow)
                and fits(version, each.versions)
            ):
                severity, why, source = ERROR, each.what, cited(each.source, table.evidence)
                break
        fix = _change_to_agreed(environment, row.package, row.takes)
        where = f"packages.{row.package}"
        yield Finding(
            "package-version",
            severity,
            where,
            evidence,
            why,
            fix.text,
            source,
            commands=fix.commands,
        )


def requirements(environment: Environment) -> Iterator[Finding]:
    """Yield what an installed distribution requires and what is missing or of another version.

    What `package-version` says of TensorFlow is left out.
    """
    reported = {finding.where.fact.removeprefix("packages.") for finding in companions(environment)}
    found = [
        each
        for each in violated(environment)
        if each.by not in DISTRIBUTIONS or each.name not in reported
    ]
    agreed = {}
    for each in found:
        requirement = joint_with_tensorflow(environment, each.name)
        if requirement is not None:
            agreed[each.name] = requirement
    why = "The distribution may fail at import or later, and `pip check` fails."
    source = "https://packaging.python.org/en/latest/specifications/core-metadata/#requires-dist-multiple-use"
    # What one command installs together stands first, and each of these findings has the whole command.
    for each in sorted(found, key=lambda each: each.name not in agreed):
        if each.name in agreed:
            fix = change(environment, add=agreed)
        else:
            fix = _change_to_agreed(environment, each.name)
        where, evidence = f"packages.{each.name}", _describe_violation(environment, each)
        yield Finding(
            "requirements", WARNING, where, evidence, why, fix.text, source, commands=fix.commands
        )


def _describe_violation(environment: Environment, required: Requirement) -> str:
    version = environment.package(required.name) or "not installed"
    wanted = required.takes or "it"
    if not required.takes and required.url:
        wanted = f"it from {required.url}"
    return f"{required.name} is {version}, and {required.by} {required.version} requires {wanted}"


def _change_to_agreed(environment: Environment, name: str, wish: str = "") -> Remedy:
    """Return what installs a version of a distribution that all who require it take, or says that there is none."""
    wanted = joint(environment, name, wish)
    if wanted is not None:
        return change(environment, add={name: wanted})
    if joint(environment, name) is None:  # without TensorFlow, too
        wish = ""
    asking = {}
    if wish:
        asking["TensorFlow"] = f"TensorFlow {environment.tensorflow} ({wish})"
    for each in conflict(environment, name, wish):
        owner = each.by
        if owner in DISTRIBUTIONS:
            owner = "TensorFlow"
        asking.setdefault(owner, f"{each.by} {each.version} ({each.takes or each.url})")
    requirements = ", ".join(asking.values())
    return Remedy(
        f"no version of {name} meets all requirements: {requirements}; move one of them to another environment"
    )


def two_cudas(environment: Environment) -> Iterator[Finding]:
    """Yield NVIDIA's wheels for two majors of CUDA side by side."""
    names = [name for name in environment.get("packages") or {} if name.startswith("nvidia-")]
    twelve = {name[:-5]: name for name in names if name.endswith("-cu12")}
    thirteen = {
        name.removesuffix("-cu13"): name for name in names if not name.endswith(("-cu11", "-cu12"))
    }
    parts = sorted(twelve.keys() & thirteen.keys())
    fix = _one_cuda(
        environment, [twelve[part] for part in parts], [thirteen[part] for part in parts]
    )
    for part in parts:
        pair = (twelve[part], thirteen[part])
        shared = _claimed(environment, pair)
        evidence = f"{pair[0]} and {pair[1]} are both installed"
        severity = WARNING
        if shared:
            severity = ERROR
            evidence = f"{evidence}, and both have the file of cuda.{shared}"
        why = "A wheel for CUDA 13 can overwrite files of the one for CUDA 12, and TensorFlow loads the result."
        where, source = f"packages.{pair[1]}", "the wheels' RECORD files"
        yield Finding(
            "cuda-majors", severity, where, evidence, why, fix.text, source, commands=fix.commands
        )


def _one_cuda(environment: Environment, kept: Sequence[str], others: Sequence[str]) -> Remedy:
    """Return what leaves the wheels for CUDA 12 alone, as they are now; not where somebody requires the others."""
    asking = sorted({by for name in others for by in requirers(environment, name, without=others)})
    if asking:
        return Remedy(
            f"move {' and '.join(asking)}, which requires CUDA 13, to another environment than TensorFlow's"
        )
    wanted = {
        name: requirement for name in kept if (requirement := pinned(environment, name)) is not None
    }
    return change(environment, remove=[*wanted, *others], add=wanted, alone=True)


def _claimed(environment: Environment, pair: tuple[str, str]) -> str | None:
    """Return the library whose file both wheels claim."""
    cuda = environment.get("cuda") or {}
    for key, library in cuda.items():
        if not isinstance(library, dict):
            continue
        claims = {claim.split()[0] for claim in library.get("claimed_by") or []}
        if claims.issuperset(pair):
            return str(key)
    return None


def nvml_binding(environment: Environment) -> Iterator[Finding]:
    """Yield that something stands in for NVIDIA's own binding of NVML."""
    binding = environment.get("gpu.binding") or {}
    problem, version = binding.get("problem"), binding.get("version")
    if (
        problem is None
        and environment.installed("pynvml")
        and environment.installed("nvidia-ml-py")
    ):
        version = environment.package("pynvml")
        problem = "deprecated"
        # An older one brings a module of its own; a later one holds no file of NVIDIA's binding, and requires it.
        if Version(version or "0") < Version("11.5"):
            problem = "shadowed"
    if problem is None:
        return
    evidence, _, _ = of_binding(problem, version).reason.partition("; ")
    fix = _one_binding(environment, problem)
    why = (
        "Programs that query GPUs through the module pynvml get the other package, or its warnings."
    )
    source = "the file lists of the two distributions"
    yield Finding(
        "nvml-binding",
        "warning",
        "gpu.binding",
        evidence,
        why,
        fix.text,
        source,
        commands=fix.commands,
    )


def _one_binding(environment: Environment, problem: str) -> Remedy:
    """Return what leaves NVIDIA's binding alone; not where somebody requires the other."""
    other = "nvidia-ml-py3" if problem == "abandoned" else "pynvml"
    asking = requirers(environment, other)
    if asking:
        return Remedy(
            f"replace {' and '.join(asking)}, which requires {other}, or take a version that does not"
        )
    if problem == "deprecated":  # it holds no file of the other
        return change(environment, remove=[other], add={})
    if environment.installed(BINDING):
        return reinstall(environment, BINDING, without=[other])
    return change(environment, remove=[other], add={BINDING: BINDING + added(BINDING)})


def keras_xla(environment: Environment) -> Iterator[Finding]:
    """Yield that this Keras compiles with XLA on a GPU even under op determinism."""
    if (
        environment.gpus
        and environment.holds([">=2.16"])
        and environment.has_keras(">=3,<3.7")
        and not _legacy(environment)
    ):
        smallest = joint(environment, "keras", added("keras"))
        if smallest is None:
            fix = _change_to_agreed(environment, "keras", ">=3.7")
        else:
            fix = change(environment, add={"keras": smallest})
        yield Finding(
            "keras-xla",
            "warning",
            "keras.version",
            f"Keras is {environment.keras}, and a GPU is visible",
            "Keras 3.0 to 3.6 compile every model with XLA where one GPU is visible, under op determinism too: "
            "operations without a deterministic form in XLA then fail. 3.7 and later switch it off.",
            f"{fix.text}\npass jit_compile=False to compile()",
            "keras/src/trainers/trainer.py of the wheels of Keras 3.0 to 3.15",
            commands=fix.commands,
        )


def keras_config(environment: Environment) -> Iterator[Finding]:
    """Yield what keras.json sets that changes every model without a word."""
    floatx, backend = (
        environment.get("keras.config.floatx"),
        environment.get("keras.config.backend"),
    )
    source = "measured: a keras.json with floatx float16, TensorFlow 2.15 and 2.21"
    fix = "remove it from ~/.keras/keras.json (or the one in KERAS_HOME)"
    if floatx not in (None, "float32"):
        why = "Every layer and every model computes in that precision, without a message."
        evidence = f"keras.json sets floatx to {floatx}"
        yield Finding("keras-config", "warning", "keras.config.floatx", evidence, why, fix, source)
    if (
        backend not in (None, "tensorflow")
        and environment.variables.get("KERAS_BACKEND") is None
        and environment.has_keras(">=3")
    ):
        why = "Another engine computes everything, without TensorFlow's op determinism."
        evidence, severity = f"keras.json sets the backend to {backend}", "error"
        if backend == environment.locked_backend:
            evidence, severity, fix = f"{evidence}, as locked", "info", CHOSEN
        yield Finding("keras-config", severity, "keras.config.backend", evidence, why, fix, source)


def _legacy(environment: Environment) -> bool:
    return environment.variables.get("TF_USE_LEGACY_KERAS") in _LEGACY


def patch_missing(environment: Environment) -> Iterator[Finding]:
    """Yield that TensorFlow 1.14 to 2.0 has not NVIDIA's patch."""
    if not environment.stock or not environment.holds([">=1.14,<2.1"]):
        return
    if not any(environment.installed(name) for name in (PATCH, "tensorflow-determinism")):
        why = "On a GPU these versions sum the gradient of bias_add with atomics, and no variable changes that."
        evidence = f"TensorFlow is {environment.tensorflow} without NVIDIA's patch"
        fix = change(environment, add={PATCH: PATCH + added(PATCH)})
        told = f"{fix.text}, and call fwr13y.d9m.tensorflow.enable_determinism()"
        source, where = "https://github.com/NVIDIA/framework-reproducibility", f"packages.{PATCH}"
        yield Finding(
            "patch-missing", "warning", where, evidence, why, told, source, commands=fix.commands
        )
