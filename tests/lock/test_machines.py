"""Several machines in one lockfile: each whole, none pieced together, and only facts of machines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.lock.document import validate
from envlock.lock.machine_profiles import add_live_machine, find_place, select_machine, update_machine
from envlock.lock.models import Lockfile
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import EnvironmentMismatch, LockfileError
from envlock.runtime.judgement import judge
from envlock.runtime.lockfile import parse
from envlock.runtime.machine_proof import list_results
from envlock.runtime.machines import (
    describe_choice,
    describe_machine,
    find_nearest,
    get_profile,
    iter_problems,
    replace_machine,
)
from envlock.runtime.policies import Policy
from envlock.workflows.diff import diff
from tests.evidence.canaries import section
from tests.locks import FACTS, document, encode

LAPTOP: dict[str, Any] = {
    "cpu": {"model_name": "Laptop", "flags": ["avx2"], "affinity_count": 8},
    "system": {"libc_version": "2.39"},
}
RUNNER = {
    "cpu": {"model_name": "Runner", "flags": ["avx512f"], "affinity_count": 2},
    "system": {"libc_version": "2.36"},
}
NODE = {
    "cpu": {"model_name": "Node", "flags": ["avx512f"], "affinity_count": 64},
    "system": {"libc_version": "2.36"},
    "gpu": {"driver_version": "550.54.15", "devices": {"0": {"name": "NVIDIA H200"}, "1": {"name": "NVIDIA H200"}}},
}
SOFTWARE = {name: FACTS[name] for name in ("python", "packages", "tensorflow")}


def live(machine: dict[str, Any], **software: Any) -> Snapshot:
    return Snapshot({**SOFTWARE, **machine, **software}, {})


def lock(*machines: dict[str, Any]) -> Lockfile:
    """Return a lock of machines: the first's facts are its own."""
    first, *others = machines
    more = {"machines": [{"facts": each, "unavailable": {}} for each in others]} if others else {}
    return validate(document(facts={**SOFTWARE, **first}, unavailable={}, **more), "x.lock")


def judged(found: Lockfile, machine: dict[str, Any], policy: str = "strict", **software: Any) -> tuple[bool, list[str]]:
    report = judge(found.to_document(), live(machine, **software), policy)
    return report.match, report.notes


@pytest.mark.parametrize(
    ("machine", "which"),
    [
        (LAPTOP, "machine 1 of 3: Laptop (8 visible)"),
        (RUNNER, "machine 2 of 3: Runner (2 visible)"),
        (NODE, "machine 3 of 3: Node (64 visible), 2 x NVIDIA H200"),
    ],
)
def test_each_machine_of_a_lockfile_is_accepted_and_the_report_says_which_it_is(
    machine: dict[str, Any], which: str
) -> None:
    assert judged(lock(LAPTOP, RUNNER, NODE), machine) == (True, [which])


@pytest.mark.parametrize("part", ["cpu", "system"])
def test_no_machine_is_pieced_together_from_several(part: str) -> None:
    mixed = {**LAPTOP, part: NODE[part]}
    match, notes = judged(lock(LAPTOP, NODE), mixed)
    assert (match, notes[0].partition(",")[0]) == (False, "no machine of the lockfile fits; compared with the nearest")


def test_where_no_machine_fits_the_report_is_against_the_nearest() -> None:
    other = {**RUNNER, "system": {"libc_version": "2.37"}}
    report = judge(lock(LAPTOP, RUNNER, NODE).to_document(), live(other), "strict")
    assert [str(each.where) for each in report.findings] == ["system.libc_version"]
    nearest = "no machine of the lockfile fits; compared with the nearest, machine 2 of 3: Runner (2 visible)"
    assert report.notes == [nearest]


def test_other_software_differs_on_every_machine() -> None:
    assert not judged(lock(LAPTOP, NODE), NODE, python={"implementation": "cpython", "version": "3.12.0"})[0]


def test_a_lockfile_of_one_machine_says_nothing_of_machines() -> None:
    assert judged(lock(LAPTOP), LAPTOP) == (True, [])


def test_a_machine_is_added_once_and_the_software_must_be_the_locked_one() -> None:
    found, place = add_live_machine(lock(LAPTOP), live(NODE))
    assert (found, place) == (lock(LAPTOP, NODE), 1)
    assert add_live_machine(found, live(NODE)) == (found, 1)
    assert add_live_machine(found, live(LAPTOP)) == (found, 0)
    with pytest.raises(EnvironmentMismatch) as caught:
        add_live_machine(found, live(RUNNER, tensorflow={"version": "2.18.1"}))
    assert caught.value.report.to_text().splitlines()[:2] == [
        "does not match under policy strict: 1 fact differs",
        "  x tensorflow: locked none, live 2.18.1",
    ]


