"""Every command's report in every format: one envelope, valid by its schema, and no word in it does anything."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from typer.main import get_command

from envlock import data
from envlock.cli import app
from envlock.cli.lint import LINT_FORMATS
from envlock.cli.options import DATA_FORMATS
from envlock.fleet.engines import CHOICES as LAUNCHERS
from envlock.image.engines import AUTO, ENGINES
from envlock.image.forms import FORMS
from envlock.packages.export_formats import FORMATS as EXPORTS
from envlock.reports import FORMATS, render
from envlock.reports.file_tables import is_file
from envlock.runtime.policies import names
from envlock.runtime.report import Report, clean, count
from tests.reports.commands import COMMANDS
from tests.reports.test_formats import VALIDATOR

SCHEMA = json.loads(Path(data.__file__).with_name("report.schema.json").read_bytes())
ENVELOPE = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
HARMLESS = "word"
EVIL = '\x1b[31m\x07\r\n::error::]]>&"<b>%0A\x85\u2028\u202e\ufffe\udcff|'
COMMAND = "::error::]]>"
WORDS = pytest.mark.parametrize("word", [HARMLESS, EVIL, COMMAND], ids=["harmless", "evil", "command"])
TAGS = {"testsuites", "testsuite", "testcase", "failure", "system-out"}
ANNOTATION = re.compile(r"::(error|warning|notice) ([A-Za-z]+=[^,:]*(?:,[A-Za-z]+=[^,:]*)*)::(.*)")


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> str:
    """Return each command that judges."""
    name: str = request.param
    return name


def built(command: str, word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """Return the reports of a command, in which a word stands wherever one from outside can stand."""
    return COMMANDS[command](word, folder, patch)


def annotated(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Return what GitHub reads: of each line the level, the properties and the message."""
    found = []
    for line in text.split("\n") if text else ():
        read = ANNOTATION.fullmatch(line)
        assert read is not None, line
        pairs = (each.partition("=") for each in read[2].split(","))
        found.append((read[1], {name: _unescaped(value) for name, _, value in pairs}, _unescaped(read[3])))
    return found


