"""Which rank a process is, by the variables that launchers really set."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.fleet.node_names import format_nodes
from envlock.fleet.ranks import LONGEST, find_rank
from envlock.runtime.device_ranges import format_ranges
from envlock.runtime.errors import UsageError

SRUN = {
    "SLURM_PROCID": "5",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURMD_NODENAME": "n3",
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "0",
    "SLURM_NTASKS": "8",
    "SLURM_LOCALID": "1",
}
SBATCH = {"SLURM_PROCID": "0", "SLURM_JOB_ID": "7", "SLURM_NTASKS": "8", "SLURMD_NODENAME": "n1"}
MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "8",
    "PMIX_RANK": "3",
    "PMIX_NAMESPACE": "prterun-host-17@1",
}
MPIEXEC = {"PMI_RANK": "3", "PMI_SIZE": "8"}
MVAPICH = {"MV2_COMM_WORLD_RANK": "3", "MV2_COMM_WORLD_SIZE": "8"}
HOROVOD = {
    "HOROVOD_RANK": "3",
    "HOROVOD_SIZE": "8",
    "HOROVOD_HOSTNAME": "n2",
    "HOROVOD_GLOO_RENDEZVOUS_ADDR": "10.0.0.1",
    "HOROVOD_GLOO_RENDEZVOUS_PORT": "4711",
}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "abc", "RANK": "3", "WORLD_SIZE": "8"}
UNNAMED = {**TORCHRUN, "TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "n1", "MASTER_PORT": "29500"}
"""torchrun without --rdzv-id: its word is the same for all jobs."""
INDEXED = {"JOB_COMPLETION_INDEX": "3", "ENVLOCK_FLEET_SIZE": "8", "ENVLOCK_FLEET_JOB": "uid"}
FLUX = {"FLUX_TASK_RANK": "3", "FLUX_JOB_SIZE": "8", "FLUX_JOB_ID": "f2V9"}
PALS = {"PALS_RANKID": "3", "PALS_APID": "c1f2", "PALS_NODEID": "1", "PMI_SIZE": "8"}
JSRUN = {"JSM_NAMESPACE_RANK": "3", "JSM_NAMESPACE_SIZE": "8", "LSB_JOBID": "41"}
BATCH = {"AWS_BATCH_JOB_NODE_INDEX": "3", "AWS_BATCH_JOB_NUM_NODES": "8", "AWS_BATCH_JOB_ID": "6c1e#3"}
SAGEMAKER = {
    "SM_CURRENT_HOST": "algo-2",
    "SM_HOSTS": '["algo-3", "algo-1", "algo-2"]',
    "TRAINING_JOB_NAME": "train-7",
}
CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}


def config(kind: str, index: int, cluster: Any = None) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster or CLUSTER, "task": {"type": kind, "index": index}})}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (SRUN, (5, 8, "n3", "7.0")),
        ({**SRUN, "SLURM_RESTART_COUNT": "2"}, (5, 8, "n3", "7.0.2")),
        (MPIRUN, (3, 8, "host", "prterun-host-17@1")),
        ({**SBATCH, **MPIRUN}, (3, 8, "host", "prterun-host-17@1")),
        (MPIEXEC, (3, 8, "host", "")),
        (FLUX, (3, 8, "host", "f2V9")),
        ({**FLUX, **MPIEXEC}, (3, 8, "host", "f2V9")),
        ({**FLUX, "FLUX_TASK_RANK": "0", "FLUX_JOB_SIZE": "1", **MPIEXEC}, (3, 8, "host", "f2V9")),
        (PALS, (3, 8, "host", "c1f2")),
        ({**PALS, **MPIEXEC}, (3, 8, "host", "c1f2")),
        (JSRUN, (3, 8, "host", "41")),
        ({**JSRUN, **MPIRUN, "PMIX_NAMESPACE": "2"}, (3, 8, "host", "41.2")),
        (BATCH, (3, 8, "host", "6c1e")),
        (SAGEMAKER, (1, 3, "algo-2", "train-7")),
        ({**SAGEMAKER, **MPIRUN}, (3, 8, "host", "prterun-host-17@1")),
        ({**MPIEXEC, "I_MPI_HYDRA_UUID": "3b54-1"}, (3, 8, "host", "3b54-1")),
        ({**SBATCH, **MPIEXEC}, (3, 8, "host", "7")),
        (MVAPICH, (3, 8, "host", "")),
        (HOROVOD, (3, 8, "n2", "10.0.0.1.4711")),
        (TORCHRUN, (3, 8, "host", "abc")),
        ({**TORCHRUN, "MASTER_ADDR": "n1", "MASTER_PORT": "29500"}, (3, 8, "host", "abc")),
        (UNNAMED, (3, 8, "host", "n1.29500")),
        ({**UNNAMED, "ENVLOCK_FLEET_JOB": "mine"}, (3, 8, "host", "mine")),
        (INDEXED, (3, 8, "host", "uid")),
        ({**SRUN, "ENVLOCK_FLEET_NODE": "x", "ENVLOCK_FLEET_JOB": "y"}, (5, 8, "x", "y")),
        ({"ENVLOCK_FLEET_RANK": "0", "ENVLOCK_FLEET_SIZE": "1"}, (0, 1, "host", "")),
    ],
)
def test_each_launcher_numbers_its_processes(environ: dict[str, str], expected: tuple[Any, ...]) -> None:
    found = find_rank(environ, "host")
    assert (found.rank, found.size, found.node, found.job) == expected


@pytest.mark.parametrize(("kind", "index", "rank"), [("chief", 0, 0), ("worker", 0, 1), ("worker", 1, 2)])
def test_tf_config_numbers_the_tasks_of_a_cluster(kind: str, index: int, rank: int) -> None:
    found = find_rank(config(kind, index), "host")
    assert (found.rank, found.size, found.is_aside) == (rank, 3, False)
    assert found.job == find_rank(config("worker", 1), "host").job
    assert found.job != find_rank(config("worker", 1, {**CLUSTER, "ps": ["e:1"]}), "host").job


@pytest.mark.parametrize("kind", ["evaluator", "ps"])
def test_a_task_that_no_other_waits_for_is_no_rank(kind: str) -> None:
    found = find_rank(config(kind, 0), "host")
    assert (found.rank, found.size, found.is_aside) == (0, 1, True)
    named = find_rank({**config(kind, 0), "ENVLOCK_FLEET_RANK": "3", "ENVLOCK_FLEET_SIZE": "4"}, "host")
    assert (named.rank, named.size, named.is_aside) == (3, 4, False)


NOWHERE = (
    "cannot find the rank of this process: no launcher has set one\n"
    "hint: start it with a launcher, or set ENVLOCK_FLEET_RANK, ENVLOCK_FLEET_SIZE and ENVLOCK_FLEET_JOB for "
    "each process"
)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        SBATCH,
        config("gardener", 0),
        {"TF_CONFIG": "{"},
        {"TF_CONFIG": '{"cluster": {"worker": 3}}'},
        {"RANK": "0"},
    ],
)
def test_a_process_that_nobody_has_numbered_is_no_rank(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError) as raised:
        find_rank(environ, "host")
    assert str(raised.value) == NOWHERE


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (
            {**MPIRUN, "OMPI_COMM_WORLD_RANK": "x"},
            "the rank of this process is not a number: 'x'\nhint: check the launcher",
        ),
        (
            {**MPIRUN, "OMPI_COMM_WORLD_RANK": "8"},
            "rank 8 is not one of 8 ranks\nhint: check OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE",
        ),
        (config("worker", 7), "rank 8 is not one of 3 ranks\nhint: check TF_CONFIG"),
        (
            {"TF_CONFIG": '{"cluster": {}, "task": {"type": "worker", "index": 0}}'},
            "cannot find the rank of this process: the cluster of TF_CONFIG is empty\n"
            "hint: name the tasks in TF_CONFIG; for one process, set ENVLOCK_FLEET_RANK=0 and ENVLOCK_FLEET_SIZE=1",
        ),
    ],
)
def test_a_number_that_cannot_be_is_refused(environ: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        find_rank(environ, "host")
    assert str(raised.value) == message


@given(st.text(min_size=1))
def test_names_are_short_and_name_no_other_folder(name: str) -> None:
    found = find_rank({**MPIRUN, "ENVLOCK_FLEET_JOB": name, "ENVLOCK_FLEET_NODE": name}, "host")
    for word in (found.job, found.node):
        assert len(word) <= LONGEST
        assert word.isascii()
        assert "/" not in word
        assert word.strip(".")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["n3"], "n3"),
        (["n1", "n2", "n3", "n7"], "n[1-3,7]"),
        (["n10", "n9", "n8"], "n[8-10]"),
        (["n098", "n099", "n100", "n101"], "n[098-101]"),
        (["a1", "b1"], "a1,b1"),
        (["login", "n1"], "login,n1"),
        (["gpu-1-a.cluster", "gpu-2-a.cluster"], "gpu-[1-2]-a.cluster"),
        ([], ""),
    ],
)
def test_nodes_are_listed_as_slurm_lists_them(names: list[str], expected: str) -> None:
    assert format_nodes(names) == expected


def expanded(text: str) -> list[str]:
    """Return the names of a list with one pair of brackets a word."""
    found: list[str] = []
    rest = text
    while rest:
        head = rest.partition(",")[0]
        if "[" in head:
            start, _, rest = rest.partition("[")
            inside, _, rest = rest.partition("]")
            end, _, rest = rest.partition(",")
            for part in inside.split(","):
                first, _, last = part.partition("-")
                width = len(first) if first[0] == "0" else 0
                found += [f"{start}{str(n).zfill(width)}{end}" for n in range(int(first), int(last or first) + 1)]
        else:
            found.append(head)
            rest = rest[len(head) + 1 :]
    return found


@given(st.lists(st.from_regex(r"\A[a-c]{0,2}(0|00)?[1-9][0-9]{0,2}[x-z]?\Z"), unique=True))
def test_a_list_has_every_node_once(names: list[str]) -> None:
    assert sorted(expanded(format_nodes(names))) == sorted(names)


@given(st.sets(st.integers(0, 60)))
def test_ranges_hold_the_numbers_and_no_others(numbers: set[int]) -> None:
    parts = [part.partition("-") for part in format_ranges(numbers).split(",") if part]
    assert {n for a, _, b in parts for n in range(int(a), int(b or a) + 1)} == numbers


@pytest.mark.parametrize("hosts", ["", "{", "[]", "[1]", '["algo-1"]', '["algo-2", 3]', '"algo-2"'])
def test_a_host_that_the_list_of_hosts_lacks_is_no_rank(hosts: str) -> None:
    with pytest.raises(UsageError) as raised:
        find_rank({**SAGEMAKER, "SM_HOSTS": hosts}, "host")
    assert raised.value.message == "cannot find the rank of this process: no launcher has set one"
