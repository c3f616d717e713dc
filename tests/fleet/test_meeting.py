"""Ranks that meet at a folder: threads stand for processes, and end, hang or come late as those do."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.fleet import fleet_assertion, meeting
from envlock.fleet.folder import Folder, list_jobs, read_statements
from envlock.fleet.jobs import choose_job
from envlock.fleet.meeting import meet
from envlock.fleet.rank_process import write_statement as state
from envlock.fleet.reduction import reduction
from envlock.runtime.errors import EnvironmentMismatch, FactError, UsageError, WriteError
from tests.fleet.bed import run
from tests.fleet.ranks import Made, rank
from tests.locks import document, encode

SILENT = "cannot decide: no report from rank 0 within 0.3 s"
ODD: dict[str, Any] = {"TF_ENABLE_ONEDNN_OPTS": "0"}


@pytest.fixture(autouse=True)
def _short_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "MARGIN", 0.1)


def decide(size: int) -> Callable[..., Any]:
    return lambda statements, documents: {"by": 0, "report": reduction(statements, documents, size)[0].to_json()}


def together(folder: Path, made: list[Made | None], *, timeout: float = 20.0, job: str = "7.0") -> dict[int, Any]:
    """Return what each rank heard; None in the list is a rank that never comes."""
    heard: dict[int, Any] = {}
    prints: dict[int, bool] = {}
    if made[0] is not None and None in made:  # rank 0 decides when time is up, on a busy machine late
        meeting.MARGIN = 2.0  # the fixture puts it back

    def come(number: int, mine: Made) -> None:
        heard[number], prints[number] = meet(
            Folder(str(folder), job), number, len(made), mine, decide(len(made)), timeout
        )

    threads = [threading.Thread(target=come, args=(each, mine)) for each, mine in enumerate(made) if mine is not None]
    for each in reversed(threads):
        each.start()
    for each in threads:
        each.join()
    assert sum(prints.values()) == (1 if 0 not in heard else 0)
    return heard


def headlines(heard: dict[int, Any]) -> set[str]:
    return {each["report"]["headline"] for each in heard.values()}


def reported(heard: dict[int, Any]) -> set[int]:
    """Return how many ranks the verdict counts; what is said of the others is a test's in test_reduction.py."""
    return {each["report"]["attachments"]["fleet"]["reported"] for each in heard.values()}


def test_every_rank_hears_the_one_verdict(tmp_path: Path) -> None:
    heard = together(tmp_path, [rank(each, 4, **(ODD if each == 3 else {})) for each in range(4)])
    assert headlines(heard) == {"does not match: 1 of 4 ranks differ"}
    assert len({json.dumps(each, sort_keys=True) for each in heard.values()}) == 1
    assert headlines(together(tmp_path, [rank(each, 4) for each in range(4)])) == {"4 ranks alike"}


def test_only_facts_that_differ_are_written_and_once(tmp_path: Path) -> None:
    together(tmp_path, [rank(each, 4, **(ODD if each > 1 else {})) for each in range(4)])
    assert len(list((tmp_path / "7.0").glob("facts.*"))) == 1
    assert not [each for each in (tmp_path / "7.0").rglob("*") if each.is_file() and each.suffix != ".json"]


@pytest.mark.longer
def test_a_rank_that_is_lost_keeps_nobody_longer_than_the_timeout(tmp_path: Path) -> None:
    start = time.monotonic()
    heard = together(tmp_path, [rank(0, 3), rank(1, 3), None], timeout=3.0)
    assert reported(heard) == {2}
    assert time.monotonic() - start < 100


def test_without_rank_0_everybody_gives_up_in_time(tmp_path: Path) -> None:
    assert headlines(together(tmp_path, [None, rank(1, 3), rank(2, 3)], timeout=0.3)) == {SILENT}


@pytest.mark.longer
def test_what_an_earlier_call_left_is_no_answer(tmp_path: Path) -> None:
    """The same job once more, with a rank that is lost now: its old statement and the old verdict are there."""
    together(tmp_path, [rank(each, 3) for each in range(3)])
    assert reported(together(tmp_path, [rank(0, 3), rank(1, 3), None], timeout=3.0)) == {2}
    assert headlines(together(tmp_path, [None, rank(1, 3), rank(2, 3)], timeout=0.3)) == {SILENT}


