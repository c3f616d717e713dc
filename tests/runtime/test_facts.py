"""Facts: null, absent and unavailable stay three things; equal means equal in value and in type."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from envlock.runtime.facts import Unavailable, is_same, iter_leaves, split
from tests.trees import LEAVES, TREES


def test_split_takes_what_is_unavailable_out_of_the_tree() -> None:
    tree = {"a": {"b": Unavailable("no way", "x"), "c": None, "d": {}}, "e": Unavailable("denied", "y"), "f": [1]}
    assert split(tree) == (
        {"a": {"c": None, "d": {}}, "f": [1]},
        {"a.b": {"reason": "no way", "code": "x"}, "e": {"reason": "denied", "code": "y"}},
    )


MALFORMED: dict[str, list[Any]] = {
    "it has unprintable characters": [
        "a\x1b[2J",
        "line\n",
        "\x9b",
        "\u202e",
        "\udcff",
        ["fine", "not\x00"],
        [1, "not\x00"],
    ],
    "it is longer than 1000 characters": ["x" * 1001, ["x" * 1001]],
}


def test_what_cannot_be_printed_or_is_too_long_is_unavailable() -> None:
    for reason, values in MALFORMED.items():
        told = {"a.b": {"reason": reason, "code": "malformed"}}
        assert [value for value in values if split({"a": {"b": value}}) != ({"a": {}}, told)] == []


def test_what_can_be_printed_is_kept() -> None:
    tree = {"a": "", "b": "é ✓", "c": "x" * 1000, "d": [], "e": ["", None, 1, True], "f": 10**30}
    assert split(tree) == (tree, {})


@given(TREES)
def test_splitting_a_tree_without_unavailable_changes_nothing(tree: dict[str, Any]) -> None:
    assert split(tree) == (tree, {})


UNEQUAL = [0, 0.0, False, None, "", "0", [], {}, [0], [False], {"a": 0}, {"a": 0.0}, [None], ["0"], {"b": 0}]


def test_values_of_two_types_are_two_values() -> None:
    found = [(a, b) for a, left in enumerate(UNEQUAL) for b, right in enumerate(UNEQUAL) if is_same(left, right)]
    assert found == [(number, number) for number in range(len(UNEQUAL))]


@given(TREES)
def test_a_tree_is_the_same_as_itself(tree: dict[str, Any]) -> None:
    assert is_same(tree, tree)


def test_leaves_give_every_path_and_the_empty_object() -> None:
    tree = {"a": {"b": 1, "c": {"d": [1]}}, "e": {}, "f": None}
    assert list(iter_leaves(tree)) == [("a.b", 1), ("a.c.d", [1]), ("e", {}), ("f", None)]


def test_unavailable_is_equal_by_reason_and_code_and_to_nothing_else() -> None:
    entry = Unavailable("why", "code")
    others: list[Any] = [Unavailable("why", "other"), Unavailable("other", "code"), None, "why", ("why", "code")]
    assert (entry == Unavailable("why", "code"), [entry == other for other in others]) == (True, [False] * 5)
    assert len({entry, Unavailable("why", "code")}) == 1
    assert len({hash(entry), *map(hash, others[:2])}) == 3
    assert repr(entry) == "Unavailable('why', 'code')"


@given(LEAVES)
def test_nothing_is_the_same_as_what_is_unavailable(value: Any) -> None:
    assert not is_same(value, Unavailable("why", "code"))
