"""How a variable's value is read and shown, and the shell lines that correct it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from envlock.data.determinism import VariableRules
from envlock.runtime.clear_values import WORDS
from envlock.runtime.collectors.environment_variables import make_recordable
from envlock.runtime.report import Finding
from envlock.runtime.tables import table

_TRUTH = {"true": "1", "false": "0"}


def normalize_value(value: str, row: VariableRules) -> str:
    """Return a value as its reader takes it: of a bool 1 or 0."""
    if row.syntax == "bool":
        return _TRUTH.get(value.lower(), value)
    return value


def is_understood(value: str, row: VariableRules) -> bool:
    """Return whether a value is one that the variable's reader understands."""
    if row.syntax == "bool":
        return normalize_value(value, row) in ("0", "1")
    if row.syntax == "integer":
        return value.lstrip("-").isdigit() and value.isascii()
    return row.syntax == "any" or value in row.accepts or value == ""


def show_value(value: str, row: VariableRules) -> str:
    """Return a value as a report may show it, or that it is another.

    It is shown where a lock would hold it as it is, or where it is a known word. A lock holds a
    value as it is only when its variable takes it, so nothing secret is shown.
    """
    if value == "":
        return "empty"
    words = {*row.accepts, *WORDS}
    for rule in row.dangerous:
        words.update(rule.values)
    if value in words or value.lower() in words:
        return value
    if value.isascii() and value.isdigit() and len(value) < 24:
        return value
    for lock_row in table("environ"):
        if lock_row["name"] == row.name and make_recordable(value, lock_row) == value:
            return value
    return "set to something else"


def make_export_line(name: str, value: str) -> str:
    """Return the line for a shell that sets a variable."""
    return f"export {name}={shlex.quote(value)}"


def make_unset_line(name: str) -> str:
    """Return the line for a shell that unsets a variable."""
    return f"unset {name}"


def make_lines(set_: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Return the lines for a shell that unset some variables and set others."""
    lines = list(map(make_unset_line, names))
    return lines + [make_export_line(name, value) for name, value in sorted(set_.items())]


def make_removal_line(variable: str, flag: str, instead: str = "") -> str:
    """Return the line for a shell that removes a flag from a variable of flags, or replaces it.

    The rest stays as it is and is not shown. Nothing but letters, digits, `-`, `_` and `=` may be
    in the flags.
    """
    replacement = " "
    if instead:
        replacement = f" {instead} "
    # The blanks around are removed as well: TensorFlow takes a lone blank for a file's name.
    script = f"s/(^| ){flag}(=[^ ]*)?( |$)/{replacement}/; s/^ +//; s/ +$//"
    return f'export {variable}="$(echo "${variable}" | sed -E \'{script}\')"'


def list_fixes(findings: Iterable[Finding]) -> list[str]:
    """Return the lines for a shell that correct all variables, one a variable, sorted by name."""
    lines = set()
    for finding in findings:
        for line in finding.commands:
            if line.startswith(("unset ", "export ")):
                lines.add(line)
    line_by_name = {}
    # "export" sorts before "unset": where a variable has both, it is set.
    for line in sorted(lines, reverse=True):
        line_by_name[line.split()[1].partition("=")[0]] = line
    return [line_by_name[name] for name in sorted(line_by_name)]