def test_a_reducer_that_was_killed_leaves_a_call_that_a_new_job_does_not_answer_twice(tmp_path: Path) -> None:
    board = Folder(str(tmp_path), "7.0")
    board.post("call", {"nonce": "dead", "root": ""})
    board.post("dead/1", rank(1, 2)[0])
    assert headlines(together(tmp_path, [rank(0, 2), rank(1, 2)])) == {"2 ranks alike"}


@pytest.mark.parametrize("skew", [-(10**8), 10**8])
def test_the_clocks_of_nodes_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skew: int) -> None:
    """Files of a node whose clock is years off are as good as others."""
    rename = os.rename

    def skewed(draft: str, target: str) -> None:
        os.utime(draft, (time.time() + skew, time.time() + skew))
        rename(draft, target)

    monkeypatch.setattr(os, "rename", skewed)
    heard = together(tmp_path, [rank(each, 3, **(ODD if each == 2 else {})) for each in range(3)])
    assert headlines(heard) == {"does not match: 1 of 3 ranks differ"}


def test_two_jobs_in_one_folder_do_not_meet(tmp_path: Path) -> None:
    found: dict[str, dict[int, Any]] = {}

    def run(job: str, **changes: Any) -> None:
        found[job] = together(tmp_path, [rank(each, 2, job=job, **changes) for each in range(2)], job=job)

    threads = [threading.Thread(target=run, args=("1",)), threading.Thread(target=run, args=("2",), kwargs=ODD)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [headlines(each) for each in found.values()] == [{"2 ranks alike"}] * 2


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b'{"statement": 1}', b"\xff", b'{"nonce": 3}'])
def test_files_that_are_no_statements_are_not_taken_for_one(tmp_path: Path, junk: bytes) -> None:
    folder = tmp_path / "7.0"
    folder.mkdir()
    for name in ("call", "rank-0", "facts.x", "rank-1"):
        (folder / f"{name}.json").write_bytes(junk)
    assert read_statements(str(tmp_path), "7.0") == ([], {})
    assert headlines(together(tmp_path, [rank(0, 2), rank(1, 2)])) == {"2 ranks alike"}


def test_a_statement_of_another_job_or_with_other_facts_is_left_out(tmp_path: Path) -> None:
    statement, document = rank(0, 2)
    Folder(str(tmp_path), "7.0").keep(statement, document)
    Folder(str(tmp_path), "8.0").keep(statement, {**document, "facts": {}})
    assert read_statements(str(tmp_path), "7.0") == ([statement], {statement["root"]: document})
    assert read_statements(str(tmp_path), "8.0") == ([], {})


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WriteError) as raised:
        Folder(str(tmp_path / "file"), "7.0")
    assert str(raised.value) == (
        f"cannot create {tmp_path}/file/7.0: Not a directory\n"
        "hint: name a folder that all nodes share and can write to: ENVLOCK_FLEET_DIR"
    )
    with pytest.raises(UsageError) as nameless:
        Folder(str(tmp_path), "")
    assert str(nameless.value) == (
        "the job has no name, so its ranks could meet those of another job\n"
        "hint: set ENVLOCK_FLEET_JOB to a word that no other job has"
    )


@pytest.mark.parametrize(
    ("found", "environ", "named", "expected"),
    [
        (["7.0"], {}, None, "7.0"),
        (["6.0", "7.0"], {"SLURM_JOB_ID": "7"}, None, "7.0"),
        (["6.0", "7.0"], {"SLURM_JOB_ID": "7"}, "6", "6.0"),
        (["6.0", "7.0"], {"ENVLOCK_FLEET_JOB": "6.0"}, None, "6.0"),
    ],
)
def test_the_job_that_is_meant(found: list[str], environ: dict[str, str], named: str | None, expected: str) -> None:
    assert choose_job(found, "reports", environ, named) == expected


