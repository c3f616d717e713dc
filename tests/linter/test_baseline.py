"""A baseline holds what was found before; what is new, or on a changed line, is told."""

from __future__ import annotations

import pytest

from envlock.linter.baseline import filter_known, make_baseline, parse_baseline
from envlock.linter.files import parse
from envlock.linter.linter import Settings, check
from envlock.runtime.errors import UsageError
from envlock.runtime.report import Finding

DRAW = "import tensorflow as tf\nx = tf.data.Dataset.range(9).shuffle(9)\n"


def find(code: str, settings: Settings | None = None, path: str = "src/x.py") -> list[Finding]:
    """Return what is found in a file."""
    return list(check([parse(path, code)], settings or Settings("2.21.0")))


def test_what_moves_is_known_and_what_is_new_or_changed_is_told() -> None:
    known = parse_baseline(make_baseline(find(DRAW)))
    codes = {
        DRAW: (0, 1, 0),
        DRAW.replace("\n", "\n\n# moved\n", 1): (0, 1, 0),
        DRAW.replace("range(9)", "range(8)"): (1, 0, 1),
        f"{DRAW}{DRAW}": (1, 0, 0),  # one finding, with a place more
        "x = 1\n": (0, 0, 1),
    }
    judged = {code: filter_known(find(code), known) for code in codes}
    assert {code: (len(each.new), each.known, each.gone) for code, each in judged.items()} == codes


def test_fewer_places_than_were_known_are_not_told() -> None:
    judged = filter_known(find(DRAW), parse_baseline(make_baseline(find(f"{DRAW}{DRAW}"))))
    assert (judged.new, judged.known) == ([], 1)


def test_what_was_not_looked_for_is_not_gone() -> None:
    known = parse_baseline(make_baseline(find(DRAW)))
    judged = filter_known([], known, lambda file, rule: (file, rule) != ("src/x.py", "ENV203"))
    assert judged.gone == 0


def test_a_baseline_is_sorted_and_counts() -> None:
    assert make_baseline(find(f"{DRAW}{DRAW}")) == {
        "baseline_version": 1,
        "findings": [
            {"file": "src/x.py", "rule": "ENV203", "text": "x = tf.data.Dataset.range(9).shuffle(9)", "count": 2}
        ],
    }


@pytest.mark.parametrize("document", [[], {}, {"baseline_version": 2}])
def test_what_is_no_baseline_is_refused(document: object) -> None:
    with pytest.raises(UsageError, match="not a baseline of version 1"):
        parse_baseline(document)


@pytest.mark.parametrize(
    ("pattern", "rule", "ignored"),
    [
        ("src/*", "ENV203", True),
        ("x.py", "ENV2", True),
        ("tests/*", "ENV203", False),
        ("src/*", "ENV1", False),
    ],
)
def test_a_rule_is_ignored_in_the_files_that_a_pattern_fits(pattern: str, rule: str, ignored: bool) -> None:
    settings = Settings("2.21.0", per_file=((pattern, (rule,)),))
    assert (find(DRAW, settings) == []) == ignored


def test_a_rule_of_a_pattern_must_exist() -> None:
    with pytest.raises(UsageError, match="unknown rule `ENV9`"):
        find(DRAW, Settings("2.21.0", per_file=(("*", ("ENV9",)),)))
