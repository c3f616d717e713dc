"""Accepting some changes of a lockfile, and merging those of two sides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.lock.document import dump, validate
from envlock.lock.lock_warnings import describe_replaced
from envlock.lock.merging import accept, add_moved, find_unmatched, flatten, matches_fact, merge
from envlock.lock.models import Lockfile
from tests.conftest import Command
from tests.locks import FACTS, document, encode

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


def test_a_section_that_is_none_gives_way_to_facts_in_it() -> None:
    old, new = lock({"tensorflow": None}), lock({"tensorflow": {"version": "2.21.0"}})
    assert accept(old, new, ["tensorflow.version"]) == new
    assert accept(new, old, ["tensorflow.**"]) == old


def test_what_was_made_of_other_facts_is_dropped() -> None:
    old = lock(identity=PROVEN)
    assert accept(old, lock({"tensorflow": {}}), ["tensorflow.**"]).identity == old.identity
    assert accept(old, lock(numpy("2.0.0")), ["packages.numpy"]).identity is None


def test_what_one_side_changed_is_taken_from_it() -> None:
    base, ours = lock(), lock(numpy("2.0.0"))
    loose, cpu = {"name": "same-arch", "overrides": {}}, {"cpu": {"flags": ["avx"], "quota": None}}
    theirs, both = lock(cpu, policy=loose), lock({**numpy("2.0.0"), **cpu}, policy=loose)
    for one, other in ((ours, theirs), (theirs, ours)):
        merged = merge(base, one, other)
        assert (dump(merged.lock), merged.conflicts) == (dump(both), ())


def canary(tensorflow: str) -> dict[str, Any]:
    """Return a canary without results, told from another by its version."""
    return {"numerics": {"battery": 1, "tensorflow": tensorflow, "numpy": "1.26.4", "groups": {}}}


def test_a_canary_stays_with_the_facts_that_it_was_made_of() -> None:
    base, mine, other = (lock(**canary(version)) for version in ("2.19.0", "2.20.0", "2.21.0"))
    changed = lock(numpy("2.0.0"), **canary("2.21.0"))
    whole = merge(base, base, changed)
    assert (whole.lock, whole.conflicts) == (changed, ())
    for ours, theirs in (
        (lock(numpy("2.0.0"), **canary("2.19.0")), other),
        (other, lock(numpy("2.0.0"), **canary("2.19.0"))),
    ):
        merged = merge(base, ours, theirs)
        assert (merged.lock.facts, merged.lock.numerics, merged.conflicts) == (changed.facts, None, ())
    both = merge(base, mine, other)
    assert (both.lock, both.conflicts) == (mine, ("numerics",))


def test_what_both_changed_is_a_conflict_and_ours_stays() -> None:
    merged = merge(lock(), lock(numpy("2.0.0")), lock(numpy("2.1.0")))
    assert (merged.lock, merged.conflicts) == (lock(numpy("2.0.0")), ("packages.numpy.version",))


def test_commits_of_two_sides_are_no_conflict_and_packages_of_both_are_held() -> None:
    def at(commit: str, **held: str) -> Lockfile:
        return lock(project={"commit": commit * 40, "dirty": False, "entry": ["train.py"], "held": held})

    base, ours, theirs = at("a"), at("b", keras="imported by train.py"), at("c", six="imported by train.py")
    merged = merge(base, ours, theirs)
    assert merged.conflicts == ()
    assert merged.lock.to_document()["project"] == {
        "entry": ["train.py"],
        "held": {"keras": "imported by train.py", "six": "imported by train.py"},
    }
    assert merge(base, ours, base).lock == ours


small = st.dictionaries(st.sampled_from(["six", "numpy", "keras", "absl-py"]), st.sampled_from(["1", "2", "3"]))


@given(small, small, small)
def test_merging_is_symmetric_but_for_conflicts_and_loses_nothing(
    old: dict[str, str], left: dict[str, str], right: dict[str, str]
) -> None:
    sides = (old, left, right)
    base, ours, theirs = (lock({"packages": {name: {"version": v} for name, v in side.items()}}) for side in sides)
    one, other = merge(base, ours, theirs), merge(base, theirs, ours)
    assert set(one.conflicts) == set(other.conflicts)
    assert one.conflicts or dump(one.lock) == dump(other.lock)
    assert merge(base, ours, base).lock == ours
    assert merge(base, ours, ours) == merge(ours, ours, ours)


# --- as git calls it


@pytest.mark.slow
@pytest.mark.processes
def test_git_merges_lockfiles(tmp_path: Path) -> None:
    def git(*words: str, code: int = 0) -> str:
        argv = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main", *words]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def commit(lockfile: Lockfile, message: str) -> None:
        (tmp_path / "envlock.lock").write_bytes(dump(lockfile))
        git("add", ".")
        git("commit", "-qm", message)

    git("init", "-q")
    git("config", "merge.envlock.driver", f"{sys.executable} -m envlock merge %O %A %B")
    (tmp_path / ".gitattributes").write_text("envlock.lock merge=envlock\n", encoding="utf-8")
    commit(lock(), "base")
    git("checkout", "-qb", "theirs")
    commit(lock({"cpu": {"flags": ["avx"], "quota": 1.5}}), "another processor")
    git("checkout", "-q", "main")
    commit(lock(numpy("2.0.0")), "another numpy")
    git("merge", "-q", "theirs", "-m", "merged")
    both = lock({**numpy("2.0.0"), "cpu": {"flags": ["avx"], "quota": 1.5}})
    assert (tmp_path / "envlock.lock").read_bytes() == dump(both)
    git("checkout", "-qb", "other", "main~2")
    commit(lock(numpy("2.1.0")), "a third numpy")
    assert "1 conflict, ours kept: packages.numpy.version\n" in git("merge", "main", "-m", "merged", code=1)


LOOSENED: list[tuple[dict[str, Any], str]] = [
    ({"policy": {"name": "functional", "overrides": {}}}, "policy functional instead of strict"),
    ({"policy": {"name": "strict", "overrides": {"**": "ignore"}}}, 'override "**" = "ignore"'),
    ({"project": {"name": "h5py"}}, "project.name, by which packages may differ"),
    ({"project": {"tooling": ["h5py"]}}, "project.tooling, by which packages may differ"),
]


@pytest.mark.parametrize(("change", "words"), LOOSENED, ids=[words for _, words in LOOSENED])
def test_a_merge_names_each_rule_that_a_side_adds(
    change: dict[str, Any], words: str, envlock: Command, tmp_path: Path
) -> None:
    for name, more in (("base", {}), ("ours", {}), ("theirs", change)):
        (tmp_path / name).write_bytes(encode(document(**more)))
    done = envlock("merge", "base", "ours", "theirs")
    assert (done.returncode, done.stderr) == (0, f"warning: more may differ than before: {words}\n")
    assert "warning" not in envlock("merge", "theirs", "ours", "base").stderr


def test_a_merge_of_what_is_no_lockfile_writes_nothing(envlock: Command, tmp_path: Path) -> None:
    (tmp_path / "ours").write_bytes(encode(document()))
    (tmp_path / "theirs").write_bytes(b"{}")
    done = envlock("merge", "ours", "ours", "theirs")
    assert (done.returncode, done.stderr.partition("\n")[0]) == (
        3,
        "error: lockfile theirs is not valid: `lock_version` must be a whole number, but it is missing",
    )
    assert (tmp_path / "ours").read_bytes() == encode(document())


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
