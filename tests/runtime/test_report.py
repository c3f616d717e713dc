"""Reports: their order, their two shapes, and that no value can play tricks on a terminal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.reports import FORMATS
from envlock.runtime.facts import Unavailable
from envlock.runtime.report import ABSENT, BITS, ERROR, INFO, UNKNOWN, Finding, Report, show
from tests.trees import quick


def finding(path: str = "cpu.flags", severity: str = ERROR, weight: int = 50, **fields: Any) -> Finding:
    values = {"rule": "exact", "expected": "a", "actual": "b", "why": "It may.", "fix": "Do it.", "source": "design"}
    return Finding(path, severity=severity, weight=weight, **{**values, **fields})


def test_findings_are_ordered_by_severity_then_weight_then_path() -> None:
    findings = [
        finding("z", INFO, 99),
        finding("b", ERROR, 10),
        finding("a", ERROR, 10),
        finding("c", ERROR, 90),
        finding("d", UNKNOWN, 100),
    ]
    assert [f.path for f in Report(findings, "strict").findings] == ["c", "a", "b", "d", "z"]


@pytest.mark.parametrize(
    ("severities", "match", "code", "title"),
    [
        ([], True, 0, "matches under policy strict"),
        ([INFO], True, 0, "matches under policy strict"),
        ([ERROR], False, 1, "does not match under policy strict: 1 fact differs"),
        ([ERROR, ERROR, INFO], False, 1, "does not match under policy strict: 2 facts differ"),
        ([UNKNOWN], False, 4, "cannot tell under policy strict: 1 fact could not be collected"),
        ([UNKNOWN, UNKNOWN], False, 4, "cannot tell under policy strict: 2 facts could not be collected"),
        (
            [ERROR, UNKNOWN],
            False,
            1,
            "does not match under policy strict: 1 fact differs; 1 more fact could not be collected",
        ),
        (
            [ERROR, ERROR, UNKNOWN, UNKNOWN],
            False,
            1,
            "does not match under policy strict: 2 facts differ; 2 more facts could not be collected",
        ),
    ],
)
def test_the_verdict(severities: list[str], match: bool, code: int, title: str) -> None:
    report = Report([finding(severity=severity) for severity in severities], "strict")
    assert (report.match, report.exit_code, report.to_text().splitlines()[0]) == (match, code, title)


REPORT = Report(
    [
        finding("cpu.flags", ERROR, expected=["avx"], actual=[], weight=86),
        finding("numpy.version", ERROR, expected="1.26.4", actual=ABSENT, weight=72),
        finding("keras", UNKNOWN, expected=None, actual=Unavailable("it cannot be read", "unreadable")),
        finding("cpu.quota", INFO, rule="ignore", expected=ABSENT, actual=1.5),
    ],
    "strict",
)


def bits(path: str, severity: str = ERROR, **fields: Any) -> Finding:
    values = {"rule": BITS, "expected": {"result": "a"}, "actual": {"result": "b", "what": "it differs"}}
    return finding(path, severity, 2, **{**values, **fields})


def test_results_of_the_canary_are_counted_by_themselves() -> None:
    untold = Unavailable("not comparable: 2 vs 8 threads", "other-conditions")
    found = [
        finding("cpu.flags"),
        bits("numerics.xla.train"),
        bits("numerics.bf16"),
        bits("numerics.xla", UNKNOWN, actual=untold),
    ]
    report = Report(found, "strict", notes=["numerics: 3 results have the bits of the lock"])
    assert (report.match, report.exit_code) == (False, 1)
    assert report.to_text() == (
        "does not match under policy strict: 1 fact differs and 2 results of the canary have other bits; "
        "1 part of the canary could not be compared\n"
        "  x cpu.flags is b live, the lock has a\n"
        "  x numerics.bf16: it differs\n"
        "  x numerics.xla.train: it differs\n"
        "      why: It may.\n"
        "      fix: Do it.\n"
        "  ? numerics.xla: not comparable: 2 vs 8 threads\n"
        "      why: It may.\n"
        "      fix: Do it.\n"
        "numerics: 3 results have the bits of the lock"
    )
    assert report.to_json()["notes"] == ["numerics: 3 results have the bits of the lock"]


def test_the_json_shape() -> None:
    told = {"why": "It may.", "fix": "Do it.", "source": "design"}
    unreadable = {"unavailable": "it cannot be read", "code": "unreadable"}
    assert REPORT.to_json() == {
        "report_version": 1,
        "match": False,
        "policy": "strict",
        "findings": [
            {"path": "cpu.flags", "rule": "exact", "expected": ["avx"], "actual": [], "severity": "error", **told},
            {"path": "numpy.version", "rule": "exact", "expected": "1.26.4", "severity": "error", **told},
            {"path": "keras", "rule": "exact", "expected": None, "actual": unreadable, "severity": "unknown", **told},
            {"path": "cpu.quota", "rule": "ignore", "actual": 1.5, "severity": "info", **told},
        ],
    }
    assert json.loads(FORMATS["json"](REPORT)) == REPORT.to_json()


def test_the_text() -> None:
    expected = """\
