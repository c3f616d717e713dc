"""Ranks that come after the verdict, and ranks that an elastic launcher starts again."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from envlock.fleet.fleet_assertion import _decide
from envlock.fleet.folder import Folder
from envlock.fleet.meeting import get_nonce
from envlock.fleet.ranks import count_restarts, find_rank
from envlock.runtime.errors import UsageError
from tests.fleet.bed import ROOT, run
from tests.fleet.ranks import rank

ODD: dict[str, Any] = {"TF_ENABLE_ONEDNN_OPTS": "0"}
ALONE = "import envlock; envlock.assert_fleet(folder='fleet', timeout=8)"


BEGIN = "import os, pathlib, time; pathlib.Path('began-' + os.environ['ENVLOCK_FLEET_RANK']).touch(); time.sleep(60)"
RUNNING = f"{ALONE}; {BEGIN}"


def end(process: subprocess.Popen[bytes]) -> None:
    """End a rank and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def running_job(folder: Path, *words: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run a job of two ranks that trains until the end of the context."""
    with ExitStack() as stack:
        ranks = []
        for number in range(2):
            own = {"RANK": str(number), "SIZE": "2", "JOB": "j", "NODE": f"n{number}"}
            variables = {f"ENVLOCK_FLEET_{name}": value for name, value in own.items()}
            process = subprocess.Popen(
                words or [sys.executable, "-c", RUNNING],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
                stderr=stack.enter_context((folder / f"errors-{number}").open("wb")),
                start_new_session=True,
            )
            stack.callback(end, process)
            ranks.append(process)
        deadline = time.monotonic() + 30
        while len(list(folder.glob("began-*"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        yield ranks


@pytest.mark.processes
def test_a_program_that_a_rank_becomes_goes_on_holding_the_verdict(tmp_path: Path) -> None:
    """`fleet run --launcher files -- CMD`: and CMD, which calls once more, is no second process of a rank."""
    command = f"{sys.executable} -c {shlex.quote(RUNNING)}; true"
    words = [sys.executable, "-m", "envlock", "fleet", "run", "--launcher", "files", "--to", "fleet", "--"]
    with running_job(tmp_path, *words, "sh", "-c", command):
        nonce = get_nonce(Folder(str(tmp_path / "fleet"), "j").peek("call"))
        assert Folder(str(tmp_path / "fleet"), "j").is_held(nonce)
    assert [(tmp_path / f"errors-{number}").read_text() for number in range(2)] == ["", ""]


@pytest.mark.processes
def test_a_second_process_of_a_rank_says_at_once_that_the_job_was_decided(tmp_path: Path) -> None:
    own = {"RANK": "1", "SIZE": "2", "JOB": "j", "NODE": "n9"}
    with running_job(tmp_path):
        second = ALONE.replace("timeout=8", "timeout=1")
        done = run(
            [sys.executable, "-c", second], tmp_path, {f"ENVLOCK_FLEET_{name}": value for name, value in own.items()}
        )
    said, *others = done.errors.splitlines()
    assert (done.code, said) == (
        4,
        "envlock: this job was decided before this process of rank 1 came (2 ranks alike); "
        "waiting 1 s for rank 0 to call again",
    )
    assert others[0] == (
        "envlock: cannot decide: this job was decided before this rank came (2 ranks alike), "
        "and rank 0 has not called again within 1 s"
    )


def test_a_report_is_printed_once_however_often_the_launcher_starts_the_job_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Folder(str(tmp_path), "j")
    ranks = [rank(each, 2, **(ODD if each else {})) for each in range(2)]
    documents = {statement["root"]: document for statement, document in ranks}
    printed = []
    # Started by hand, once more by hand, and then twice by the launcher.
    for restarts in ("0", "0", "1", "2"):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", restarts)
        _decide(board, 2, None, None, [statement for statement, _ in ranks], documents)
        printed.append(capsys.readouterr().err)
    again = (
        "envlock: does not match: 1 of 2 ranks differ, and no environment has a majority, as before this restart; "
        "no restart changes an environment: start the job without them\n"
    )
    assert printed[2:] == [again, again]
    assert printed[0] == printed[1]
    assert printed[0].count("\n") > 4


@pytest.mark.parametrize(("text", "number"), [("2", 2), ("", 0), ("x", 0), ("9" * 10, 0)])
def test_how_often_a_launcher_has_started_a_job_again(text: str, number: int) -> None:
    assert count_restarts({"TORCHELASTIC_RESTART_COUNT": text}) == number


def test_pytorch_s_own_variables_number_a_rank() -> None:
    variables = {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "n1", "MASTER_PORT": "29500"}
    found = find_rank(variables, "n2")
    assert (found.rank, found.size, found.job) == (3, 8, "n1.29500")
    with pytest.raises(UsageError):
        find_rank({"RANK": "3", "WORLD_SIZE": "8"}, "n2")
