"""Findings and reports: their order, their two shapes, and that no value can play tricks on a terminal."""

from __future__ import annotations

import json
import pickle
from html import escape
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock import data
from envlock.linter.lint import LintEvidence
from envlock.reports import render
from envlock.runtime.compare import compare
from envlock.runtime.device_ranges import merge_devices
from envlock.runtime.exemptions import Exemption
from envlock.runtime.facts import Unavailable
from envlock.runtime.finding_place import Where
from envlock.runtime.policies import Policy
from envlock.runtime.report import (
    ABSENT,
    BITS,
    ERROR,
    INFO,
    INFO_SHOWN,
    NO_TENSORFLOW,
    UNKNOWN,
    WARNING,
    Finding,
    Report,
    Severity,
    count_severities,
    show,
    sort_findings,
)


def finding(
    path: str = "cpu.flags",
    severity: Severity = ERROR,
    weight: int = 50,
    *,
    rule: str = "exact",
    message: str | None = None,
    expected: Any = "a",
    actual: Any = "b",
) -> Finding:
    said = f"{path}: locked {show(expected)}, live {show(actual)}" if message is None else message
    return Finding(
        rule,
        severity,
        path,
        message=said,
        why="It may.",
        fix="Do it.",
        source="design",
        expected=expected,
        actual=actual,
        weight=weight,
    )


def test_findings_are_ranked_by_severity_then_weight_and_else_stay_in_their_order() -> None:
    findings = [
        finding("z", INFO, 99),
        finding("a", ERROR, 10),
        finding("b", ERROR, 10),
        finding("e", WARNING, 100),
        finding("c", ERROR, 90),
        finding("d", UNKNOWN, 100),
    ]
    assert [f.where.fact for f in sort_findings(findings)] == ["c", "a", "b", "d", "e", "z"]
    weightless = Finding("exact", ERROR, "w", message="m", why="w", fix="f", source="s")
    assert [f.where.fact for f in sort_findings([weightless, finding("a", weight=1)])] == ["a", "w"]
    made = Report(findings, policy="strict")
    assert (made.findings, [f.where.fact for f in made.of(ERROR)]) == (findings, ["a", "b", "c"])


VERDICTS: list[tuple[list[Severity], bool, int, str]] = [
    ([], True, 0, "matches under policy strict"),
    ([INFO], True, 0, "matches under policy strict"),
    ([ERROR], False, 1, "does not match under policy strict: 1 fact differs"),
    ([ERROR, ERROR, INFO], False, 1, "does not match under policy strict: 2 facts differ"),
    ([UNKNOWN], False, 4, "cannot decide under policy strict: 1 fact could not be collected"),
    ([UNKNOWN, UNKNOWN], False, 4, "cannot decide under policy strict: 2 facts could not be collected"),
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
]


def test_the_verdict() -> None:
    for severities, match, code, title in VERDICTS:
        findings = [finding(f"environ.V{number}", severity) for number, severity in enumerate(severities)]
        report = Report(findings, policy="strict")
        assert (report.match, report.exit_code, report.headline) == (match, code, title)
        more = " (1 difference allowed, `envlock verify -v` lists all)" if severities == [INFO] else ""
        assert report.to_text().splitlines()[0] == title + more


def report(**options: Any) -> Report:
    """Return a report with a finding of each kind, made when asked for: mutants do not reach what exists already."""
    return Report(
        [
            finding("cpu.flags", ERROR, expected=["avx"], actual=[], weight=86),
            finding("numpy.version", ERROR, expected="1.26.4", actual=ABSENT, weight=72),
            finding("keras", UNKNOWN, expected=None, actual=Unavailable("it cannot be read", "unreadable")),
            finding("cpu.quota", INFO, rule="ignore", expected=ABSENT, actual=1.5),
        ],
        policy="strict",
        **options,
    )


OVERRIDES = {"owner": "override", "count": 1200, "forbidden": True}


def test_the_headline_says_what_judged() -> None:
    judges: list[tuple[str | None, int]] = [("strict", 1), ("functional", 1200), (None, 0)]
    reports = [Report([], policy=policy, overrides=overrides) for policy, overrides in judges]
    reports.append(Report([], policy="strict", overrides=1, exempt=[Exemption("tooling", 2)]))
    assert reports[1].to_json()["policy"] == {
        "name": "functional",
        "overrides": 1200,
        "exempt": [],
        "exemptions": [OVERRIDES],
    }
    assert [each.headline for each in reports] == [
        "matches under policy strict, with 1 override",
        "matches under policy functional, with 1,200 overrides",
        "matches",
        "matches under policy strict, with 1 override and 2 packages exempt by the lockfile as tooling",
    ]


