"""Jupyter and IPython: `%load_ext envlock` adds `%envlock`, and reports are shown as tables."""

from __future__ import annotations

import argparse
import shlex
from html import escape

import envlock

try:
    from IPython.core.error import UsageError
except ImportError:  # the facade loads this module also without IPython
    UsageError = ValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, NoReturn, Optional

    from IPython.core.interactiveshell import InteractiveShell

COLOURS = {"error": "#c62828", "unknown": "#b26a00", "warning": "#b26a00", "info": "#1565c0"}
"""Readable on white and on black."""
MATCH_COLOUR = "#2e7d32"

ROWS = 50  # a notebook keeps its output, and 50 facts are enough to see what kind of change it is
HINT = "write `%envlock [verify|doctor|line] [LOCK] [--policy POLICY]`"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add `%envlock` to a shell of IPython, which calls this for `%load_ext envlock`.

    `%envlock verify [LOCK] [--policy POLICY]` shows whether this is the locked environment,
    `%envlock line [LOCK]` the line that identifies it, and `%envlock doctor [LOCK]` its problems;
    only the last needs the extra `notebook`.
    """
    shell.register_magic_function(_run, "line", "envlock")
    shell.display_formatter.formatters["text/html"].for_type(envlock.Report, render_html)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove `%envlock` from a shell of IPython, which calls this for `%unload_ext envlock`."""
    shell.magics_manager.magics["line"].pop("envlock", None)
    shell.display_formatter.formatters["text/html"].pop(envlock.Report, None)


def _run(line: str) -> object:
    """Show whether this is the locked environment.

    `%envlock [verify|doctor|line] [LOCK] [--policy POLICY]`
    """
    try:
        return _execute(line)
    except (envlock.EnvlockError, ImportError) as error:
        # A notebook shows this error as one sentence, and stops there.
        raise UsageError(str(error)) from None


class _Parser(argparse.ArgumentParser):
    """A parser that does not end the process, which is that of the notebook."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise envlock.UsageError(message, hint=HINT)


def _execute(line: str) -> Optional[object]:
    """Return the result of the words after `%envlock`: a report or a line."""
    parser = _Parser(add_help=False)
    parser.add_argument("action", nargs="?", choices=("verify", "doctor", "line"), default="verify")
    parser.add_argument("lock", nargs="?")
    parser.add_argument("--policy", "-p")
    try:
        arguments = parser.parse_args(shlex.split(line))
    except ValueError as error:
        raise envlock.UsageError(str(error), hint=HINT) from None
    if arguments.action == "line":
        return envlock.cite(arguments.lock)
    if arguments.action == "doctor":
        return envlock.doctor(arguments.lock)
    try:
        return envlock.assert_locked(arguments.lock, arguments.policy)
    except envlock.EnvironmentMismatch as error:
        return error.report


def render_html(report: envlock.Report) -> str:
    """Return a report for a notebook: the answer, a table of the findings that decide it, and the
    rest folded.
    """
    deciding = []
    others = []
    for finding in report.changes:
        if finding.severity == "info":
            others.append(finding)
        else:
            deciding.append(finding)
    colour = MATCH_COLOUR if report.match else COLOURS["error"]
    lines = [f'<p><strong style="color: {colour}">{escape(report.headline)}</strong></p>']
    if deciding:
        lines += ["<table>", *_render_row("th", ["", "finding", "why", "what to do"])]
        for finding in deciding[:ROWS]:
            lines += _render_row("td", _render_cells(finding))
        lines.append("</table>")
    if len(deciding) > ROWS:
        lines.append(
            f"<p>and {len(deciding) - ROWS} more: <code>print(report)</code> lists all</p>"
        )
    if others:
        lines.append(f"<details><summary>differences that are allowed: {len(others)}</summary><ul>")
        lines += [f"<li>{escape(finding.message)}</li>" for finding in others]
        lines.append("</ul></details>")
    lines += [f"<p>{escape(note)}</p>" for note in report.notes]
    return "\n".join(lines)


def _render_cells(finding: envlock.Finding) -> List[str]:
    """Return the severity of a finding, its message, why it matters and its remedy, as HTML."""
    colour = COLOURS[finding.severity]
    cells = [f'<span style="color: {colour}">{escape(finding.severity)}</span>']
    message = f"{finding.where}: {finding.message}" if finding.where.file else finding.message
    texts = (message, finding.why, finding.fix)
    return [*cells, *(escape(text).replace("\n", "<br>") for text in texts)]


def _render_row(tag: str, cells: List[str]) -> Iterator[str]:
    yield "<tr>"
    for cell in cells:
        yield f'<{tag} style="text-align: left">{cell}</{tag}>'
    yield "</tr>"