does not match under policy strict: 2 facts differ; 1 more fact could not be collected
  x cpu.flags is [] live, the lock has [avx]
  x numpy.version is absent live, the lock has 1.26.4
      why: It may.
      fix: Do it.
  ? keras could not be told live: it cannot be read (the lock has none)
      why: It may.
      fix: Do it.
1 difference that policy strict lets through
  i cpu.quota is 1.5 live, the lock does not have it
      why: It may."""
    assert REPORT.to_text() == expected
    assert FORMATS["text"](REPORT) == expected


def test_many_of_a_kind_that_are_let_through_are_folded_and_none_that_breaks_the_policy() -> None:
    names = [f"packages.p{number}.installer" for number in range(1, 8)]
    report = Report(
        [finding(name, severity, expected="pip", actual="uv") for name in names for severity in (ERROR, INFO)], "strict"
    )
    text = report.to_text().splitlines()
    assert [line for line in text if line.startswith("  x")] == [
        f"  x {name} is uv live, the lock has pip" for name in names
    ]
    assert [line for line in text if line.startswith("  i")] == [
        *(f"  i {name} is uv live, the lock has pip" for name in names[:4]),
        "  i and 3 more of the kind (`--format json` has all)",
    ]
    assert len(report.to_json()["findings"]) == 14


def test_the_sides_have_the_names_they_were_given() -> None:
    report = Report([finding()], "strict", "a.lock", "b.lock")
    assert report.to_text().splitlines()[1] == "  x cpu.flags is b in b.lock, a.lock has a"


def test_colour_adds_colour_and_changes_no_word() -> None:
    painted = FORMATS["text"](REPORT, color=True)
    assert "\x1b[31m" in painted
    plain = painted
    for code in ("0", "1", "2", "31", "33", "36"):
        plain = plain.replace(f"\x1b[{code}m", "")
    assert plain == REPORT.to_text()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "none"),
        ("", '""'),
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (1.5, "1.5"),
        ([], "[]"),
        ([None, True, "a"], "[none, true, a]"),
        (list(range(13)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...]"),
        ({"version": "1.0", "origin": None}, "1.0"),
        ({"b": 1, "a": 2}, "{a, b}"),
        ({}, "{}"),
        (ABSENT, "absent"),
        (Unavailable("no\x1bway", "x"), "no\\x1bway"),
    ],
)
def test_how_a_value_is_shown(value: Any, shown: str) -> None:
    assert show(value) == shown


TEXTS = st.text(st.characters() | st.sampled_from("\x00\x1b\x9b\r\n\u202e[]"), max_size=20)
VALUES = TEXTS | st.lists(TEXTS, max_size=3) | st.dictionaries(TEXTS, TEXTS, max_size=3)


@quick
@given(path=TEXTS, expected=VALUES, actual=VALUES, name=TEXTS)
def test_no_control_character_of_a_value_reaches_the_output(path: str, expected: Any, actual: Any, name: str) -> None:
    report = Report([finding(path, expected=expected, actual=actual), finding(path, INFO)], "strict", name, name)
    for line in FORMATS["text"](report).split("\n"):
        assert line.isprintable()


@quick
@given(path=TEXTS, expected=VALUES)
def test_json_escapes_what_a_terminal_would_obey(path: str, expected: Any) -> None:
    text = FORMATS["json"](Report([finding(path, expected=expected)], "strict"))
    assert all(line.isprintable() for line in text.split("\n"))
    assert json.loads(text)["findings"][0]["expected"] == expected


@pytest.mark.parametrize("markup", ["[red]x[/red]", "[/]", "[link=https://example.org]x[/link]", "\\[bold]", ":smile:"])
def test_markup_in_a_value_is_shown_as_it_is(markup: str) -> None:
    report = Report([finding(markup, expected=markup, actual=markup)], "strict")
    line = f"{markup} is {markup} live, the lock has {markup}"
    assert line in FORMATS["text"](report, color=True)
    assert line in FORMATS["text"](report)
