"""The tables: valid, sorted, sourced; what each tier lets through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, ValidationError

from envlock import data
from envlock.data import runtime_tables
from envlock.lock.fact_models import Facts
from envlock.runtime.facts import matches
from envlock.runtime.tables import FOLDER, table
from tests.golden_files import assert_as_golden

ROOT = Path(__file__).resolve().parents[2]
TABLES = sorted(file.stem for file in (ROOT / "envlock" / "data").glob("*.toml"))

AUTHORING = {
    "canary",
    "dataset_rules",
    "divergence",
    "doctor",
    "lint",
    "lint_names",
    *("cuda_images", "image", "ngc_tensorflow", "python_images", "standalone_pythons"),
    "tensorflow_builds",
    *("compatibility", "determinism_sources", "determinism_variables", "divergence", "installers"),
}
"""Tables that nothing of the runtime half reads, so they have no JSON."""

GOLDEN = ROOT / "tests" / "golden" / "let-through.txt"
POLICIES = ["strict", "bits", "same-arch", "functional"]
HELD_BY_FUNCTIONAL = ["KERAS_BACKEND", "KERAS_MAX_EPOCHS", "KERAS_MAX_STEPS_PER_EPOCH", "TF_USE_LEGACY_KERAS"]


def ignored(tier: str) -> list[str]:
    """Return the paths that a tier ignores."""
    return sorted(row["path"] for row in table("policy") if row[tier.replace("-", "_")] == "ignore")


def is_variable(path: str) -> bool:
    return path.startswith(("environ.", "jax.settings.", "torch.settings.")) and "*" not in path


def is_package(path: str) -> bool:
    """Return whether a row is about one package."""
    return path.startswith("packages.") and path.split(".")[1] != "*"


def test_every_policy_is_listed_here() -> None:
    assert table("policies") == POLICIES == list(runtime_tables.load_policy_table().policies)


def test_what_each_policy_lets_through_whatever_it_is() -> None:
    """Variables and single packages have tests of their own below."""
    lines: list[str] = []
    for tier in POLICIES:
        named = [path for path in ignored(tier) if not is_variable(path) and not is_package(path)]
        lines += [f"# {tier}", *named, ""]
    assert_as_golden("\n".join(lines), GOLDEN)


def test_packages_that_cannot_change_bits_are_let_through_whole_and_by_every_policy() -> None:
    """Installers, development tools, notebook front ends; what they bring along may be there in addition."""
    named = [row for row in runtime_tables.load_policy_table().fact if is_package(row.path)]
    whole, added = ([row for row in named if row.path.endswith(".**") is whole] for whole in (True, False))
    assert {"packages.pip.**", "packages.uv.**", "packages.ruff.**", "packages.ipykernel.**"} <= {
        row.path for row in whole
    }
    assert {(row.strict, row.bits, row.same_arch, row.functional) for row in whole} == {("ignore",) * 4}
    assert {(row.strict, row.bits, row.same_arch, row.functional) for row in added} == {("superset",) * 4}
    assert {row.path.split(".")[1] for row in named} & IMPORTED_BY_TENSORFLOW == {"setuptools"}


IMPORTED_BY_TENSORFLOW = {
    *(
        "absl-py",
        "astunparse",
        "certifi",
        "charset-normalizer",
        "flatbuffers",
        "gast",
        "google-pasta",
        "grpcio",
        "h5py",
    ),
    *("idna", "keras", "libclang", "markdown-it-py", "mdurl", "ml-dtypes", "namex", "numpy", "opt-einsum", "optree"),
    *("packaging", "protobuf", "requests", "rich", "setuptools", "six", "tensorboard", "tensorflow", "tensorflow-cpu"),
    *("tensorflow-estimator", "termcolor", "typing-extensions", "urllib3", "wrapt"),
}
"""What TensorFlow 2.15.1, 2.18.1 and 2.21.0 require or import; setuptools for pkg_resources only."""


def leaves(model: type[BaseModel], before: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the path of every fact that a lock can hold; a name that is not the model's own is `*`."""
    for name, field in model.model_fields.items():
        for inside in options(field.annotation):
            if isinstance(inside, type) and issubclass(inside, BaseModel):
                yield from leaves(inside, (*before, name))
            elif get_origin(inside) is dict:
                row = next(each for each in options(get_args(inside)[1]) if each is not type(None))
                below = (*before, name, "*")
                is_model = isinstance(row, type) and issubclass(row, BaseModel)
                yield from leaves(row, below) if is_model else [".".join(below)]
            elif inside is not type(None):
                yield ".".join((*before, name))


