"""Rules on the packages that are installed with TensorFlow. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packaging.version import Version

from envlock.data.compatibility import (
    BINDING,
    PATCH,
    Breaks,
    find_series,
    get_fixed_versions,
    load_compatibility_table,
)
from envlock.data.determinism import (
    load_recipe_table,
    load_source_table,
    load_variable_table,
    resolve_citation,
)
from envlock.data.image_tables import load_image_tables
from envlock.data.specifiers import matches_specifier
from envlock.diagnosis.diagnosed_environment import (
    CHOSEN,
    Environment,
    Requirement,
)
from envlock.diagnosis.remedies import Remedy, change, get_pinned_requirement, install_again
from envlock.diagnosis.requirements import (
    find_common_requirement,
    find_conflict,
    find_preferred_requirement,
    find_violated,
    list_requirers,
)
from envlock.diagnosis.variable_values import make_unset_line
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS
from envlock.runtime.gpu.nvml_failures import explain_binding
from envlock.runtime.release import minor, parse_release
from envlock.runtime.report import ERROR, WARNING, Finding, Severity

_LEGACY = ("1", "true", "True")
"""Values of TF_USE_LEGACY_KERAS that TensorFlow treats as yes."""


def check_tensorflow(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if there is no TensorFlow, or one of unknown version: most rules do not apply
    then.
    """
    if environment.tensorflow is not None:
        return
    where = "tensorflow.version"
    for path in ("tensorflow", where):
        entry = environment.unavailable.get(path)
        if entry:
            yield Finding(
                "tensorflow-missing",
                "warning",
                where,
                message=f"the TensorFlow version is unknown: {entry['reason']}",
                why="Most rules depend on it, and were not applied.",
                fix="install it as a package, so that its version can be read",
                source="the facts",
            )
            return
    if environment.others is None:
        # A lockfile, whose environment cannot be changed from here.
        message, command = "TensorFlow is not in the lockfile", ""
        fix = "capture an environment that has it"
    else:
        message = f"TensorFlow is not installed for {environment.python}"
        command = change(environment, add={"tensorflow": "tensorflow"}).text
        fix = f"{command}\nname another interpreter: `envlock doctor --python PATH`"
    # Where JAX or PyTorch computes it need not be there; but the rules are TensorFlow's.
    is_needed = not (environment.is_installed("jax") or environment.is_installed("torch"))
    yield Finding(
        "tensorflow-missing",
        "error" if is_needed else "warning",
        where,
        message=message,
        why="Its requirements depend on its version: without it nearly nothing was examined.",
        fix=fix,
        source="the facts",
        commands=[command] if command else [],
    )


