"""Remedies of `envlock verify`, obeyed as they are printed: the state is made, the command in the line is run, and asked
again the verdict is yes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.test_verify_command import captured
from tests.conftest import Command
from tests.locks import encode

pytestmark = pytest.mark.processes

COMMAND = re.compile(r"`envlock ([^`]+)`")
START = "run"
"""The remedy of what has to be there before a process starts: it begins the process."""


class Case(NamedTuple):
    """A fact that is not as locked, and what is obeyed of its remedy.

    Attributes:
        fact: its path.
        locked: what the lockfile says.
        obeyed: the command.
        says: what the line has to have.
        policy: the policy that is asked.
    """

    fact: str
    locked: Any
    obeyed: str
    says: str = ""
    policy: str = "strict"


CASES = (
    Case("cpu.intra_op_threads", 3, START, "TF_NUM_INTRAOP_THREADS=3"),
    Case("cpu.inter_op_threads", 3, START, "TF_NUM_INTEROP_THREADS=3"),
    Case("environ.TF_ENABLE_ONEDNN_OPTS", "0", START),
    Case("environ.TF_DETERMINISTIC_OPS", "1", START),
    Case("cpu.flags", ["avx", "sse"], "capture --add-machine"),
    Case("cpu.flags", ["avx", "sse"], "capture --add-machine", "capture --canary", policy="bits"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.fact} under {case.policy}")
def test_a_remedy_that_is_obeyed_is_one(case: Case, envlock: Command, tmp_path: Path) -> None:
    lock = json.loads(captured(tuple(envlock.argv)))
    section, _, name = case.fact.partition(".")
    lock["facts"][section][name] = case.locked
    lock["unavailable"].pop(case.fact, None)
    (tmp_path / "envlock.lock").write_bytes(encode(lock))
    asked = ("--policy", case.policy)
    report = json.loads(envlock("verify", *asked, "--format", "json").stdout)
    (found,) = [
        each for each in report["findings"] if each["where"]["fact"] == case.fact and each["severity"] == "error"
    ]
    assert case.says in found["fix"]
    commands = COMMAND.findall(found["fix"])
    assert case.obeyed in commands
    if case.obeyed == START:
        done = envlock("run", *asked, "--", "python", "-c", "print('began')")
        assert (done.returncode, done.stdout) == (0, "began\n"), done.stderr
        return
    done = envlock(*case.obeyed.split())
    assert done.returncode == 0, done.stderr
    done = envlock("verify", *asked)
    assert done.returncode == 0, done.stdout
