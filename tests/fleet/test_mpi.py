"""Ranks that MPI numbers: what MPI says is compared with what the launcher says. MPI itself is played."""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.fleet import fleet_assertion, mpi_mail
from envlock.fleet.mpi_mail import Mail, rank_in
from envlock.fleet.ranks import Disagreement
from envlock.runtime.errors import EnvironmentMismatch, UsageError
from tests.fleet.test_ranks import INDEXED, MPIEXEC, MPIRUN, MVAPICH, SBATCH, SRUN, TORCHRUN, config

SINGLETON = (
    "does not match: MPI and the launcher number the ranks differently\n"
    "  x MPI says rank 0, size 1 (COMM_WORLD); SLURM_PROCID says rank {rank}, SLURM_STEP_NUM_TASKS says size 8\n"
    "      why: MPI and the launcher are not connected: a rank that is alone in its MPI would be compared with no "
    "other.\n"
    "      fix: Start the job with `srun --mpi=pmix`, or with the mpiexec of the MPI that mpi4py uses; or let ranks "
    'meet in a shared folder: `assert_fleet(engine="files")`.'
)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no refusal wait for that of another process."""
    monkeypatch.setattr(fleet_assertion, "wait_for_readers", lambda *_: None)


def world(rank: int, size: int) -> Any:
    """Return a module `mpi4py.MPI` that has started."""
    comm = SimpleNamespace(Get_rank=lambda: rank, Get_size=lambda: size)
    return SimpleNamespace(COMM_WORLD=comm, Is_initialized=lambda: True, Is_finalized=lambda: False)


@pytest.mark.parametrize(
    ("environ", "rank", "size"),
    [
        *((each, 0, 1) for each in (SRUN, MPIRUN, MPIEXEC, MVAPICH, TORCHRUN, INDEXED, config("worker", 1))),
        ({**SRUN, **MPIEXEC}, 0, 1),
        (MPIRUN, 3, 4),
        (MPIRUN, 4, 8),
        ({"PMIX_RANK": "3"}, 0, 1),
        ({**MPIRUN, "ENVLOCK_FLEET_SIZE": "4"}, 3, 8),
    ],
)
def test_mpi_that_numbers_a_process_differently_than_its_launcher_is_refused(
    environ: dict[str, str], rank: int, size: int
) -> None:
    with pytest.raises(Disagreement) as raised:
        rank_in(world(rank, size), environ, "host")
    (finding,) = raised.value.report.findings
    assert (finding.rule, raised.value.report.exit_code) == ("rank-size", 1)
    assert finding.message.startswith(f"MPI says rank {rank}, size {size} (COMM_WORLD); ")


@pytest.mark.parametrize(
    ("environ", "rank", "size"),
    [
        ({}, 0, 1),
        (SBATCH, 0, 1),
        (MPIRUN, 3, 8),
        ({**SRUN, **MPIRUN}, 3, 8),  # mpirun in an allocation starts its daemons with srun
        (SRUN, 5, 8),
        ({"PMIX_RANK": "3"}, 3, 8),
        ({**SRUN, "ENVLOCK_FLEET_RANK": "0", "ENVLOCK_FLEET_SIZE": "1"}, 0, 1),
    ],
)
def test_mpi_that_numbers_a_process_as_its_launcher_does(environ: dict[str, str], rank: int, size: int) -> None:
    found = rank_in(world(rank, size), environ, "host")
    assert (found.rank, found.size) == (rank, size)


def test_one_process_of_mpi_and_a_launcher_that_does_not_say_how_many_there_are() -> None:
    with pytest.raises(UsageError) as raised:
        rank_in(world(0, 1), {"PMIX_RANK": "0"}, "host")
    assert str(raised.value) == "cannot find how many ranks the job has\nhint: set ENVLOCK_FLEET_SIZE"


@pytest.mark.parametrize("engine", ["auto", "mpi"])
@pytest.mark.parametrize("rank", ["0", "5"])
def test_a_rank_that_is_alone_in_its_mpi_does_not_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], engine: str, rank: str
) -> None:
    """The default of many clusters: srun without `--mpi`. Rank 0 prints the report, each other rank a line."""
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", world(0, 1))
    for name, value in {**SRUN, "SLURM_PROCID": rank}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EnvironmentMismatch) as raised:
        fleet_assertion.assert_fleet(engine=engine)
    whole = SINGLETON.format(rank=rank)
    assert raised.value.report.to_text().startswith(whole)
    assert (raised.value.exit_code, raised.value.message) == (1, whole.partition("\n")[0])
    said = capsys.readouterr().err
    assert said.startswith(f"envlock: {whole}") if rank == "0" else said == f"envlock: {whole.partition(chr(10))[0]}\n"


def test_with_warn_it_is_said_and_the_program_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", world(0, 1))
    for name, value in {**SRUN, "ENVLOCK_MODE": "warn"}.items():
        monkeypatch.setenv(name, value)
    report = fleet_assertion.assert_fleet()
    assert report is not None
    assert not report.match
    assert capsys.readouterr().err.splitlines() == [
        "envlock: does not match: MPI and the launcher number the ranks differently",
        "envlock: warning: ENVLOCK_MODE=warn, so this does not stop the program",
    ]


class Wire:
    """COMM_WORLD of a rank of three: what it sends, and what arrives."""

    def __init__(self, *arrived: bytes, rank: int = 0) -> None:
        self.arrived = list(arrived)
        self.sent: list[tuple[int, bytes]] = []
        names = {"Isend": self._send, "Iprobe": lambda **_: bool(self.arrived), "Recv": self._receive}
        vars(self).update({**names, "Get_rank": lambda: rank, "Get_size": lambda: 3})

    def _send(self, buffer: Any, dest: int, tag: int) -> Any:
        self.sent.append((dest, bytes(buffer[0])))
        return SimpleNamespace(Test=lambda: True)

    def _receive(self, buffer: Any, source: int, tag: int) -> None:
        buffer[0][:] = self.arrived.pop(0)


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(mpi_mail, "_inbox", {})
    monkeypatch.setattr(mpi_mail, "_sent", [])

    def made(wire: Wire) -> Mail:
        def status() -> Any:
            return SimpleNamespace(Get_count=lambda kind: len(wire.arrived[0]), Get_source=lambda: 1)

        return Mail(SimpleNamespace(COMM_WORLD=wire, BYTE="byte", ANY_SOURCE=-1, Status=status))

    return made


def test_messages_are_json_and_what_is_none_is_left_out(mail: Any) -> None:
    wire = Wire(pickle.dumps(("call", 1)), b"[1]", b"3", b"[[],2]", b"\xff", b'["a/1",{"b":2}]')
    board = mail(wire)
    assert board.names() == ["a/1"]
    assert (board.names("a"), board.peek("a/1"), board.peek("call")) == (["1"], {"b": 2}, None)
    board.post("call", {"nonce": "x"})
    assert wire.sent == [(each, b'["call",{"nonce":"x"}]') for each in (1, 2)]


def test_rank_0_has_the_last_word_and_passes_on_what_a_rank_has_withdrawn(mail: Any) -> None:
    wire = Wire(b'["a.decision","withdrawn"]')
    board = mail(wire)
    assert board.settle("a/0", "mine")
    assert not board.settle("a.decision", "go")
    assert wire.sent == [(each, b'["a.decision","withdrawn"]') for each in (1, 2)]


@pytest.mark.parametrize(
    ("arrived", "sent"), [([b'["a.decision","go"]'], []), ([], [(0, b'["a.decision","withdrawn"]')])]
)
def test_a_rank_withdraws_unless_it_has_heard_the_verdict(
    mail: Any, arrived: list[bytes], sent: list[tuple[int, bytes]]
) -> None:
    wire = Wire(*arrived, rank=1)
    assert mail(wire).settle("a.decision", "withdrawn") == (not arrived)
    assert wire.sent == sent