@pytest.mark.parametrize(("more", "end"), [(0, ""), (1, ", and 1 more fact differs"), (2, ", and 2 more facts differ")])
def test_a_missing_tensorflow_leads(more: int, end: str) -> None:
    lead = Finding(
        NO_TENSORFLOW,
        ERROR,
        "tensorflow",
        message="no TensorFlow in python",
        why="It may.",
        fix="Do it.",
        source="design",
    )
    found = Report([lead, *[finding() for _ in range(more)]], policy="strict")
    assert found.headline == f"does not match under policy strict: no TensorFlow in python{end}"


def test_another_command_says_what_breaks() -> None:
    report = Report([finding(severity=WARNING)], command="lint", breaking=(ERROR, WARNING), headline="1 warning")
    assert (report.match, report.exit_code, report.headline) == (False, 1, "1 warning")
    assert (Report(report.findings).match, Report(report.findings).exit_code) == (True, 0)
    unknown = Report([finding(severity=UNKNOWN)], command="doctor", breaking=(ERROR,))
    assert (unknown.match, unknown.exit_code) == (True, 0)


def test_a_finding_without_a_place_is_shown_at_the_file_that_the_report_is_about() -> None:
    files = [render(each, "github").partition(",")[0] for each in (report(), report(subject="train.lock"))]
    assert files == ["::error file=envlock.lock", "::error file=train.lock"]


def test_findings_are_counted_by_their_severity() -> None:
    severities: list[Severity] = [INFO, ERROR, WARNING, ERROR, UNKNOWN, WARNING]
    assert (
        count_severities([finding(severity=each) for each in severities])
        == "2 errors, 1 unknown fact, 2 warnings, 1 note"
    )
    assert count_severities([]) == ""


def test_a_place_in_words() -> None:
    every: dict[str, Any] = {
        "file": "train.py",
        "line": 3,
        "column": 5,
        "end_line": 4,
        "function": "f",
        "text": "x = 1",
    }
    places = {
        "cpu.flags": Where("cpu.flags"),
        "XlaLaunch": Where(operation="XlaLaunch"),
        "train.py": Where(file="train.py"),
        "train.py:3": Where(file="train.py", line=3),
        "train.py:3:5": Where("cpu.flags", **every),
        "": Where(),
    }
    assert {text: str(where) for text, where in places.items()} == {text: text for text in places}
    assert [where.to_json() for where in places.values()] == [
        {"fact": "cpu.flags"},
        {"operation": "XlaLaunch"},
        {"file": "train.py"},
        {"file": "train.py", "line": 3},
        {"fact": "cpu.flags", **every},
        {},
    ]


def bits(path: str, severity: Severity = ERROR, what: str = "it differs", actual: Any = ABSENT) -> Finding:
    result = {"result": "b", "what": what} if actual is ABSENT else actual
    return finding(path, severity, 2, rule=BITS, message=f"{path}: {what}", expected={"result": "a"}, actual=result)


def test_results_of_the_canary_are_counted_by_themselves() -> None:
    untold = Unavailable("not comparable: 2 vs 8 threads", "other-conditions")
    found = [
        finding("cpu.flags"),
        bits("numerics.bf16"),
        bits("numerics.xla.train"),
        bits("numerics.xla", UNKNOWN, "not comparable: 2 vs 8 threads", untold),
    ]
    report = Report(found, policy="strict", notes=["numerics: 3 results have the locked bits"])
    assert (report.match, report.exit_code) == (False, 1)
    assert report.to_text() == (
        "does not match under policy strict: 1 fact differs and 2 canary results differ; "
        "1 part of the canary could not be compared\n"
        "  x cpu.flags: locked a, live b\n"
        "  x numerics.bf16: it differs\n"
        "  x numerics.xla.train: it differs\n"
        "      why: It may.\n"
        "      fix: Do it.\n"
        "  ? numerics.xla: not comparable: 2 vs 8 threads\n"
        "      why: It may.\n"
        "      fix: Do it.\n"
        "numerics: 3 results have the locked bits"
    )
    assert report.to_json()["notes"] == ["numerics: 3 results have the locked bits"]


