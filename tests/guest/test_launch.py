"""A program whose answer is waited for ends with whoever waits."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.guest import launch

pytestmark = pytest.mark.processes

CHILD = """
from __future__ import annotations
import os, sys, time
print(len(sys.argv), flush=True)
with open({file!r}, "w") as file:
    file.write(str(os.getpid()))
time.sleep(600)
"""
PARENT = """
from envlock.guest import launch
launch.ask_python(launch.build_text_arguments({child!r}, {{}}), None, timeout=600)
"""

COMMAND = """
import sys
from pathlib import Path
import typer
from envlock import cli
from envlock.guest import launch
app = typer.Typer()
@app.command()
def show():
    launch.ask(["-c", {child!r}], Path(sys.executable), timeout=600)
cli.Program.get_command = lambda *_: typer.main.get_command(app)
sys.argv[1:] = ["show"]
cli.main()
"""


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_takes_the_child_along(sign: int, tmp_path: Path) -> None:
    """A canary lived on after its command, in a session of its own, and grew to 13.5 GB."""
    file = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", PARENT.format(child=CHILD.format(file=str(file)))])
    child = int(_waited_for(lambda: file.read_text(encoding="ascii") if file.exists() else ""))
    parent.send_signal(sign)
    assert parent.wait(60) == -sign
    assert _waited_for(lambda: "" if _is_running(child) else "gone") == "gone"


def test_a_command_that_is_terminated_ends_a_program_that_is_not_its_own(tmp_path: Path) -> None:
    """git, pip and launchers have no first lines of envlock's, which tell the kernel to end them."""
    file = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", COMMAND.format(child=CHILD.format(file=str(file)))])
    child = int(_waited_for(lambda: file.read_text(encoding="ascii") if file.exists() else ""))
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(60) == 128 + signal.SIGTERM
    assert _waited_for(lambda: "" if _is_running(child) else "gone") == "gone"


def _waited_for(look: Callable[[], str]) -> str:
    until = time.monotonic() + 60
    while not (found := look()) and time.monotonic() < until:
        time.sleep(0.02)
    return str(found)


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # nobody has waited for it yet


@pytest.mark.parametrize("day", ["0131", "1125", "1231"])
def test_a_fatal_line_of_the_log_says_most_in_every_month(day: str) -> None:
    text = f"I{day} 10:00:00 1 a.cc:1] begun\nF{day} 10:00:01 1 b.cc:2] not enough memory\nFree 3 of 8\n"
    assert launch.pick_error_line(text) == "not enough memory"


def test_of_several_errors_the_last_says_most() -> None:
    text = "KeyError: 'first'\nDuring handling, another came:\nValueError: second\nbye\n"
    assert launch.pick_error_line(text) == "ValueError: second"


def test_the_program_sees_its_own_arguments() -> None:
    program = """from __future__ import annotations
import json, sys
asked = json.loads(sys.argv[1])
print(asked.pop("mark") + json.dumps(asked), len(sys.argv), __name__)
"""
    ended = launch.ask_python(launch.build_text_arguments(program, {"a": 1}), None, timeout=60)
    assert (ended.code, ended.output) == (0, b'envlock-answer:{"a": 1} 2 __main__\n')
