"""What the canary of a lockfile may cost: seconds, in all of its processes together."""

from __future__ import annotations

import time
from typing import Any

import pytest

from envlock.evidence.canary.canary_run import TIMEOUT, Settings
from envlock.evidence.canary.program_operations import MOST_CHILDREN, MOST_SECONDS, replay
from envlock.guest import launch


def test_every_process_gets_what_is_left_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten processes of five minutes each were fifty minutes."""
    clock, asked = [100.0], []

    def ask(words: list[str], *_: object, timeout: float, **__: object) -> launch.Ended:
        asked.append((words[-1], timeout))
        clock[0] += 40
        begun = f'{launch.MARK}{{"begin": "{len(asked)}"}}'
        return launch.Ended(-9, begun.encode(), b"", timeout)

    def build(name: str, request: dict[str, Any]) -> list[str]:
        return ["-c", "", str(request["seconds"])]

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(launch, "build_module_arguments", build)
    monkeypatch.setattr(launch, "ask_python", ask)
    operations = {"a": {"type": "Neg", "inputs": [], "attributes": {}}}
    found = replay(operations, None, Settings(), gpus=False, seconds=60, environ=None)
    assert found.left_out["a"] == "ended"
    left = [float(seconds) for seconds, _ in asked]
    assert left == [60, 20, *[0] * (MOST_CHILDREN - 2)]
    assert all(timeout == seconds + TIMEOUT for seconds, (_, timeout) in zip(left, asked, strict=True))
    assert MOST_SECONDS <= 600
