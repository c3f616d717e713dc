"""No remedy without a row: a new rule, fact or file is red until the table says who obeys its remedy, or why nobody does."""

from __future__ import annotations

from envlock.runtime.facts import matches
from tests.remedies.rows import ROOT, Remedy, list_facts, list_files, list_rules, load_remedies

LARGEST = 0.15
"""The share of remedies that may be for a person."""


def select(of: str) -> list[Remedy]:
    return [row for row in load_remedies() if row.of == of]


def test_each_rule_of_the_doctor_has_one_row() -> None:
    assert sorted(row.name for row in select("doctor")) == sorted(list_rules())


def test_each_rule_on_files_has_one_row() -> None:
    assert sorted(row.name for row in select("file")) == sorted(list_files())


def test_each_fact_that_can_be_changed_here_has_a_row_and_each_pattern_a_fact() -> None:
    patterns = [pattern for row in select("fact") for pattern in row.name.split()]
    # `**` is a row of its own: facts that no other row names.
    named = [pattern for pattern in patterns if pattern != "**"]
    facts = [path for path in list_facts() if path != "**"]
    assert [path for path in facts if not any(matches(each, path) for each in named)] == []
    assert [each for each in named if not any(matches(each, path) for path in facts)] == []


def test_what_is_said_to_obey_exists() -> None:
    for row in load_remedies():
        if not row.obeyed:
            continue
        path, _, function = row.obeyed.partition("::")
        assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), row.obeyed


def test_few_are_for_a_person() -> None:
    rows = load_remedies()
    persons = [row.name for row in rows if row.kind == "person"]
    assert len(persons) <= LARGEST * len(rows), persons
