"""The rules: a table of verdicts each, and what holds for all of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from envlock.runtime.comparison_rules import RULES, parse_version
from envlock.runtime.report import ABSENT
from tests.trees import LEAVES

YES, NO = True, False

VERDICTS: list[tuple[str, Any, Any, bool]] = [
    ("exact", "1", "1", YES),
    ("exact", 1, 1.0, NO),
    ("exact", 1, True, NO),
    ("exact", None, ABSENT, NO),
    ("exact", ["a", "b"], ["b", "a"], NO),
    ("proven", "1", "1", YES),
    ("proven", "1", "2", NO),
    ("same_minor", "2.17.0", "2.17.1", YES),
    ("same_minor", "2.17.0+nv25.2", "2.17.1", YES),
    ("same_minor", "2.17.0rc1", "2.17.0", YES),
    ("same_minor", "2.17", "2.17.3", YES),
    ("same_minor", "2.17.0", "2.18.0", NO),
    ("same_minor", "2.17.0", "3.17.0", NO),
    ("same_minor", "2.1.0", "2.17.0", NO),
    ("same_minor", "2", "2.17", NO),
    ("same_minor", "1!2.0", "1!3.0", NO),
    ("same_minor", "1!2.0", "2.0", NO),
    ("same_minor", "1!2.0.1", "1!2.0.2", YES),
    ("same_minor", "x", "x", YES),
    ("same_minor", "x", "y", NO),
    ("same_minor", "2.17.0", None, NO),
    ("same_minor", "2.17.0", ABSENT, NO),
    ("same_minor", 2.17, 2.18, NO),
    ("at_least", "535.104.05", "550.54.14", YES),
    ("at_least", "535.104.05", "535.104.05", YES),
    ("at_least", "550.54.14", "535.104.05", NO),
    ("at_least", "9.3", "10.0", YES),
    ("at_least", "1.2.0", "1.2", YES),
    ("at_least", "1.2.0", "1.1", NO),
    ("at_least", "1.2.1", "1.2", NO),
    ("at_least", None, "1", YES),
    ("at_least", None, None, YES),
    ("at_least", None, ABSENT, NO),
    ("at_least", 8, 8.5, YES),
    ("at_least", 8, 7, NO),
    ("at_least", True, False, NO),
    ("at_least", "x", "y", NO),
    ("at_least", "1.0", ABSENT, NO),
    ("superset", ["a"], ["b", "a"], YES),
    ("superset", ["a", "b"], ["b"], NO),
    ("superset", [], ["b"], YES),
    ("superset", [1], [True, "1", 1.0], NO),
    ("superset", ABSENT, ["b"], YES),
    ("superset", ABSENT, "x", YES),
    ("superset", ["a"], ABSENT, NO),
    ("superset", ["a"], None, NO),
    ("superset", "a", "ab", NO),
    ("exact_where_locked", None, "7", YES),
    ("exact_where_locked", ABSENT, "7", YES),
    ("exact_where_locked", "7", "7", YES),
    ("exact_where_locked", "7", None, NO),
    ("exact_where_locked", None, ABSENT, NO),
    ("exact_where_asked", ABSENT, "7", YES),
    ("exact_where_asked", "7", ABSENT, NO),
    ("exact_where_asked", None, ABSENT, YES),
    ("exact_where_asked", None, "7", NO),
    ("exact_where_asked", "7", None, NO),
    ("exact_or_unset", None, ABSENT, YES),
    ("exact_or_unset", ABSENT, None, YES),
    ("exact_or_unset", "7", "7", YES),
    ("exact_or_unset", ABSENT, "7", NO),
    ("exact_or_unset", "7", ABSENT, NO),
    ("exact_or_unset", "", None, NO),
    ("within_3_percent", 100, 103, YES),
    ("within_3_percent", 100, 97, YES),
    ("within_3_percent", 100, 103.1, NO),
    ("within_3_percent", 100, 96.9, NO),
    ("within_3_percent", 0, 0.0, YES),
    ("within_3_percent", 0, 1, NO),
    ("within_3_percent", -100, -102, YES),
    ("within_3_percent", True, 1, NO),
    ("within_3_percent", "100", "101", NO),
    ("within_3_percent", 100, ABSENT, NO),
    ("ignore", "a", ABSENT, YES),
    ("ignore", ABSENT, None, YES),
]


def test_verdicts() -> None:
    found = [(rule, locked, live, RULES[rule](locked, live)) for rule, locked, live, _ in VERDICTS]
    assert [told for told, case in zip(found, VERDICTS, strict=True) if told[3] is not case[3]] == []


def test_every_rule_has_a_yes_and_a_no_here_but_ignore() -> None:
    told = {(rule, verdict) for rule, _, _, verdict in VERDICTS}
    assert told == {(rule, verdict) for rule in RULES for verdict in (YES, NO)} - {("ignore", NO)}


@given(value=LEAVES)
def test_every_rule_accepts_what_was_locked(value: Any) -> None:
    assert {name for name, rule in RULES.items() if not rule(value, value)} == set()


@given(locked=LEAVES, live=LEAVES)
def test_every_rule_says_yes_or_no_and_is_no_closer_than_exact(locked: Any, live: Any) -> None:
    verdicts: dict[str, object] = {name: rule(locked, live) for name, rule in RULES.items()}
    wanted = [True] if RULES["exact"](locked, live) else [True, False]
    assert {name: verdict for name, verdict in verdicts.items() if verdict not in wanted} == {}


@given(leaf=LEAVES)
def test_few_rules_accept_that_something_is_gone_or_new(leaf: Any) -> None:
    unset = {"exact_or_unset"} if leaf is None else set()
    gone = {"exact_where_asked", *unset} if leaf is None else set()
    assert {name for name, rule in RULES.items() if rule(leaf, ABSENT) is not False} == {"ignore", *gone}
    assert {name for name, rule in RULES.items() if rule(ABSENT, leaf) is not False} == {
        "exact_where_asked",
        "exact_where_locked",
        "ignore",
        "superset",
        *unset,
    }


VERSIONS: list[tuple[Any, tuple[int, ...] | None]] = [
    ("2.17.0+nv25.2", (0, 2, 17, 0)),
    ("2.18.0rc1", (0, 2, 18, 0)),
    ("2.18rc1", (0, 2, 18)),
    ("2.18rc1.5", (0, 2, 18)),
    ("2.1X8", (0, 2, 1)),
    ("2.x", (0, 2)),
    ("535.104.05", (0, 535, 104, 5)),
    ("1!2.0", (1, 2, 0)),
    ("x!2.0", None),
    ("+nv", None),
    ("", None),
    ("nightly", None),
    ("1" * 101, None),
    ("1" * 100, (0, int("1" * 100))),
    (2.17, None),
    (None, None),
]


def test_release() -> None:
    assert [(version, parse_version(version)) for version, _ in VERSIONS] == VERSIONS
