"""The formats for other services: golden files, the official schema of SARIF, and text that would break out of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.reports import render
from envlock.runtime.facts import Unavailable
from envlock.runtime.finding_place import Where
from envlock.runtime.report import (
    ABSENT,
    ERROR,
    INFO,
    UNKNOWN,
    WARNING,
    Finding,
    Report,
    Severity,
    show,
)
from tests.golden_files import assert_as_golden

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden"
SCHEMA = json.loads((HERE / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
NASTY = st.text(st.characters(codec=None) | st.sampled_from(",:%\n\r\0\x1b\ud800&<>\"'"), max_size=30)


def finding(path: str, severity: Severity = ERROR, actual: Any = "0", expected: Any = "1") -> Finding:
    return Finding(
        "exact",
        severity,
        path,
        message=f"{path}: locked {show(expected)}, live {show(actual)}",
        why="It changes bits: 100 % of them.",
        fix="Set it, as locked.",
        source="https://example.org/why",
        expected=expected,
        actual=actual,
        weight=50,
    )


REPORT = Report(
    [
        finding("environ.TF_ENABLE_ONEDNN_OPTS"),
        finding("packages.keras.version", actual=ABSENT, expected="3.5.0"),
        finding("gpu.driver", UNKNOWN, actual=Unavailable("the driver did not answer", "nvml-9"), expected="535.1"),
        finding("system.kernel", INFO, actual="6.1", expected="5.15"),
    ],
    policy="strict",
)
MATCHING = Report([], policy="strict")
PLACE = Where(file="src/a,b.py", line=3, column=5, end_line=4, end_column=9, text="ds.shuffle(3)")


def in_code(severity: Severity, where: Where, message: str, why: str) -> Report:
    """Return a report with one finding in code."""
    found = Finding("ENV203", severity, where, message=message, why=why, fix="Seed it.", source="https://example.org/x")
    titles = {"ENV203": "a shuffle, unseeded"}
    return Report([found], command="lint", headline="1 finding", titles=titles, breaking=(ERROR, WARNING))


CODE = in_code(WARNING, PLACE, "no seed", "Why: it is 100 % random.")


@pytest.mark.parametrize("name", ["github", "junit", "sarif"])
def test_a_report_is_written_as_the_golden_file_has_it(name: str) -> None:
    assert_as_golden(render(REPORT, name) + "\n", GOLDEN / f"report.{name}")


@pytest.mark.parametrize("report", [REPORT, MATCHING, CODE])
def test_sarif_is_valid_by_its_own_schema(report: Report) -> None:
    log = json.loads(render(report, "sarif"))
    assert list(VALIDATOR.iter_errors(log)) == []
    assert [result["level"] for result in log["runs"][0]["results"]] == [
        {"error": "error", "unknown": "warning", "warning": "warning", "info": "note"}[each.severity]
        for each in report.findings
    ]


def test_the_schema_would_find_a_wrong_log() -> None:
    log = json.loads(render(CODE, "sarif"))
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    assert len(list(VALIDATOR.iter_errors(log))) == 1


def test_a_finding_in_a_file_has_its_place_in_every_format() -> None:
    assert render(CODE, "github") == (
        "::warning file=src/a%2Cb.py,line=3,endLine=4,col=5,title=ENV203 a shuffle%2C unseeded"
        "::no seed%0Awhy: Why: it is 100 %25 random.%0Afix: Seed it."
    )
    result = json.loads(render(CODE, "sarif"))["runs"][0]["results"][0]
    assert result["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "src/a%2Cb.py", "uriBaseId": "%SRCROOT%"},
                "region": {
                    "startLine": 3,
                    "startColumn": 5,
                    "endLine": 4,
                    "endColumn": 9,
                    "snippet": {"text": "ds.shuffle(3)"},
                },
            }
        }
    ]
    case = ET.fromstring(render(CODE, "junit")).find("testsuite/testcase")
    assert case is not None
    assert (case.get("file"), case.get("line"), case.get("name")) == ("src/a,b.py", "3", "ENV203 src/a,b.py:3:5")


def test_an_alert_is_known_by_the_text_of_its_line() -> None:
    """Neither other words of the message nor lines that are added above open it again."""
    below = Where(file=PLACE.file, line=9, text=PLACE.text)
    other = Where(file=PLACE.file, line=3, text="ds.shuffle(9)")
    cases = [(PLACE, "no seed"), (below, "unseeded"), (other, "no seed")]
    logs = [json.loads(render(in_code(WARNING, *case, "Why."), "sarif")) for case in cases]
    prints = [log["runs"][0]["results"][0]["partialFingerprints"] for log in logs]
    assert prints[0] == prints[1] != prints[2]


def test_a_rule_with_findings_of_two_severities_says_each() -> None:
    harder = Finding("ENV203", ERROR, PLACE, message="no seed either", why="Why.", fix="Seed it.", source="here")
    report = Report([*CODE.findings, harder], command="lint", headline="2 findings", breaking=(ERROR, WARNING))
    suite = ET.fromstring(render(report, "junit"))
    assert [failure.get("type") for failure in suite.findall(".//failure")] == ["warning", "error"]
    assert [line.partition(" ")[0] for line in render(report, "github").splitlines()] == ["::warning", "::error"]


def test_without_findings_a_suite_passes_and_there_are_no_annotations() -> None:
    suite = ET.fromstring(render(MATCHING, "junit"))
    assert (suite.get("tests"), suite.get("failures"), len(suite.findall(".//failure"))) == ("1", "0", 0)
    assert render(MATCHING, "github") == ""


@given(NASTY, NASTY, NASTY)
def test_no_text_breaks_out_of_a_format(file: str, message: str, why: str) -> None:
    report = in_code(ERROR, Where(file=file, line=1, column=1, text=message), message, why)
    command = render(report, "github")
    assert command.startswith("::error file=")
    assert len(command.splitlines()) == 1
    assert ET.fromstring(render(report, "junit").encode("utf-8")).get("failures") == "1"
    log = json.loads(render(report, "sarif"))
    assert list(VALIDATOR.iter_errors(log)) == []
