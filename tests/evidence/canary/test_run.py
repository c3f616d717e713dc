"""The child processes: a crash is a result; one that hangs, lies or is missing is a clear error, in bounded time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from envlock.evidence.canary import canary_run
from envlock.evidence.canary.canary_run import Settings, compute
from envlock.runtime.errors import FactError, UsageError
from tests.evidence.canaries import MARK, conditions, program, result

pytestmark = pytest.mark.processes

HEAD: dict[str, Any] = {
    "battery": 1,
    "tensorflow": "2.21.0",
    "numpy": "2.4.6",
    "devices": [],
    "groups": ["xla", "bf16"],
}


def group(name: str, execution: str = "eager") -> dict[str, Any]:
    return {"group": name, "execution": execution, "operations": {"train_xla": result()}}


def begin(name: str, execution: str = "eager") -> dict[str, Any]:
    return {"begin": [name, execution]}


def test_what_a_child_says_is_the_canary() -> None:
    said = [
        begin("numpy", "library"),
        group("numpy", "library"),
        {"head": HEAD},
        begin("xla", "xla"),
        group("xla", "xla"),
    ]
    times = {"seconds": 0.5, "cpu_seconds": 0.25}
    found = compute(None, Settings(), program=program(*said, begin("bf16"), group("bf16"), times))
    assert (found.seconds, found.cpu_seconds) == (0.5, 0.25)
    assert found.numerics.model_dump(mode="json", exclude_unset=True) == {
        "battery": 1,
        "tensorflow": "2.21.0",
        "numpy": "2.4.6",
        "groups": {
            "numpy": {"conditions": conditions("numpy"), "operations": {"train_xla": result()}},
            "xla": {"conditions": conditions("xla"), "operations": {"train_xla": result()}},
            "bf16": {"conditions": conditions("bf16"), "operations": {"train_xla": result()}},
        },
    }


DYING = f"""
def say(value): print({MARK!r} + json.dumps(value), flush=True)
say({json.dumps({"head": HEAD})})
if "xla" not in asked["skip"]:
    say({json.dumps(begin("xla", "xla"))})
    os.kill(os.getpid(), 11)
say({json.dumps(begin("bf16"))})
say({json.dumps(group("bf16"))})
say({{"seconds": 0.5}})
"""


def test_a_group_that_dies_is_a_result_and_another_child_goes_on_behind_it() -> None:
    found = compute(None, Settings(), program=program(ending=DYING.replace("null", "None")))
    assert {name: (each.ended, len(each.operations)) for name, each in found.numerics.groups.items()} == {
        "xla": ("signal 11 (SIGSEGV)", 0),
        "bf16": (None, 1),
    }
    assert found.numerics.groups["xla"].conditions.execution == "xla"


@pytest.mark.parametrize(
    ("ending", "ended"),
    [
        ("os.kill(os.getpid(), 4)", "signal 4 (SIGILL)"),
        ("os.kill(os.getpid(), 40)", "signal 40"),
        ("os._exit(3)", "exit code 3"),
        ("print('envlock-answer:{\"grou', flush=True); os._exit(1)", "exit code 1"),
    ],
)
def test_how_a_group_ended(ending: str, ended: str) -> None:
    head = {**HEAD, "groups": ["bf16"]}
    found = compute(None, Settings(), program=program({"head": head}, begin("bf16"), ending=ending))
    assert found.numerics.groups["bf16"].ended == ended
    assert found.seconds is None


def test_one_that_hangs_is_ended_with_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary_run, "TIMEOUT", 1.5)
    started = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    hang = f"import subprocess, time\n{started}\ntime.sleep(600)"
    head = {**HEAD, "groups": ["bf16"]}
    start = time.monotonic()
    with ThreadPoolExecutor(2) as both:
        begun = both.submit(compute, None, Settings(), program=program({"head": head}, begin("bf16"), ending=hang))
        silent = both.submit(compute, None, Settings(), program=program(ending=hang))
    assert begun.result().numerics.groups["bf16"].ended == "no answer within 1.5 s"
    with pytest.raises(FactError) as caught:
        silent.result()
    assert caught.value.message == "TensorFlow did not answer within 1.5 s before the canary began: no output"
    assert time.monotonic() - start < 100


def test_an_interrupt_ends_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def interrupted(child: subprocess.Popen[bytes], timeout: float) -> None:
        started.append(child)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compute(None, Settings(), program="import time; time.sleep(60)")
    assert [child.poll() for child in started] == [-9]


def test_one_that_dies_before_it_begins() -> None:
    with pytest.raises(FactError) as caught:
        compute(None, Settings(), program=program(ending="sys.exit('Error: no such flag')"))
    assert caught.value.message == "TensorFlow exited with code 1 before the canary began: Error: no such flag"
    assert caught.value.hint == "run `envlock doctor` to find the variable or flag"


def test_one_that_dies_between_its_groups() -> None:
    with pytest.raises(FactError) as caught:
        compute(None, Settings(), program=program({"head": HEAD}, group("xla", "xla"), ending="os._exit(9)"))
    assert caught.value.message == "TensorFlow exited with code 9 before the canary was complete: no output"
    once = 'if "xla" in asked["skip"]: os._exit(9)\n' + program({"head": HEAD}, begin("xla"), ending="os._exit(3)")
    with pytest.raises(FactError) as caught:  # the second child has not begun, and xla is not what it died of
        compute(None, Settings(), program=f"import json, os, sys\nasked = json.loads(sys.argv[1])\n{once}")
    assert caught.value.message == "TensorFlow exited with code 9 before the canary was complete: no output"


@pytest.mark.slow
def test_one_that_dies_of_the_same_group_for_ever() -> None:
    with pytest.raises(FactError) as caught:
        compute(None, Settings(), program=program({"head": HEAD}, begin("xla"), ending="os._exit(3)"))
    assert caught.value.message == "the canary crashed its process 20 times"


def test_the_pins_are_handed_over_and_each_visible_gpu_has_a_child_of_its_own() -> None:
    code = f"""
