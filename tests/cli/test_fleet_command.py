"""`envlock fleet`: reports of ranks, and what is said of them."""

from __future__ import annotations

import json
import sys

import pytest

from tests.conftest import Command

RANKS = {"ENVLOCK_FLEET_SIZE": "3", "ENVLOCK_FLEET_JOB": "j1"}


def report(envlock: Command, rank: int, **more: str) -> None:
    who = {"ENVLOCK_FLEET_RANK": str(rank), "ENVLOCK_FLEET_NODE": f"n{rank}"}
    done = envlock("fleet", "report", "--to", "reports", environ={**RANKS, **who, **more})
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.fixture
def project(envlock: Command) -> Command:
    (envlock.folder / "pyproject.toml").touch()
    return envlock


def test_reports_of_ranks_are_compared(project: Command) -> None:
    for rank in range(3):
        report(project, rank, **({"TF_ENABLE_ONEDNN_OPTS": "0"} if rank == 1 else {}))
    done = project("fleet", "check", "reports", "--vetted", "nodes.txt")
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == [
        "does not match: 1 of 3 ranks differ",
        "  x n1 (rank 1): environ.TF_ENABLE_ONEDNN_OPTS: most ranks unset, here 0",
    ]
    assert done.stderr == "wrote nodes.txt: 2 nodes\n"
    assert (project.folder / "nodes.txt").read_text() == "n0\nn2\n"
    found = json.loads(project("fleet", "check", "reports", "-f", "json").stdout)
    assert [group["nodes"] for group in found["attachments"]["fleet"]["groups"]] == ["n[0,2]", "n1"]
    for form in ("github", "junit", "sarif"):
        assert "TF_ENABLE_ONEDNN_OPTS" in project("fleet", "check", "reports", "-f", form).stdout


def test_an_old_list_of_nodes_is_not_left_standing(project: Command) -> None:
    nodes = project.folder / "nodes.txt"
    command = ("fleet", "check", "reports", "--vetted", "nodes.txt", "--wait", "0")
    nodes.write_text("n7\n")
    done = project(*command)
    assert (done.returncode, nodes.exists()) == (2, False)
    assert done.stderr.startswith("removed nodes.txt: no node is known to be good\nerror: cannot read reports: ")
    for rank in range(2):
        report(project, rank, ENVLOCK_FLEET_SIZE="2", **({"TF_ENABLE_ONEDNN_OPTS": "0"} if rank == 1 else {}))
    done = project(*command)
    assert (done.returncode, nodes.exists()) == (1, False)
    assert done.stderr == "did not write nodes.txt: no node is known to be good\n"
    report(project, 1, ENVLOCK_FLEET_SIZE="2", ENVLOCK_FLEET_NODE="n0")
    assert project(*command).stderr == "wrote nodes.txt: 1 node\n"
    assert nodes.read_text() == "n0\n"


@pytest.mark.parametrize("python", [(), ("--python", sys.executable)])
def test_a_statement_lies_in_the_folder_of_the_job(project: Command, python: tuple[str, ...]) -> None:
    who = {**RANKS, "ENVLOCK_FLEET_RANK": "2", "ENVLOCK_FLEET_NODE": "n2"}
    done = project("fleet", "report", "--to", "reports", *python, environ=who)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    statement = json.loads((project.folder / "reports" / "j1" / "rank-2.json").read_bytes())
    assert [statement[key] for key in ("rank", "node", "job", "size")] == [2, "n2", "j1", 3]


def test_with_a_lockfile_and_with_a_rank_that_is_missing(project: Command) -> None:
    assert project("capture").returncode == 0
    report(project, 0)
    report(project, 1)
    done = project("fleet", "check", "reports", "--wait", "0", "--format", "json")
    seen = json.loads(done.stdout)["attachments"]["fleet"]
    assert (seen["reported"], seen["size"], seen["missing"]) == (2, 3, "2")
    report(project, 2)
    done = project("fleet", "check", "reports")
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        ["matches under policy strict: 3 ranks alike", "3 ranks on 3 nodes, job j1"],
    )


def test_a_process_outside_of_a_job_cannot_report(project: Command) -> None:
    done = project("fleet", "report", "--to", "reports")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "error: cannot find the rank of this process: no launcher has set one",
    )
    done = project("fleet", "check", "reports")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "error: cannot read reports: No such file or directory",
    )


def test_options_with_an_open_quotation_are_refused(project: Command) -> None:
    done = project("fleet", "run", "--launcher", "mpi", "-n", "2", "--options", "-x 'a", "--", "true")
    assert (done.returncode, done.stdout, done.stderr.splitlines()) == (
        2,
        "",
        [
            "error: cannot split `--options`: No closing quotation",
            'hint: quote the whole text once: --options "-N 4 -n 8"',
        ],
    )


def test_an_interpreter_in_the_current_folder_is_not_looked_for_on_the_path(project: Command) -> None:
    python = project.folder / "python"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    done = project("capture", "-q", "--python", "./python")
    assert (done.returncode, done.stderr.splitlines()) == (
        4,
        [f"error: {python} gave no facts (exit code 3): no output", "hint: envlock needs Python 3.8 or newer"],
    )


MPIRUN = """#!/bin/sh
shift
size=$1; shift
rank=0
while [ $rank -lt $size ]; do
    OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=$size ${ODD:+env TF_ENABLE_ONEDNN_OPTS=$rank} "$@" &
    rank=$((rank + 1))
done
wait
"""


@pytest.mark.parametrize(
    ("odd", "code", "headline", "job"),
    [
        ("", 0, "2 ranks alike", ["training", "training"]),
        ("x", 1, "does not match: 1 of 2 ranks differ, and no environment has a majority", []),
    ],
)
def test_the_report_before_a_job_is_data_with_another_format(
    project: Command, odd: str, code: int, headline: str, job: list[str]
) -> None:
    """The output of the job follows it; without `--format` the report is on stderr."""
    mpirun = project.folder / "mpirun"
    mpirun.write_text(MPIRUN)
    mpirun.chmod(0o755)
    environ = {"PATH": f"{project.folder}:/usr/bin:/bin", "ODD": odd}
    words = ("--launcher", "mpi", "-n", "2", "--", "echo", "training")
    done = project("fleet", "run", "-f", "json", *words, environ=environ)
    report, end = json.JSONDecoder().raw_decode(done.stdout)
    assert (done.returncode, report["headline"], report["match"]) == (code, headline, not code), done.stderr
    assert done.stdout[end:].split() == job
    said = project("fleet", "run", *words, environ=environ)
    assert (said.stdout.split(), said.stderr.splitlines()[0]) == (job, headline)


def test_ranks_that_compare_themselves_have_no_format(project: Command) -> None:
    who = {**RANKS, "ENVLOCK_FLEET_RANK": "0", "ENVLOCK_FLEET_SIZE": "1"}
    done = project("fleet", "run", "-f", "json", "--launcher", "files", "--", "true", environ=who)
    assert (done.returncode, done.stderr) == (
        2,
        "error: the ranks of engine `files` print no json\nhint: use `envlock fleet check --format`\n",
    )
