"""The child process: its answer, and a wait that holds whatever the library does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envlock.runtime.gpu import probe
from envlock.runtime.host import Host
from tests.fakes.fake_nvml import profile, profile_names
from tests.fakes.replay import Machine, capture

pytestmark = pytest.mark.processes

CHECKOUT = Path(__file__).parents[3]
SLACK = 100
"""Seconds by which a busy machine may be late; what hangs here does so for longer."""
PATIENCE = 120
"""Seconds that a loaded machine may add to a bound."""

T4 = "t4__515__whole"
WORKING = [name for name in profile_names() if profile(name)["devices"]]

Boot = Callable[..., Machine]


@pytest.fixture
def boot(tmp_path: Path) -> Boot:
    return lambda name=T4, faults="", **more: Machine(tmp_path, name and profile(name), faults, **more)


def timed(host: Host, limit: float) -> tuple[dict[str, Any], float]:
    start = time.monotonic()
    answer = probe.ask(host, limit)
    return answer, time.monotonic() - start


def children() -> list[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    return [int(pid) for pid in listed]


def open_fds() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Any:
    fds, processes = open_fds(), children()
    yield
    assert open_fds() == fds
    assert children() == processes


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKING)
def test_the_unmodified_binding_gives_the_same_from_the_library_as_from_the_stand_in(name: str, boot: Boot) -> None:
    answer = probe.ask(boot(name).host(), PATIENCE)
    outside = {key: answer.pop(key) for key in ("status", "binding", "library_version")}
    assert outside["status"] == "ok"
    assert outside["binding"]["distribution"] == "nvidia-ml-py"
    assert outside["library_version"] == profile(name)["system"]["driver_version"]
    assert answer == capture(profile(name))


def test_devices_are_chosen_inside_and_no_identity_leaves(boot: Boot) -> None:
    machine = boot("h200__590__mig")
    wanted = profile("h200__590__mig")["devices"][0]["mig_devices"][4]["uuid"]
    answer = probe.ask(machine.host(CUDA_VISIBLE_DEVICES=wanted), PATIENCE)
    assert [device["mig"]["name"] for device in answer["devices"]] == ["NVIDIA H200 MIG 1g.18gb"]
    assert "0000-4000" not in json.dumps(answer)
    assert probe.ask(machine.host(CUDA_VISIBLE_DEVICES=""), PATIENCE)["devices"] == []


def test_a_newer_library_than_the_profile_needs_and_an_older_one(boot: Boot) -> None:
    answer = probe.ask(boot("h200__590__whole", generation="470").host(), PATIENCE)
    assert answer["devices"][0]["cores"] == {"unavailable": 13}
    assert answer["devices"][0]["name"] == "NVIDIA H200"


@pytest.mark.parametrize("faults", ["hang:nvmlInitWithFlags=600", "hang:nvmlDeviceGetName=600,noterm"])
def test_a_hang_costs_the_limit_and_the_grace(faults: str, boot: Boot) -> None:
    answer, seconds = timed(boot(faults=faults).host(), 0.5)
    assert answer == {"status": "probe-timeout", "seconds": 0.5}
    assert seconds < 0.5 + probe.GRACE_SECONDS + SLACK


def test_a_child_that_no_signal_ends_is_given_up(boot: Boot, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", lambda pid, number: None)
        answer, seconds = timed(boot(faults="hang:nvmlInitWithFlags=600").host(), 0.3)
    assert answer == {"status": "probe-stuck", "seconds": 0.3}
    assert seconds < 0.3 + 2 * probe.GRACE_SECONDS + SLACK
    (pid,) = probe._stuck
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    monkeypatch.setattr(sys, "executable", "")
    assert probe.ask(Host(), 1) == {"status": "no-interpreter"}
    assert probe._stuck == [], "the next question looks for it again"


def test_a_crash_leaves_no_core_file(boot: Boot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    machine = boot(faults="crash:nvmlDeviceGetName")
    assert probe.ask(machine.host(), PATIENCE) == {"status": "probe-died", "signal": signal.SIGABRT}
    assert {path.name for path in set(tmp_path.iterdir()) - set(before)} == {"root", "lib", "calls.txt"}


def test_what_the_library_prints_does_not_mix_with_the_answer(boot: Boot) -> None:
    assert probe.ask(boot(faults="flood:nvmlDeviceGetName").host(), PATIENCE)["status"] == "ok"


def test_an_interrupt_ends_the_child(boot: Boot, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(reader: int, deadline: float) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(probe, "_read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        probe.ask(boot(faults="hang:nvmlInitWithFlags=600").host(), PATIENCE)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("print('x' * 10_000_000)", {"status": "probe-garbled"}),
        ("print('[]')", {"status": "probe-garbled"}),
        ("print('{}')", {"status": "probe-garbled"}),
        ("print('\\xff\\xfe')", {"status": "probe-garbled"}),
        ("pass", {"status": "probe-garbled"}),
        ("raise SystemExit(3)", {"status": "probe-died", "exit": 3}),
    ],
)
def test_an_answer_that_is_none(program: str, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_build_command", lambda python, host: [python, "-I", "-S", "-c", program])
    answer, seconds = timed(Host(), PATIENCE)
    assert answer == expected
    assert seconds < PATIENCE


def test_an_answer_counts_although_the_child_then_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    program = 'import os, time; os.write(1, b\'{"status": "ok"}\'); os.close(1); time.sleep(600)'
    monkeypatch.setattr(probe, "_build_command", lambda python, host: [python, "-I", "-S", "-c", program])
    answer, seconds = timed(Host(), 0.5)
    assert answer == {"status": "ok"}
    assert seconds < 0.5 + probe.GRACE_SECONDS + SLACK


def test_a_program_that_reaps_its_own_children_changes_nothing(boot: Boot) -> None:
    host = boot().host()
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert probe.ask(host, PATIENCE)["status"] == "ok"
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_process_without_standard_streams(closed: str, boot: Boot, tmp_path: Path) -> None:
    machine = boot()
    program = (
        "import json, sys; from envlock.runtime.gpu import probe; from envlock.runtime.host import Host\n"
        f"answer = probe.ask(Host(root={str(machine.root)!r}), {PATIENCE})\n"
        f"open({str(tmp_path / 'answer')!r}, 'w').write(answer['status'])"
    )
    environ = {**machine.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT), *filter(None, sys.path)])}
    subprocess.run(["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, program], check=True, env=environ)
    assert (tmp_path / "answer").read_text(encoding="ascii") == "ok"


def test_a_module_of_the_users_project_does_not_stand_in(boot: Boot, tmp_path: Path, monkeypatch: Any) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for name in ("pynvml", "json", "resource"):
        (project / f"{name}.py").write_text("raise RuntimeError('the wrong one')\n", encoding="ascii")
    machine = boot()
    monkeypatch.setattr(sys, "argv", [str(project / "train.py")])
    monkeypatch.chdir(project)
    host = Host(str(machine.root), machine.environ, ["", ".", str(project), *sys.path])
    assert probe.ask(host, PATIENCE)["status"] == "ok"


def test_the_loader_sees_what_this_process_was_started_with(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/environ").write_text("LD_LIBRARY_PATH=/at/start\0A=1\0", encoding="ascii")
    environ = {"LD_LIBRARY_PATH": "/set/later", "LD_PRELOAD": "/set/later.so", "CUDA_VISIBLE_DEVICES": "1"}
    found = probe.build_child_environ(Host(str(tmp_path), environ))
    assert found == {"LD_LIBRARY_PATH": "/at/start", "CUDA_VISIBLE_DEVICES": "1"}


@pytest.mark.parametrize("python", ["", "/usr/sbin/uwsgi"])
def test_where_there_is_no_interpreter_to_start(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", python)
    assert probe.ask(Host(), 1) == {"status": "no-interpreter"}


def test_an_interpreter_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert probe.ask(Host(), 1) == {"status": "probe-not-started", "errno": 2}


def test_the_hot_path_imports_nothing_dear() -> None:
    program = (
        "import sys; from envlock.runtime.collectors import gpu; from envlock.runtime.gpu import probe\n"
        "dear = {'re', 'ast', 'typing', 'subprocess', 'ctypes', 'json', 'pathlib', 'dataclasses', 'signal', 'pynvml'}\n"
        "print(sorted(dear & set(sys.modules)))"
    )
    environ = {"PYTHONPATH": str(CHECKOUT), "PATH": os.defpath}
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
