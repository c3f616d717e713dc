"""Values of variables in clear, in a report on the machine where they are set: a lockfile holds only their digest.

Only what cannot be a secret is shown: words from a closed list, numbers, and folders of the system. A list of what
looks like a secret would have holes; a value that is not on a list of harmless ones is merely less readable.
"""

from __future__ import annotations

from envlock.runtime.collectors.environ import record
from envlock.runtime.report import show
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Mapping, Optional

    from envlock.runtime.report import Finding

WORDS = (
    *(
        "yes",
        "no",
        "on",
        "off",
        "none",
        "null",
        "y",
        "n",
        "t",
        "f",
        "enable",
        "enabled",
        "disable",
        "disabled",
    ),
    *("true", "false", "default", "auto", "random", "fast", "accurate", "any", "strict"),
)
"""What people write for a switch, whatever the variable takes."""

SYSTEM = ("/usr/", "/lib/", "/lib64/", "/opt/")
"""Folders of the system, whose names are those of software; a path in a home folder names its user."""

DIGEST = "sha256:"
PREFIX = "environ."


def show_in_clear(findings: Iterable[Finding], environ: Mapping[str, str]) -> None:
    """Replace digests in the messages of findings by the values that they are of, where those cannot be secret.

    The compared values stay as they are. A digest is of a value only if the value gives it.

    Args:
        findings: those of a report on this machine.
        environ: the variables of the process that they are about.
    """
    for finding in findings:
        if DIGEST in finding.message and finding.where.fact.startswith(PREFIX):
            name = finding.where.fact[len(PREFIX) :]
            recorded = in_clear(name, environ)
            for digest, shown in recorded.items():
                finding.message = finding.message.replace(digest, shown)


def in_clear(name: str, environ: Mapping[str, str]) -> Dict[str, str]:
    """Return what a variable's value may be shown as, by what a lockfile holds of it; empty where that is the same."""
    value = environ.get(name)
    row = next((each for each in table("environ") if each["name"] == name), None)
    if value is None or row is None:
        return {}
    recorded, shown = record(value, row), _shown(value, row)
    if recorded is None or shown is None or recorded == shown:
        return {}
    return {recorded: show(shown if shown == shown.strip() else repr(shown))}


def _shown(value: str, row: Mapping[str, Any]) -> Optional[str]:
    if all(_is_system(entry) for entry in value.split(":")):
        return value
    kind = "flags" if row["records"] == "flags" else "word"
    every = [word for each in table("environ") for word in each.get("words", ())]
    return record(value, {**row, "records": kind, "words": {*WORDS, *every, "#"}})


def _is_system(entry: str) -> bool:
    plain = entry.isascii() and entry.isprintable() and " " not in entry and ".." not in entry
    return not entry or (plain and entry.startswith(SYSTEM))
