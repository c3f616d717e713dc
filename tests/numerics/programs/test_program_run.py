"""What a run of a program brings: the child process is replaced, everything around it is real."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from envlock.guest.target import Target
from envlock.lock.temporary import open_draft_folder
from envlock.numerics.programs import program_run
from envlock.numerics.programs.parts import Observed
from envlock.numerics.session import Host, Session
from envlock.numerics.upgrade_verdict import PROGRAM, compare_observed

FAST = "--xla_cpu_enable_fast_math=true"
MODULE = """HloModule jit_step

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %sum = f32[8]{0} add(f32[8]{0} %x, f32[8]{0} %x)
}
"""
DUMP = "module_1.after_optimizations.txt"


Run = Callable[[str], Observed]


def replace_child(monkeypatch: pytest.MonkeyPatch, *modules: str) -> Run:
    """Return what runs a program of one function, of which XLA shows these modules whatever its flags are."""
    body: dict[str, list[object]] = {"inputs": [], "types": [], "nodes": [], "outputs": [], "control": []}
    called = {"name": "train", "graph": "f", "captures": [], "modules": list(modules)}
    program = {"tensorflow": "2.21.0", "switches": {"jit": ""}, "functions": [called], "definitions": {"f": body}}

    def make_runs(self: Session, asked: Mapping[str, Any], host: Host, timeout: float) -> dict[str, Any]:
        assert host.environ is not None
        dumps = Path(host.environ["XLA_FLAGS"].rpartition("--xla_dump_to=")[2].partition(" ")[0])
        dumps.mkdir()
        (dumps / DUMP).write_text(MODULE, encoding="utf-8")
        return {"ends": {0: {"end": "finished", **program}}}

    def observe(flags: str) -> Observed:
        with open_draft_folder(None) as folder:
            return program_run.observe_runs(
                Target(Path("train.py"), "step"), None, folder, environ={"XLA_FLAGS": flags}
            )[0]

    monkeypatch.setattr(Session, "make_runs", make_runs)
    return observe


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Run:
    return replace_child(monkeypatch, DUMP)


def test_a_flag_that_only_machine_code_shows_is_another_program(compiled: Run) -> None:
    before, after = compiled(""), compiled(FAST)
    assert (before.parts["train"].kind, after.parts) == ("xla", before.parts)
    (found,) = compare_observed(before, after)
    assert (found.kind, found.message) == (PROGRAM, f"XLA_FLAGS: unset -> {FAST}")


def test_flags_of_xla_are_none_of_a_program_that_it_does_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = replace_child(monkeypatch)
    before, after = traced(""), traced(FAST)
    assert (before.parts["train"].kind, after) == ("graph", before)


def test_flags_that_only_write_are_left_out(compiled: Run) -> None:
    assert compiled("--xla_dump_hlo_as_proto --xla_dump_to=/elsewhere").switches == {"jit": ""}
    assert compiled(f"--xla_dump_hlo_as_proto {FAST}").switches == {"jit": "", "XLA_FLAGS": FAST}


def test_a_flag_that_may_be_a_secret_is_a_digest(compiled: Run) -> None:
    shown = compiled("--not_a_flag=a-secret").switches["XLA_FLAGS"]
    assert shown.startswith("sha256:")
    assert "secret" not in shown
