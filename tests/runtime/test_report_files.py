"""The table of files: each kind with its reason once, long lists shortened, nothing that a terminal would obey."""

from __future__ import annotations

import pytest

from envlock.reports import render
from envlock.runtime.report import ABSENT, ERROR, INFO, UNKNOWN, Finding, Report, Severity


def file(path: str, kind: str, what: str, package: str | None, severity: Severity = ERROR, weight: int = 50) -> Finding:
    return Finding(
        f"file-{kind}",
        severity,
        path,
        message=f"{path}: {what}",
        why=f"Why {kind}.",
        fix=f"Mend {kind}.",
        source="here",
        expected=ABSENT if package is None else {"packages": [package]},
        actual={"what": what},
        weight=weight,
    )


CUBLAS = "nvidia/cublas/lib/libcublas.so.12"
FOUND = [
    file(CUBLAS, "modified", "truncated: 1 of 2 bytes", "nvidia-cublas-cu12 12.9.3", weight=90),
    file("numpy/__init__.py", "modified", "different content of the same size", "numpy 2.4.6", weight=70),
    file("evil\n\x1b[31m", "foreign", "a file that belongs to no package", None, weight=30),
    file("a.pth", "startup", "runs `import a`", "a 1", INFO),
]

TEXT = f"""\
does not match under policy strict: 3 files are not as recorded
modified: 2 files
  x {CUBLAS}  nvidia-cublas-cu12 12.9.3  truncated: 1 of 2 bytes
  x numpy/__init__.py                  numpy 2.4.6                different content of the same size
      why: Why modified.
      fix: Mend modified.
foreign: 1 file
  x evil\\n\\x1b[31m  a file that belongs to no package
      why: Why foreign.
      fix: Mend foreign.
startup: 1 file (for information)
  i a.pth  a 1  runs `import a`
      why: Why startup."""


def test_the_table() -> None:
    assert render(Report(FOUND, policy="strict")) == TEXT


def test_json_has_what_the_table_has() -> None:
    report = Report(FOUND, policy="strict").to_json()
    assert report["match"] is False
    assert [(each["where"]["fact"], each["message"]) for each in report["findings"]] == [
        (each.where.fact, each.message) for each in FOUND
    ]


def test_facts_come_first_and_both_are_counted() -> None:
    fact = Finding(
        "exact",
        ERROR,
        "cpu.flags",
        message="cpu.flags: locked a, live b",
        why="It may.",
        fix="Do it.",
        source="x",
        weight=1,
    )
    both = [FOUND[1], fact]
    lines = render(Report(both, policy="strict")).splitlines()
    assert lines[0] == "does not match under policy strict: 1 fact differs and 1 file is not as recorded"
    assert lines[1] == "  x cpu.flags: locked a, live b"
    assert lines[4] == "modified: 1 file"


@pytest.mark.parametrize(
    ("severity", "shown", "more"),
    [
        (ERROR, 20, "    and 1,980 more (`--format json` lists all)"),
        (INFO, 5, "    and 1,995 more (`--format json` lists all)"),
    ],
)
def test_a_long_list_is_shortened(severity: Severity, shown: int, more: str) -> None:
    findings = [file(f"f{number:04}", "missing", "is missing", None, severity) for number in range(2000)]
    lines = render(Report(findings, policy="strict")).splitlines()
    assert [line for line in lines if line.startswith(f"  {'x' if severity == ERROR else 'i'} ")][-1] == (
        f"  {'x' if severity == ERROR else 'i'} f{shown - 1:04}  is missing"
    )
    assert more in lines
    assert len(Report(findings, policy="strict").to_json()["findings"]) == 2000


def test_information_alone_is_a_match_and_a_file_that_could_not_be_read_is_not() -> None:
    assert Report([FOUND[3]], policy="strict").exit_code == 0
    unread = Report([file("a.pyc", "bytecode", "cannot be read", None, UNKNOWN)], policy="strict")
    assert unread.exit_code == 4
    assert next(unread.lines())[1] == "cannot decide under policy strict: 1 file could not be read"