def test_the_json_shape() -> None:
    assert report().to_json() == {
        "report_version": 2,
        "command": "verify",
        "match": False,
        "headline": "does not match under policy strict: 2 facts differ; 1 more fact could not be collected",
        "policy": {"name": "strict", "overrides": 0, "exempt": [], "exemptions": []},
        "compared": None,
        "findings": [
            as_json("cpu.flags", "exact", "error", "locked [avx], live []", expected=["avx"], actual=[]),
            as_json("numpy.version", "exact", "error", "locked 1.26.4, live absent", expected="1.26.4"),
            as_json(
                "keras",
                "exact",
                "unknown",
                "locked none, live unknown (it cannot be read)",
                expected=None,
                actual={"unavailable": "it cannot be read", "code": "unreadable"},
            ),
            as_json("cpu.quota", "ignore", "info", "locked absent, live 1.5", actual=1.5),
        ],
        "notes": [],
        "attachments": {},
    }
    assert json.loads(render(report(), "json")) == report().to_json()


def as_json(path: str, rule: str, severity: Severity, sides: str, **compared: Any) -> dict[str, Any]:
    told = {"why": "It may.", "fix": "Do it.", "source": "design"}
    return {
        "where": {"fact": path},
        "rule": rule,
        "severity": severity,
        "message": f"{path}: {sides}",
        **told,
        **compared,
    }


def test_the_json_of_all_that_a_finding_can_have() -> None:
    where = Where(file="train.py", line=3, column=5, end_line=4, end_column=2, function="f", text="x = 1")
    told = Finding(
        "ENV203", WARNING, where, message="m", why="w", fix="f", source="s", commands=["unset A", "export B=1"]
    )
    report = Report([told], command="lint", headline="1 warning", notes=["a note"], evidence=LintEvidence(1, "2.21.0"))
    assert report.to_json() == {
        "report_version": 2,
        "command": "lint",
        "match": True,
        "headline": "1 warning",
        "policy": None,
        "compared": None,
        "findings": [
            {
                "rule": "ENV203",
                "severity": "warning",
                "where": {
                    "file": "train.py",
                    "line": 3,
                    "column": 5,
                    "end_line": 4,
                    "end_column": 2,
                    "function": "f",
                    "text": "x = 1",
                },
                "message": "m",
                "why": "w",
                "fix": "f",
                "source": "s",
                "commands": ["unset A", "export B=1"],
            }
        ],
        "notes": ["a note"],
        "attachments": {"files": 1, "tensorflow": "2.21.0"},
    }


def test_the_json_is_in_the_published_shape() -> None:
    schema = json.loads(Path(data.__file__).with_name("report.schema.json").read_bytes())
    jsonschema.validate(report().to_json(), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**report().to_json(), "report_version": 1}, schema)


def test_the_text() -> None:
    expected = """\
does not match under policy strict: 2 facts differ; 1 more fact could not be collected
  x cpu.flags: locked [avx], live []
  x numpy.version: locked 1.26.4, live absent
      why: It may.
      fix: Do it.
  ? keras: locked none, live unknown (it cannot be read)
      why: It may.
      fix: Do it.
1 difference that policy strict allows (`envlock verify -v` lists all)"""
    assert report().to_text() == str(report()) == repr(report()) == expected
    assert render(report()) == expected
    head, _, _ = expected.rpartition(" (")
    assert render(report(), verbose=True) == f"{head}\n  i cpu.quota: locked absent, live 1.5\n      why: It may."


def test_a_yes_is_one_line_and_the_rest_is_told_on_request() -> None:
    made = Report([finding("cpu.quota", INFO), finding("packages.pip.version", INFO)], policy="strict")
    made.details.append("a detail")
    head = "matches under policy strict"
    assert made.to_text() == f"{head} (2 differences allowed, `envlock verify -v` lists all)"
    assert render(made, verbose=True).splitlines() == [
        head,
        "2 differences that policy strict allows",
        "  i cpu.quota: locked a, live b",
        "  i packages.pip.version: locked a, live b",
        "      why: It may.",
        "a detail",
    ]
    assert made.to_json()["notes"] == ["a detail"]
    assert made.add_findings([]).details == ["a detail"]


def test_a_report_without_a_headline_begins_with_its_findings() -> None:
    assert report(headline="").to_text().startswith("  x cpu.flags: locked [avx], live []\n")


def test_every_line_has_a_style() -> None:
    assert [style for style, _ in report(notes=["a note"]).lines()] == [
        *("title", ERROR, ERROR, "note", "note", UNKNOWN, "note", "note"),
        *("note", "plain"),
    ]
    assert [style for style, _ in report().lines(verbose=True)][-3:] == ["title", INFO, "note"]


def test_a_notebook_shows_the_text_and_obeys_nothing_in_it() -> None:
    report = Report([finding("<b>", expected="<script>")], policy="strict")
    assert "  x &lt;b&gt;: locked &lt;script&gt;, live b\n" in report._repr_html_()
    assert report._repr_html_() == f"<pre>{escape(report.to_text())}</pre>"


