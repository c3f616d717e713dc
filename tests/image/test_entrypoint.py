"""What the entrypoint of an image prints where its folder holds no lockfile."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import envlock
from envlock.guest.image import entrypoint
from envlock.runtime.collectors import COLLECTORS
from tests.locks import document, encode

pytestmark = pytest.mark.processes


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Return what the entrypoint says in a folder that has nothing but it and the runtime half."""
    shutil.copy(entrypoint.__file__, folder / "entrypoint.py")
    (folder / "envlock").symlink_to(Path(envlock.__file__).parent)
    command = [sys.executable, "-B", str(folder / "entrypoint.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_facts_need_no_lockfile(tmp_path: Path) -> None:
    done = run(tmp_path, "--facts")
    assert (done.returncode, done.stderr) == (0, "")
    facts, unavailable, unloadable = json.loads(done.stdout)
    assert unloadable == {}
    assert set(facts) <= set(COLLECTORS)
    assert facts["python"]["implementation"] == sys.implementation.name
    assert isinstance(unavailable, dict)


def test_files_are_judged_by_a_lockfile(tmp_path: Path) -> None:
    done = run(tmp_path, "--deep")
    assert (done.returncode, done.stdout) == (3, "")
    lock = tmp_path / "envlock.lock"
    assert done.stderr.startswith(f"envlock: lockfile not found: {lock} (")


LOADED = {"imports": ["loading"], "standard": {"json": "0 decoder", "xml": "0 dom"}, "unexplained": []}
LOADING = {"facts": {"loaded": LOADED}, "unavailable": {}}
"""Of what `loading` imports, the lockfile has one module: not as it is here."""


def test_what_a_program_loads_is_judged_as_its_line_1_judges_it(tmp_path: Path) -> None:
    (tmp_path / "envlock.lock").write_bytes(encode(document(**LOADING)))
    (tmp_path / "loading.py").write_text("import json\nprint('no end', end='')\n", encoding="utf-8")
    done = run(tmp_path, "--loaded")
    assert (done.returncode, done.stderr) == (0, "")
    (found,) = json.loads(done.stdout.splitlines()[-1])
    assert found["where"]["fact"] == "loaded.standard.json"


def test_what_a_program_cannot_load_is_told(tmp_path: Path) -> None:
    (tmp_path / "envlock.lock").write_bytes(encode(document(**LOADING)))
    (tmp_path / "loading.py").write_text("raise OSError('no such library')\n", encoding="utf-8")
    done = run(tmp_path, "--loaded")
    assert (done.returncode, done.stdout) == (4, "")
    assert "what a program imports fails: OSError: no such library" in done.stderr


FIRST = """
import ctypes, os, signal, sys
# A shell that starts the tests in the background has both ignored.
for number in (signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
sys.path.insert(0, sys.argv[1])
from envlock.guest.image import entrypoint
# As the first process of a container does, it gets the orphans.
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
code = entrypoint.split_process()
if code is None:
    code = entrypoint.run_command(sys.argv[2:])
sys.exit(code)
"""


def start_first(*argv: str) -> subprocess.Popen[str]:
    """Start a program below a process that does what the first one of a container does."""
    command = [sys.executable, "-c", FIRST, str(Path(envlock.__file__).parents[1]), *argv]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


CHECKPOINT = """
import os, signal, sys, time
def save(number, frame):
    os.write(1, b"saved %d\\n" % number)  # while the other print has not returned, Python allows no second one
    sys.exit(7)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(60)
"""


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_a_program_saves_its_checkpoint_when_it_is_told_to_end() -> None:
    with start_first(sys.executable, "-c", CHECKPOINT) as process:
        assert read_line(process) == "ready\n"
        process.terminate()
        assert (read_line(process), process.wait(timeout=10)) == ("saved 15\n", 7)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
def test_a_program_without_a_handler_ends_by_the_signal(number: signal.Signals) -> None:
    with start_first("sh", "-c", "echo ready; exec sleep 60") as process:
        assert read_line(process) == "ready\n"
        process.send_signal(number)
        assert process.wait(timeout=10) == 128 + number


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_exit_code_is_the_programs(code: int) -> None:
    with start_first("sh", "-c", f"exit {code}") as process:
        assert process.wait(timeout=10) == code


def test_a_command_that_does_not_exist_is_127() -> None:
    with start_first("no-such-command") as process:
        assert process.wait(timeout=10) == 127


ORPHANS = """
import os, subprocess, sys, time
parent = os.getppid()
for _ in range(20):
    subprocess.run(["sh", "-c", "sleep 0.1 &"], check=True)
end = time.monotonic() + 20
while time.monotonic() < end:
    time.sleep(0.2)
    children = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stream:
                fields = stream.read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == str(parent):
            children.append(name)
    if len(children) == 1:
        break
print(len(children))
"""


def test_orphans_are_waited_for() -> None:
    with start_first(sys.executable, "-c", ORPHANS) as process:
        assert (read_line(process), process.wait(timeout=30)) == ("1\n", 0)


def test_a_broken_pipe_ends_a_program() -> None:
    with start_first("sh", "-c", "yes | head -n 1; trap") as process:
        assert (read_line(process), process.wait(timeout=20)) == ("y\n", 0)
