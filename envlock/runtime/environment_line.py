"""The line that identifies an environment. Pure.

docs/reference/formats.md defines it.
"""

from __future__ import annotations

import json
from hashlib import sha256

from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

VERSION = "1"
"""The version of the definition in docs/reference/formats.md; a change of the bytes gets a new
number.
"""
START = f"envlock:{VERSION}:sha256:"
DIGITS = 64


def make_line(document: Mapping[str, Any]) -> str:
    """Return the line of a validated document."""
    # A reason is free text, and its wording may change: only its code counts.
    codes = {path: entry["code"] for path, entry in document["unavailable"].items()}
    # What was loaded is seen by importing it, and a line is made without that.
    facts = {name: value for name, value in document["facts"].items() if name != "loaded"}
    digested = {"facts": facts, "unavailable": codes}
    # Not escaped, so that a program in another language writes the same bytes with a plain JSON
    # writer.
    text = json.dumps(digested, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return START + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def parse_line(text: str) -> str:
    """Return a line without surrounding white space.

    Raises:
        UsageError: the text is not such a line, or has another version.
    """
    line = text.strip()
    name, _, rest = line.partition(":")
    version, _, digest = rest.partition(":")
    if name == "envlock" and version != VERSION and version.isdigit():
        raise UsageError(
            f"a line of version {clean(version[:8])}; this envlock reads version {VERSION}",
            hint="use an envlock that prints lines of that version",
        )
    number = digest[len("sha256:") :]
    is_line = (
        line.startswith(START) and len(number) == DIGITS and not number.strip("0123456789abcdef")
    )
    if not is_line:
        raise UsageError(
            f"not a line of `envlock show --line`: {show(line[:80])}",
            hint=f"give the whole line: `{START}` and {DIGITS} hexadecimal digits",
        )
    return line