def options(annotation: Any) -> list[Any]:
    """Return the types of a union, without what an Annotated adds."""
    if get_origin(annotation) is Annotated:
        return options(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [inside for each in get_args(annotation) for inside in options(each)]
    return [annotation]


def test_every_fact_has_a_row_that_names_it() -> None:
    """So that each has a reason of its own; `**` rows are for what another envlock has recorded."""
    named = [row.path for row in runtime_tables.load_policy_table().fact if not row.path.endswith("**")]
    facts = [path for path in leaves(Facts) if path != "environ.*"]  # each variable has a row by its name
    assert len(facts) > 450
    lacking = [path for path in facts if not any(matches(row, path) for row in named)]
    assert lacking == [], "each needs a row in envlock/data/policy.toml: docs/contributing/fact.md"
    by_name = [row for row in named if row.partition(".")[0] == "environ" or is_package(row)]
    assert [row for row in named if row not in by_name and not _below(row, facts)] == []


def _below(row: str, facts: list[str]) -> bool:
    """Return whether a row names a fact, or what several facts lie below."""
    return any(matches(row, path) or matches(f"{row}.**", path) for path in facts)


@pytest.mark.parametrize("tier", ["strict", "same-arch"])
def test_strict_and_same_arch_hold_every_variable_but_the_one_whose_effect_is_a_fact(tier: str) -> None:
    assert [path for path in ignored(tier) if is_variable(path)] == ["environ.CUDA_VISIBLE_DEVICES"]


def test_functional_holds_the_variables_that_replace_what_computes() -> None:
    held = [row.name for row in runtime_tables.load_variables() if f"environ.{row.name}" not in ignored("functional")]
    assert held == HELD_BY_FUNCTIONAL


def test_every_table_is_looked_at_here() -> None:
    """Elsewhere: cuda and gpu (test_gpu_and_cuda_tables.py), recipes and operations (test_determinism_tables.py).

    Launchers: tests/runtime/test_launchers.py; makers: tests/evidence/diverge/test_makers.py; replay: test_canary_table.py.
        Backends: tests/collectors/test_backends.py; loaded: tests/loaded/test_roles.py.
    """
    elsewhere = {*AUTHORING, "backends", "determinism_recipes", "files", "launchers", "loaded", "makers", "operations"}
    elsewhere.add("replay")
    assert [table for table in TABLES if table not in elsewhere] == ["cpu_flags", "cuda", "environ", "gpu", "policy"]


def test_variables_are_sorted_and_unique() -> None:
    names = [row["name"] for row in data.read("environ")["variable"]]
    assert names == sorted(set(names))
    assert [row.name for row in runtime_tables.load_variables()] == names


@pytest.mark.parametrize(
    ("name", "read_at", "records"),
    [
        ("GOTO_NUM_THREADS", "any-time", "integer"),
        ("OPENBLAS_DEFAULT_NUM_THREADS", "any-time", "integer"),
        ("LD_AUDIT", "process-start", "digest"),
    ],
)
def test_a_variable_that_changes_what_is_computed_is_in_the_table(name: str, read_at: str, records: str) -> None:
    row = {row["name"]: row for row in table("environ")}[name]
    assert (row["read_at"], row["records"]) == (read_at, records)


@pytest.mark.parametrize(("records", "words"), [("word", []), ("flags", []), ("integer", ["a"]), ("word", ["a b"])])
def test_words_that_fit_their_kind_are_demanded(records: str, words: list[str]) -> None:
    row = runtime_tables.load_variables()[0].model_dump()
    with pytest.raises(ValidationError):
        runtime_tables.Variable.model_validate({**row, "records": records, "words": words})


def test_flags_are_unique() -> None:
    flags = [flag for group in data.read("cpu_flags")["group"] for flag in group["flags"]]
    assert runtime_tables.load_cpu_flags() == sorted(flags)
    assert len(flags) == len(set(flags))


def test_paths_are_unique_and_the_last_row_takes_the_rest() -> None:
    paths = [fact.path for fact in runtime_tables.load_policy_table().fact]
    assert len(paths) == len(set(paths))
    assert paths[-1] == "**"


def is_sourced(source: str, evidence: dict[str, str]) -> bool:
    """Return whether a row says where it is known from: a URL, a key of [evidence], or a file of a public project."""
    key = source.partition(" (")[0]
    return source.startswith(("http://", "https://")) or key in evidence or "/" in source or "public source" in source


def test_every_fact_has_a_source() -> None:
    rows = runtime_tables.load_policy_table()
    assert [fact.path for fact in rows.fact if not is_sourced(fact.source, rows.evidence)] == []


def test_every_variable_has_a_source() -> None:
    evidence = data.read("environ")["evidence"]
    without = {
        row.name: row.sources
        for row in runtime_tables.load_variables()
        if not any(is_sourced(source, evidence) for source in row.sources)
    }
    assert without == {}


def test_every_group_of_flags_has_a_source() -> None:
    groups = data.read("cpu_flags")["group"]
    assert all(source.startswith("https://") for group in groups for source in group["sources"])


@pytest.mark.parametrize("name", ["environ", "policy"])
def test_no_evidence_is_unused(name: str) -> None:
    rows: Any = data.read(name)
    text = (ROOT / "envlock" / "data" / f"{name}.toml").read_text(encoding="utf-8").partition("[[")[2]
    assert [key for key in rows["evidence"] if f'"{key}' not in text and f"{key} " not in text] == []


def test_the_names_of_the_runtime_tables_are_these() -> None:
    assert sorted(file.stem for file in Path(FOLDER).glob("*.json")) == sorted(
        [*{*TABLES} - AUTHORING, "by_rank", "exemptions", "flags", "machine", "policies", "protected", "startup"]
    )


def test_every_variable_of_onednn_has_a_row_by_each_of_its_names() -> None:
    """oneDNN asks for each as ONEDNN_X and as DNNL_X: getenv_string_user in its src/common/utils.cpp."""
    names = {row.name for row in runtime_tables.load_variables()}
    twins = {name.replace("ONEDNN_", "DNNL_", 1) for name in names if name.startswith("ONEDNN_")}
    assert twins
    assert twins <= names
