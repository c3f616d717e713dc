"""Policies: which row a path gets, what an override changes, and that the tiers are ordered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.runtime.policy import Policy, matches, names
from envlock.runtime.tables import table
from tests.trees import quick

PATHS = st.lists(st.sampled_from(["packages", "cpu", "flags", "environ", "TF_X", "version", "zzz"]), min_size=1).map(
    ".".join
)


@pytest.mark.parametrize(
    ("pattern", "path", "verdict"),
    [
        ("cpu", "cpu", True),
        ("cpu", "cpu.flags", False),
        ("cpu.flags", "cpu.flags", True),
        ("cpu.flags", "cpu.flag", False),
        ("cpu.*", "cpu.flags", True),
        ("cpu.*", "cpu", False),
        ("cpu.*", "cpu.a.b", False),
        ("cpu.**", "cpu", True),
        ("cpu.**", "cpu.a.b", True),
        ("cpu.**", "cpus", False),
        ("packages.*.version", "packages.numpy.version", True),
        ("packages.*.version", "packages.numpy.origin", False),
        ("packages.*.origin.**", "packages.numpy.origin", True),
        ("packages.*.origin.**", "packages.numpy.origin.url", True),
        ("packages.*.origin.**", "packages.numpy", False),
        ("**", "anything.at.all", True),
        ("*", "cpu", True),
        ("c*", "cpu", False),
    ],
)
def test_matches(pattern: str, path: str, verdict: bool) -> None:
    assert matches(pattern, path) is verdict


@quick
@given(PATHS)
def test_every_path_has_a_row_in_every_policy(path: str) -> None:
    for name in names():
        row = Policy(name).row(path)
        assert set(row) == {"rule", "why", "fix", "source", "weight"}


@pytest.mark.parametrize("name", ["strict", "same-arch", "functional"])
@quick
@given(PATHS)
def test_an_override_changes_the_rule_and_says_so(name: str, path: str) -> None:
    row = Policy(name).row(path)
    why = f"{row['why']} (This project holds the path by a rule of its own: ignore.)"
    assert Policy(name, {path: "ignore"}).row(path) == {**row, "rule": "ignore", "why": why}
    assert Policy(name, {path + ".x": "ignore"}).row(path) == Policy(name).row(path)


OVERRIDES = {"cpu.flags": "superset", "cpu.**": "ignore", "**": "exact", "packages.*.version": "same_minor"}


@pytest.mark.parametrize("order", [list(OVERRIDES), sorted(OVERRIDES), sorted(OVERRIDES, reverse=True)])
def test_the_most_specific_override_counts_whatever_the_order(order: list[str]) -> None:
    policy = Policy("strict", {pattern: OVERRIDES[pattern] for pattern in order})
    paths = ("cpu.flags", "cpu.model", "cpu", "system.libc", "packages.numpy.version")
    assert [policy.row(path)["rule"] for path in paths] == ["superset", "ignore", "ignore", "exact", "same_minor"]


@pytest.mark.parametrize("pattern", ["environ.TF_*", "cpu.**.x", "*x", "a.***"])
def test_a_pattern_that_could_never_fit_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="is no path pattern"):
        Policy("strict", {pattern: "ignore"})


def test_a_path_has_the_row_that_names_it() -> None:
    named = [row for row in table("policy") if "*" not in row["path"]]
    assert [Policy().row(row["path"])["why"] for row in named] == [row["why"] for row in named]


LOOSENESS = {"exact": 0, "within_3_percent": 1, "same_minor": 1, "at_least": 2, "superset": 2, "ignore": 3}


@pytest.mark.parametrize("row", table("policy"), ids=lambda row: row["path"])
def test_no_row_is_looser_under_a_stricter_policy(row: dict[str, str]) -> None:
    degrees = [LOOSENESS[row[tier]] for tier in ("strict", "same_arch", "functional")]
    assert degrees == sorted(degrees)


def _covers(pattern: str, other: str) -> bool:
    if other.endswith(".**"):
        return pattern.endswith("**") and matches(pattern, other.removesuffix(".**"))
    return matches(pattern, other)


def test_no_row_is_hidden_behind_an_earlier_one() -> None:
    patterns = [row["path"] for row in table("policy")]
    hidden = [(late, early) for i, late in enumerate(patterns) for early in patterns[:i] if _covers(early, late)]
    assert hidden == []


@pytest.mark.parametrize("tier", ["strict", "same-arch", "functional"])
@pytest.mark.parametrize("section", ["cpu", "system", "numpy", "environ", "keras", "tensorflow", "python", "packages"])
def test_a_section_as_a_whole_is_held_as_closely_as_its_closest_fact(section: str, tier: str) -> None:
    """Else a section that is gone, or that could not be told, would let through what its facts do not."""
    column = tier.replace("-", "_")
    rows = [row for row in table("policy") if row["path"].startswith(section + ".")]
    closest = min(LOOSENESS[row[column]] for row in rows)
    assert LOOSENESS[Policy(tier).row(section)["rule"]] <= closest


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("Strict", {}, "there is no policy `Strict` (there are: strict, same-arch, functional)"),
        ("a\x1b[2J", {}, "there is no policy `a\\x1b[2J` (there are: strict, same-arch, functional)"),
        (
            "strict",
            {"cpu": "equal"},
            "there is no rule `equal` (there are: exact, same_minor, at_least, superset, within_3_percent, ignore)",
        ),
        ("strict", {"": "exact"}, "`` is no path pattern, such as `cpu.*`"),
        ("strict", {"cpu..flags": "exact"}, "`cpu..flags` is no path pattern, such as `cpu.*`"),
        ("strict", {"cpu.": "exact"}, "`cpu.` is no path pattern, such as `cpu.*`"),
        ("strict", {"cpu\n": "exact"}, "`cpu\\n` is no path pattern, such as `cpu.*`"),
        ("strict", {"cpu flags": "exact"}, "`cpu flags` is no path pattern, such as `cpu.*`"),
        ("strict", {"cpu.é": "exact"}, "`cpu.\\xe9` is no path pattern, such as `cpu.*`"),
    ],
)
def test_what_does_not_exist_is_refused(name: str, overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole message is compared)
        Policy(name, overrides)
    assert str(caught.value) == message
