"""What the code of a finding means: the explanations that `envlock explain CODE` prints."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from envlock.data.lint_tables import LintRule, find_reference, load_dataset_rules, load_lint_rules
from envlock.data.runtime_tables import load_file_table
from envlock.diagnosis.doctor_table import load_doctor_table, load_titles
from envlock.lock.nearest_pattern import find_nearest_pattern
from envlock.runtime.errors import UsageError
from envlock.runtime.report import FILE_RULE

LONGEST = 60
"""Letters of a misspelt name that an error repeats."""

EACH = "It depends on what is found: each finding says it."
"""Stands for what differs by variable, package and GPU."""


@dataclass(frozen=True)
class Code:
    """What a finding with this code means.

    Attributes:
        code: the rule of the finding, such as `ENV203`, `file-modified` or `variable-needed`.
        command: the command that finds it.
        title: what is found, in a few words.
        why, fix: a sentence or more each.
        source: the evidence for `why`.
        before, after: an example and its cure, as Python code; empty for what is not found in code.
    """

    code: str
    command: str
    title: str
    why: str
    fix: str
    source: str
    before: str = ""
    after: str = ""


@cache
def list_codes() -> dict[str, Code]:
    """Return all codes with their explanations, by command and in the order of their tables."""
    doctor = [_describe_check(name, title) for name, title in load_titles().items()]
    linter = [_describe_rule(row, "envlock lint") for row in load_lint_rules().values()]
    pipelines = [
        _describe_rule(row, "envlock.lint_dataset") for row in load_dataset_rules().values()
    ]
    return {code.code: code for code in [*_list_file_codes(), *doctor, *linter, *pipelines]}


def check_name(name: str) -> None:
    """Refuse a word that is neither a code nor like the path of a fact.

    Raises:
        UsageError: the hint names the most similar code.
    """
    if find_nearest_pattern(name) is not None:
        return
    by_lower_case = {code.lower(): code for code in list_codes()}
    # 0.8 allows one wrong letter in a word, and offers no other rule for `ENV999`.
    near = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.8)
    if near:
        hint = f"did you mean `{by_lower_case[near[0]]}`?"
    else:
        hint = "see the policy reference for facts, and the linter reference for codes"
    raise UsageError(f"`{name[:LONGEST]}` is neither a fact nor the code of a finding", hint=hint)


def _describe_rule(row: LintRule, command: str) -> Code:
    source = find_reference(row.source)
    return Code(row.id, command, row.title, row.why, row.fix, source, row.before, row.after)


def _describe_check(rule: str, title: str) -> Code:
    rows = [row for name, row in load_doctor_table().items() if rule in (name, row.rule)]
    texts = []
    for column in ("why", "fix", "source"):
        forms = {getattr(row, column) for row in rows}
        text = forms.pop()
        texts.append(EACH if forms or "{" in text else text)
    return Code(rule, "envlock doctor", title, *texts)


def _list_file_codes() -> list[Code]:
    table = load_file_table()
    command = "envlock verify --deep"
    return [
        Code(
            FILE_RULE + row.name,
            command,
            row.title,
            row.why,
            row.fix,
            table.evidence.get(row.source, row.source),
        )
        for row in table.kind
    ]
