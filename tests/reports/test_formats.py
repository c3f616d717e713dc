"""The formats for other services: golden files, the official schema of SARIF, and text that would break out of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.reports import FORMATS, github, junit, sarif
from envlock.reports.problem import Problem, Rule
from envlock.runtime.facts import Unavailable
from envlock.runtime.report import ABSENT, ERROR, INFO, UNKNOWN, Finding, Report
from tests.trees import quick

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden"
SCHEMA = json.loads((HERE / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
NASTY = st.text(st.characters(codec=None) | st.sampled_from(",:%\n\r\0\x1b\ud800&<>\"'"), max_size=30)


def finding(path: str, severity: str = ERROR, actual: Any = "0", expected: Any = "1") -> Finding:
    return Finding(
        path,
        rule="exact",
        expected=expected,
        actual=actual,
        severity=severity,
        why="It changes bits: 100 % of them.",
        fix="Set it, as the lock has it.",
        source="https://example.org/why",
        weight=50,
    )


REPORT = Report(
    [
        finding("environ.TF_ENABLE_ONEDNN_OPTS"),
        finding("packages.keras.version", actual=ABSENT, expected="3.5.0"),
        finding("gpu.driver", UNKNOWN, actual=Unavailable("the driver did not answer", "nvml-9"), expected="535.1"),
        finding("system.kernel", INFO, actual="6.1", expected="5.15"),
    ],
    "strict",
)
RULE = Rule("ENV203", "a shuffle, unseeded", "warning", "Why: it is 100 % random.", "Seed it.", "https://example.org/x")
PROBLEM = Problem("ENV203", "warning", "no seed", "Seed it.", "src/a,b.py", 3, 5, 4, 9, "ds.shuffle(3)")


@pytest.mark.parametrize("name", ["github", "junit", "sarif"])
def test_a_report_is_written_as_the_golden_file_has_it(name: str) -> None:
    golden = GOLDEN / f"report.{name}"
    text = FORMATS[name](REPORT) + "\n"
    if os.environ.get("ENVLOCK_TEST_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("report", [REPORT, Report([], "strict")])
def test_sarif_is_valid_by_its_own_schema(report: Report) -> None:
    log = json.loads(sarif.render(report))
    assert list(VALIDATOR.iter_errors(log)) == []
    assert [result["level"] for result in log["runs"][0]["results"]] == [
        {"error": "error", "unknown": "warning", "info": "note"}[each.severity] for each in report.findings
    ]


def test_the_schema_would_find_a_wrong_log() -> None:
    log = json.loads(sarif.log([RULE], [PROBLEM]))
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    assert len(list(VALIDATOR.iter_errors(log))) == 1


def test_a_problem_in_a_file_has_its_place_in_every_format() -> None:
    assert github.commands([RULE], [PROBLEM]) == (
        "::warning file=src/a%2Cb.py,line=3,endLine=4,col=5,title=ENV203 a shuffle%2C unseeded"
        "::no seed%0Awhy: Why: it is 100 %25 random.%0Afix: Seed it."
    )
    result = json.loads(sarif.log([RULE], [PROBLEM]))["runs"][0]["results"][0]
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
    case = ET.fromstring(junit.suite("lint", [RULE], [PROBLEM])).find("testsuite/testcase")
    assert case is not None
    assert (case.get("file"), case.get("line"), case.get("name")) == ("src/a,b.py", "3", "ENV203 src/a,b.py:3:5")


def test_without_problems_a_suite_passes_and_there_are_no_annotations() -> None:
    suite = ET.fromstring(junit.render(Report([], "strict")))
    assert (suite.get("tests"), suite.get("failures"), len(suite.findall(".//failure"))) == ("1", "0", 0)
    assert github.render(Report([], "strict")) == ""


@quick
@given(NASTY, NASTY, NASTY)
def test_no_text_breaks_out_of_a_format(file: str, message: str, why: str) -> None:
    rule = Rule("ENV203", "title", "error", why, "fix", "source")
    problem = Problem("ENV203", "error", message, "fix", file, 1, 1, text=message)
    command = github.commands([rule], [problem])
    assert command.startswith("::error file=")
    assert len(command.splitlines()) == 1
    assert ET.fromstring(junit.suite("lint", [rule], [problem]).encode("utf-8")).get("failures") == "1"
    log = json.loads(sarif.log([rule], [problem]))
    assert list(VALIDATOR.iter_errors(log)) == []
