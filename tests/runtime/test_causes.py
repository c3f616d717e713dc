"""What one event changes is one finding, as severe as its worst part, and every fact stays in the JSON."""

from __future__ import annotations

import pytest

from envlock.runtime.causes import MOVED, list_patterns
from envlock.runtime.facts import matches
from envlock.runtime.machines import is_machine
from envlock.runtime.report import (
    ABSENT,
    ACCEPT_MACHINE,
    ERROR,
    INFO,
    NO_TENSORFLOW,
    UNKNOWN,
    Finding,
    Report,
    Severity,
    find_causes,
    show,
)
from envlock.runtime.short_report import LINES, in_short, suggest_way


def differs(
    path: str,
    old: object = "1.0",
    new: object = "2.0",
    severity: Severity = ERROR,
    *,
    rule: str = "exact",
    weight: int = 50,
) -> Finding:
    return Finding(
        rule,
        severity,
        path,
        message=f"{path}: locked {show(old)}, live {show(new)}",
        why=f"why {path}",
        fix=f"fix {path}",
        source="design",
        expected=old,
        actual=new,
        weight=weight,
    )


NUMPY = [differs(f"numpy.{name}") for name in ("version", "blas.name", "blas.files")]
CPU = differs("cpu.model_name", "Intel i7-1260P", "AMD EPYC", INFO)
SEEN: dict[str, tuple[list[Finding], str]] = {
    "numpy, and its package": (
        [*NUMPY, differs("packages.numpy.version")],
        "numpy 1.0 -> 2.0, with its BLAS (4 facts)",
    ),
    "numpy that is gone": (
        [differs("numpy.version", "1.0", None), differs("packages.numpy", "1.0", ABSENT)],
        "numpy 1.0 -> absent (2 facts)",
    ),
    "another backend of Keras": (
        [differs("keras.config.backend", "tensorflow", "jax"), differs("environ.KERAS_BACKEND", None, "jax")],
        "another Keras backend: tensorflow -> jax (2 facts)",
    ),
    "another build of it": (
        [differs("numpy.blas.name"), differs("numpy.blas.files")],
        "numpy of another build, with its BLAS (2 facts)",
    ),
    "another machine": (
        [*map(differs, ("cpu.flags", "cpu.family", "system.libc_version", "loaded.libm", "gpu.driver_version")), CPU],
        "another machine: Intel i7-1260P -> AMD EPYC (5 facts)",
    ),
    "other GPUs": (
        [differs(f"gpu.devices.{index}.{name}", "H100", "T4") for index in "01" for name in ("name", "sm_count")],
        "another machine: H100 -> T4 (4 facts)",
    ),
    "other CUDA, with its wheels": (
        [
            differs("cuda.cudnn.version", "9.3.0", "9.1.0"),
            *map(differs, ("packages.nvidia-cudnn-cu12.version", "packages.nvidia-nvjitlink-cu12")),
        ],
        "another CUDA: cudnn 9.3.0 -> 9.1.0 (3 facts)",
    ),
    "another driver": (
        [differs("gpu.driver_version"), differs("cuda.cuda_driver.version")],
        "another driver: 1.0 -> 2.0 (2 facts)",
    ),
    "another system": (
        [differs("system.os_version"), differs("system.libc_version"), differs("loaded.libc")],
        "another system: 1.0 -> 2.0 (3 facts)",
    ),
    "fewer CPUs": (
        [differs(f"cpu.{name}", 64, 2) for name in ("affinity_count", "intra_op_threads", "inter_op_threads")],
        "other CPUs: 64 -> 2 (3 facts)",
    ),
    "another Python": (
        [differs("python.version", "3.11.7", "3.12.1"), differs("python.abi"), differs("packages.six.wheel_tags")],
        "another Python: 3.11.7 -> 3.12.1 (3 facts)",
    ),
    "another TensorFlow": (
        [differs("tensorflow.version"), differs("packages.tensorflow-cpu.version"), differs("tensorflow.plugins")],
        "another TensorFlow: 1.0 -> 2.0 (3 facts)",
    ),
    "another Keras": ([differs("keras.version"), differs("packages.keras.version")], "keras 1.0 -> 2.0 (2 facts)"),
    "the twin of Keras": (
        [differs("keras.legacy_version", None, "2.19.0"), differs("packages.tf-keras", ABSENT, "2.19.0")],
        "tf-keras absent -> 2.19.0 (2 facts)",
    ),
    "another CUDA": (
        [differs("cuda.cudart.version"), differs("cuda.cudnn.version", "8.9", "9.1")],
        "another CUDA: cudnn 8.9 -> 9.1 (2 facts)",
    ),
    "any package": (
        [differs("packages.six.version"), differs("packages.six.wheel_tags")],
        "six 1.0 -> 2.0 (2 facts)",
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_what_one_event_changes_is_one_finding(name: str) -> None:
    findings, said = SEEN[name]
    number = sum(finding.severity == ERROR for finding in findings)
    report = Report(findings, policy="strict")
    assert report.headline == f"does not match under policy strict: 1 change ({number} facts)"
    (change,) = [finding for finding in report.changes if finding.severity == ERROR]
    assert change.message == said
    documents = report.to_json()["findings"]
    assert [each["message"] for each in documents] == [finding.message for finding in findings]
    ((cause, _),) = find_causes(findings)
    assert [each.get("cause") for each in documents if each["severity"] == ERROR] == [cause] * number
    # The name that is printed takes all facts of the group.
    assert cause in said.lower()
    packages = ["six", "nvidia-cudnn-cu12", "nvidia-nvjitlink-cu12", "nvidia-ml-py"]
    for spelled in (cause, said.partition(":")[0]) if ":" in said else (cause,):
        patterns = list_patterns(spelled, packages)
        differing = [finding.where.fact for finding in findings if finding.severity == ERROR]
        assert [path for path in differing if not any(matches(each, path) for each in patterns)] == []


APART = [
    [differs("keras.config.epsilon"), differs("keras.config.floatx")],
    [differs("environ.OMP_NUM_THREADS"), differs("cpu.intra_op_threads")],
    [differs("packages.machine.version"), differs("cpu.flags")],
    [differs("python.startup.sitecustomize"), differs("python.optimize"), differs("packages.six.wheel_tags")],
    [differs("loaded.libm"), differs("loaded.blas")],
    [differs("gpu.devices.0.ecc"), differs("gpu.visible.count")],
]


def test_an_environment_without_the_packages_is_one_finding() -> None:
    """What is another version, and what no package brings, stays apart."""
    lead = Finding(NO_TENSORFLOW, ERROR, "tensorflow", message="no TensorFlow", why="w", fix="f", source="design")
    missing = [differs(f"packages.{name}", "1.0", ABSENT) for name in ("six", "numpy", "nvidia-nccl-cu12")]
    missing += [differs("numpy", {}, None), differs("cuda.nccl", {}, None)]
    others = [differs("packages.idna.version"), differs("environ.TF_X", "1", None)]
    found = [each.message for each in Report([lead, *missing, *others]).changes]
    assert found == ["no TensorFlow; 3 locked packages missing (6 facts)", *(each.message for each in others)]


@pytest.mark.parametrize("findings", APART, ids=lambda findings: str(findings[0].where))
def test_what_no_one_event_changes_stays_apart(findings: list[Finding]) -> None:
    report = Report(findings, policy="strict")
    assert report.changes == findings
    assert report.headline.endswith(f": {len(findings)} facts differ")
    assert "cause" not in str(report.to_json())


def test_only_facts_that_must_not_differ_are_parts() -> None:
    """What is allowed or unknown, a file, and a finding of one rank of many keep their own place."""
    others = [
        differs("numpy.blas.version", severity=INFO),
        differs("packages.numpy.version", severity=UNKNOWN),
        differs("numpy/core.so", rule="file-modified"),
        Finding("exact", ERROR, "numpy.version", message="rank 3: numpy.version: a, b", why="", fix="", source=""),
    ]
    report = Report([differs("numpy.version"), differs("numpy.blas.name"), *others], policy="strict")
    assert report.changes[1:] == others
    assert report.changes[0].severity == ERROR
    assert report.headline == (
        "does not match under policy strict: 2 changes (3 facts) and 1 file is not as recorded; 1 more fact could not "
        "be collected"
    )
    assert Report([*others[:1]], policy="strict").match


def test_each_rank_of_many_has_its_own_changes() -> None:
    places = ("node n1, rank 0: ", "node n2, rank 1: ")
    findings = [differs(f"numpy.{name}") for name in ("version", "blas.name") for _ in places]
    for place, finding in zip(places * 2, findings, strict=True):
        finding.message = place + finding.message
    said = [change.message for change in Report(findings, policy="strict").changes]
    assert said == [f"{place}numpy 1.0 -> 2.0, with its BLAS (2 facts)" for place in places]


def test_the_reason_and_the_remedy_are_those_of_the_heaviest_part() -> None:
    light, heavy = differs("numpy.version", weight=10), differs("numpy.blas.name", weight=90)
    (change,) = Report([heavy, light], policy="strict").changes
    assert (change.why, change.fix, change.weight) == (heavy.why, heavy.fix, 90)


def test_for_another_machine_a_line_says_how_to_accept_it() -> None:
    flags, model = differs("cpu.flags"), differs("cpu.model")
    (change,) = Report([flags, model], policy="strict").changes
    assert change.fix == ACCEPT_MACHINE
    assert "envlock verify -p bits" in change.fix
    assert "envlock capture --add-machine" in change.fix
    # Under `bits`, the rule knows whether there is a canary; on another architecture, nothing helps.
    proven = differs("cpu.family", rule="proven")
    assert Report([flags, proven], policy="bits").changes[0].fix == proven.fix
    architecture = differs("system.machine", "x86_64", "aarch64")
    assert Report([architecture, flags], policy="strict").changes[0].fix == architecture.fix


@pytest.mark.parametrize(
    ("findings", "last"),
    [
        (NUMPY, "to accept this change: `envlock capture --only numpy`; for other ways: `envlock explain numpy`"),
        (
            [CPU, differs("cpu.flags"), differs("cpu.family")],
            "to accept this machine, too: `envlock capture --add-machine`; for other ways: `envlock explain machine`",
        ),
        (
            [differs("environ.TF_ENABLE_ONEDNN_OPTS")],
            "to start a program as locked: `envlock run`; for other ways: `envlock explain environ.TF_ENABLE_ONEDNN_OPTS`",
        ),
        (
            [differs("keras.config.backend"), differs("environ.KERAS_BACKEND")],
            "to start a program as locked: `envlock run`; for other ways: `envlock explain backend`",
        ),
        (
            [differs("cpu.flags"), differs("packages.six.version")],
            "to get the locked packages: `envlock sync`; for other ways: `envlock explain packages.six.version`",
        ),
    ],
)
def test_a_refusal_ends_with_one_suggestion(findings: list[Finding], last: str) -> None:
    assert suggest_way(Report(findings, policy="strict")) == [last]
    assert suggest_way(Report([], policy="strict")) == []


def test_a_name_stands_for_facts_that_a_lockfile_can_have() -> None:
    assert list_patterns("six", []) == []
    assert list_patterns("packages.six", ["six"]) == ["packages.six.**"]
    assert list_patterns("packages.tensorflow-cpu", []) == list_patterns("Another TensorFlow", [])
    # A package may be called as a cause is: then its path means the package.
    assert list_patterns("packages.machine", ["machine"]) == ["packages.machine.**"]
    machine = [path for path in MOVED["driver"] if is_machine(path.replace(".**", ""))]
    assert len(machine) == len(MOVED["driver"])


def test_a_refusal_fits_a_terminal() -> None:
    many = [differs(f"packages.package-{number}.version") for number in range(40)]
    for finding in many:
        finding.why, finding.fix = "It counts.", "Change it."
    assert len(in_short(Report(many, policy="strict")).splitlines()) == LINES