def test_a_renewal_renews_the_software_and_this_machine_only() -> None:
    before = lock(LAPTOP, NODE, RUNNER)
    upgraded = {**NODE, "system": {"libc_version": "2.39"}}
    place = find_place(before, live(upgraded))
    assert place == 1
    new = select_machine(before, place).to_document()
    new["facts"].update(python={"implementation": "cpython", "version": "3.12.0"}, **upgraded)
    after = update_machine(before, validate(new, "x.lock"), place)
    assert after.to_document() == {
        **lock(LAPTOP, upgraded, RUNNER).to_document(),
        "facts": {**SOFTWARE, **LAPTOP, "python": {"implementation": "cpython", "version": "3.12.0"}},
    }
    assert find_place(before, live({"cpu": {"model_name": "Another"}, "system": {}})) is None


@given(st.permutations([LAPTOP, RUNNER, NODE]), st.integers(0, 2))
def test_what_is_seen_from_a_machine_and_folded_again_is_the_same(machines: list[dict[str, Any]], place: int) -> None:
    found = lock(*machines)
    assert update_machine(found, select_machine(found, place), place) == found
    assert select_machine(found, place) == lock(machines[place])


def test_the_driver_is_the_machines_and_the_cuda_beside_it_the_softwares() -> None:
    """Of its section only the driver is of the machine."""
    both = {"cuda_driver": {"version": "12.4"}, "cudart": {"version": "12.5.82"}}
    held = {"facts": {**SOFTWARE, **LAPTOP, "cuda": both}, "unavailable": {}}
    own = get_profile(held)
    assert own["facts"] == {**LAPTOP, "cuda": {"cuda_driver": both["cuda_driver"]}}
    node = {"facts": {**NODE, "cuda": {"cuda_driver": {"version": "12.8"}}}, "unavailable": {}}
    assert replace_machine(held, node)["facts"] == {
        **SOFTWARE,
        **NODE,
        "cuda": {"cudart": both["cudart"], "cuda_driver": {"version": "12.8"}},
    }
    assert replace_machine(replace_machine(held, node), own) == held
    assert list(iter_problems([own, node])) == []


def test_the_driver_of_the_old_machine_is_not_that_of_a_new_one_without_any() -> None:
    both = {"cuda_driver": {"version": "12.4"}, "cudart": {"version": "12.5.82"}}
    alone = {"cudart": both["cudart"]}
    for cuda in (both, alone):
        held = {"facts": {**SOFTWARE, **NODE, "cuda": cuda}, "unavailable": {}}
        replaced = replace_machine(held, {"facts": LAPTOP, "unavailable": {}})
        assert replaced["facts"] == {**SOFTWARE, **LAPTOP, "cuda": alone}


def test_what_could_not_be_collected_of_the_software_is_not_of_the_machine() -> None:
    no = {"reason": "no", "code": "no"}
    hidden = {"cpu.model": no, "keras": no}
    own = get_profile({"facts": {**SOFTWARE, **LAPTOP}, "unavailable": hidden})
    assert own == {"facts": LAPTOP, "unavailable": {"cpu.model": no}}


def test_a_machine_with_what_cannot_be_told_is_the_same_as_itself() -> None:
    machine: dict[str, Any] = {"facts": LAPTOP, "unavailable": {"gpu": {"reason": "no", "code": "no"}}}
    held = {**lock(NODE).to_document(), "machines": [machine]}
    assert find_nearest(held, machine, Policy("strict", {})) == (1, True)


def test_a_machine_fits_whose_differences_the_policy_or_a_proof_lets_pass() -> None:
    held = lock(NODE, LAPTOP).to_document()
    here = {"facts": {**LAPTOP, "cpu": {**LAPTOP["cpu"], "affinity_count": 4}}, "unavailable": {}}
    assert find_nearest(held, here, Policy("functional", {})) == (1, True)
    assert find_nearest(held, here, Policy("strict", {})) == (1, False)
    newer = {"facts": {**LAPTOP, "system": {"libc_version": "2.41"}}, "unavailable": {}}
    assert find_nearest(held, newer, Policy("bits", {})) == (1, False)
    proof = list_results({"numerics": section()})
    assert find_nearest(held, newer, Policy("bits", {}), proof=proof) == (1, True)


