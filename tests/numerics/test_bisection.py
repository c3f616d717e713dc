"""Delta debugging over facts: the causes are found whatever they are, alone or together, in few runs."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from envlock.numerics.bisection import Cause, Causes, find_smallest, split_evenly

MANY = [Cause(f"packages.p{number:03}.version", "1", "2") for number in range(250)]


class Runs:
    """A program whose bits change where all causes of one of these sets act; it counts how often it is asked."""

    def __init__(self, *sets: Causes) -> None:
        self.sets = sets
        self.asked: dict[Causes, bool] = {}

    def __call__(self, causes: Causes) -> bool:
        self.asked[causes] = any(needed <= causes for needed in self.sets)
        return self.asked[causes]


def test_one_cause_of_250_is_found_in_about_twice_its_logarithm() -> None:
    runs = Runs(frozenset({MANY[137]}))
    assert find_smallest(MANY, runs) == (MANY[137],)
    assert len(runs.asked) <= 2 * math.ceil(math.log2(len(MANY)))


def test_two_causes_that_only_act_together_are_found() -> None:
    wanted = frozenset({MANY[3], MANY[200]})
    runs = Runs(wanted)
    assert frozenset(find_smallest(MANY, runs)) == wanted
    assert len(runs.asked) <= 80


def test_parts_are_whole_and_even() -> None:
    assert [len(part) for part in split_evenly(MANY[:10], 4)] == [2, 3, 2, 3]
    assert [cause for part in split_evenly(MANY, 7) for cause in part] == MANY


@given(st.lists(st.sets(st.integers(0, 15), min_size=1, max_size=4), min_size=1, max_size=3))
def test_what_is_found_is_enough_and_nothing_of_it_can_be_left_out(sets: list[set[int]]) -> None:
    causes = MANY[:16]
    runs = Runs(*(frozenset(causes[number] for number in chosen) for chosen in sets))
    found = frozenset(find_smallest(causes, runs))
    assert runs(found)
    assert not any(runs(found - {cause}) for cause in found)