def test_the_text_of_a_command_that_no_policy_judges() -> None:
    told = Finding(
        "ENV203", WARNING, "environ.A", message="A is set", why="It may.", fix="unset A\nexport A=1", source="s"
    )
    worth = finding("cpu.quota", INFO, rule="quota")
    report = Report([told, worth], command="doctor", headline="1 warning", titles={"ENV203": "variables"}, notes=["n"])
    assert report.to_text() == (
        "1 warning\n"
        "  ! A is set [ENV203]\n"
        "      why: It may.\n"
        "      fix: unset A\n"
        "      fix: export A=1\n"
        "  i cpu.quota: locked a, live b\n"
        "      why: It may.\n"
        "      fix: Do it.\n"
        "n"
    )


def test_many_of_a_kind_that_are_let_through_are_folded_and_none_that_breaks_the_policy() -> None:
    names = [f"packages.p{number}.installer" for number in range(1, 8)]
    report = Report(
        [finding(name, severity, expected="pip", actual="uv") for severity in (ERROR, INFO) for name in names],
        policy="strict",
        command="canary",
    )
    text = report.to_text().splitlines()
    assert [line for line in text if line.startswith("  x")] == [f"  x {name}: locked pip, live uv" for name in names]
    assert [line for line in text if line.startswith("  i")] == [
        *(f"  i {name}: locked pip, live uv" for name in names[:4]),
        "  i and 3 more (`--format json` lists all)",
    ]
    assert len(report.to_json()["findings"]) == 14


def test_colour_adds_colour_and_changes_no_word() -> None:
    painted = render(report(), color=True)
    assert "\x1b[31m" in painted
    plain = painted
    for code in ("0", "1", "2", "31", "33", "36"):
        plain = plain.replace(f"\x1b[{code}m", "")
    assert plain == report().to_text()


