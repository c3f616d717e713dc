"""The reference page of findings: every code that has one meaning, as `envlock explain CODE` prints it."""

from __future__ import annotations

from itertools import groupby

from envlock.workflows.codes import EACH, Code, list_codes

HEAD = """\
<!-- written by tools/generate.py from what `envlock explain CODE` prints -->
# Findings

The code of a finding is the word in brackets in a report, or its `rule` in JSON; `envlock explain CODE` explains it.
The rules of facts are those of the [policies](policies.md), and words that are neither are under
[formats](formats.md#the-report).
"""
LINTERS = {"envlock lint", "envlock.lint_dataset"}
"""Their codes have sections on [a page of their own](lint.md)."""


def page() -> str:
    """Return the page: a section for each code, under the command that finds it."""
    parts = [HEAD]
    for command, found in groupby(list_codes().values(), key=lambda code: code.command):
        parts.append(f"\n## `{command}`\n")
        if command in LINTERS:
            links = ", ".join(f"[{each.code}](lint.md#{each.code.lower()})" for each in found)
            parts.append(
                f"\nEach with its reason and its remedy on [the page of the linter](lint.md): {links}.\n"
            )
            continue
        rows = list(found)
        if all(each.why == EACH for each in rows):
            parts.append("\nWhy and fix depend on what is found: each finding says it.\n")
        parts += [f"\n{_section(each)}" for each in rows]
    return "".join(parts)


def _section(code: Code) -> str:
    """Return what is known of one code, under a heading that links can name."""
    text = f"### {code.code}\n\n{code.title[0].upper()}{code.title[1:]}.\n"
    if code.why != EACH:
        text += f"\n{code.why}\n\nFix: {code.fix}\n"
    return text
