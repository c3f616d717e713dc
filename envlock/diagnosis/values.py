"""How a variable's value is read and shown, and the shell lines that put it right. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from envlock.data.determinism import VariableRules
from envlock.runtime.clear import WORDS
from envlock.runtime.collectors.environ import record
from envlock.runtime.report import Finding
from envlock.runtime.tables import table

_TRUTH = {"true": "1", "false": "0"}


def canonical(value: str, row: VariableRules) -> str:
    """Return a value as its reader takes it: of a bool 1 or 0."""
    return _TRUTH.get(value.lower(), value) if row.syntax == "bool" else value


def is_understood(value: str, row: VariableRules) -> bool:
    """Return whether a value is one that the variable's reader understands."""
    if row.syntax == "bool":
        return canonical(value, row) in ("0", "1")
    if row.syntax == "integer":
        return value.lstrip("-").isdigit() and value.isascii()
    return row.syntax == "any" or value in row.accepts or value == ""


def shown(value: str, row: VariableRules) -> str:
    """Return a value as a report may show it: as a lock would hold it, or made of known words; else that it is another.

    A lock holds a value as it stands only when it is what its variable takes, so nothing secret is shown.
    """
    if value == "":
        return "empty"
    locked = next((each for each in table("environ") if each["name"] == row.name), None)
    known = {word for each in row.dangerous for word in each.values} | {*row.accepts, *WORDS}
    plain = (
        value in known
        or value.lower() in known
        or (value.isascii() and value.isdigit() and len(value) < 24)
    )
    if plain or (locked is not None and record(value, locked) == value):
        return value
    return "set to something else"


def export(name: str, value: str) -> str:
    """Return the line for a shell that sets a variable."""
    return f"export {name}={shlex.quote(value)}"


def unset(name: str) -> str:
    """Return the line for a shell that unsets a variable."""
    return f"unset {name}"


def commands(set_: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Return the lines for a shell that unset some variables and set others."""
    return [*map(unset, names), *(export(name, value) for name, value in sorted(set_.items()))]


def without(variable: str, flag: str, instead: str = "") -> str:
    """Return the line for a shell that takes a flag out of a variable full of flags, or writes another in its place.

    The rest stays as it is and is not shown. Nothing but letters, digits, `-`, `_` and `=` may be in the flags.
    """
    place = f" {instead} " if instead else " "
    script = f"s/(^| ){flag}(=[^ ]*)?( |$)/{place}/; s/^ +//; s/ +$//"  # TensorFlow takes a lone blank for a file's name
    return f'export {variable}="$(echo "${variable}" | sed -E \'{script}\')"'


def exports(findings: Iterable[Finding]) -> list[str]:
    """Return the lines for a shell that put all variables right, one a variable, sorted by name."""
    lines = [
        line
        for finding in findings
        for line in finding.commands
        if line.startswith(("unset ", "export "))
    ]
    by_name = {
        line.split()[1].partition("=")[0]: line for line in sorted(lines, reverse=True)
    }  # to set it wins
    return [line for _, line in sorted(by_name.items())]
