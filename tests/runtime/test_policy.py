"""Policies: which row a path gets, what an override changes, and that the tiers are ordered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.lock.nearest_pattern import find_nearest_pattern
from envlock.runtime.causes import list_patterns
from envlock.runtime.facts import matches
from envlock.runtime.policies import UNUSED, Policy, names
from envlock.runtime.tables import table

PATHS = st.lists(st.sampled_from(["packages", "cpu", "flags", "environ", "TF_X", "version", "zzz"]), min_size=1).map(
    ".".join
)


PLACES = [
    *("cpu", "cpus", "cpu.flag", "cpu.flags", "cpu.a.b"),
    *("packages.numpy", "packages.numpy.version", "packages.numpy.origin", "packages.numpy.origin.url"),
]
FITS = {
    "cpu": ["cpu"],
    "cpu.flags": ["cpu.flags"],
    "cpu.*": ["cpu.flag", "cpu.flags"],
    "cpu.**": ["cpu", "cpu.flag", "cpu.flags", "cpu.a.b"],
    "packages.*.version": ["packages.numpy.version"],
    "packages.*.origin.**": ["packages.numpy.origin", "packages.numpy.origin.url"],
    "*": ["cpu", "cpus"],
    "**": PLACES,
    "c*": [],
}


def test_matches() -> None:
    assert {pattern: [path for path in PLACES if matches(pattern, path)] for pattern in FITS} == FITS


@given(PATHS)
def test_every_path_has_a_row_in_every_policy(path: str) -> None:
    for name in names():
        policy = Policy(name)
        row = policy.row(path)
        assert policy.name == name
        assert set(row) == {"rule", "why", "fix", "source", "weight"}


@given(st.sampled_from(["strict", "same-arch", "functional"]), PATHS)
def test_an_override_changes_the_rule_and_says_so(name: str, path: str) -> None:
    row = Policy(name).row(path)
    why = f"{row['why']} (This project overrides the rule of this path: ignore.)"
    assert Policy(name, {path: "ignore"}).row(path) == {**row, "rule": "ignore", "why": why}
    assert Policy(name, {path + ".x": "ignore"}).row(path) == Policy(name).row(path)


OVERRIDES = {"cpu.flags": "superset", "cpu.**": "ignore", "**": "exact", "packages.*.version": "same_minor"}


def test_the_most_specific_override_counts_whatever_the_order() -> None:
    paths = ("cpu.flags", "cpu.model", "cpu", "system.libc", "packages.numpy.version")
    for order in (list(OVERRIDES), sorted(OVERRIDES), sorted(OVERRIDES, reverse=True)):
        policy = Policy("strict", {pattern: OVERRIDES[pattern] for pattern in order})
        rules = [policy.row(path)["rule"] for path in paths]
        assert rules == ["superset", "ignore", "ignore", "exact", "same_minor"], order


def test_a_path_has_the_row_that_names_it() -> None:
    named = [row for row in table("policy") if "*" not in row["path"]]
    assert [Policy().row(row["path"])["why"] for row in named] == [row["why"] for row in named]


ROWS = table("policy")
EXACT = dict.fromkeys(("exact", "proven", "exact_where_asked", "exact_where_locked", "exact_or_unset"), 0)
LOOSENESS = {**EXACT, "within_3_percent": 1, "same_minor": 1, "at_least": 2, "superset": 2, "ignore": 3}


@pytest.mark.longer
def test_another_path_has_the_first_row_that_fits_of_its_section(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all rows were looked at one by one."""
    monkeypatch.setattr("envlock.runtime.policies._index", [])  # another test has filled it
    rows = table("policy")
    every = {name for row in rows for name in row["path"].split(".")} - {"*", "**"}
    shapes = {tuple(row["path"].split(".")) for row in rows if "*" in row["path"]}
    paths = {
        ".".join(name if step in ("*", "**") else step for step in (*shape, *more))
        for shape in shapes
        for name in ["other", *sorted(every)[::40]]
        for more in ((), ("below",))
    }
    exact = {row["path"]: row for row in rows if "*" not in row["path"]}
    for path in sorted(paths):
        section = [row for row in rows if row["path"].partition(".")[0] in (path.partition(".")[0], "**")]
        patterns = [row for row in section if "*" in row["path"]]
        last = [row for row in patterns if row["path"] == "**"]
        ordered = [row for row in patterns if row["path"] != "**"] + last
        wanted = exact.get(path) or next(row for row in ordered if matches(row["path"], path))
        assert Policy().row(path)["why"] == wanted["why"], path


def test_no_row_is_looser_under_a_stricter_policy() -> None:
    held = {
        row["path"]: [LOOSENESS[row[tier]] for tier in ("strict", "bits", "same_arch", "functional")] for row in ROWS
    }
    assert {path: degrees for path, degrees in held.items() if degrees != sorted(degrees)} == {}


def _covers(pattern: str, other: str) -> bool:
    if other.endswith(".**"):
        return pattern.endswith("**") and matches(pattern, other.removesuffix(".**"))
    return matches(pattern, other)


def test_no_row_is_hidden_behind_an_earlier_one() -> None:
    patterns = [row["path"] for row in ROWS]
    hidden = [(late, early) for i, late in enumerate(patterns) for early in patterns[:i] if _covers(early, late)]
    assert hidden == []


def test_the_files_of_a_package_that_may_differ_may_differ() -> None:
    held = Policy("strict", held={"six": "imported"})
    assert [held.row(f"loaded.packages.{name}")["rule"] for name in ("six", "rich")] == ["exact", "ignore"]
    tools = Policy("strict", tooling=["rich"])
    assert [tools.row(f"loaded.packages.{name}")["rule"] for name in ("six", "rich")] == ["exact", "ignore"]


