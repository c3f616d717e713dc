"""Jupyter and IPython: `%load_ext envlock` adds `%envlock`, and reports are shown as tables."""

from __future__ import annotations

import envlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, List

COLOURS = {"error": "#c62828", "unknown": "#b26a00", "warning": "#b26a00", "info": "#1565c0"}
"""Readable on white and on black."""

ROWS = 50
HINT = "write `%envlock [verify|doctor|line] [LOCK] [--policy POLICY]`"


def load_ipython_extension(shell: Any) -> None:
    """Add `%envlock` to a shell of IPython, which calls this for `%load_ext envlock`.

    `%envlock verify [LOCK] [--policy POLICY]` shows whether this is the locked environment, `%envlock line [LOCK]` the
    line that names it, and `%envlock doctor [LOCK]` what is wrong with it; only the last needs the complete envlock.
    """
    shell.register_magic_function(_run, "line", "envlock")
    shell.display_formatter.formatters["text/html"].for_type(envlock.Report, to_html)


def unload_ipython_extension(shell: Any) -> None:
    """Remove `%envlock` from a shell of IPython, which calls this for `%unload_ext envlock`."""
    shell.magics_manager.magics["line"].pop("envlock", None)
    shell.display_formatter.formatters["text/html"].pop(envlock.Report, None)


def _run(line: str) -> Any:
    """Show whether this is the locked environment: `%envlock [verify|doctor|line] [LOCK] [--policy POLICY]`."""
    from IPython.core.error import UsageError

    try:
        return _answer(line)
    except (envlock.EnvlockError, ImportError) as error:
        raise UsageError(
            str(error)
        ) from None  # which a notebook shows as one sentence, and stops at


def _answer(line: str) -> Any:
    import argparse
    import shlex

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> Any:
            raise envlock.UsageError(message, hint=HINT)

    parser = Parser(add_help=False)
    parser.add_argument("action", nargs="?", choices=("verify", "doctor", "line"), default="verify")
    parser.add_argument("lock", nargs="?")
    parser.add_argument("--policy", "-p")
    try:
        asked = parser.parse_args(shlex.split(line))
    except ValueError as error:
        raise envlock.UsageError(str(error), hint=HINT) from None
    if asked.action == "line":
        return envlock.cite(asked.lock)
    if asked.action == "doctor":
        return envlock.doctor(asked.lock)
    try:
        return envlock.assert_locked(asked.lock, asked.policy)
    except envlock.EnvironmentMismatch as error:
        return error.report


def to_html(report: envlock.Report) -> str:
    """Return a report as a notebook shows it: the answer, a table of what decides it, the rest folded."""
    from html import escape

    deciding = [each for each in report.findings if each.severity != "info"]
    others = [each for each in report.findings if each.severity == "info"]
    colour = "#2e7d32" if report.match else COLOURS["error"]
    lines = [f'<p><strong style="color: {colour}">{escape(report.headline)}</strong></p>']
    if deciding:
        lines += ["<table>", *_row("th", ["", "finding", "why", "what to do"])]
        for each in deciding[:ROWS]:
            mark = f'<span style="color: {COLOURS[each.severity]}">{escape(each.severity)}</span>'
            place = f"{each.where}: " if each.where.file else ""
            cells = [
                escape(text).replace("\n", "<br>")
                for text in (place + each.message, each.why, each.fix)
            ]
            lines += _row("td", [mark, *cells])
        lines.append("</table>")
    if len(deciding) > ROWS:
        lines.append(
            f"<p>and {len(deciding) - ROWS} more: <code>print(report)</code> lists all</p>"
        )
    if others:
        lines.append(f"<details><summary>differences that are allowed: {len(others)}</summary><ul>")
        lines += [f"<li>{escape(each.message)}</li>" for each in others]
        lines.append("</ul></details>")
    return "\n".join([*lines, *(f"<p>{escape(note)}</p>" for note in report.notes)])


def _row(tag: str, cells: List[str]) -> Iterator[str]:
    yield "<tr>"
    for cell in cells:
        yield f'<{tag} style="text-align: left">{cell}</{tag}>'
    yield "</tr>"
