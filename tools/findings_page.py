"""The reference page of findings: every code that has one meaning, as `envlock explain CODE` prints it."""

from __future__ import annotations

from itertools import groupby

from envlock.workflows.codes import EACH, list_codes

HEAD = """\
<!-- written by tools/generate.py from what `envlock explain CODE` prints -->
# Findings

The code of a finding is the word in brackets in a report, or its `rule` in JSON; `envlock explain CODE` explains it.
The rules of facts are those of the [policies](policies.md), and words that are neither are under
[formats](formats.md#the-report).
"""
LINTERS = {"envlock lint", "envlock.lint_dataset"}
"""Their codes have [a page of their own](lint.md), by which the table here does not grow."""


def page() -> str:
    """Return the page: a table for each command that finds something."""
    parts = [HEAD]
    for command, found in groupby(list_codes().values(), key=lambda code: code.command):
        parts.append(f"\n## `{command}`\n\n")
        if command in LINTERS:
            links = ", ".join(f"[{each.code}](lint.md#{each.code.lower()})" for each in found)
            parts.append(
                f"Each with its reason and its remedy on [the page of the linter](lint.md): {links}.\n"
            )
            continue
        rows = list(found)
        if all(each.why == EACH for each in rows):
            parts.append(
                "Why and fix depend on what is found: each finding says it.\n\n| code | finds |\n|---|---|\n"
            )
            parts += [f"| `{each.code}` | {each.title} |\n" for each in rows]
            continue
        parts.append("| code | finds | why | fix |\n|---|---|---|---|\n")
        parts += [f"| `{each.code}` | {each.title} | {each.why} | {each.fix} |\n" for each in rows]
    return "".join(parts)
