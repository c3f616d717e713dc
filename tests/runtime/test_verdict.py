"""What every verdict keeps to: less evidence never turns no into yes, and neither does another difference."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from envlock.runtime.collectors import Snapshot
from envlock.runtime.judgement import judge
from envlock.runtime.machine_proof import list_results
from envlock.runtime.policies import names
from tests.evidence.canaries import section
from tests.locks import document

FACTS: dict[str, Any] = {
    "python": {"version": "3.11.7", "implementation": "cpython", "compiler": "GCC 12.2.0"},
    "tensorflow": {"version": "2.21.0", "nvidia_build": None, "cuda_build": False},
    "keras": {"version": "3.15.1", "config": {"backend": "tensorflow", "floatx": "float32"}},
    "numpy": {"version": "2.4.6", "blas": "openblas"},
    "packages": {"tensorflow-cpu": {"version": "2.21.0"}, "keras": {"version": "3.15.1"}, "h5py": {"version": "3.14"}},
    "cpu": {"flags": ["avx", "avx2"], "model": "1", "intra_op_threads": 2, "quota": 1.5},
    "system": {"libc_version": "2.36", "machine": "x86_64", "kernel_release": "6.1"},
    "environ": {"PYTHONHASHSEED": "0", "TF_ENABLE_ONEDNN_OPTS": None, "XLA_FLAGS": None},
}
REASON = {"reason": "it cannot be read", "code": "permission-denied"}


def list_paths(tree: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the path of every node, leaves and what is above them."""
    for name, value in tree.items():
        yield prefix + name
        if isinstance(value, dict):
            yield from list_paths(value, f"{prefix}{name}.")


PATHS = list(list_paths(FACTS))
LEAVES = [path for path in PATHS if not any(other.startswith(f"{path}.") for other in PATHS)]
VALUES = st.sampled_from([None, "0", "9.9", "x", 7, True, ["avx"], ["avx", "avx2", "fma"]])
CHANGES = st.dictionaries(st.sampled_from(LEAVES), VALUES, max_size=3)
OVERRIDES = st.dictionaries(
    st.sampled_from(["**", "packages.*", "cpu.**", "environ.**", "python.version", "system.libc_version"]),
    st.sampled_from(["ignore", "at_least", "superset", "proven", "exact", "same_minor"]),
    max_size=2,
)
PROJECTS = st.sampled_from(
    [{}, {"name": "h5py"}, {"name": "keras"}, {"held": {}, "entry": ["a.py"]}, {"tooling": ["h5py"]}]
)
LOCKS = st.tuples(st.sampled_from(names()), OVERRIDES, PROJECTS, st.booleans(), st.booleans())


def put(tree: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return facts with some values changed."""
    changed = copy.deepcopy(tree)
    for path, value in changes.items():
        *folders, name = path.split(".")
        node = changed
        for folder in folders:
            node = node[folder]
        node[name] = value
    return changed


def cut(tree: dict[str, Any], paths: list[str]) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """Return facts without some nodes, as a collector leaves them that could not read them, and what it says."""
    left = copy.deepcopy(tree)
    unavailable = {}
    for path in paths:
        *folders, name = path.split(".")
        node: Any = left
        for folder in folders:
            node = node.get(folder, {}) if isinstance(node, dict) else {}
        if isinstance(node, dict) and name in node:
            del node[name]
            unavailable[path] = REASON
    return left, {
        path: why for path, why in unavailable.items() if not any(path.startswith(f"{o}.") for o in unavailable)
    }


def is_yes(lock: tuple[Any, ...], facts: dict[str, Any], unavailable: Any = None, canary: Any = None) -> bool:
    tier, overrides, project, proven, has_overrides = lock
    held = document(facts=FACTS, unavailable={}, policy={"name": tier, "overrides": overrides})
    held["numerics"] = section() if canary is None else canary
    if project:
        held["project"] = project
    proof = list_results(held) if proven else None
    return judge(held, Snapshot(facts, unavailable or {}), overrides=has_overrides, proof=proof).match


@settings(max_examples=300, deadline=None)
@given(LOCKS, CHANGES, st.lists(st.sampled_from(PATHS), max_size=4))
def test_evidence_that_is_taken_away_never_turns_no_into_yes(
    lock: tuple[Any, ...], changes: dict[str, Any], paths: list[str]
) -> None:
    here = put(FACTS, changes)
    facts, unavailable = cut(here, paths)
    assert is_yes(lock, here) or not is_yes(lock, facts, unavailable)


@settings(max_examples=300, deadline=None)
@given(LOCKS, CHANGES, CHANGES)
def test_another_difference_never_turns_no_into_yes(
    lock: tuple[Any, ...], changes: dict[str, Any], more: dict[str, Any]
) -> None:
    here = put(FACTS, changes)
    further = put(here, {path: value for path, value in more.items() if path not in changes})
    assert is_yes(lock, here) or not is_yes(lock, further)


OPERATIONS = [(group, name) for group, content in section()["groups"].items() for name in content["operations"]]


@settings(max_examples=200, deadline=None)
@given(LOCKS, CHANGES, st.lists(st.sampled_from(OPERATIONS), max_size=5), st.booleans())
def test_results_that_are_taken_from_a_canary_never_turn_no_into_yes(
    lock: tuple[Any, ...], changes: dict[str, Any], taken: list[tuple[str, str]], unstable: bool
) -> None:
    canary = copy.deepcopy(section())
    for group, name in taken:
        operations = canary["groups"][group]["operations"]
        if unstable:
            operations[name] = {"dtype": "<f4", "shape": [1], "unstable": True}
        else:
            operations.pop(name, None)
    here = put(FACTS, changes)
    assert is_yes(lock, here) or not is_yes(lock, here, canary=canary)
