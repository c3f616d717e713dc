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
from envlock.diagnosis.diagnosed_environment import Environment, Requirement
from envlock.diagnosis.doctor_table import make_finding
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
            yield make_finding("tensorflow-unknown", reason=entry["reason"])
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
    yield make_finding(
        "tensorflow-missing",
        Remedy(fix, [command] if command else []),
        severity="error" if is_needed else "warning",
        message=message,
    )


def check_single_tensorflow(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if several distributions of TensorFlow overwrite each other."""
    names = environment.get("tensorflow.distributions") or []
    if len(names) > 1:
        kept = min(names, key=lambda name: _compute_cost(environment, name, names))
        fix = install_again(environment, kept, without=names)
        yield make_finding("tensorflow-twice", fix, names=" and ".join(names))


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
        yield make_finding("tensorflow-newer", newer=newer, day=oldest.day)


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
        yield make_finding(
            "python-version",
            version=version,
            tensorflow=environment.tensorflow,
            versions=", ".join(build.python),
            newest=build.python[-1],
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
    yield make_finding("cpu-without-avx")


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
        if broken is not None:
            why = broken.what
        else:
            why = "TensorFlow was not tested with it, and may fail at import or later."
        fix = _change_to_agreed(environment, row.package, row.takes)
        yield make_finding(
            "package-version",
            fix,
            severity=severity,
            package=row.package,
            version=version,
            tensorflow=environment.tensorflow,
            takes=row.takes,
            why=why,
            source=resolve_citation((broken or row).source, table.evidence),
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
        message = _describe_violation(environment, requirement)
        yield make_finding("requirements", fix, package=where, message=message)


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
            if find_series(need.package, str(environment.tensorflow)) is not None:
                fix = _change_add_on(environment, need.package)
            else:
                fix = change(environment, add={need.package: need.package})
            yield make_finding(
                "variable-package",
                Remedy(f"{fix.text}\n{make_unset_line(row.name)}", fix.commands),
                name=row.name,
                value=value,
                package=need.package,
                why=need.why,
                source=resolve_citation(row.sources[0], table.evidence),
            )


def _describe_violation(environment: Environment, required: Requirement) -> str:
    if _wants_another_tensorflow(environment, required):
        return (
            f"{required.by} {required.version} requires {required.name}{required.takes}, "
            f"and TensorFlow is {environment.tensorflow}"
        )
    version = environment.get_version(required.name) or "not installed"
    needed = required.takes or (f"it from {required.url}" if required.url else "it")
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
        owner = "TensorFlow" if requirement.by in DISTRIBUTIONS else requirement.by
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
        library = _find_shared_library(environment, {older, newer})
        shared = "" if library is None else f", and both have the file of cuda.{library}"
        yield make_finding(
            "cuda-majors-mixed",
            fix,
            severity=ERROR if shared else WARNING,
            older=older,
            newer=newer,
            shared=shared,
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
        # An older one has its own module; a later one contains no file of NVIDIA's binding, and
        # requires it.
        problem = "shadowed" if Version(version or "0") < Version("11.5") else "deprecated"
    if problem is None:
        return
    evidence, _, _ = explain_binding(problem, version).reason.partition("; ")
    yield make_finding("nvml-binding", _keep_one_binding(environment, problem), evidence=evidence)


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
    yield make_finding("keras-xla", fix, keras=environment.keras)


def check_keras_config(environment: Environment) -> Iterator[Finding]:
    """Yield settings of keras.json that change every model without a message."""
    floatx = environment.get("keras.config.floatx")
    backend = environment.get("keras.config.backend")
    if floatx not in (None, "float32"):
        yield make_finding("keras-config", floatx=floatx)
    if backend in (None, "tensorflow") or not environment.has_keras(">=3"):
        return
    if environment.variables.get("KERAS_BACKEND") is None:
        if backend == environment.locked_backend:
            yield make_finding("keras-backend-locked", backend=backend)
        else:
            yield make_finding("keras-backend", backend=backend)


def check_patch(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if TensorFlow 1.14 to 2.0 does not have NVIDIA's patch."""
    if not environment.stock or not environment.has_tensorflow([">=1.14,<2.1"]):
        return
    if environment.is_installed(PATCH) or environment.is_installed("tensorflow-determinism"):
        return
    fix = change(environment, add={PATCH: PATCH + get_fixed_versions(PATCH)})
    yield make_finding("patch-missing", fix, tensorflow=environment.tensorflow)
