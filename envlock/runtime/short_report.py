"""A report as an exception shows it: the most important findings in a few lines, and what to do."""

from __future__ import annotations

import os
import re
import shlex

from envlock.runtime.report import (
    LAUNCHER,
    NO_TENSORFLOW,
    Finding,
    Report,
    clean,
    count,
    find_causes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Match, Tuple

    Cause = Tuple[str, List[Finding]]
    Line = Tuple[str, str]

LINES = 25
"""A traceback above it and the prompt below still fit a terminal with 40 lines."""
ALL = "`envlock verify` lists all"
INSTALL = "to get the locked packages: `envlock sync`"
RUN = "to start a program as locked: `envlock run`"
ADD = "to accept this machine, too: `envlock capture --add-machine`"
ACCEPT = "to accept this change: `envlock capture --only {0}`"
OTHERS = "; for other ways: `envlock explain {0}`"
_COMMAND = re.compile(r"`envlock (sync|run|capture|explain|ignore)\b")
_NAMING = {
    "sync": " {}",
    "run": " {} --",
    "capture": " -o {}",
    "explain": " --lock {}",
    "ignore": " --lock {}",
}
"""How each command names a lockfile."""
_OF_ENVIRONMENT = re.compile(r"`envlock (run|capture|explain|verify|doctor)\b(?! --python)")
_PLACEHOLDER = "--python PYTHON"


def in_short(report: Report) -> str:
    """Return a report in at most `LINES` lines: the likeliest cause first, and accepted differences
    only as a count.
    """
    tail: List[Line] = []
    if report.allowed:
        number = count(len(report.allowed), "difference")
        listing = f"{number} that policy {report.policy} allows ({report.name_listing()})"
        tail.append(("note", listing))
    tail += [("note", note) for note in report.notes]
    room = LINES - 2 - len(tail)  # the headline, and the number of lines that are left out
    lines: List[Line] = [("title", report.headline)]
    hidden = 0
    for block in _list_blocks(report):
        shown = _cut(block, room)
        room -= len(shown)
        hidden += _count_findings(block) - _count_findings(shown)
        lines += shown
    if hidden:
        lines.append(("note", f"  and {count(hidden, 'more finding')} ({ALL})"))
    return "\n".join([line for _, line in [*lines, *tail]])


def _list_blocks(report: Report) -> List[List[Line]]:
    """Return the lines of findings, grouped by kind; those about the launcher come first, because
    they explain others.
    """
    blocks = sorted(report.blocks(), key=lambda block: block[0] != LAUNCHER)
    files = report.render_files()
    return [lines for _, lines in blocks] + ([files] if files else [])


def _count_findings(block: List[Line]) -> int:
    return sum(style != "note" for style, _ in block)


def _cut(block: List[Line], room: int) -> List[Line]:
    """Return as many findings of a block as fit, with their reason and remedy; or no lines."""
    notes = [line for line in block if line[0] == "note"]
    findings = [line for line in block if line[0] != "note"]
    shown = findings[: max(0, room - len(notes))]
    if not shown:
        return []
    return shown + notes


def suggest_way(report: Report) -> List[str]:
    """Return a note with the likeliest way to a match; empty if no facts differ."""
    if report.match or any(finding.rule == NO_TENSORFLOW for finding in report.findings):
        return []
    causes = find_causes(report.findings)
    if not causes:
        return []
    # Packages are the commonest cause, and their versions explain others; then a variable, which
    # can have changed what is read from it.
    kinds = (_is_of_packages, _is_variable)
    likely = (cause for is_kind in kinds for cause in causes if is_kind(cause))
    name, parts = cause = next(likely, causes[0])
    shown = name if len(parts) > 1 else parts[0].where.fact
    return [(_choose_way(cause) + OTHERS).format(shown)]


def name_lock_in(report: Report, path: str) -> None:
    """Let the commands in a report name its lockfile, as `name_lock` does."""
    report.notes[:] = [name_lock(note, path) for note in report.notes]
    for finding in report.findings:
        finding.fix = name_lock(finding.fix, path)


def name_python_in(report: Report, python: str, *, found: bool) -> None:
    """Let the commands in a report name the environment that was examined, as `name_python` does."""
    report.notes[:] = [name_python(note, python, found=found) for note in report.notes]
    for finding in report.findings:
        finding.fix = name_python(finding.fix, python, found=found)


def name_python(text: str, python: str, *, found: bool) -> str:
    """Return a text whose commands name the interpreter of the environment that was examined: `sync`, which would change
    it, always, the others unless they find it by themselves.
    """
    named = f"--python {_spell(python)}"
    text = text.replace(_PLACEHOLDER, named)
    return text if found else _OF_ENVIRONMENT.sub(lambda command: f"{command[0]} {named}", text)


def _spell(path: str) -> str:
    """Return a path as it is typed in the current folder."""
    below = os.path.relpath(path)
    return clean(shlex.quote(os.path.abspath(path) if below.startswith(os.pardir) else below))


def name_lock(text: str, path: str) -> str:
    """Return a text whose commands name the lockfile at `path`: it is not the one that they take by themselves."""
    name = _spell(path)

    def add(command: Match[str]) -> str:
        return command[0] + _NAMING[command[1]].format(name)

    return _COMMAND.sub(add, text)


def _is_of_packages(cause: Cause) -> bool:
    name, parts = cause
    return name == "python" or any(part.where.fact.startswith("packages.") for part in parts)


def _is_variable(cause: Cause) -> bool:
    return any(part.where.fact.startswith("environ.") for part in cause[1])


def _choose_way(cause: Cause) -> str:
    if _is_of_packages(cause):
        return INSTALL
    if cause[0] == "cpus" or _is_variable(cause):
        return RUN
    return ADD if cause[0] == "machine" else ACCEPT
