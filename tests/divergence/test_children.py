"""The process that stays for the next runs. Here it misses TensorFlow, after it has loaded the program."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from envlock.divergence.children import Children

pytestmark = pytest.mark.processes
PYTHON = Path(sys.executable)
SAYS_ITS_NUMBER = "import os, pathlib\npathlib.Path(__file__).with_name('pid').write_text(str(os.getpid()))"


@pytest.fixture
def children() -> Iterator[Children]:
    with closing(Children()) as found:
        yield found


def asked(folder: Path, text: str, **more: Any) -> dict[str, Any]:
    """Return what asks for a run of a module whose text is given; its folder is made."""
    folder.mkdir(exist_ok=True)
    script = folder / "train.py"
    script.write_text(text + "\ndef step(): pass\n")
    plain: dict[str, Any] = dict.fromkeys(("seed", "steps", "generators", "module", "lines"))
    plain |= {"held": [], "now": [0, 0], "since": 0, "keeps": False}
    plain |= {"folder": str(folder), "script": str(script), "function": "step", "args": [], "runs": [0]}
    return {**plain, "mode": "graph", "serial": False, "conditions": {}, **more}


def run(children: Children, request: dict[str, Any], *, timeout: float = 60, **environ: str) -> int | None:
    with Path(request["folder"], "output").open("ab") as output:
        return children.run(request, PYTHON, {**os.environ, **environ}, output, timeout)


def test_a_process_is_asked_again_unless_it_must_be_another(children: Children, tmp_path: Path) -> None:
    plain: dict[str, Any] = {}
    pids = []
    for number, (more, value) in enumerate(
        ((plain, "a"), (plain, "a"), ({"serial": True}, "a"), (plain, "a"), (plain, "b"), ({"mode": "in-graph"}, "b"))
    ):
        request = asked(tmp_path / str(number), SAYS_ITS_NUMBER, **more)
        assert run(children, request, VARIABLE=value) is None
        pids.append(Path(request["folder"], "pid").read_text())
    assert pids[0] == pids[1]
    assert len(set(pids)) == 5


def test_a_program_finds_no_input_and_what_it_forks_holds_nobody_up(children: Children, tmp_path: Path) -> None:
    text = "import os, sys, time\nassert sys.stdin.read() == ''\nif os.fork() == 0: time.sleep(60)\nos._exit(3)"
    assert run(children, asked(tmp_path, text)) == 3
    assert children.output == tmp_path / "output"


def test_a_process_that_was_ended_in_between_is_told_by_its_signal(children: Children, tmp_path: Path) -> None:
    request = asked(tmp_path, SAYS_ITS_NUMBER)
    assert run(children, request) is None
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert run(children, request) == -signal.SIGKILL
    assert run(children, request) is None


def test_what_takes_too_long_is_ended(children: Children, tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match=r"^0\.6$"):
        run(children, asked(tmp_path, "import time\ntime.sleep(60)"), timeout=0.6)
    assert run(children, asked(tmp_path, "")) is None