def say(value): print({MARK!r} + json.dumps(value), flush=True)
device = asked["device"]
names = [] if device == "cpu" else ["NVIDIA A100", "NVIDIA T4\\x1b[1m"]
group = "bf16" if device == "cpu" else "gpu-" + str(device)
here = device == "cpu" or device < 2
versions = {{"battery": 1, "tensorflow": "2.21.0", "numpy": "2.4.6"}}
say({{"head": {{**versions, "devices": names, "groups": [group] if here else []}}}})
if here:
    pins = [asked["intra_op_threads"], asked["inter_op_threads"], asked["determinism"]]
    failed = {{"failed": "-".join(map(str, pins))}}
    say({{"group": group, "execution": "eager", "operations": {{"matmul": failed}}}})
"""
    found = compute(None, Settings(4, False), gpus=True, program=program(ending=code)).numerics
    assert {name: each.conditions.device for name, each in found.groups.items()} == {
        "bf16": "cpu",
        "gpu-0": "NVIDIA A100",
        "gpu-1": "NVIDIA T4__1m",
    }
    assert {each.operations["matmul"].failed for each in found.groups.values()} == {"4-4-False"}
    head = found.groups["gpu-1"].conditions
    assert (head.intra_op_threads, head.inter_op_threads, head.determinism) == (4, 4, "off")
    left = compute(None, Settings(None, None), program=program(ending=code)).numerics.groups["bf16"]
    assert left.operations["matmul"].failed == "None-None-None"
    assert (left.conditions.intra_op_threads, left.conditions.determinism) == ("environment", "environment")


@pytest.mark.parametrize("settings", [Settings(), Settings(None, None), Settings(8, False)])
def test_the_settings_are_told_from_the_header(settings: Settings) -> None:
    found = compute(None, settings, program=program({"head": HEAD}, group("xla", "xla"), group("bf16"))).numerics
    assert Settings.of(found.groups["xla"].conditions) == settings


@pytest.mark.parametrize(
    "said",
    [
        {**group("xla"), "operations": {"train_xla": {**result(), "sha256": "$(touch x)"}}},
        {**group("xla"), "operations": {"../x": result()}},
        {**group("xla"), "operations": {"train_xla": {**result(), "sample": "0x1p+0 0x1p+0"}}},
        {**group("xla"), "operations": {"train_xla": {**result(), "unstable": True}}},
        {**group("xla"), "execution": "\x1b[2J"},
    ],
)
def test_an_answer_that_is_none_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(FactError) as caught:
        compute(None, Settings(), program=program({"head": HEAD}, said, group("bf16")))
    assert caught.value.message.startswith("invalid answer of the canary: `groups.xla.")
    assert caught.value.message.isprintable()


def test_no_such_interpreter(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        compute(tmp_path / "python", Settings())
    assert caught.value.message == f"cannot run {tmp_path}/python: No such file or directory"


def test_the_battery_itself_says_when_there_is_nothing_to_compute_with() -> None:
    with pytest.raises(FactError) as caught:
        compute(Path(sys.executable), Settings())
    missing = "the canary cannot be computed: ModuleNotFoundError: No module named "
    assert caught.value.message in (f"{missing}'numpy'", f"{missing}'tensorflow'")  # a plotting library brings NumPy
    assert caught.value.hint == "name the interpreter of an environment with TensorFlow: `--python .venv/bin/python`"
