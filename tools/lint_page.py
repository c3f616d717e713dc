"""The reference page of the linter: what its rules find, why it matters, what to do."""

from __future__ import annotations

from difflib import unified_diff

from envlock.data.lint_tables import LintRule, find_reference, load_dataset_rules, load_lint_rules

HEAD = """\
<!-- written by tools/generate.py from lint.toml and dataset_rules.toml of envlock/data/ -->
# Rules of the linter

`envlock lint` finds ENV0 to ENV3 in Python code, and `envlock.lint_dataset` finds ENV5 in the graph of a dataset. An
error is code that does not do what it says, does not run, or (ENV5) differs from run to run. A warning is code that
differs, or can differ, from run to run. Information does not change the exit code.
What rules say about GPUs is from sources, not measured. Each example has the finding (-), and its correction has not (+).

"""


def page() -> str:
    """Return the page: the names of all rules, then each with its reason and its remedy."""
    rows = [*load_lint_rules().values(), *load_dataset_rules().values()]
    names = "".join(
        f"- {severity}: {', '.join(_link(row) for row in rows if row.severity == severity)}\n"
        for severity in dict.fromkeys(row.severity for row in rows)
    )
    return HEAD + names + "".join(map(_section, rows))


def _link(row: LintRule) -> str:
    return f"[{row.id}](#{row.id.lower()}) {row.name}"


def _section(row: LintRule) -> str:
    source = find_reference(row.source)
    known = f"<{source}>" if source.startswith("https://") else f"`{source}`"
    versions = "" if row.tensorflow == ["*"] else f", in TensorFlow {', '.join(row.tensorflow)}"
    title = f"{row.title[0].upper()}{row.title[1:]}{versions}"
    example = ""
    if row.before:
        lines = unified_diff(row.before.splitlines(), row.after.splitlines(), n=99, lineterm="")
        # Without the names of files and the line numbers.
        changed = "\n".join(line.rstrip() for line in list(lines)[3:])
        example = f"\n```diff\n{changed}\n```\n"
    return f"\n## {row.id}\n\n{title}.\n\n{row.why}\n\nFix: {row.fix}\n{example}\nSource: {known}\n"
