"""The process in which a program runs, and the ends of its runs. There is no TensorFlow in it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from envlock.evidence.session import Host, Session, read_log, run_once
from envlock.guest.target import Target, parse_target
from envlock.guest.training.store import LOG
from envlock.runtime.errors import FactError, UsageError

pytestmark = pytest.mark.processes
PYTHON = Path(sys.executable)
SAYS_ITS_NUMBER = "import os, pathlib\npathlib.Path(__file__).with_name('pid').write_text(str(os.getpid()))"


@pytest.fixture
def session() -> Iterator[Session]:
    with closing(Session()) as found:
        yield found


def ask(folder: Path, text: str, *, function: str | None = "step", runs: int = 1, **more: Any) -> dict[str, Any]:
    """Return what asks for runs of a module whose text is given, and their values; its folder is made."""
    folder.mkdir(exist_ok=True)
    script = folder / "train.py"
    script.write_text(text, encoding="utf-8")
    asked = {"observer": "values", "folder": str(folder), "runs": list(range(runs)), "limit": 1000, "seed": None}
    return {**asked, **Target(script, function).to_json(), **more}


def find_ends(said: dict[str, Any]) -> dict[int, Any]:
    """Return the message of each run, None where it finished."""
    return {number: end.get("message") for number, end in said["ends"].items()}


def test_a_process_is_asked_again_unless_it_must_be_another(session: Session, tmp_path: Path) -> None:
    def run(folder: str, value: str, **more: Any) -> str:
        asked = ask(tmp_path / folder, f"{SAYS_ITS_NUMBER}\ndef step(): return 1", **more)
        assert find_ends(session.make_runs(asked, Host(PYTHON, {**os.environ, "VARIABLE": value}))) == {0: None}
        return (tmp_path / folder / "pid").read_text()

    first, again = run("0", "a"), run("1", "a")
    others = [run("2", "a", serial=True), run("3", "a"), run("4", "b"), run("5", "b", mode="eager")]
    assert first == again
    assert len({first, *others}) == 5


def test_each_run_is_told_as_it_ends(session: Session, tmp_path: Path) -> None:
    told: list[int] = []
    asked = ask(tmp_path, "def step(): return 1", runs=3)
    assert find_ends(session.make_runs(asked, Host(PYTHON), advance=told.append)) == {0: None, 1: None, 2: None}
    assert told == [1, 1, 1]


def test_what_a_function_raises_is_the_end_of_its_run(session: Session, tmp_path: Path) -> None:
    text = "made = []\ndef step():\n    made.append(0)\n    if len(made) == 2: raise ValueError('odd')\n    return 1"
    ends = session.make_runs(ask(tmp_path, text, runs=3), Host(PYTHON))["ends"]
    assert {number: end["end"] for number, end in ends.items()} == {0: "finished", 1: "failed"}
    assert ends[1]["message"] == "ValueError: odd (train.py, line 4)"
    assert ends[1]["traceback"].splitlines()[-1] == "ValueError: odd"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys\nsys.exit('no data')", "the script exited with code no data"),
        ("import sys\nsys.exit(4)", "the script exited with code 4"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt (train.py, line 1)"),
    ],
)
def test_a_script_that_exits_has_failed(session: Session, tmp_path: Path, text: str, message: str) -> None:
    assert find_ends(session.make_runs(ask(tmp_path, text, function=None), Host(PYTHON))) == {0: message}


@pytest.mark.parametrize(
    ("end", "ending"),
    [
        ("os._exit(0)", "exited with code 0"),
        ("os._exit(3)", "exited with code 3"),
        ("os.kill(os.getpid(), 11)", "was ended by SIGSEGV"),
    ],
)
def test_a_process_that_ends_leaves_its_last_words(session: Session, tmp_path: Path, end: str, ending: str) -> None:
    text = f"import os, sys\ndef step():\n    print('Error: no room', flush=True)\n    {end}"
    said = session.make_runs(ask(tmp_path, text, runs=2), Host(PYTHON))
    assert find_ends(said) == {0: f"the process {ending}; its last output: Error: no room"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "train.py has no function step"),
        ("def step(", "train.py cannot be imported: SyntaxError: '(' was never closed (train.py, line 1)"),
        ("import nowhere", "train.py cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
        ("def step(x): pass", "step needs the arguments x, but envlock passes only `seed`"),
        ("def step(seed): pass", "step needs a seed: add `--seed`"),
    ],
)
def test_what_cannot_be_run_is_told_once(session: Session, tmp_path: Path, text: str, message: str) -> None:
    said = session.make_runs(ask(tmp_path, text, runs=2), Host(PYTHON))
    assert (said["ends"], said["unusable"].partition(" (train.py, line 1)")[0]) == ({}, message.partition(" (t")[0])


def test_what_a_program_prints_goes_to_a_file(session: Session, tmp_path: Path) -> None:
    text = "import sys\ndef step():\n    print('{\"run\": 0}')\n    sys.stderr.write('two\\n')\n    return 1"
    assert find_ends(session.make_runs(ask(tmp_path, text), Host(PYTHON), output=tmp_path / "said")) == {0: None}
    assert sorted((tmp_path / "said").read_text().splitlines()) == ["two", '{"run": 0}']


def test_a_program_finds_no_input_and_what_it_forks_holds_nobody_up(session: Session, tmp_path: Path) -> None:
    text = "import os, sys, time\nassert sys.stdin.read() == ''\nif os.fork() == 0: time.sleep(60)\nos._exit(3)"
    (message,) = find_ends(session.make_runs(ask(tmp_path, text), Host(PYTHON))).values()
    assert message.startswith("the process exited with code 3")


@pytest.mark.parametrize("end", ["return 2", "sys.exit(5)", "raise ValueError"])
def test_a_fork_that_comes_back_ends_no_run(session: Session, tmp_path: Path, end: str) -> None:
    """It would go on as a second process with the same log and the same requests."""
    text = f"import os, sys\ndef step():\n    child = os.fork()\n    if child == 0:\n        {end}\n"
    text += "    return {'code': os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}"
    said = session.make_runs(ask(tmp_path, text, runs=2), Host(PYTHON))
    assert find_ends(said) == {0: None, 1: None}
    lines = [json.loads(line) for line in (tmp_path / LOG).read_text().splitlines()]
    assert [line["run"] for line in lines if "end" in line] == [0, 1]


def test_a_process_that_was_ended_in_between_is_told_by_its_signal(session: Session, tmp_path: Path) -> None:
    asked = ask(tmp_path, f"{SAYS_ITS_NUMBER}\ndef step(): return 1")
    assert find_ends(session.make_runs(asked, Host(PYTHON))) == {0: None}
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    (message,) = find_ends(session.make_runs(asked, Host(PYTHON))).values()
    assert message.startswith("the process was ended by SIGKILL")
    assert find_ends(session.make_runs(asked, Host(PYTHON))) == {0: None}


def test_what_takes_too_long_is_ended(session: Session, tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match=r"^0\.6$"):
        session.make_runs(ask(tmp_path, "import time\ntime.sleep(60)"), Host(PYTHON), 0.6)
    assert find_ends(session.make_runs(ask(tmp_path, "def step(): return 1"), Host(PYTHON))) == {0: None}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("def step(): raise ValueError('odd')", FactError, ":step failed: ValueError: odd (train.py, line 1)"),
        ("import time\ndef step(): time.sleep(60)", FactError, ":step failed: it did not answer within 1 s"),
        ("import os\ndef step(): os._exit(0)", FactError, ":step failed: the process exited with code 0; "),
        ("", UsageError, "train.py has no function step"),
    ],
)
def test_one_run_that_does_not_finish_is_an_error(
    tmp_path: Path, text: str, error: type[Exception], message: str
) -> None:
    asked = ask(tmp_path, text)
    with pytest.raises(error) as caught:
        # A loaded machine needs more than a second to start the others.
        run_once(parse_target(f"{asked['script']}:step"), asked, Host(PYTHON), 1 if "sleep" in text else 60)
    assert message in str(caught.value)


def test_a_quantity_may_have_the_name_of_an_end(session: Session, tmp_path: Path) -> None:
    said = session.make_runs(ask(tmp_path, "def step():\n    yield {'end': 1}\n    raise ValueError"), Host(PYTHON))
    assert find_ends(said) == {0: "ValueError (train.py, line 3)"}


def test_a_log_is_read_from_a_byte_on_and_without_a_line_that_is_not_whole(tmp_path: Path) -> None:
    log = tmp_path / LOG
    assert read_log(log) == {"ends": {}}
    log.write_text('{"run": 0, "end": "finished"}\n')
    start = log.stat().st_size
    log.write_text(log.read_text() + '{"folder": "a"}\n{"run": 1, "end": "fini')
    assert (list(read_log(log)["ends"]), read_log(log, start)) == ([0], {"ends": {}, "folder": "a"})