SHOWN: list[tuple[Any, str]] = [
    (None, "none"),
    ("", '""'),
    (True, "true"),
    (False, "false"),
    (1, "1"),
    (1.5, "1.5"),
    ([], "[]"),
    ([None, True, "a"], "[none, true, a]"),
    (list(range(12)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]"),
    (list(range(13)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...]"),
    ({"version": "1.0", "origin": None}, "1.0"),
    ({"name": "NVIDIA H200", "sm_count": 132}, "NVIDIA H200"),
    ({"devices": {"0": {"name": "T4"}, "1": {"name": "T4"}}, "driver_version": "535.1"}, "T4, driver 535.1"),
    ({"devices": {}, "driver_version": "535.1"}, "{devices, driver_version}"),
    ({"b": 1, "a": 2}, "{a, b}"),
    (dict.fromkeys("hgfedcba"), "{a, b, c, d, e, f, g, h}"),
    (dict.fromkeys("ihgfedcba"), "{a, b, c, d, e, f, g, h, ...}"),
    ({}, "{}"),
    ("\u00e9 \\ \u202e \n", "\u00e9 \\ \\u202e \\n"),
    (ABSENT, "absent"),
    (Unavailable("no\x1bway", "x"), "unknown (no\\x1bway)"),
]


def test_how_a_value_is_shown() -> None:
    assert [(value, show(value)) for value, _ in SHOWN] == SHOWN


TEXTS = st.text(st.characters() | st.sampled_from("\x00\x1b\x9b\r\n\u202e[]"), max_size=20)
VALUES = TEXTS | st.lists(TEXTS, max_size=3) | st.dictionaries(TEXTS, TEXTS, max_size=3)


@given(path=TEXTS, expected=VALUES, actual=VALUES, name=TEXTS)
def test_no_control_character_of_a_value_reaches_the_output(path: str, expected: Any, actual: Any, name: str) -> None:
    raw = [finding(path, severity, message=path, expected=expected, actual=actual) for severity in (ERROR, INFO)]
    compared = compare(({"a": {path: expected}}, {}), ({"a": {path: actual}}, {}), Policy("strict"), (name, name))
    for line in render(Report([*raw, *compared], policy="strict")).split("\n"):
        assert line.isprintable()


@given(path=TEXTS, expected=VALUES)
def test_json_escapes_what_a_terminal_would_obey(path: str, expected: Any) -> None:
    text = render(Report([finding(path, message=path, expected=expected)], policy="strict"), "json")
    assert all(line.isprintable() for line in text.split("\n"))
    assert json.loads(text)["findings"][0]["expected"] == expected


def test_markup_in_a_value_is_shown_as_it_is() -> None:
    words = ["[red]x[/red]", "[/]", "[link=https://example.org]x[/link]", "\\[bold]", ":smile:"]
    report = Report([finding(word, expected=word, actual=word) for word in words], policy="strict")
    lines = [f"{word}: locked {word}, live {word}" for word in words]
    for text in (render(report, color=True), render(report)):
        assert [line for line in lines if line not in text] == []


def test_absent_is_one_object_and_says_so() -> None:
    assert repr(ABSENT) == "absent"
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT


@pytest.mark.parametrize(("files", "last"), [(20, None), (21, "  and 1 more file"), (25, "  and 5 more files")])
def test_an_exception_lists_the_first_files(files: int, last: str | None) -> None:
    wrong = [finding(f"f{number}", rule="file-modified", message=f"f{number}: other") for number in range(files)]
    allowed = finding("g", INFO, rule="file-startup", message="g: it runs")
    report = Report([*wrong, allowed], policy="strict")
    listed = [f"  x f{number}: other" for number in range(20)]
    headline = f"does not match under policy strict: {files} files are not as recorded"
    assert report.to_text().splitlines() == [headline, *listed, *([last] if last else [])]
    styles = {line: style for style, line in report._render_everything()}
    assert last is None or styles[last] == "note"


def test_headlines_of_one_and_of_several_kinds() -> None:
    bits, unread = finding(rule=BITS), finding("f", UNKNOWN, rule="file-unread")
    assert Report([bits], policy="strict").headline == "does not match under policy strict: 1 canary result differs"
    file = finding("f", rule="file-modified")
    assert Report([file], policy="strict").headline == "does not match under policy strict: 1 file is not as recorded"
    assert Report([unread, finding("g", UNKNOWN)], policy="strict").headline == (
        "cannot decide under policy strict: 1 fact could not be collected and 1 file could not be read"
    )
    assert Report([finding("data/", UNKNOWN, rule="data")], policy="strict").headline == (
        "cannot decide under policy strict: the data at 1 path could not be read"
    )


def test_a_finding_of_a_file_names_its_place() -> None:
    where = Where(file="train.py", line=3, column=5)
    one = Finding("X", ERROR, where, message="a message", why="Why.", fix="Do it.", source="here")
    assert Report([one]).to_text().splitlines()[1] == f"  x {where}: a message"


@pytest.mark.parametrize("number", [INFO_SHOWN, INFO_SHOWN + 1])
def test_many_allowed_differences_are_counted(number: int) -> None:
    found = [finding(f"cpu.x{each}", INFO) for each in range(number)]
    lines = Report(found, command="canary", policy="strict").to_text()
    assert ("more (`--format json` lists all)" in lines) == (number > INFO_SHOWN)


def test_what_differs_alike_in_several_gpus_is_one_line() -> None:
    def differing(index: int, name: str, severity: Severity = ERROR) -> Finding:
        return finding(f"gpu.devices.{index}.{name}", severity, expected="H100", actual="T4")

    eight = [differing(index, name) for index in range(8) for name in ("name", "ecc")]
    allowed = [differing(index, "info.vbios", INFO) for index in (0, 1, 3, 12)]
    report = Report([*eight, *allowed], policy="strict")
    assert report.to_text().splitlines()[:2] == [
        "does not match under policy strict: 1 change (16 facts)",
        "  x another machine: H100 -> T4 (16 facts)",
    ]
    assert render(report, verbose=True).splitlines() == [
        "does not match under policy strict: 1 change (16 facts)",
        "  x gpu.devices.0-7.name: locked H100, live T4",
        "  x gpu.devices.0-7.ecc: locked H100, live T4",
        "      why: It may.",
        "      fix: Do it.",
        "4 differences that policy strict allows",
        "  i gpu.devices.0-1,3,12.info.vbios: locked H100, live T4",
        "      why: It may.",
    ]
    # Each is still in what programs read.
    assert len(report.to_json()["findings"]) == 20


@pytest.mark.parametrize(
    ("messages", "merged"),
    [
        (["GPU 0 (T4): no code", "GPU 1 (T4): no code"], ["GPUs 0-1 (T4): no code"]),
        (["GPU 0 (T4): no code", "GPU 1 (A2): no code"], ["GPU 0 (T4): no code", "GPU 1 (A2): no code"]),
        (["gpu.devices.2: gone"], ["gpu.devices.2: gone"]),
        (["gpu.devices.1: locked 1, live 2", "gpu.devices.2: locked 1, live 2"], ["gpu.devices.1-2: locked 1, live 2"]),
        (["cpu.model: a", "cpu.model: a"], ["cpu.model: a"]),
        ([], []),
    ],
)
def test_messages_about_gpus(messages: list[str], merged: list[str]) -> None:
    assert merge_devices(messages) == merged