def test_a_section_as_a_whole_is_held_as_closely_as_its_closest_fact() -> None:
    """Else a section that is gone, or that could not be told, would let through what its facts do not."""
    looser = []
    for section in ("cpu", "system", "numpy", "environ", "keras", "tensorflow", "python", "packages"):
        rows = [row for row in ROWS if row["path"].startswith(section + ".")]
        for tier in ("strict", "bits", "same-arch", "functional"):
            closest = min(LOOSENESS[row[tier.replace("-", "_")]] for row in rows)
            if LOOSENESS[Policy(tier).row(section)["rule"]] > closest:
                looser.append((section, tier))
    assert looser == []


def test_a_package_that_no_entry_point_imports_may_differ_unless_an_override_names_it() -> None:
    held = {"numpy": "imported by train"}
    policy = Policy("strict", {"packages.six.version": "exact"}, held)
    paths = ("packages.numpy.version", "packages.scipy.version", "packages.scipy", "packages.six.version", "packages")
    rules = {path: policy.row(path)["rule"] for path in paths}
    assert rules == dict(zip(paths, ("exact", "ignore", "ignore", "exact", "exact"), strict=True))
    assert [policy.describe_need(path) for path in (*paths, "cpu.numpy")] == ["imported by train", *[None] * 5]
    row, table_row = policy.row("packages.scipy.version"), Policy("strict").row("packages.scipy.version")
    assert row == {**table_row, "rule": "ignore", "why": UNUSED}
    assert policy.row("cpu.flags") == Policy("strict").row("cpu.flags")
    assert Policy("strict", held=held).row("packages.pip.version") == Policy("strict").row("packages.pip.version")


def test_the_nearest_path() -> None:
    """None where nothing is like it; itself where it can name a fact."""
    cases = {
        "cpu.flag": "cpu.flags",
        "environ.TF_ENABLE_ONEDNN_OPT": "environ.TF_ENABLE_ONEDNN_OPTS",
        "gpu.device.0.name": "gpu.devices.0.name",
        "packges.pip.**": "packages.pip.**",
        "packages.pip.versoin": "packages.pip.version",
        "qqqq": None,
        "cpu.flags.x.y": "cpu.flags",
        **{
            path: path
            for path in ("**", "*", "cpu", "cpu.**", "*.version", "packages.anything.version", "gpu.devices.0")
        },
    }
    assert {path: find_nearest_pattern(path) for path in cases} == cases


POLICIES = "(choose from: strict, bits, same-arch, functional)"
THERE_ARE = (
    "(choose from: exact, exact_where_asked, exact_where_locked, exact_or_unset, same_minor, at_least, superset, "
    "within_3_percent, proven, ignore)"
)
NO_PATTERNS = ["", "cpu..flags", "cpu.", "cpu\n", "cpu flags", "cpu.\xe9", "environ.TF_*", "cpu.**.x", "*x", "a.***"]


def test_what_does_not_exist_is_refused() -> None:
    refused: dict[str, tuple[str, dict[str, str]]] = {
        f"unknown policy `Strict` {POLICIES}": ("Strict", {}),
        f"unknown policy `a\\x1b[2J` {POLICIES}": ("a\x1b[2J", {}),
        f"unknown rule `equal` {THERE_ARE}": ("strict", {"cpu": "equal"}),
    }
    for pattern in NO_PATTERNS:
        refused[f"invalid path pattern `{ascii(pattern)[1:-1]}` (example: `cpu.*`)"] = ("strict", {pattern: "exact"})
    for message, (name, overrides) in refused.items():
        with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole message is compared)
            Policy(name, overrides)
        assert str(caught.value) == message


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.**", "*.**"),
        ("cpu.*", "cpu.*"),
        ("gpu.devises.**", "gpu.devices.**"),
        ("cpu.flagz.**", "cpu.flags.**"),
        ("cpu.*.**", "cpu.*.**"),
        ("glibc", "system.libc"),
        ("numerics.cpu.matmul", "numerics.cpu.matmul"),
        ("numeric.**", "numerics.**"),
        ("machines", "machines"),
        ("zzzzzzzzzzzz", None),
    ],
)
def test_the_pattern_that_was_meant(pattern: str, found: str | None) -> None:
    assert find_nearest_pattern(pattern) == found


def test_fewer_wildcards_win_over_the_alphabet_and_the_length() -> None:
    overrides = {"*.numpy.version": "exact", "packages.*.*": "ignore", "packages.**": "superset"}
    assert Policy("strict", overrides).row("packages.numpy.version")["rule"] == "exact"
    assert Policy("strict", {"packages.**": "exact", "packages.*.*": "ignore"}).row("packages.a.b")["rule"] == "exact"


def test_a_long_name_is_shown_up_to_sixty_characters() -> None:
    with pytest.raises(ValueError, match=r"^unknown policy `x{60}` "):
        Policy("x" * 61)


@pytest.mark.parametrize("name", list_patterns("numpy", ()))
def test_no_rule_of_a_project_lets_numpy_or_its_blas_differ(name: str) -> None:
    """`envlock ignore numpy` writes all of these."""
    path = name.replace("**", "version")
    assert Policy("strict", {name: "ignore"}).row(path)["rule"] == "exact"


def test_what_computes_nothing_may_be_added_though_a_held_package_imports_it() -> None:
    names = ("tblib", "fsspec", "brotli", "zstandard", "other")
    rules = Policy("strict", {}, dict.fromkeys(names, "imported by tensorflow-cpu"))
    assert [rules.row(f"packages.{name}")["rule"] for name in names] == ["superset"] * 4 + ["exact"]