def test_yesterdays_reports_are_not_those_of_todays_job() -> None:
    with pytest.raises(FactError) as raised:
        choose_job(["6.0"], "reports", {"SLURM_JOB_ID": "7"})
    assert str(raised.value) == (
        "no rank of job 7 has reported to reports (it has reports of 6.0)\n"
        "hint: let each rank run `envlock fleet report --to FOLDER`"
    )
    with pytest.raises(UsageError) as several:
        choose_job(["7.0", "7.1"], "reports", {"SLURM_JOB_ID": "7"})
    assert str(several.value) == "several jobs have reported to reports: 7.0, 7.1\nhint: name one in ENVLOCK_FLEET_JOB"
    with pytest.raises(FactError, match="no job has reported to reports"):
        choose_job([], "reports", {})


def test_a_folder_that_is_not_there_has_no_jobs(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        list_jobs(str(tmp_path / "none"))
    assert str(raised.value) == (
        f"cannot read {tmp_path}/none: No such file or directory\n"
        "hint: name the folder that `envlock fleet report --to` wrote to"
    )


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This process is the first of two ranks, and the other never comes."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"RANK": "0", "SIZE": "2", "JOB": "j"}.items():
        monkeypatch.setenv(f"ENVLOCK_FLEET_{name}", value)


@pytest.fixture
def elsewhere(alone: None, tmp_path: Path) -> None:
    """Besides, the lockfile is that of another environment."""
    (tmp_path / "envlock.lock").write_bytes(encode(document()))


UNLOCKED = "does not match under policy strict: no rank is as locked; 1 of 2 ranks did not report"


def test_rank_0_prints_the_report_and_raises(elsewhere: None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EnvironmentMismatch) as raised:
        fleet_assertion.assert_fleet(timeout=0.2)
    assert (raised.value.exit_code, raised.value.report.exit_code) == (1, 1)
    assert raised.value.message == f"{UNLOCKED} (rank 0 has printed the report)"
    assert capsys.readouterr().err.splitlines()[0] == f"envlock: {UNLOCKED}"


@pytest.mark.longer
def test_another_rank_raises_too(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVLOCK_FLEET_RANK", "1")
    with pytest.raises(EnvironmentMismatch) as raised:
        fleet_assertion.assert_fleet(timeout=0.2)
    assert raised.value.message == "cannot decide: no report from rank 0 within 0.2 s (rank 1 has printed the report)"
    assert [each.rule for each in raised.value.report.findings] == ["rank-missing"]


LOOK_FOR_IT = (
    "      fix: Look for rank 0 in the launcher's log; check that all nodes share the folder, and start the job again."
)
UNCAUGHT = "import envlock\nenvlock.assert_fleet(timeout=0.2)"
CAUGHT = f"""
try:
    exec({UNCAUGHT!r})
except RuntimeError:
    pass
raise ValueError("the program's own")
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("rank", "program", "code", "said"),
    [
        (0, UNCAUGHT, 4, ["envlock: cannot decide: 1 of 2 ranks did not report", "1 rank on 1 node, job j"]),
        (1, UNCAUGHT, 4, ["envlock: cannot decide: no report from rank 0 within 0.2 s", LOOK_FOR_IT]),
        (1, CAUGHT, 1, ["envlock: cannot decide: no report from rank 0 within 0.2 s", "ValueError: the program's own"]),
    ],
)
def test_what_is_said_once_is_no_traceback(tmp_path: Path, rank: int, program: str, code: int, said: list[str]) -> None:
    """Of an error that nobody catches: the report, and the exit code. Other errors end as ever."""
    who = {"ENVLOCK_FLEET_RANK": str(rank), "ENVLOCK_FLEET_SIZE": "2", "ENVLOCK_FLEET_JOB": "j"}
    done = run([sys.executable, "-X", "dev", "-c", program], tmp_path, who)
    lines = done.errors.splitlines()
    assert (done.code, lines[0], lines[-1]) == (code, *said)
    assert done.errors.count("Traceback") == (program == CAUGHT)


SPAWNS = """
import envlock
print(envlock.assert_fleet(timeout=100).headline, flush=True)
import multiprocessing
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=print, args=("worked",))
    child.start()
    child.join()
"""


@pytest.mark.processes
def test_what_multiprocessing_spawns_is_no_other_rank(tmp_path: Path) -> None:
    """It repeats line 1 of the script; only rank 0 of two has a child here, which would wait for the other's."""
    (tmp_path / "train.py").write_text(SPAWNS, encoding="utf-8")
    said: dict[int, str] = {}

    def start(rank: int) -> None:
        who = {"ENVLOCK_FLEET_RANK": str(rank), "ENVLOCK_FLEET_SIZE": "2", "ENVLOCK_FLEET_JOB": "j"}
        words = ["train.py"] if rank == 0 else ["-c", SPAWNS.partition("import multi")[0]]
        said[rank] = run([sys.executable, *words], tmp_path, who).output

    threads = [threading.Thread(target=start, args=(rank,)) for rank in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert said == {0: "2 ranks alike\n1 rank alike\nworked\n", 1: "2 ranks alike\n"}


@pytest.mark.parametrize("size", [2, 8, 100, 1000, 100_000])
def test_a_rank_that_waits_asks_a_file_server_at_most_twice_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """For a minute of a clock that only waiting moves; and it lists no statements, of which there are many."""
    asked: list[str] = []
    now = [0.0]

    class Counted(Folder):
        def peek(self, name: str) -> Any:
            asked.append(name)
            return super().peek(name)

        def names(self, folder: str = "") -> Any:
            asked.append(folder)
            return super().names(folder)

    board = Counted(str(tmp_path), "7.0")
    board.post("call", {"nonce": "a", "root": "", "node": "n1"})
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds))
    monkeypatch.setattr(meeting, "time", clock)
    decision, _ = meet(board, 5, size, rank(5, size), decide(size), 60.0)
    assert decision["report"]["headline"] == "cannot decide: rank 0 (n1) gave no verdict within 60 s"
    assert now[0] == pytest.approx(60.1)
    assert len(asked) / now[0] <= 2.0
    assert set(asked) == {"", "call", "a.decision"}


