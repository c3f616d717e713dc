"""The exit codes: what the errors say, what the program does, and what the documentation promises are one table."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from envlock import cli
from envlock.fleet.command import main
from envlock.runtime.errors import (
    EnvironmentMismatch,
    EnvlockError,
    FactError,
    ImageMismatch,
    LockfileError,
    OutsideError,
    UsageError,
    WriteError,
)
from envlock.runtime.report import Report

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/formats.md"
ANSWERS = {ImageMismatch: 1, EnvironmentMismatch: 1}
CODES = {**ANSWERS, UsageError: 2, LockfileError: 3, FactError: 4, OutsideError: 5, WriteError: 6}


def test_every_error_has_its_own_code() -> None:
    assert {error: error.exit_code for error in EnvlockError.__subclasses__()} == CODES
    assert len(set(CODES.values())) == len(CODES) - 1, "the two mismatches are one answer: no"


def test_a_bug_and_an_interrupt_are_none_of_them() -> None:
    assert (cli.BUG, cli.INTERRUPTED) == (70, 130)


def test_an_error_says_what_is_wrong_and_what_to_do() -> None:
    error = UsageError("it is wrong", hint="do this")
    assert (error.message, error.hint, str(error)) == ("it is wrong", "do this", "it is wrong\nhint: do this")
    assert str(UsageError("it is wrong")) == "it is wrong"


def test_an_error_has_the_lines_that_are_meant_and_no_character_that_a_terminal_obeys() -> None:
    hostile = "a\x1b\u202e\nb"
    error = UsageError(hostile, hint=hostile, lines=["  more"])
    assert str(error) == "a\\x1b\\u202e\\nb\n  more\nhint: a\\x1b\\u202e\\nb"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_interrupt_that_a_library_turns_into_an_error_of_its_own_is_no_bug() -> None:
    """Built lazily, a model has errors of this text: pydantic-core's SchemaError."""
    error = TypeError("Error building `model` serializer:\n  SchemaError: Field `latest`:\n  KeyboardInterrupt: ")
    assert cli._handle_unexpected(error) == cli.INTERRUPTED


def test_the_runtime_halfs_command_line_shows_no_such_character_either(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["verify", "x.lock", "--\u202e"])
    assert capsys.readouterr().err.splitlines()[-1] == "envlock: error: unrecognized arguments: --\\u202e"


def test_a_mismatch_is_a_runtime_error_that_holds_the_report() -> None:
    report = Report([], policy="strict")
    error = EnvironmentMismatch("no", report)
    assert (isinstance(error, RuntimeError), error.report, error.hint) == (True, report, None)


def test_the_documentation_lists_them() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Exit codes\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| \w", section, flags=re.MULTILINE)
    assert [int(code) for code in rows] == sorted({0, *CODES.values(), cli.BUG, cli.INTERRUPTED})