def _unescaped(text: str) -> str:
    for written, meant in (("%3A", ":"), ("%2C", ","), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(written, meant)
    return text


def test_all_of_them_are_here_and_each_can_say_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(COMMANDS) == SCHEMA["properties"]["command"]["enum"]
    for number, command in enumerate(COMMANDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        reports = built(command, HARMLESS, folder, monkeypatch)
        assert {report.command for report in reports} == {command}
        assert {report.match for report in reports} == {True, False}, command
        assert [report.match for report in reports] == [report.exit_code == 0 for report in reports]


JUDGES_WITHOUT_COMPARING = {"doctor", "lint", "lint_dataset"}


def test_a_report_says_how_much_was_compared(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that compares and has nothing to compare with says so by null, as `canary` without a lockfile."""
    found = [(report.compared, report.match) for report in built(command, HARMLESS, tmp_path, monkeypatch)]
    assert any(compared for compared, _ in found) == (command not in JUDGES_WITHOUT_COMPARING)
    for compared, match in found:
        if compared and match:
            assert sum(compared.values()) > compared["unknown"]


def test_each_why_is_a_sentence(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whys = {each.why for report in built(command, HARMLESS, tmp_path, monkeypatch) for each in report.findings}
    plain = [why for why in whys if not why.startswith((HARMLESS, "oneDNN"))]
    assert [why for why in plain if why and not (why[0].isupper() and why.endswith("."))] == []


@WORDS
def test_json_is_the_one_envelope(command: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for report in built(command, word, tmp_path, monkeypatch):
        text = render(report, "json")
        assert all(line.isprintable() for line in text.split("\n"))
        found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        assert found == report.to_json()
        assert list(ENVELOPE.iter_errors(found)) == []
        assert [each["message"] for each in found["findings"]] == [each.message for each in report.findings]


@WORDS
def test_sarif_is_valid_and_has_every_finding(
    command: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for report in built(command, word, tmp_path, monkeypatch):
        text = render(report, "sarif")
        assert all(line.isprintable() for line in text.split("\n"))
        log = json.loads(text)
        assert list(VALIDATOR.iter_errors(log)) == []
        (run,) = log["runs"]
        ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert len(ids) == len(set(ids))
        assert all(ids)
        assert [ids[result["ruleIndex"]] for result in run["results"]] == [each["ruleId"] for each in run["results"]]
        messages = [f"{each.message}. {each.fix}" for each in report.findings]
        assert [result["message"]["text"] for result in run["results"]] == messages


@WORDS
def test_junit_is_well_formed_and_has_every_finding(
    command: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for report in built(command, word, tmp_path, monkeypatch):
        text = render(report, "junit")
        assert all(line.isprintable() for line in text.split("\n"))
        suites = ET.fromstring(text.encode("utf-8"))
        assert {element.tag for element in suites.iter()} <= TAGS
        cases = suites.findall("testsuite/testcase")
        assert len(cases) == max(len(report.findings), 1)
        assert all(case.get("name") and case.get("classname") for case in cases)
        # Which of them fail is one test's matter: that of the golden file of this format.
        failures = suites.findall("testsuite/testcase/failure")
        assert (suites.get("failures"), suites.get("tests")) == (str(len(failures)), str(len(cases)))
        words = [part.get("message") or part.text for case in cases for part in case]
        assert words == [clean(each.message) for each in report.findings]


@WORDS
def test_github_reads_one_annotation_a_finding_and_one_for_all_that_is_allowed(
    command: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = {"error": "error", "unknown": "warning", "warning": "warning", "info": "notice"}
    for report in built(command, word, tmp_path, monkeypatch):
        text = render(report, "github")
        assert all(line.isprintable() for line in text.split("\n"))
        found = annotated(text)
        shown = [each for each in report.findings if each not in report.allowed]
        if report.allowed:
            number = count(len(report.allowed), "difference")
            assert found.pop()[2] == f"{number} that policy {report.policy} allows (`envlock verify -v` lists them)"
        assert len(found) == len(shown)
        for (level, properties, message), each in zip(found, shown, strict=True):
            assert level == levels[each.severity]
            assert set(properties) <= {"file", "line", "endLine", "col", "title"}
            assert properties["file"]
            words = f"{each.message}\nwhy: {each.why}\nfix: {each.fix}"
            assert message == "\n".join(clean(line) for line in words.split("\n"))


@WORDS
def test_text_moves_no_cursor_commands_nothing_and_leaves_no_error_out(
    command: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for report in built(command, word, tmp_path, monkeypatch):
        text = render(report)
        lines = text.split("\n")
        assert all(line.isprintable() for line in lines)
        assert not any(line.lstrip().startswith("::") for line in lines)  # or GitHub would obey its log
        for each in report.findings:
            shown = each.where.fact if is_file(each) else each.message
            assert each.severity == "info" or clean(shown) in text, each.message
        assert without_color(render(report, color=True)) == text
        assert str(report).split("\n")[0] == clean(report.headline)
        assert all(line.isprintable() for line in str(report).split("\n"))


def without_color(text: str) -> str:
    """Return text without the codes that envlock itself puts in."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_every_format_is_tested_here() -> None:
    wanted = "a format needs a test of its own in this file: docs/contributing/format.md"
    assert FORMATS == ("text", "json", "github", "junit", "sarif"), wanted


def test_options_take_their_choices_from_the_tables() -> None:
    """So that a format, an engine or a policy is known to every command or to none, in help and completion too."""
    known = {"--format": {"|".join(each) for each in (FORMATS, DATA_FORMATS, LINT_FORMATS, (*EXPORTS, *FORMS))}}
    known["--policy"] = {"|".join(names())}
    known["--engine"] = {"|".join((AUTO, *ENGINES))}
    known["--launcher"] = {"|".join(LAUNCHERS)}
    found = [
        (context, option, each.metavar)
        for context, command in _each(get_command(app))
        for each in command.params
        for option in each.opts
        if option in known and each.metavar not in known[option]
    ]
    assert found == []
    judging = [name for name, command in _each(get_command(app)) if _all_formats(command)]
    assert sorted(judging) == sorted(
        {"diverge run", "fleet run", *SCHEMA["properties"]["command"]["enum"]} - {"diverge", "lint_dataset"}
    )


def _each(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every command by its words, a group before what is in it."""
    yield name, command
    context = command.make_context("envlock", [], resilient_parsing=True)
    for each in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from _each(command.get_command(context, each), f"{name} {each}".strip())


def _all_formats(command: Any) -> bool:
    every = {"|".join(FORMATS), "|".join(LINT_FORMATS)}
    return any("--format" in each.opts and each.metavar in every for each in command.params)


def test_every_command_has_every_format(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for report in built(command, HARMLESS, tmp_path, monkeypatch):
        assert all(isinstance(render(report, name), str) for name in FORMATS)


def test_evil_words_make_no_lines_of_their_own(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def counted(word: str) -> list[dict[str, int]]:
        folder = tmp_path / str(len(word))
        folder.mkdir()
        reports = built(command, word, folder, monkeypatch)
        return [{name: render(report, name).count("\n") for name in ("text", "github")} for report in reports]

    assert counted(EVIL) == counted(COMMAND) == counted(HARMLESS)