BOARD = """
import os, sys, threading
import envlock
from envlock.fleet import meeting
meeting.MARGIN = 0.1
try:
    print(envlock.assert_fleet(timeout=100))
except envlock.EnvlockError as error:
    print(type(error).__name__, error.exit_code, error)
    raise
"""


def started(folder: Path, *ranks: dict[str, str]) -> list[Any]:
    """Return how the processes of a job end, each with variables of its own."""
    ends: dict[int, Any] = {}

    def start(rank: int, more: dict[str, str]) -> None:
        who = {"RANK": str(rank), "SIZE": str(len(ranks)), "JOB": "j", "NODE": f"n{rank}"}
        own = {f"ENVLOCK_FLEET_{name}": value for name, value in who.items()}
        ends[rank] = run([sys.executable, "-c", BOARD], folder, {**own, **more})

    threads = [threading.Thread(target=start, args=each) for each in enumerate(ranks)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return [ends[rank] for rank in range(len(ranks))]


@pytest.mark.processes
def test_what_rank_0_cannot_do_reaches_all_at_once_as_itself(tmp_path: Path) -> None:
    """A misspelt policy: said once, raised on each rank, and nobody waits."""
    said = "UsageError 2 unknown policy `nonesuch`\nhint: choose from: strict, bits, same-arch, functional\n"
    ends = started(tmp_path, {"ENVLOCK_POLICY": "nonesuch"}, {}, {})
    assert [(each.code, each.output) for each in ends] == [(2, said)] * 3
    assert [each.errors for each in ends] == [
        "envlock: cannot decide: unknown policy `nonesuch`\nhint: choose from: strict, bits, same-arch, functional\n",
        *[""] * 2,
    ]


@pytest.mark.processes
@pytest.mark.parametrize("mode", ["warn", "off"])
def test_one_rank_that_would_go_on_whatever_is_found_keeps_all_from_starting(tmp_path: Path, mode: str) -> None:
    ends = started(tmp_path, {}, {"ENVLOCK_MODE": mode}, {})
    headline = "does not match: ranks do not belong together"
    assert {(each.code, each.output) for each in ends} == {
        (1, f"EnvironmentMismatch 1 {headline} (rank 0 has printed the report)\n")
    }
    assert ends[0].errors.splitlines()[:4] == [
        f"envlock: {headline}",
        f"  x n1 (rank 1): ENVLOCK_MODE={mode}, while other ranks enforce",
        "      why: A rank that goes on whatever is found would start without those that refuse.",
        "      fix: Set ENVLOCK_MODE for all ranks, or for none.",
    ]
    assert [each.errors for each in ends[1:]] == ["", ""]


@pytest.mark.parametrize("mode", ["warn", "off", "enforce"])
def test_the_mode_counts_for_what_multiprocessing_spawns_as_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENVLOCK_MODE", mode)
    (tmp_path / "envlock.lock").write_text("{")
    monkeypatch.setattr(fleet_assertion, "_is_spawned", lambda caller: True)
    if mode == "enforce":
        with pytest.raises(EnvironmentMismatch):
            fleet_assertion.assert_fleet()
        return
    report = fleet_assertion.assert_fleet()
    assert (report is None) == (mode == "off")


@pytest.mark.processes
@pytest.mark.parametrize("mode", ["warn", "off"])
def test_all_ranks_go_on_where_all_are_to(tmp_path: Path, mode: str) -> None:
    odd = {"ENVLOCK_MODE": mode, "TF_ENABLE_ONEDNN_OPTS": "0"}
    ends = started(tmp_path, {"ENVLOCK_MODE": mode}, {"ENVLOCK_MODE": mode}, odd)
    assert [each.code for each in ends] == [0, 0, 0], ends
    off = "envlock: warning: ENVLOCK_MODE=off, the environment is not verified\n"
    if mode == "off":
        assert [(each.output, each.errors) for each in ends] == [("None\n", off)] * 3
        return
    assert ends[0].errors.startswith("envlock: does not match: 1 of 3 ranks differ\n")
    assert ends[0].errors.endswith("envlock: warning: ENVLOCK_MODE=warn, so this does not stop the program\n")
    assert [each.errors for each in ends[1:]] == ["", ""]


def test_two_processes_of_one_rank_are_named(tmp_path: Path) -> None:
    """Both answer; the second of them cannot tell at first whether the other one has died."""
    board = Folder(str(tmp_path), "7.0")
    statement, document = rank(1, 3)
    heard: list[Any] = []

    def come(number: int, node: str) -> None:
        mine = ({**statement, "rank": number, "node": node}, document)
        heard.append(meet(board, number, 3, mine, decide(3), 1.0))

    threads = [threading.Thread(target=come, args=each) for each in ((0, "n0"), (1, "n1"), (1, "n2"))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert {decision["report"]["headline"] for decision, _ in heard} == {"does not match: rank 1 exists twice"}
    (said,) = [decision["report"]["findings"][0] for decision, is_mine in heard if is_mine]
    assert (said["rule"], said["severity"]) == ("rank-twice", "error")
    assert said["message"] in ("rank 1 exists twice: on n1 and on n2", "rank 1 exists twice: on n2 and on n1")


@pytest.mark.parametrize(
    ("error", "said"), [(KeyboardInterrupt(), "was interrupted"), (KeyError("x"), "failed: KeyError: 'x'")]
)
def test_a_rank_that_is_ended_while_it_waits_is_heard_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, said: str
) -> None:
    def fails(statements: Any, documents: Any) -> Any:
        raise error

    heard: list[Any] = []
    other = threading.Thread(
        target=lambda: heard.append(meet(Folder(str(tmp_path), "7.0"), 1, 2, rank(1, 2), fails, 20.0))
    )
    other.start()
    with pytest.raises(type(error)):
        meet(Folder(str(tmp_path), "7.0"), 0, 2, rank(0, 2), fails, 20.0)
    other.join()
    ((decision, is_mine),) = heard
    assert (decision["report"]["headline"], is_mine) == (f"cannot decide: rank 0 (n1) {said}", False)
    assert capsys.readouterr().err == f"envlock: cannot decide: rank 0 (n1) {said}\n"


def test_a_file_system_without_hard_links_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(draft: str, target: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(WriteError) as raised:
        Folder(str(tmp_path), "7.0").settle("x", 1)
    assert str(raised.value) == (
        f"cannot link {tmp_path}/7.0/x.json: Operation not permitted\n"
        "hint: name a folder with hard links: ENVLOCK_FLEET_DIR"
    )
    assert os.listdir(tmp_path / "7.0") == []


def test_a_link_that_was_asked_for_twice_is_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a client of NFS, where the answer to the first was lost."""
    link = os.link

    def twice(draft: str, target: str) -> None:
        link(draft, target)
        link(draft, target)

    board = Folder(str(tmp_path), "7.0")
    monkeypatch.setattr(os, "link", twice)
    assert board.settle("x", 1)
    assert not board.settle("x", 2)
    assert board.peek("x") == 1


def test_the_switch_of_an_emergency(
    elsewhere: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENVLOCK_MODE", "warn")
    report = fleet_assertion.assert_fleet(timeout=0.2)
    assert report is not None
    assert not report.match
    said = capsys.readouterr().err.splitlines()
    assert (said[0], said[-1]) == (
        f"envlock: {UNLOCKED}",
        "envlock: warning: ENVLOCK_MODE=warn, so this does not stop the program",
    )
    monkeypatch.setenv("ENVLOCK_MODE", "off")
    assert fleet_assertion.assert_fleet(timeout=0.2) is None


def test_one_rank_needs_no_place_to_meet(alone: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ENVLOCK_FLEET_SIZE", "1")
    report = fleet_assertion.assert_fleet()
    assert report is not None
    assert report.headline == "1 rank alike"
    assert os.listdir(tmp_path) == []


def test_an_evaluator_is_compared_with_the_lockfile_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of a cluster of two workers, which never come here."""
    monkeypatch.chdir(tmp_path)
    task = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "evaluator", "index": 0}}'
    monkeypatch.setenv("TF_CONFIG", task)
    assert fleet_assertion.assert_fleet() is not None
    state(str(tmp_path / "reports"))
    assert os.listdir(tmp_path) == []
    (tmp_path / "envlock.lock").write_text("{")
    with pytest.raises(EnvironmentMismatch):
        fleet_assertion.assert_fleet()
    assert "(rank 0): cannot report: lockfile " in capsys.readouterr().err


