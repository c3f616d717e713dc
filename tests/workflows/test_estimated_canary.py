"""The canary of a processor that is emulated: how it is asked for, and how it is marked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from envlock.guest import launch
from envlock.lock.document import validate
from envlock.numerics.canary import canary_run
from envlock.numerics.canary.canary_summary import describe_canary
from envlock.numerics.canary.emulation import Emulation
from envlock.reports import render
from envlock.runtime.collectors import Snapshot
from envlock.workflows import canary as canaries
from tests.locks import FACTS, document
from tests.numerics.canaries import MARK, section


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, str]]:
    """Let an emulator answer as the battery; return the variables that it was started with."""
    started = []

    @contextmanager
    def open_emulation(model: str, python: Path | None, variables: Mapping[str, str]) -> Iterator[Emulation]:
        started.append(variables)
        yield Emulation("Haswell", ("qemu",), variables)

    def ask(*_: object, **__: object) -> launch.Ended:
        found = section(("matmul",))
        head = {name: found[name] for name in ("battery", "tensorflow", "numpy")}
        groups = [name for name in found["groups"] if name != "numpy"]
        said = [{"head": {**head, "groups": groups, "devices": []}}]
        for name, group in found["groups"].items():
            execution = group["conditions"]["execution"]
            said.append({"group": name, "execution": execution, "operations": group["operations"]})
        text = "".join(f"{MARK}{json.dumps(each)}\n" for each in said)
        return launch.Ended(0, text.encode("ascii"), b"", 1.0)

    monkeypatch.setattr(canaries, "open_emulation", open_emulation)
    monkeypatch.setattr(launch, "ask_emulated", ask)
    monkeypatch.setattr(canaries, "collect_live", lambda python: Snapshot(FACTS, {}))
    return started


def test_an_estimate_is_compared_with_the_lock_and_says_what_it_is(emulator: list[Mapping[str, str]]) -> None:
    lock = validate(document(numerics=section()), "x.lock")
    report = canaries.canary(lock, emulated="haswell")
    assert report.exit_code == 1
    assert [str(finding.where) for finding in report.findings] == ["numerics.cpu-onednn.matmul"]
    phrase = "numerics: live results are those of an emulated Haswell"
    assert f"{phrase}: an estimate, which only the canary on such a machine can confirm" in report.notes
    assert emulator == [canary_run.Settings().variables]


def test_without_a_lock_the_report_shows_it() -> None:
    report = canaries.canary(emulated="haswell")
    text = render(report)
    assert "an estimate: computed on an emulated Haswell, not on a real one\n" in text
    assert report.attachments["numerics"]["emulated"] == "Haswell"


def test_it_is_marked_in_the_lockfile() -> None:
    lock = canaries.update_canary(validate(document(unavailable={}), "x.lock"), emulated="haswell")
    assert lock.numerics is not None
    assert lock.numerics.emulated == "Haswell"
    assert ", estimated on an emulated Haswell" in describe_canary(lock)
    assert validate(lock.to_document(), "x.lock") == lock
