"""Ranks that have asked for different checks: nobody starts on less than it has asked for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envlock.fleet.check_settings import SETTINGS, VARIABLES
from envlock.fleet.fleet_assertion import _silence
from envlock.fleet.reduction import reduction
from envlock.fleet.statement import is_statement
from envlock.runtime.errors import FactError
from tests.fleet.bed import ROOT
from tests.fleet.ranks import lockfile, rank
from tests.fleet.test_meeting import started

PLACES = {
    "ENVLOCK_ADDED": "says which variables envlock itself has set: a fact of the rank",
    "ENVLOCK_LOCK": "names the lockfile, whose digest is a setting",
    "ENVLOCK_SEED": "of activate(), which is no check",
    "ENVLOCK_FLEET_": "say which rank this is, and where ranks meet",
}
"""What the other variables that a rank reads are for."""
OTHER = {"lock": "b" * 32, "policy": "functional", "overrides": False, "mode": "deep"}


def compare(*changes: dict[str, Any], **words: Any) -> Any:
    """Return the report on ranks that are alike but for their settings."""
    made = [rank(number, len(changes), policy="strict") for number in range(len(changes))]
    statements = [{**statement, **change} for (statement, _), change in zip(made, changes, strict=True)]
    assert all(map(is_statement, statements))
    return reduction(statements, {statement["root"]: found for statement, found in made}, len(made), **words)[0]


@pytest.mark.parametrize(("kinds", "more"), [(5, False), (6, True)])
def test_five_values_of_a_setting_are_listed(kinds: int, more: bool) -> None:
    found = compare(*({"lock": str(number) * 32} for number in range(kinds))).findings
    (message,) = [finding.message for finding in found if finding.rule == "rank-lockfile"]
    assert message.count("sha256:") == 5
    assert message.endswith("more") == more


def test_each_setting_of_a_rank_is_compared() -> None:
    assert OTHER.keys() == SETTINGS.keys()
    assert compare({}, {}, {}).match
    for name, setting in SETTINGS.items():
        for which in range(3):
            changes: list[dict[str, Any]] = [{}, {}, {}]
            changes[which] = {name: OTHER[name]}
            report = compare(*changes)
            assert [(each.rule, each.severity) for each in report.findings] == [(setting.rule, "error")], name
            assert f"(rank {which}) " in report.findings[0].message
            assert report.exit_code == 1


def test_each_variable_that_a_rank_reads_is_a_setting_or_says_why_not() -> None:
    found = set()
    for folder in ("fleet", "runtime"):
        for file in (ROOT / "envlock" / folder).rglob("*.py"):
            found |= set(re.findall("ENVLOCK_[A-Z_]+", file.read_text()))
    assert {name for name in found - set(VARIABLES) if not name.startswith(tuple(PLACES))} == set()


def test_what_compares_later_has_settings_of_its_own() -> None:
    """`fleet check` under another policy than the ranks asked for, or without the rules that they left facts out by."""
    (finding,) = compare({}, {}, policy="functional").findings
    assert finding.message == "ranks ask for different policies: n1 (ranks 0-1) strict, this check functional"
    (finding,) = compare({}, {}, overrides=False).findings
    assert finding.message == (
        "ranks differ in whether the lockfile's own rules apply: "
        "n1 (ranks 0-1) with them, this check ENVLOCK_NO_OVERRIDES"
    )
    assert compare({"policy": ""}, {"policy": ""}, policy="functional").match


def test_innocent_ranks_are_not_named() -> None:
    """Rank 0 alone asks for no rules; the others leave out what a rule ignores, and have done nothing else."""
    rules = {"environ.OMP_NUM_THREADS": "ignore"}
    lock = lockfile(policy={"name": "strict", "overrides": rules})
    made = [
        rank(0, 3, policy="strict", overrides=False, lock="a"),
        *[rank(number, 3, policy="strict", rules=rules, lock="a") for number in (1, 2)],
    ]
    documents = {statement["root"]: found for statement, found in made}
    report = reduction([statement for statement, _ in made], documents, 3, lock, overrides=False)[0]
    assert [each.rule for each in report.findings if each.severity == "error"] == ["rank-policy"]
    assert report.findings[0].message == (
        "ranks differ in whether the lockfile's own rules apply: "
        "n1-2 (ranks 1-2) with them, n1 (rank 0) ENVLOCK_NO_OVERRIDES"
    ).replace("n1-2", "n[1-2]")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ENVLOCK_POLICY", "nonesuch", "n1 (rank 1): unknown policy `nonesuch`"),
        ("ENVLOCK_MODE", "of", "n1 (rank 1): invalid ENVLOCK_MODE `of`"),
    ],
)
def test_a_setting_of_any_rank_that_does_not_exist_is_an_error_of_all(
    tmp_path: Path, name: str, value: str, said: str
) -> None:
    ends = started(tmp_path, {}, {name: value}, {})
    assert [(each.code, each.output.splitlines()[0]) for each in ends] == [(2, f"UsageError 2 {said}")] * 3
    assert ends[0].errors.startswith(f"envlock: cannot decide: {said}\nhint: choose from: ")
    assert [each.errors for each in ends[1:]] == ["", ""]


@pytest.mark.processes
def test_drawn_jobs(tmp_path: Path) -> None:
    """ENVLOCK_TEST_SCHEDULES=300 for more of them."""
    number = os.environ.get("ENVLOCK_TEST_SCHEDULES", "8")
    words = [sys.executable, "-m", "tests.fleet.setting_schedules", str(tmp_path), "5", number]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    done = subprocess.run(words, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_hook_for_refusals_is_installed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program can catch any number of them; the traceback of another error is still that of the interpreter."""
    seen: list[object] = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: seen.append(error[1]))
    hooks, last = set(), _silence(FactError("refused"))
    for _ in range(1200):
        last = _silence(FactError("refused"))
        hooks.add(sys.excepthook)
    other = RuntimeError("another error")
    sys.excepthook(RuntimeError, other, None)
    assert (len(hooks), seen) == (1, [other])
    with pytest.raises(SystemExit) as raised:
        sys.excepthook(type(last), last, None)
    assert raised.value.code == FactError.exit_code
    # A program that sets a hook of its own in the meantime keeps it.
    monkeypatch.setattr(sys, "excepthook", lambda *error: seen.append("own"))
    _silence(last)
    sys.excepthook(RuntimeError, other, None)
    assert seen[-1] == "own"
