"""The tables on determinism: valid, sourced, complete, and of one mind with the other tables."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet
from pydantic import ValidationError

from envlock import data
from envlock.data import determinism as tables
from envlock.data import runtime_tables
from envlock.data.determinism import load_operation_groups
from envlock.data.specifiers import matches_version
from envlock.runtime.recipe import find_nvidia_switch, find_recipe
from envlock.runtime.tables import table

NEWEST = int(tables.load_source_table().horizon.through.split(".")[1])
RELEASES = [f"1.{minor}.0" for minor in range(12, 16)] + [f"2.{minor}.0" for minor in range(NEWEST + 1)]
PATCHES = [
    {"package": "framework-reproducibility", "call": "fwr13y.d9m.tensorflow.enable_determinism()"},
    {"package": "tensorflow-determinism", "call": "tfdeterminism.patch()"},
]
BUILDS = ["1.15.5+nv23.03", "2.8.0rc0", "2.17.0+nv25.2"]


def test_every_source_of_noise_is_there_once() -> None:
    ids = [source.id for source in tables.load_source_table().source]
    assert len(ids) == len(set(ids)) == 112


@pytest.mark.parametrize("name", ["determinism_sources", "determinism_variables", "determinism_recipes"])
def test_every_source_is_an_address_a_public_file_or_a_key_of_evidence(name: str) -> None:
    table = data.read(name)
    evidence = table["evidence"]
    cited = {text for rows in table.values() if isinstance(rows, list) for row in rows for text in _sources(row)}
    keys = {text.split()[0].rstrip(",:") for text in cited} & evidence.keys()
    others = {text for text in cited if text.split()[0].rstrip(",:") not in evidence and not text.startswith("http")}
    assert {text for text in others if "/" not in text and not text.startswith(("TensorFlow's ", "XLA's "))} == set()
    assert evidence.keys() - keys == set()


def test_specifiers_are_specifiers() -> None:
    rows = tables.load_source_table().source
    every = [text for row in rows for text in row.affected] + [s.tensorflow for row in rows for s in row.solutions]
    every += [raised.tensorflow for row in rows for raised in row.raises]
    every += [text for row in tables.load_variable_table().variable for text in row.tensorflow]
    every += [text for row in tables.load_variable_table().flag for text in row.tensorflow]
    for text in set(every) - {"*"}:
        assert str(SpecifierSet(text))


@pytest.mark.parametrize("code", ["TCD", "TDO", "TDP", "NS1"])
def test_the_codes_of_nvidias_table_all_occur(code: str) -> None:
    meant = tables.load_source_table().codes[code]
    solutions = [solution for source in tables.load_source_table().source for solution in source.solutions]
    assert [s for s in solutions if s.kind == meant.kind and meant.set.items() <= s.set.items()] != []


def _sources(row: object) -> list[str]:
    return list(row.get("sources") or [row["source"]]) if isinstance(row, dict) else []


NVIDIA = {
    # source: what NVIDIA's table said for TensorFlow 1.14, 2.1 and NVIDIA's container 19.06
    "cudnn-conv-autotune": ("TCD", "TDO", "TDO"),
    "cudnn-conv-backprop-filter": ("TCD", "TDO", "TDO"),
    "cudnn-conv-backprop-input": ("TCD", "TDO", "TDO"),
    "cudnn-max-pool-backprop": ("TCD", "TDO", "TDO"),
    "bias-add-backprop": ("TDP", "TDO", "TDO"),
}


@pytest.mark.parametrize("identifier", NVIDIA)
def test_rows_of_nvidias_table(identifier: str) -> None:
    (source,) = [row for row in tables.load_source_table().source if row.id == identifier]
    codes = tables.load_source_table().codes
    for version, ngc, code in zip(("1.14.0", "2.1.0", "1.14.0"), (False, False, True), NVIDIA[identifier], strict=True):
        every = [row for row in source.solutions if matches_version([row.tensorflow], version)]
        fit = every if ngc else source.find_solutions(version)
        assert any(s.kind == codes[code].kind and codes[code].set.items() <= s.set.items() for s in fit)


def test_every_active_source_says_what_to_do_or_that_there_is_nothing() -> None:
    for version in RELEASES + BUILDS:
        active = [source for source in tables.load_source_table().source if source.is_active(version)]
        assert active, version
        assert {source.id for source in active if not source.find_solutions(version)} == set(), version


def of_table(version: str) -> tables.Recipe:
    """Return the one row of the table that takes a version."""
    (row,) = (recipe for recipe in tables.load_recipe_table().recipe if matches_version(recipe.tensorflow, version))
    return row


def test_every_version_has_one_recipe() -> None:
    assert [version for version in RELEASES + BUILDS if not of_table(version).seeds] == []


def test_recipes_say_what_the_variables_need() -> None:
    for version in RELEASES:
        needed = {
            row.name: need.value
            for row in tables.load_variable_table().variable
            for need in row.needed
            if matches_version(need.tensorflow, version) and need.build != "nvidia" and need.severity == "error"
        }
        assert of_table(version).set == needed, version


def test_the_runtime_half_takes_the_recipe_of_the_table() -> None:
    for version in RELEASES + BUILDS:
        recipe, found = of_table(version), find_recipe(version)
        assert found is not None, version
        taken, wanted = ((each.calls, each.seeds, each.unset, each.remarks) for each in (found, recipe))
        assert taken == wanted, version
        if "+nv" in version:
            switch: dict[str, str] = {"TF_DETERMINISTIC_OPS": "1"}
            variables: tuple[dict[str, str], dict[str, str]] = ({}, switch) if found.calls else (switch, {})
            assert (found.patches, (found.set, found.by_variable)) == ([], variables), version
        else:
            assert (found.set, found.by_variable) == (recipe.set, recipe.by_variable), version
            assert found.patches == (PATCHES if recipe.patched else []), version


def test_what_is_no_version_has_no_recipe() -> None:
    assert find_recipe("nightly") is None


def test_a_major_version_alone_has_the_recipe_of_its_first_release() -> None:
    recipes = [find_recipe(version) for version in ("2", "2.0")]
    wanted = of_table("2.0")
    assert [each and (each.seeds, each.set) for each in recipes] == [(wanted.seeds, wanted.set)] * 2


@pytest.mark.parametrize(
    ("release", "switch"),
    [("19.05", {}), ("19.06", {"TF_DETERMINISTIC_OPS": "1"}), ("25.02", {"TF_DETERMINISTIC_OPS": "1"})],
)
def test_nvidias_own_builds_are_switched_by_release(release: str, switch: dict[str, str]) -> None:
    assert find_nvidia_switch(release) == switch


def test_recipes_set_nothing_that_is_dangerous_and_unset_nothing_that_is_needed() -> None:
    rows = {row.name: row for row in tables.load_variable_table().variable}
    for recipe in tables.load_recipe_table().recipe:
        assert not set(recipe.set) & set(recipe.unset)
        for name, value in recipe.set.items():
            assert value not in [bad for each in rows[name].dangerous for bad in each.values]


def test_a_row_says_nothing_again_that_environ_toml_says() -> None:
    mine = data.read("determinism_variables")["variable"]
    known = {row.name for row in runtime_tables.load_variables()}
    assert {row["name"] for row in mine if row["name"] in known and row.keys() & {"read_by", "tensorflow"}} == set()
    assert {
        row["name"] for row in mine if row["name"] not in known and not row.keys() >= {"read_by", "tensorflow"}
    } == set()


def test_every_name_that_a_table_mentions_is_known() -> None:
    rows = tables.load_variable_table()
    known = {row.name for row in runtime_tables.load_variables()} | {row.name for row in rows.variable}
    named = {name for each in rows.combination for name in [*each.values, *each.set, *each.unset]}
    named |= {name for each in tables.load_recipe_table().recipe for name in [*each.set, *each.unset]}
    named |= {row.meant for row in rows.variable if row.meant}
    solutions = [s for source in tables.load_source_table().source for s in source.solutions]
    named |= {name for s in solutions for name in [*s.set, *s.unset]}
    assert named - known == {"NCCL_TREE_THRESHOLD"}  # of NCCL 2.4: no TensorFlow that a lock can hold


def test_what_a_source_raises_depends_on_the_version() -> None:
    found = [source for source in tables.load_source_table().source if "tf.image.crop_and_resize" in source.calls]
    assert [source.id for source in found] == ["crop-and-resize-backprop-gpu", "crop-and-resize-backprop-cpu"]
    raised = found[0].raises
    assert [row.error for row in raised] == ["UnimplementedError", "UnimplementedError"]
    assert [matches_version([row.tensorflow], version) for row in raised for version in ("2.21.0", "2.5.0")] == [
        True,
        False,
    ] * 2


@pytest.mark.parametrize(
    ("specifiers", "version", "expected"),
    [
        (["*"], "1.0", True),
        ([], "2.21.0", False),
        ([">=2.5,<2.8", ">=2.9,<2.18"], "2.8.4", False),
        ([">=2.5,<2.8", ">=2.9,<2.18"], "2.9.3", True),
        ([">=1.14,<2.0"], "1.15.5+nv23.03", True),
        ([">=2.8"], "2.8.0rc0", True),
    ],
)
def test_holds(specifiers: list[str], version: str, expected: bool) -> None:
    assert matches_version(specifiers, version) is expected


def test_a_row_that_contradicts_itself_is_refused() -> None:
    good = {"name": "X", "read_by": "tf-core", "tensorflow": ["*"], "sources": ["s"]}
    assert tables.VariableRules.model_validate(good).syntax == "any"
    for bad, message in (
        ({"syntax": "bool"}, "X: `otherwise` tells what a value outside the syntax does"),
        ({"syntax": "word", "otherwise": "raise"}, "X: `accepts` belongs to the syntax word"),
        ({"read_by": "nobody"}, "X: `meant` belongs to names that nothing reads"),
        ({"dangerous": [{"severity": "error", "why": "W."}]}, "either `values` or `set`"),
    ):
        with pytest.raises(ValidationError) as caught:
            tables.VariableRules.model_validate({**good, **bad})
        assert message in str(caught.value)


def test_groups_of_operations_say_each_name_once_and_sorted() -> None:
    groups = data.read("operations")["group"]
    names = [group["name"] for group in groups]
    assert len(names) == len(set(names))
    assert [group["name"] for group in groups if group["operations"] != sorted(set(group["operations"]))] == []
    assert table("operations") == {name: sorted(found) for name, found in load_operation_groups().items()}
