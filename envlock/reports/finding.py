"""The meaning of the code of a finding, as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from envlock.runtime.report import clean

FIELDS = ("why", "fix", "source")
EXAMPLES = ("before", "after")


def render_code(code: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Yield (style, line) for a code; empty fields are left out."""
    yield "title", f"{clean(code['code'])}: {clean(code['title'])}"
    yield "plain", f"  found by: {code['command']}"
    for name in FIELDS:
        yield "note", f"  {name}: {clean(code[name])}"
    for name in EXAMPLES:
        if code[name]:
            yield "plain", f"  {name}:"
            for line in code[name].splitlines():
                yield "plain", f"    {line}".rstrip()
