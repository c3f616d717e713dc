"""Show the values of variables in plain text, in a report on the machine where they are set.

A lockfile has only their digests. Only values that cannot be secrets are shown: words from a closed
list, numbers, and system folders. A list of patterns that look like secrets would have gaps; with a
list of harmless values, a gap only makes a value less readable.
"""

from __future__ import annotations

from envlock.runtime.collectors.environment_variables import make_recordable
from envlock.runtime.report import Finding, show
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Mapping, Optional


WORDS = (
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
    "true",
    "false",
    "default",
    "auto",
    "random",
    "fast",
    "accurate",
    "any",
    "strict",
)
"""Words that are commonly used for a switch, whatever the variable accepts."""

SYSTEM = ("/usr/", "/lib/", "/lib64/", "/opt/")
"""System folders, whose names are those of software; a path in a home folder contains the name of
its user.
"""

DIGEST = "sha256:"
PREFIX = "environ."


def show_in_clear(findings: Iterable[Finding], environ: Mapping[str, str]) -> None:
    """Replace digests in the messages of findings by the values that they stand for, unless these
    may be secrets.

    The compared values are not changed. A digest is replaced only if it is that of the variable's
    present value.

    Args:
        findings: those of a report on this machine.
        environ: the variables of the process that the report is about.
    """
    for finding in findings:
        path = finding.where.fact
        if DIGEST in finding.message and path.startswith(PREFIX):
            for digest, value in in_clear(path[len(PREFIX) :], environ).items():
                finding.message = finding.message.replace(digest, value)


def in_clear(name: str, environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the text that can be shown for a variable's value, by the text that a lockfile has for
    it.

    Empty if the two are the same, or if the value may be a secret.
    """
    value = environ.get(name)
    row = next((row for row in table("environ") if row["name"] == name), None)
    if value is None or row is None:
        return {}
    recorded = make_recordable(value, row)
    readable = _make_readable(value, row)
    if recorded is None or readable is None or recorded == readable:
        return {}
    # Spaces at an end would be invisible.
    if readable != readable.strip():
        readable = repr(readable)
    return {recorded: show(readable)}


def _make_readable(value: str, row: Mapping[str, Any]) -> Optional[str]:
    """Return a value in which everything that may be a secret is replaced by its digest; None if
    nothing is recorded.
    """
    if all(map(_is_system, value.split(":"))):
        return value
    words = {*WORDS, "#"}
    for each in table("environ"):
        words.update(each.get("words", ()))
    kind = "flags" if row["records"] == "flags" else "word"
    return make_recordable(value, {**row, "records": kind, "words": words})


def _is_system(entry: str) -> bool:
    """Return whether an entry of a path is empty, or in a system folder."""
    if not entry:
        return True
    # Two dots lead out of the folder; spaces and non-ASCII characters can spell a name.
    if ".." in entry or " " in entry or not entry.isascii() or not entry.isprintable():
        return False
    return entry.startswith(SYSTEM)