def test_a_machine_of_which_little_is_known_has_a_name() -> None:
    assert describe_machine({"facts": {"cpu": {"model_name": "Laptop"}}}) == "Laptop"
    assert describe_machine({"facts": {}}) == "unknown processor"


def test_a_diff_names_the_machines_that_one_side_has() -> None:
    report = diff(lock(LAPTOP, NODE), lock(LAPTOP, RUNNER), names=("a", "b"))
    assert [each.message for each in report.findings] == [
        "machines: only a has Node (64 visible), 2 x NVIDIA H200",
        "machines: only b has Runner (2 visible)",
    ]
    assert diff(lock(LAPTOP, NODE), lock(NODE), names=("a", "live"), one_machine=True).match
    allowed = diff(lock(LAPTOP, NODE), lock(LAPTOP, RUNNER), names=("a", "b"), overrides={"machines": "ignore"})
    assert (allowed.match, len(allowed.findings)) == (True, 2)


@pytest.mark.parametrize(
    ("machines", "problem"),
    [
        ([], "`machines` must be a list of 1 to 100 machines"),
        ({}, "`machines` must be a list of 1 to 100 machines"),
        ([{"facts": {}}], "`machines` must hold objects of `facts` and `unavailable`"),
        (
            [{"facts": {"packages": {}}, "unavailable": {}}],
            "machine 2 has `packages`, which is not a fact of a machine",
        ),
        (
            [{"facts": {"cuda": {"cudnn": {"version": "9"}}}, "unavailable": {}}],
            "machine 2 has `cuda.cudnn.version`, which is not a fact of a machine",
        ),
        (
            [{"facts": {}, "unavailable": {"environ": {"reason": "x", "code": "x"}}}],
            "machine 2 has `environ`, which is not a fact of a machine",
        ),
        ([{"facts": {"nonsense": 1}, "unavailable": {}}], "`facts` has an unknown section `nonsense`"),
    ],
)
def test_a_profile_holds_facts_of_a_machine_and_nothing_else(machines: Any, problem: str) -> None:
    """Or a lockfile could let other software pass on a machine of its choice."""
    with pytest.raises(LockfileError) as caught:
        parse(encode(document(machines=machines)), "x.lock")
    assert caught.value.message == f"lockfile x.lock is not valid: {problem}"


def test_machines_stand_in_the_file_as_they_were_captured() -> None:
    assert json.loads(json.dumps(lock(LAPTOP, NODE).to_document()))["machines"] == [{"facts": NODE, "unavailable": {}}]


def test_gpus_of_one_kind_are_counted_and_what_is_no_gpu_is_not() -> None:
    devices = {"0": {"name": "T4"}, "1": {"name": "L4"}, "2": {"name": "T4"}, "3": None}
    machine = {"facts": {"cpu": {"affinity_count": 4}, "gpu": {"devices": devices}}}
    assert describe_machine(machine) == "unknown processor (4 visible), 2 x T4, L4"


def test_what_could_not_be_collected_of_the_old_machine_is_not_missing_of_the_new_one() -> None:
    own = {"cpu.model_name": {"reason": "no", "code": "no"}, "keras": {"reason": "no", "code": "no"}}
    replaced = replace_machine({"facts": {**SOFTWARE}, "unavailable": own}, {"facts": NODE, "unavailable": {}})
    assert replaced["unavailable"] == {"keras": own["keras"]}


def test_the_choice_says_whether_a_machine_fits() -> None:
    held = lock(LAPTOP, NODE).to_document()
    assert describe_choice(held, 1, fits=True) == "machine 2 of 2: Node (64 visible), 2 x NVIDIA H200"
    assert describe_choice(held, 0, fits=False) == (
        "no machine of the lockfile fits; compared with the nearest, machine 1 of 2: Laptop (8 visible)"
    )


def test_what_is_no_fact_of_a_machine_is_named_once_a_machine() -> None:
    odd = {"facts": {"packages": {"a": {"version": "1"}, "b": {"version": "2"}}}, "unavailable": {}}
    said = [f"machine {number} has `packages.a.version`, which is not a fact of a machine" for number in (2, 3)]
    assert list(iter_problems([odd, odd])) == said


def test_of_a_long_path_that_is_no_fact_of_a_machine_the_begin_is_said() -> None:
    odd = {"facts": {"x" * 61: 1}, "unavailable": {}}
    assert list(iter_problems([odd])) == [f"machine 2 has `{'x' * 60}`, which is not a fact of a machine"]
