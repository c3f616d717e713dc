"""Accepting some changes of a lockfile."""

from __future__ import annotations

from typing import Any

import pytest

from envlock.lock.acceptance import accept, add_moved, find_unmatched, flatten, matches_fact
from envlock.lock.document import validate
from envlock.lock.lock_warnings import describe_replaced
from envlock.lock.models import Lockfile
from tests.locks import FACTS, document

WHEEL = {
    "content": None,
    "origin": "index",
    "proof": "record",
    "reason": None,
    "wheel": {"name": "numpy-1.26.4-x.whl", "sha256": "0" * 64, "size": 1, "url": None, "index": None},
}


def lock(facts: dict[str, Any] | None = None, **changes: Any) -> Lockfile:
    """Return a lockfile with sections of the facts changed."""
    return validate(document(facts={**FACTS, **(facts or {})}, **changes), "x.lock")


def numpy(version: str) -> dict[str, Any]:
    """Return facts with a numpy."""
    return {"packages": {"numpy": {"version": version, "origin": None}}}


PROVEN = {"packages": {"numpy": {"version": "1.26.4", **WHEEL}}}


def test_only_what_fits_is_accepted() -> None:
    old = lock({**numpy("1.26.4"), "cpu": {"flags": ["avx"], "quota": 1.5}})
    new = lock({**numpy("2.0.0"), "cpu": {"flags": ["avx2"], "quota": None}}, unavailable={})
    assert accept(old, new, ["packages.numpy"]) == lock({**numpy("2.0.0"), "cpu": {"flags": ["avx"], "quota": 1.5}})
    assert accept(old, new, ["cpu.*", "keras"]).facts.cpu == new.facts.cpu
    assert accept(old, new, ["keras"]).unavailable == {}
    assert accept(old, new, ["**"]).facts == new.facts
    assert find_unmatched(["cpu.flags", "cpu", "packages.nunpy", "keras"], old, new) == ["packages.nunpy"]


def test_a_package_that_comes_or_goes_is_accepted() -> None:
    with_six = lock({"packages": {**FACTS["packages"], "six": {"version": "1.16.0"}}})
    assert accept(lock(), with_six, ["packages.six"]) == with_six
    assert accept(with_six, lock(), ["packages.six.**"]) == lock()


def test_the_files_of_a_package_are_accepted_with_its_version() -> None:
    def hold(version: str) -> Lockfile:
        return lock({**numpy(version), "loaded": {"packages": {"numpy": f"{version} abc", "six": f"1.0 {version}"}}})

    accepted = accept(hold("1.26.4"), hold("2.0.0"), ["packages.numpy.**"]).to_document()["facts"]["loaded"]
    assert accepted == {"packages": {"numpy": "2.0.0 abc", "six": "1.0 1.26.4"}}
    alone = accept(hold("1.26.4"), hold("2.0.0"), ["loaded.packages.six"]).to_document()["facts"]["loaded"]
    assert alone == {"packages": {"numpy": "1.26.4 abc", "six": "1.0 2.0.0"}}


def test_a_section_that_is_none_gives_way_to_facts_in_it() -> None:
    old, new = lock({"tensorflow": None}), lock({"tensorflow": {"version": "2.21.0"}})
    assert accept(old, new, ["tensorflow.version"]) == new
    assert accept(new, old, ["tensorflow.**"]) == old


def test_what_was_made_of_other_facts_is_dropped() -> None:
    old = lock(identity=PROVEN)
    assert accept(old, lock({"tensorflow": {}}), ["tensorflow.**"]).identity == old.identity
    assert accept(old, lock(numpy("2.0.0")), ["packages.numpy"]).identity is None


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("packages.numpy", ["numpy.version", "packages.numpy.version"]),
        ("numpy", ["numpy.version", "packages.numpy.version"]),
        ("six", ["packages.six.version"]),
        ("tensorflow", ["packages.tensorflow-cpu.version", "tensorflow.version"]),
        ("packages.tensorflow-cpu", ["packages.tensorflow-cpu.version", "tensorflow.version"]),
        ("another TensorFlow", ["packages.tensorflow-cpu.version", "tensorflow.version"]),
        ("machine", ["cpu.flags"]),
        ("packages.numpy.version", ["packages.numpy.version"]),
        ("cpu.flags", ["cpu.flags"]),
    ],
)
def test_a_name_stands_for_all_that_one_event_changes(pattern: str, wanted: list[str]) -> None:
    facts = {
        "packages": {name: {"version": "1.0"} for name in ("numpy", "six", "tensorflow-cpu")},
        "numpy": {"version": "1.0"},
        "tensorflow": {"version": "1.0"},
        "cpu": {"flags": []},
    }
    old = lock(facts)
    patterns = add_moved(pattern, old)
    paths = [path for path in flatten(old.to_document()) if any(matches_fact(each, path) for each in patterns)]
    assert sorted(paths) == wanted


def test_a_lockfile_of_another_environment_is_named_before_it_is_replaced() -> None:
    """One upgrade is none; another Python, another TensorFlow or a third of the packages is."""
    six = {f"p{number}": {"version": "1.0"} for number in range(6)}
    base = {"python": {"version": "3.11.7"}, "tensorflow": {"version": "2.18.1"}, "packages": six}
    old = lock(base)
    for changes, expected in (
        ({"packages": {**six, "p1": {"version": "2.0"}, "more": {"version": "1.0"}}}, ""),
        ({"tensorflow": {"version": "2.21.0"}}, "(TensorFlow 2.18.1 -> 2.21.0, 0 packages with other versions)"),
        ({"python": {"version": "3.12.1"}}, "(Python 3.11.7 -> 3.12.1, 0 packages with other versions)"),
        ({"packages": {"p1": {"version": "1.0"}}}, "(5 packages with other versions)"),
    ):
        said = describe_replaced(old, lock({**base, **changes}))
        assert len(said) == bool(expected)
        assert expected in "".join(said)