def test_a_program_can_number_its_processes_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As tasks of Dask, actors of Ray or tasks of Spark do; the launcher around it says otherwise."""
    monkeypatch.setenv("ENVLOCK_FLEET_SIZE", "64")
    heard: dict[int, Any] = {}

    def come(rank: int) -> None:
        heard[rank] = fleet_assertion.assert_fleet(rank=rank, size=2, job="mine", node=f"w{rank}", folder=tmp_path)

    threads = [threading.Thread(target=come, args=(rank,)) for rank in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [heard[rank].notes for rank in range(2)] == [["2 ranks on 2 nodes, job mine"]] * 2
    with pytest.raises(UsageError) as raised:
        fleet_assertion.assert_fleet(rank=2, size=2, job="mine")
    assert str(raised.value) == "rank 2 is not one of 2 ranks\nhint: check ENVLOCK_FLEET_RANK and ENVLOCK_FLEET_SIZE"


def test_a_lockfile_that_cannot_be_read_is_a_finding_on_all_ranks(
    alone: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("ENVLOCK_FLEET_SIZE", "1")
    (tmp_path / "envlock.lock").write_text("{")
    with pytest.raises(EnvironmentMismatch):
        fleet_assertion.assert_fleet()
    assert "(rank 0): cannot report: lockfile " in capsys.readouterr().err
    with pytest.raises(EnvironmentMismatch):
        fleet_assertion.assert_fleet("none.lock")
    assert "(rank 0): cannot report: lockfile not found: none.lock" in capsys.readouterr().err
