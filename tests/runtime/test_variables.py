"""Which variables are set and unset: the lock first, then what a recipe and the lock's threads add."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.runtime import own_variables
from envlock.runtime.collectors.environment_variables import collect
from envlock.runtime.host import Host
from envlock.runtime.own_variables import ADDED, THREADS, get_additions
from envlock.runtime.tables import table
from envlock.runtime.variable_plan import plan_variables

NEEDED = {"TF_DETERMINISTIC_OPS": "1"}
UNSET = ["TF_CUDNN_USE_AUTOTUNE", "TF_DISABLE_DEPTHWISE_CONV_DETERMINISM_EXCEPTIONS"]  # only the first is a fact
NAMES = [row["name"] for row in table("environ") if "packages" not in row]


def facts(environ: dict[str, Any] | None = None, **cpu: Any) -> dict[str, Any]:
    """Return facts of an environment in which every variable is unset but those given."""
    return {"environ": {**dict.fromkeys(NAMES), **(environ or {})}, "cpu": cpu}


def test_what_the_lock_has_unset_the_recipe_and_the_threads_may_set() -> None:
    made = plan_variables({"PATH": "/bin"}, facts(intra_op_threads=4, inter_op_threads=2), NEEDED, [])
    assert made.environ == {
        "PATH": "/bin",
        "TF_DETERMINISTIC_OPS": "1",
        "TF_NUM_INTRAOP_THREADS": "4",
        "TF_NUM_INTEROP_THREADS": "2",
        ADDED: "TF_DETERMINISTIC_OPS=1 TF_NUM_INTEROP_THREADS=2 TF_NUM_INTRAOP_THREADS=4",
    }
    assert made.changes == [
        ("TF_DETERMINISTIC_OPS", "1", "this TensorFlow needs it"),
        ("TF_NUM_INTEROP_THREADS", "2", "the locked thread count"),
        ("TF_NUM_INTRAOP_THREADS", "4", "the locked thread count"),
    ]
    assert made.kept == []


def test_what_the_lock_has_set_wins() -> None:
    held = {"TF_DETERMINISTIC_OPS": "0", "TF_CUDNN_USE_AUTOTUNE": "1", "TF_NUM_INTRAOP_THREADS": "1"}
    made = plan_variables({}, facts(held, intra_op_threads=1), NEEDED, UNSET)
    assert made.environ == held
    assert {why for _, _, why in made.changes} == {"as locked"}
    assert made.kept == [("TF_CUDNN_USE_AUTOTUNE", "1", None), ("TF_DETERMINISTIC_OPS", "0", "1")]
    assert plan_variables({}, facts({"TF_DETERMINISTIC_OPS": "1"}), NEEDED, []).kept == []


def test_what_defeats_determinism_is_unset() -> None:
    made = plan_variables(dict.fromkeys(UNSET, "1"), {}, {}, UNSET)
    assert made.environ == {}
    assert made.changes == [(name, None, "it defeats determinism") for name in UNSET]
    assert plan_variables({}, {}, {}, UNSET).changes == []


def test_without_a_lock_nothing_is_known_of_threads() -> None:
    made = plan_variables({"TF_ENABLE_ONEDNN_OPTS": "0"}, {}, NEEDED, [])
    assert made.environ == {"TF_ENABLE_ONEDNN_OPTS": "0", **NEEDED, ADDED: "TF_DETERMINISTIC_OPS=1"}


def test_a_count_that_is_none_fixes_nothing() -> None:
    nothing = [None, {}, {"intra_op_threads": None}, {"intra_op_threads": 0}, {"intra_op_threads": True}]
    assert [cpu for cpu in nothing if plan_variables({}, {"cpu": cpu, "environ": None}, {}, []).environ != {}] == []


def test_who_has_read_its_variables_is_left() -> None:
    held = {"OMP_NUM_THREADS": "1", "TF_ENABLE_ONEDNN_OPTS": "0"}
    assert plan_variables({}, facts(held), {}, [], leave=["openblas"]).environ == {"TF_ENABLE_ONEDNN_OPTS": "0"}


def test_a_plan_in_a_planned_environment_changes_nothing() -> None:
    locked = facts({"TF_ENABLE_ONEDNN_OPTS": "0"}, intra_op_threads=3, inter_op_threads=2)
    first = plan_variables({"PATH": "/bin", "NVIDIA_TF32_OVERRIDE": "1"}, locked, NEEDED, UNSET)
    again = plan_variables(first.environ, locked, NEEDED, UNSET)
    assert (again.environ, again.changes) == (first.environ, [])
    assert plan_variables(first.environ, locked, {}, []).environ == first.environ  # what an outer one has added stays
    bare = plan_variables(first.environ, {}, {}, [])
    assert (bare.environ, bare.changes) == (first.environ, [])


values = st.sampled_from([None, "0", "1"])
variables = st.dictionaries(st.sampled_from(["TF_DETERMINISTIC_OPS", *THREADS, "TF_ENABLE_ONEDNN_OPTS"]), values)


@given(variables, variables, st.integers(1, 8), st.booleans())
def test_after_a_plan_the_facts_are_those_of_the_lock(
    live: dict[str, str | None], held: dict[str, str | None], count: int, needs: bool
) -> None:
    environ = {name: value for name, value in live.items() if value is not None}
    locked = facts(held, intra_op_threads=count, inter_op_threads=count)
    made = plan_variables(environ, locked, NEEDED if needs else {}, UNSET if needs else [])
    assert collect(Host(environ=made.environ, started_with=made.environ)) == locked["environ"]
    for name in THREADS:
        assert made.environ[name] == (held.get(name) or str(count))


COUNTED: list[tuple[dict[str, str], dict[str, str]]] = [
    ({ADDED: "TF_DETERMINISTIC_OPS=1", "TF_DETERMINISTIC_OPS": "1"}, {"TF_DETERMINISTIC_OPS": "1"}),
    ({ADDED: "TF_DETERMINISTIC_OPS=1", "TF_DETERMINISTIC_OPS": "0"}, {}),  # changed since
    ({ADDED: "TF_DETERMINISTIC_OPS=1"}, {}),
    ({ADDED: "TF_CUDNN_USE_FRONTEND=0", "TF_CUDNN_USE_FRONTEND": "0"}, {}),  # no value that envlock adds
    ({ADDED: "TF_NUM_INTRAOP_THREADS=x", "TF_NUM_INTRAOP_THREADS": "x"}, {}),
    ({ADDED: "TF_NUM_INTRAOP_THREADS=7", "TF_NUM_INTRAOP_THREADS": "7"}, {"TF_NUM_INTRAOP_THREADS": "7"}),
    ({ADDED: "TF_CUDNN_DETERMINISTIC=1", "TF_CUDNN_DETERMINISTIC": "1"}, {"TF_CUDNN_DETERMINISTIC": "1"}),
    ({ADDED: "PYTHONHASHSEED=0", "PYTHONHASHSEED": "0"}, {"PYTHONHASHSEED": "0"}),
    ({ADDED: "PYTHONHASHSEED=7", "PYTHONHASHSEED": "7"}, {}),  # chosen by somebody
    ({ADDED: "TF_ENABLE_ONEDNN_OPTS=0", "TF_ENABLE_ONEDNN_OPTS": "0"}, {}),  # nothing that envlock adds
    ({ADDED: " =  junk TF_DETERMINISTIC_OPS", "TF_DETERMINISTIC_OPS": ""}, {}),
    ({}, {}),
]


def test_only_what_envlock_adds_and_nobody_has_changed_counts_as_added() -> None:
    assert [(environ, get_additions(environ)) for environ, _ in COUNTED] == COUNTED


def test_a_variable_that_replaces_a_call_counts_as_added_whatever_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = {"XLA_FLAGS": "--xla_gpu_deterministic_ops=true"}
    recipes = {"always": {}, "recipes": [{"set": {}, "by_variable": flags}], "nvidia": []}
    monkeypatch.setattr(own_variables, "table", lambda name: recipes)
    assert get_additions({**flags, ADDED: "XLA_FLAGS=--xla_gpu_deterministic_ops=true"}) == flags
