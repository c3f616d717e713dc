"""How a variable's value is read, and how it may be shown. Pure."""

from __future__ import annotations

import shlex

from envlock.data.determinism import VariableRules

_TRUTH = {"true": "1", "false": "0"}
_SHOWN = {
    *("yes", "no", "on", "off", "none", "null", "y", "n", "t", "f", "enable", "enabled", "disable", "disabled"),
    *("true", "false", "default", "auto", "random", "fast", "accurate", "any", "strict"),
}


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


def shown(value: str, row: VariableRules | None = None) -> str:
    """Return a value as a report may show it: what is made of known words, else that it is something else."""
    known = {word for each in row.dangerous for word in each.values} | {*row.accepts} if row is not None else set()
    if value == "":
        return "empty"
    if value in known or value.lower() in _SHOWN or (value.isascii() and value.lstrip("-").isdigit()):
        return value if len(value) < 24 else "a long number"
    return "set to something else"


def export(name: str, value: str) -> str:
    """Return the line for a shell that sets a variable."""
    return f"export {name}={shlex.quote(value)}"


def unset(*names: str) -> str:
    """Return the line for a shell that unsets variables."""
    return f"unset {' '.join(names)}"


def lines(set_: dict[str, str], names: list[str]) -> str:
    """Return one line for a shell that does both."""
    parts = [unset(*names)] if names else []
    return "; ".join([*parts, *(export(name, value) for name, value in sorted(set_.items()))])
