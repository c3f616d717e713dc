"""Values of variables in clear, in a report on the machine where they are set.

A lockfile holds only their digest. Only what cannot be a secret is shown: words from a closed list,
numbers, and folders of the system. A list of what looks like a secret would have holes; a value
that is not on a list of harmless ones is merely less readable.
"""

from __future__ import annotations

from envlock.runtime.collectors.environment_variables import make_recordable
from envlock.runtime.report import show
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Mapping, Optional

    from envlock.runtime.report import Finding

WORDS = (
    *("yes", "no", "on", "off", "none", "null", "y", "n", "t", "f"),
    *("enable", "enabled", "disable", "disabled"),
    *("true", "false", "default", "auto", "random", "fast", "accurate", "any", "strict"),
)
"""What people write for a switch, whatever the variable takes."""

SYSTEM = ("/usr/", "/lib/", "/lib64/", "/opt/")
"""Folders of the system, whose names are those of software; a path in a home folder names its
user."""

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
        path = finding.where.fact
        if DIGEST in finding.message and path.startswith(PREFIX):
            for digest, value in in_clear(path[len(PREFIX) :], environ).items():
                finding.message = finding.message.replace(digest, value)


def in_clear(name: str, environ: Mapping[str, str]) -> Dict[str, str]:
    """Return what a variable's value may be shown as, by what a lockfile holds of it.

    Empty where that is the same, or where the value may be a secret.
    """
    value = environ.get(name)
    row = next((row for row in table("environ") if row["name"] == name), None)
    if value is None or row is None:
        return {}
    recorded = make_recordable(value, row)
    readable = _make_readable(value, row)
    if recorded is None or readable is None or recorded == readable:
        return {}
    # Blanks at an end would not be seen.
    if readable != readable.strip():
        readable = repr(readable)
    return {recorded: show(readable)}


def _make_readable(value: str, row: Mapping[str, Any]) -> Optional[str]:
    """Return a value with what is not harmless as its digest; None where nothing is recorded."""
    if all(map(_is_system, value.split(":"))):
        return value
    words = {*WORDS, "#"}
    for each in table("environ"):
        words.update(each.get("words", ()))
    kind = "word"
    if row["records"] == "flags":
        kind = "flags"
    return make_recordable(value, {**row, "records": kind, "words": words})


def _is_system(entry: str) -> bool:
    """Return whether an entry of a path is empty, or in a folder of the system."""
    if not entry:
        return True
    # Two dots lead out of the folder; blanks and signs of other scripts can spell a name.
    if ".." in entry or " " in entry or not entry.isascii() or not entry.isprintable():
        return False
    return entry.startswith(SYSTEM)
