"""How a variable's value is read and shown, and the shell commands that correct it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from envlock.data.determinism import VariableRules
from envlock.runtime.clear_values import WORDS
from envlock.runtime.collectors.environment_variables import make_recordable
from envlock.runtime.report import Finding
from envlock.runtime.tables import table

_TRUTH = {"true": "1", "false": "0"}
_MEANT = {
    "0": ("off", "no", "n", "f", "disable", "disabled"),
    "1": ("on", "yes", "y", "t", "enable", "enabled"),
}
"""Value of a bool -> words that people write for it, and that no reader understands."""


def normalize_value(value: str, row: VariableRules) -> str:
    """Return a value as its reader interprets it: for a bool, 1 or 0."""
    if row.syntax == "bool":
        return _TRUTH.get(value.lower(), value)
    return value


def guess_value(value: str, row: VariableRules) -> str | None:
    """Return what was meant by a word that the reader of a bool does not understand, or None."""
    if row.syntax == "bool":
        for meant, words in _MEANT.items():
            if value.strip().lower() in words:
                return meant
    return None


def is_understood(value: str, row: VariableRules) -> bool:
    """Return whether the variable's reader understands a value."""
    if row.syntax == "bool":
        return normalize_value(value, row) in ("0", "1")
    if row.syntax == "integer":
        return value.lstrip("-").isdigit() and value.isascii()
    return row.syntax == "any" or value in row.accepts or value == ""


def show_value(value: str, row: VariableRules) -> str:
    """Return a value in the form that a report may show, or words that it is something else.

    It is shown if a lockfile would record it as it is, or if it is a known word. A lockfile records
    a value as it is only if it is valid for its variable, so no secret is shown.
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
    """Return the shell command that sets a variable."""
    return f"export {name}={shlex.quote(value)}"


def make_unset_line(name: str) -> str:
    """Return the shell command that unsets a variable."""
    return f"unset {name}"


def make_lines(set_: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Return the shell commands that unset some variables and set others."""
    lines = list(map(make_unset_line, names))
    return lines + [make_export_line(name, value) for name, value in sorted(set_.items())]


def make_removal_line(variable: str, flag: str, instead: str = "", value: str | None = None) -> str:
    """Return the shell command that removes a flag from a variable of flags, wherever it stands, or
    replaces it.

    The other flags are unchanged and not shown. The flags may contain only letters, digits, `-`,
    `_` and `=`.

    Args:
        variable: XLA_FLAGS or TF_XLA_FLAGS.
        flag: its name.
        instead: what replaces it.
        value: remove it only with this value, in any case; empty for the flag without a value.
    """
    replacement = f" {instead} " if instead else " "
    if value is None:
        end = "(=[^ ]*)?"
    else:
        end = f"={value}" if value else ""
    # Repeated until none is left: two in a row share the space between them. The surrounding spaces
    # are removed as well: TensorFlow treats a lone space as the name of a file.
    script = f":a; s/(^| ){flag}{end}( |$)/{replacement}/I; ta; s/^ +//; s/ +$//"
    return f'export {variable}="$(echo "${variable}" | sed -E \'{script}\')"'


def make_number_removal_line(variable: str, numbers: Sequence[int]) -> str:
    """Return the shell command that removes flags by their places from a variable of flags; none is
    shown.
    """
    removals = "".join(f'${number}=""; ' for number in numbers)
    # Assigned to itself, the line is divided and joined again, with single spaces.
    script = f"{{{removals}$0=$0; $1=$1; print}}"
    return f'export {variable}="$(echo "${variable}" | awk \'{script}\')"'


def list_fixes(findings: Iterable[Finding]) -> list[str]:
    """Return the shell commands that correct all variables, sorted by name, renames first.

    A variable has one command, or one for each of its flags.
    """
    renames: set[str] = set()
    edits: set[tuple[str, str]] = set()
    plain: dict[str, str] = {}
    for finding in findings:
        for line in finding.commands:
            if not line.startswith(("unset ", "export ")):
                continue
            name = line.split()[1].partition("=")[0]
            if "; unset " in line:
                renames.add(line)
            elif f"${name}" in line:
                edits.add((name, line))
            else:
                # "export" sorts before "unset": a variable with both commands is set.
                plain[name] = min(line, plain.get(name, line))
    kept = [(name, line) for name, line in edits if name not in plain]
    return [*sorted(renames), *(line for _, line in sorted([*plain.items(), *kept]))]
