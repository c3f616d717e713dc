"""Which launcher or worker pool explains differences, from variables as they really set them."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from envlock.data import read
from envlock.data.runtime_tables import LauncherTable, load_launcher_table
from envlock.runtime.judgement import annotate
from envlock.runtime.launchers import collect_traces, explain_differences
from envlock.runtime.report import ERROR, INFO, UNKNOWN, Finding, Report, Severity

THREADS = ("cpu.affinity_count", "cpu.inter_op_threads", "cpu.intra_op_threads")
LIBRARIES = "environ.LD_LIBRARY_PATH"
OMP, MKL, BLAS = (f"environ.{name}_NUM_THREADS" for name in ("OMP", "MKL", "OPENBLAS"))

MPIRUN = {
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_RANK": "0",
    "PMIX_RANK": "0",
    "LD_LIBRARY_PATH": "/opt/openmpi/lib",
}
MPIEXEC = {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}
SRUN = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_CPU_BIND_TYPE": "mask_cpu:"}
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
NAMES = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "NUMEXPR")
LOKY = {**{f"{name}_NUM_THREADS": "1" for name in NAMES}, "VECLIB_MAXIMUM_THREADS": "1", "ENABLE_IPC": "1"}
DASK = {
    "__DASK_PARENT_PID": "7",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")},
}
SPARK = {"PYTHON_WORKER_FACTORY_SECRET": "s3cret", "OMP_NUM_THREADS": "1"}
APPTAINER = {"APPTAINER_CONTAINER": "/images/train.sif", "OMP_NUM_THREADS": "3"}
RAY = {"RAY_RAYLET_PID": "7", "RAY_JOB_ID": "01000000", "OMP_NUM_THREADS": "1"}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "OMP_NUM_THREADS": "1"}


def findings(*paths: str, severity: Severity = ERROR) -> list[Finding]:
    return [
        Finding("exact", severity, path, message=f"{path}: differs", why="Why.", fix="Fix.", source="source")
        for path in paths
    ]


@pytest.mark.parametrize(
    ("environ", "facts", "name"),
    [
        (MPIRUN, [LIBRARIES, *THREADS], "Open MPI started this process (OMPI_COMM_WORLD_SIZE is set)"),
        (MPIEXEC, [*THREADS], "An MPI launcher started this process (PMI_RANK is set)"),
        (SRUN, [*THREADS], "Slurm started this process (SLURM_JOB_ID is set)"),
        (POD, [*THREADS], "Kubernetes limits this process (KUBERNETES_SERVICE_HOST is set)"),
        (LOKY, [OMP, MKL, BLAS], "this process is a worker of joblib (ENABLE_IPC is set)"),
        (DASK, [OMP, MKL, BLAS], "this process is a worker of Dask (__DASK_PARENT_PID is set)"),
        (SPARK, [OMP], "this process is a worker of Spark (PYTHON_WORKER_FACTORY_SECRET is set)"),
        (APPTAINER, [OMP, MKL], "Apptainer started this process (APPTAINER_CONTAINER is set)"),
        (RAY, [OMP], "this process is a worker of Ray (RAY_RAYLET_PID is set)"),
        (TORCHRUN, [OMP], "torchrun started this process (TORCHELASTIC_RUN_ID is set)"),
    ],
)
def test_a_launcher_explains_what_it_changes_and_nothing_else(
    environ: dict[str, str], facts: list[str], name: str
) -> None:
    ((found, _),) = explain_differences(findings("packages.numpy.version", *facts), environ)
    assert (found.rule, found.severity) == ("launcher", INFO)
    assert found.message.startswith(name)
    assert all(path in found.message for path in facts)
    assert "numpy" not in found.message
    assert explain_differences(findings("packages.numpy.version"), environ) == []
    assert explain_differences(findings(*facts), {}) == []
    assert explain_differences(findings(*facts, severity=INFO), environ) == []


@pytest.mark.parametrize("environ", [MPIRUN, MPIEXEC, SRUN, POD, LOKY, DASK, RAY, SPARK, APPTAINER, TORCHRUN, {}])
@pytest.mark.parametrize("own", [{}, {"OMP_NUM_THREADS": "3"}, {"OMP_NUM_THREADS": "4,2"}])
def test_another_process_explains_by_traces_what_this_one_does(environ: dict[str, str], own: dict[str, str]) -> None:
    here, differ = {**environ, **own, "TOKEN": "s3cret"}, findings(LIBRARIES, OMP, MKL, BLAS, *THREADS)
    kept = collect_traces(here)
    by_traces, by_variables = (
        [each.message for each, _ in explain_differences(differ, known)] for known in (kept, here)
    )
    assert by_traces == by_variables
    assert set(kept.values()) <= {"set", "1", "3"}


def test_a_fact_is_explained_once_and_by_the_nearest() -> None:
    found = explain_differences(findings(LIBRARIES, *THREADS), {**SRUN, **POD, **MPIRUN})
    assert [each.message.partition(" ")[0] for each, _ in found] == ["Open"]
    both = explain_differences(findings(OMP, *THREADS), {**SRUN, **LOKY})
    assert [each.message.rpartition(" ")[2] for each, _ in both] == [OMP, "cpu.inter_op_threads"]


@pytest.mark.parametrize("environ", [LOKY, DASK, TORCHRUN])
def test_a_thread_count_of_the_users_own_is_not_the_pools(environ: dict[str, str]) -> None:
    found = explain_differences(findings(OMP, MKL), {**environ, "OMP_NUM_THREADS": "3"})
    assert [OMP in each.message for each, _ in found] == [False] * len(found)
    assert explain_differences(findings(OMP), {**environ, "OMP_NUM_THREADS": "3"}) == []


def test_variables_of_threads_alone_are_no_pool() -> None:
    assert explain_differences(findings(OMP, MKL, BLAS), {name: "1" for name in LOKY if name != "ENABLE_IPC"}) == []


def test_what_could_not_be_collected_is_explained_as_well() -> None:
    ((found, _),) = explain_differences(findings(LIBRARIES, severity=UNKNOWN), MPIRUN)
    assert LIBRARIES in found.message


def test_the_report_shows_it_behind_the_differences_and_stays_what_it_was() -> None:
    ignored = findings("cpu.quota", severity=INFO)
    report = Report([*findings("cpu.affinity_count"), *ignored], policy="strict")
    before = (report.headline, report.exit_code)
    assert (annotate(report, MPIRUN).headline, report.exit_code) == before
    assert report.to_text().splitlines()[4:] == [
        "  i Open MPI started this process (OMPI_COMM_WORLD_SIZE is set) and explains cpu.affinity_count",
        f"      why: {next(row for row in load_launcher_table().launcher if row.name == 'Open MPI').why}",
        f"      fix: {next(row for row in load_launcher_table().launcher if row.name == 'Open MPI').fix}",
        "1 difference that policy strict allows (`envlock verify -v` lists all)",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"facts": ["environ.NO_SUCH"]}, "neither of the processor nor in environ.toml: environ.NO_SUCH"),
        ({"source": "hearsay"}, "no evidence `hearsay`"),
        ({"value": "1"}, "one of `value` and `value_of`"),
        ({"fix": "no full stop"}, "String should match pattern"),
        ({"any": []}, "List should have at least 1 item"),
    ],
)
def test_a_row_that_is_not_sound_is_refused(change: dict[str, object], message: str) -> None:
    table = read("launchers")
    first, *others = table["launcher"]
    with pytest.raises(ValidationError, match=re.escape(message)):
        LauncherTable.model_validate({**table, "launcher": [{**first, **change}, *others]})


def test_a_report_that_matches_is_left_alone() -> None:
    report = Report(findings("cpu.affinity_count", severity=INFO), policy="strict")
    assert [each.rule for each in annotate(report, MPIRUN).findings] == ["exact"]