def check_single_tensorflow(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if several distributions of TensorFlow overwrite each other."""
    names = environment.get("tensorflow.distributions") or []
    if len(names) > 1:
        kept = min(names, key=lambda name: _compute_cost(environment, name, names))
        fix = install_again(environment, kept, without=names)
        yield Finding(
            "tensorflow-twice",
            "error",
            "tensorflow.distributions",
            message=f"{' and '.join(names)} are installed over one another",
            why="All of them install the folder `tensorflow`, and the last one installed overwrites "
            "the others.",
            fix=fix.text,
            source="the distributions' own file lists",
            commands=fix.commands,
        )


def _compute_cost(
    environment: Environment, name: str, names: Sequence[str]
) -> tuple[int, int, bool, bool]:
    """Return the cost of keeping one of several distributions of TensorFlow.

    That is: others that require one of the removed by its name, its own requirements that are not
    met, a build without GPU on a machine with one, and a version other than the imported one.
    """
    owners: set[str] = set()
    for other in names:
        if other != name:
            owners.update(list_requirers(environment, other, without=names))
    violations = sum(requirement.by == name for requirement in find_violated(environment))
    lacks_gpu = "cpu" in name and bool(environment.gpus)
    is_other_version = environment.get_version(name) != environment.tensorflow
    return len(owners), violations, lacks_gpu, is_other_version


def check_horizon(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if this TensorFlow is newer than the tables: no rule knows what is new in it."""
    loaded = (
        load_image_tables().builds,
        load_compatibility_table(),
        load_source_table(),
        load_variable_table(),
        load_recipe_table(),
    )
    horizons = [table.horizon for table in loaded]
    oldest = min(horizons, key=lambda horizon: parse_release(horizon.through))
    newer = oldest.describe_beyond(environment.tensorflow)
    if newer is not None:
        yield Finding(
            "tensorflow-newer",
            WARNING,
            "tensorflow.version",
            message=newer,
            why="Every rule here is about the versions that were checked; another switch, need or "
            "source of noise has none.",
            fix="update envlock, whose tables may know it; `envlock doctor --prove` measures "
            "whether it is deterministic",
            source=f"the horizons of envlock's tables, the oldest of {oldest.day}",
        )


def check_python(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if there are no wheels of this TensorFlow for this Python."""
    version = environment.get("python.version")
    if environment.tensorflow is None or not environment.stock or not isinstance(version, str):
        return
    for build in load_image_tables().builds.build:
        if minor(build.tensorflow) == minor(environment.tensorflow):
            break
    else:
        return
    if minor(version) not in build.python:
        yield Finding(
            "python-version",
            "error",
            "python.version",
            message=f"Python is {version}, and TensorFlow {environment.tensorflow} has wheels for "
            f"{', '.join(build.python)}",
            why="Its extension modules are compiled for one version of Python each.",
            fix=f"create the environment with Python {build.python[-1]}",
            source=resolve_citation(build.source, load_image_tables().builds.evidence),
        )


_NEEDED_FLAG = "avx"
"""What every wheel for x86-64 is compiled for from TensorFlow 1.6 on."""


def check_processor(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if the processor lacks the instructions that TensorFlow's wheels begin with."""
    flags = environment.get("cpu.flags")
    if not environment.stock or not isinstance(flags, list) or _NEEDED_FLAG in flags:
        return
    if environment.get("system.machine") != "x86_64":
        return
    yield Finding(
        "cpu-without-avx",
        "error",
        "cpu.flags",
        message="the processor has no AVX, and TensorFlow's wheels are compiled for it",
        why="`import tensorflow` ends the process with an illegal instruction (SIGILL).",
        fix="use a machine with AVX (a virtual one may have to be started with its host's processor), "
        "or compile TensorFlow for this one",
        source="https://github.com/tensorflow/tensorflow/releases/tag/v1.6.0",
    )


def check_companions(environment: Environment) -> Iterator[Finding]:
    """Yield NumPy, protobuf or Keras if this TensorFlow does not support its version."""
    table = load_compatibility_table()
    if environment.tensorflow is None or not environment.stock:
        return
    for row in table.needs:
        version = environment.get_version(row.package)
        if row.tensorflow != minor(environment.tensorflow) or version is None:
            continue
        if matches_specifier(version, row.takes):
            continue
        broken = _find_break(environment, row.package, version)
        severity: Severity = ERROR if broken else WARNING
        why = "TensorFlow was not tested with it, and may fail at import or later."
        if broken is not None:
            why = broken.what
        source = resolve_citation((broken or row).source, table.evidence)
        fix = _change_to_agreed(environment, row.package, row.takes)
        yield Finding(
            "package-version",
            severity,
            f"packages.{row.package}",
            message=f"{row.package} is {version}, "
            f"and TensorFlow {environment.tensorflow} needs {row.takes}",
            why=why,
            fix=fix.text,
            source=source,
            commands=fix.commands,
        )


def _find_break(environment: Environment, package: str, version: str) -> Breaks | None:
    """Return the known failure of this TensorFlow with a version of a package."""
    for row in load_compatibility_table().breaks:
        if row.package != package or not environment.has_tensorflow(row.tensorflow):
            continue
        if matches_specifier(version, row.versions):
            return row
    return None


def check_requirements(environment: Environment) -> Iterator[Finding]:
    """Yield requirements of installed distributions that are missing or have a wrong version.

    Those of TensorFlow that `package-version` reports are left out.
    """
    reported = set()
    for finding in check_companions(environment):
        reported.add(finding.where.fact.removeprefix("packages."))
    violations, agreed = [], {}
    for requirement in find_violated(environment):
        if requirement.by in DISTRIBUTIONS and requirement.name in reported:
            continue
        violations.append(requirement)
        if _wants_another_tensorflow(environment, requirement):
            continue
        text = find_preferred_requirement(environment, requirement.name)
        if text is not None:
            agreed[requirement.name] = text
    why = "The distribution may fail at import or later, and `pip check` fails."
    source = (
        "https://packaging.python.org/en/latest/specifications/core-metadata/"
        "#requires-dist-multiple-use"
    )
    # Packages that are installed by one command come first, and each of these findings has the
    # whole command.
    for requirement in sorted(violations, key=lambda each: each.name not in agreed):
        where = requirement.name
        if _wants_another_tensorflow(environment, requirement):
            where, fix = requirement.by, _change_add_on(environment, requirement.by)
        elif requirement.name in agreed:
            fix = change(environment, add=agreed)
        else:
            fix = _change_to_agreed(environment, requirement.name)
        yield Finding(
            "requirements",
            WARNING,
            f"packages.{where}",
            message=_describe_violation(environment, requirement),
            why=why,
            fix=fix.text,
            source=source,
            commands=fix.commands,
        )


def _wants_another_tensorflow(environment: Environment, requirement: Requirement) -> bool:
    """Return whether a distribution is for another TensorFlow than the one that is installed."""
    return requirement.name in DISTRIBUTIONS and environment.tensorflow is not None


def _change_add_on(environment: Environment, name: str) -> Remedy:
    """Return a remedy that takes the version of an add-on that goes with the installed TensorFlow,
    which stays as it is.
    """
    tensorflow = str(environment.tensorflow)
    # Where TensorFlow has another name, installers would put `tensorflow` over it.
    alone = not environment.is_installed("tensorflow")
    series = find_series(name, tensorflow)
    if series is not None:
        return change(environment, add={name: name + series}, alone=alone)
    if alone:
        return Remedy(
            f"install a version of {name} that takes TensorFlow {tensorflow}, without what it requires"
        )
    return change(environment, add={name: name, "tensorflow": f"tensorflow=={tensorflow}"})


def check_variable_packages(environment: Environment) -> Iterator[Finding]:
    """Yield variables whose value needs a package that is not installed."""
    table = load_variable_table()
    for row in table.variable:
        value = environment.variables.get(row.name)
        # Another back end, where it is not the locked one, is the finding of another rule.
        if row.name == "KERAS_BACKEND" and value != environment.locked_backend:
            continue
        for need in row.requires:
            if value not in need.values or environment.is_installed(need.package):
                continue
            if not (
                environment.has_tensorflow(need.tensorflow) and environment.has_keras(need.keras)
            ):
                continue
            fix = change(environment, add={need.package: need.package})
            if find_series(need.package, str(environment.tensorflow)) is not None:
                fix = _change_add_on(environment, need.package)
            yield Finding(
                "variable-package",
                "error",
                f"environ.{row.name}",
                message=f"{row.name} is {value}, and {need.package} is not installed",
                why=need.why,
                fix=f"{fix.text}\n{make_unset_line(row.name)}",
                source=resolve_citation(row.sources[0], table.evidence),
                commands=fix.commands,
            )


def _describe_violation(environment: Environment, required: Requirement) -> str:
    if _wants_another_tensorflow(environment, required):
        return (
            f"{required.by} {required.version} requires {required.name}{required.takes}, "
            f"and TensorFlow is {environment.tensorflow}"
        )
    version = environment.get_version(required.name) or "not installed"
    needed = required.takes or "it"
    if not required.takes and required.url:
        needed = f"it from {required.url}"
    return f"{required.name} is {version}, and {required.by} {required.version} requires {needed}"


def _change_to_agreed(environment: Environment, name: str, wish: str = "") -> Remedy:
    """Return a remedy that installs a version which all who require it accept, or says that no such
    version exists.
    """
    agreed = find_common_requirement(environment, name, wish)
    if agreed is not None:
        return change(environment, add={name: agreed})
    if find_common_requirement(environment, name) is None:  # without TensorFlow, too
        wish = ""
    owners = {}
    if wish:
        owners["TensorFlow"] = f"TensorFlow {environment.tensorflow} ({wish})"
    for requirement in find_conflict(environment, name, wish):
        owner = requirement.by
        if owner in DISTRIBUTIONS:
            owner = "TensorFlow"
        wanted = requirement.takes or requirement.url
        owners.setdefault(owner, f"{requirement.by} {requirement.version} ({wanted})")
    return Remedy(
        f"no version of {name} meets all requirements: {', '.join(owners.values())}; "
        "move one of them to another environment"
    )


def check_cuda_majors(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if NVIDIA's wheels for two major versions of CUDA are installed together."""
    twelve, thirteen = {}, {}
    for name in environment.packages:
        if not name.startswith("nvidia-"):
            continue
        if name.endswith("-cu12"):
            twelve[name.removesuffix("-cu12")] = name
        elif not name.endswith("-cu11"):  # wheels for CUDA 13 have the suffix or no suffix
            thirteen[name.removesuffix("-cu13")] = name
    parts = sorted(twelve.keys() & thirteen.keys())
    pairs = [(twelve[part], thirteen[part]) for part in parts]
    fix = _keep_one_cuda(environment, pairs)
    for older, newer in pairs:
        evidence = f"{older} and {newer} are both installed"
        shared = _find_shared_library(environment, {older, newer})
        severity: Severity = ERROR if shared else WARNING
        if shared is not None:
            evidence += f", and both have the file of cuda.{shared}"
        yield Finding(
            "cuda-majors-mixed",
            severity,
            f"packages.{newer}",
            message=evidence,
            why="A wheel for CUDA 13 can overwrite files of the one for CUDA 12, and TensorFlow loads "
            "the result.",
            fix=fix.text,
            source="the wheels' RECORD files",
            commands=fix.commands,
        )


def _keep_one_cuda(environment: Environment, pairs: Sequence[tuple[str, str]]) -> Remedy:
    """Return a remedy that leaves only the wheels for CUDA 12, unless the others are required."""
    others = [newer for _, newer in pairs]
    owners: set[str] = set()
    for name in others:
        owners.update(list_requirers(environment, name, without=others))
    if owners:
        return Remedy(
            f"move {' and '.join(sorted(owners))}, which requires CUDA 13, "
            "to another environment than TensorFlow's"
        )
    add = {}
    for older, _ in pairs:
        requirement = get_pinned_requirement(environment, older)
        if requirement is not None:
            add[older] = requirement
    return change(environment, remove=[*add, *others], add=add, alone=True)


def _find_shared_library(environment: Environment, wheels: set[str]) -> str | None:
    """Return the library whose file all of the wheels list."""
    for key, library in (environment.get("cuda") or {}).items():
        if not isinstance(library, dict):
            continue
        owners = {claim.split()[0] for claim in library.get("claimed_by") or []}
        if owners >= wheels:
            return str(key)
    return None


def check_nvml_binding(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if another package replaces NVIDIA's own binding of NVML, or is installed
    with it.
    """
    binding = environment.get("gpu.binding") or {}
    problem, version = binding.get("problem"), binding.get("version")
    has_both = environment.is_installed("pynvml") and environment.is_installed("nvidia-ml-py")
    if problem is None and has_both:
        version = environment.get_version("pynvml")
        problem = "deprecated"
        # An older one has its own module; a later one contains no file of NVIDIA's binding, and
        # requires it.
        if Version(version or "0") < Version("11.5"):
            problem = "shadowed"
    if problem is None:
        return
    evidence, _, _ = explain_binding(problem, version).reason.partition("; ")
    fix = _keep_one_binding(environment, problem)
    yield Finding(
        "nvml-binding",
        "warning",
        "gpu.binding",
        message=evidence,
        why="Programs that query GPUs through the module pynvml get the other package, "
        "or its warnings.",
        fix=fix.text,
        source="the file lists of the two distributions",
        commands=fix.commands,
    )


def _keep_one_binding(environment: Environment, problem: str) -> Remedy:
    """Return a remedy that leaves only NVIDIA's binding, unless the other one is required."""
    other = "nvidia-ml-py3" if problem == "abandoned" else "pynvml"
    owners = list_requirers(environment, other)
    if owners:
        return Remedy(
            f"replace {' and '.join(owners)}, which requires {other}, or take a version that does "
            "not"
        )
    if problem == "deprecated":  # it contains no file of the other
        return change(environment, remove=[other], add={})
    if environment.is_installed(BINDING):
        return install_again(environment, BINDING, without=[other])
    return change(environment, remove=[other], add={BINDING: BINDING + get_fixed_versions(BINDING)})


def check_keras_xla(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if this Keras compiles with XLA on a GPU even under op determinism."""
    if not environment.gpus or not environment.has_tensorflow([">=2.16"]):
        return
    is_legacy = environment.variables.get("TF_USE_LEGACY_KERAS") in _LEGACY
    if is_legacy or not environment.has_keras(">=3,<3.7"):
        return
    agreed = find_common_requirement(environment, "keras", get_fixed_versions("keras"))
    if agreed is None:
        fix = _change_to_agreed(environment, "keras", ">=3.7")
    else:
        fix = change(environment, add={"keras": agreed})
    yield Finding(
        "keras-xla",
        "warning",
        "keras.version",
        message=f"Keras is {environment.keras}, and a GPU is visible",
        why="Keras 3.0 to 3.6 compile every model with XLA where one GPU is visible, under op "
        "determinism too: operations without a deterministic form in XLA then fail. 3.7 and later "
        "switch it off.",
        fix=f"{fix.text}\npass jit_compile=False to compile()",
        source="keras/src/trainers/trainer.py of the wheels of Keras 3.0 to 3.15",
        commands=fix.commands,
    )


def check_keras_config(environment: Environment) -> Iterator[Finding]:
    """Yield settings of keras.json that change every model without a message."""
    floatx = environment.get("keras.config.floatx")
    backend = environment.get("keras.config.backend")
    source = "measured: a keras.json with floatx float16, TensorFlow 2.15 and 2.21"
    fix = "remove it from ~/.keras/keras.json (or the one in KERAS_HOME)"
    if floatx not in (None, "float32"):
        why = "Every layer and every model computes in that precision, without a message."
        evidence = f"keras.json sets floatx to {floatx}"
        yield Finding(
            "keras-config",
            "warning",
            "keras.config.floatx",
            message=evidence,
            why=why,
            fix=fix,
            source=source,
        )
    if backend in (None, "tensorflow") or not environment.has_keras(">=3"):
        return
    if environment.variables.get("KERAS_BACKEND") is None:
        why = "Another engine computes everything, without TensorFlow's op determinism."
        evidence = f"keras.json sets the backend to {backend}"
        is_locked = backend == environment.locked_backend
        severity: Severity = "info" if is_locked else "error"
        if is_locked:
            evidence, fix = f"{evidence}, as locked", CHOSEN
        yield Finding(
            "keras-config",
            severity,
            "keras.config.backend",
            message=evidence,
            why=why,
            fix=fix,
            source=source,
        )


def check_patch(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if TensorFlow 1.14 to 2.0 does not have NVIDIA's patch."""
    if not environment.stock or not environment.has_tensorflow([">=1.14,<2.1"]):
        return
    if environment.is_installed(PATCH) or environment.is_installed("tensorflow-determinism"):
        return
    fix = change(environment, add={PATCH: PATCH + get_fixed_versions(PATCH)})
    yield Finding(
        "patch-missing",
        "warning",
        f"packages.{PATCH}",
        message=f"TensorFlow is {environment.tensorflow} without NVIDIA's patch",
        why="On a GPU these versions sum the gradient of bias_add with atomics, and no variable "
        "changes that.",
        fix=f"{fix.text}, and call fwr13y.d9m.tensorflow.enable_determinism()",
        source="https://github.com/NVIDIA/framework-reproducibility",
        commands=fix.commands,
    )
