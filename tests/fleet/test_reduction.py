"""Statements of ranks in, one report out."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.data.runtime_tables import load_launcher_table
from envlock.fleet.digest import parse_report
from envlock.fleet.folder import Folder, read_statements
from envlock.fleet.node_names import is_name
from envlock.fleet.ranks import Rank
from envlock.fleet.reduction import reduction
from envlock.fleet.statement import (
    LIMIT,
    MOST,
    canonical,
    drop_unjudged,
    is_document,
    is_statement,
    make_failure,
    make_statement,
    root_of,
)
from envlock.fleet.texts import collect_texts
from envlock.lock.fact_models import Facts
from envlock.runtime.collectors import Snapshot, take_snapshot
from envlock.runtime.collectors.environment_variables import hash_value, make_recordable
from envlock.runtime.facts import iter_leaves
from envlock.runtime.policies import Policy, names
from envlock.runtime.report import Report
from envlock.runtime.tables import table
from envlock.workflows.fleet import check_fleet
from tests.evidence.canaries import section
from tests.exhaustive import exhaustive
from tests.fleet.ranks import Made, facts, lockfile, rank
from tests.test_documentation import ROOT

ODD: dict[str, Any] = {"TF_ENABLE_ONEDNN_OPTS": "0"}
WHY = "      why: Turns the oneDNN kernels on or off: 0 against the default changed matmul, convolution"
SCHEMA = json.loads((ROOT / "envlock/data/report.schema.json").read_bytes())


def report(made: list[Made], size: int = 8, lock: dict[str, Any] | None = None, **words: Any) -> Report:
    """Return the report on ranks, which survives the way to another process and fits the schema."""
    documents = {statement["root"]: found for statement, found in made if found is not None}
    found = reduction([statement for statement, _ in made], documents, size, lock, **words)[0]
    jsonschema.validate(found.to_json(), SCHEMA)
    again = parse_report(json.loads(json.dumps(found.to_json())))
    assert again.to_text() == found.to_text()
    assert again.to_json() == found.to_json()
    return found


def messages(found: Report) -> list[str]:
    return [f"{each.severity}: {each.message}" for each in found.findings]


def ranks(*odd: int, size: int = 8, **changes: Any) -> list[Made]:
    return [rank(each, size, **(changes if each in odd else {})) for each in range(size)]


@pytest.mark.parametrize(
    ("lock", "headline"), [(None, "8 ranks alike"), (lockfile(), "matches under policy strict: 8 ranks alike")]
)
def test_ranks_that_are_alike(lock: dict[str, Any] | None, headline: str) -> None:
    found = report(ranks(), lock=lock)
    assert (found.exit_code, found.headline, found.findings) == (0, headline, [])
    assert found.notes == ["8 ranks on 4 nodes, job 7.0"]
    assert found.attachments["fleet"]["vetted"] == ["n1", "n2", "n3", "n4"]


def test_an_odd_node_is_named_with_its_fact() -> None:
    found = report(ranks(4, 5, **ODD))
    assert found.exit_code == 1
    assert found.to_text().splitlines()[:2] == [
        "does not match: 2 of 8 ranks differ",
        "  x n3 (ranks 4-5): environ.TF_ENABLE_ONEDNN_OPTS: most ranks unset, here 0",
    ]
    assert found.to_text().splitlines()[2].startswith(WHY[:60])
    assert found.attachments["fleet"]["vetted"] == ["n1", "n2", "n4"]
    assert messages(report(ranks(4, 5, **ODD), lock=lockfile())) == [
        "error: n3 (ranks 4-5): environ.TF_ENABLE_ONEDNN_OPTS: locked unset, live 0"
    ]


def test_the_majority_can_be_what_is_wrong() -> None:
    found = report(ranks(0, 1, 2, 3, 4, 5, **ODD), lock=lockfile())
    assert messages(found) == [
        "error: n[1-3] (ranks 0-5): environ.TF_ENABLE_ONEDNN_OPTS: locked unset, live 0",
    ]
    assert found.attachments["fleet"]["vetted"] == ["n4"]


def test_all_ranks_can_be_wrong() -> None:
    found = report([rank(each, **ODD) for each in range(8)], lock=lockfile())
    assert found.headline == "does not match under policy strict: no rank is as locked"
    assert messages(found) == ["error: all ranks: environ.TF_ENABLE_ONEDNN_OPTS: locked unset, live 0"]


def test_without_a_majority_neither_half_is_called_the_odd_one() -> None:
    found = report(ranks(2, 3, size=4, **ODD), size=4)
    assert found.headline == "does not match: 2 of 4 ranks differ, and no environment has a majority"
    assert messages(found) == [
        "error: n2 (ranks 2-3): environ.TF_ENABLE_ONEDNN_OPTS: n1 (ranks 0-1) unset, here 0",
    ]
    assert found.attachments["fleet"]["majority"] is None
    with_lock = report(ranks(0, 1, size=4, **ODD), size=4, lock=lockfile())
    assert messages(with_lock) == ["error: n1 (ranks 0-1): environ.TF_ENABLE_ONEDNN_OPTS: locked unset, live 0"]


def test_a_rank_that_is_missing_is_a_finding() -> None:
    found = report(ranks()[:6])
    assert (found.exit_code, found.headline) == (4, "cannot decide: 2 of 8 ranks did not report")
    assert messages(found) == ["unknown: no report from ranks 6-7"]
    odd = report(ranks(4, 5, **ODD)[:7])
    assert (odd.exit_code, odd.headline) == (1, "does not match: 2 of 8 ranks differ; 1 of 8 ranks did not report")


def test_a_rank_that_cannot_look_says_why() -> None:
    made: list[Made] = [
        *ranks()[:7],
        (make_failure(Rank(7, 8, "n4", "7.0"), "lockfile not found: /x/envlock.lock"), None),
    ]
    found = report(made)
    assert (found.exit_code, messages(found)) == (
        4,
        ["unknown: n4 (rank 7): cannot report: lockfile not found: /x/envlock.lock"],
    )
    assert found.attachments["fleet"]["vetted"] == ["n1", "n2", "n3"]


def test_ranks_of_another_job_or_lockfile_are_no_ranks_of_this_one() -> None:
    assert messages(report([*ranks()[:7], rank(7, 16)])) == [
        "error: n4 (rank 7): belongs to a job of another size, not of 8 ranks"
    ]
    made = [rank(each, lock="a" * 32 if each < 6 else "b" * 32) for each in range(8)]
    assert messages(report(made, lock=lockfile())) == [
        "error: ranks have different lockfiles: n[1-3] (ranks 0-5) sha256:aaaaaaaaaaaa, n4 (ranks 6-7) sha256:"
        "bbbbbbbbbbbb"
    ]


def vetted(made: list[Made], size: int = 8, lock: dict[str, Any] | None = None) -> Any:
    return report(made, size, lock).attachments["fleet"]["vetted"]


@pytest.mark.longer
def test_a_node_is_vetted_only_if_all_is_known_and_good() -> None:
    threads = [rank(each, 10, TF_NUM_INTRAOP_THREADS=str(max(each // 2, 1))) for each in range(10)]
    assert vetted(ranks(4, 5, 6, 7, **ODD)) == []  # two halves
    assert vetted(ranks(4, 5, 6, 7, **ODD), lock=lockfile()) == ["n1", "n2"]
    assert vetted(threads, 10) == []  # 4:2:2:2
    assert vetted([each for each in ranks() if each[0]["rank"] != 5]) == ["n1", "n2", "n4"]
    assert vetted(ranks()[:6]) == ["n1", "n2", "n3"]
    assert vetted([rank(each, lock="ab"[each == 4] * 32) for each in range(8)], lock=lockfile()) == ["n1", "n2", "n4"]
    assert vetted([rank(each, lock="ab"[each > 3] * 32) for each in range(8)], lock=lockfile()) == []
    assert vetted([*ranks()[:7], rank(7, 16)]) == ["n1", "n2", "n3"]
    loose = [
        ({**statement, "mode": "warn" if statement["rank"] == 2 else "deep"}, found) for statement, found in ranks()
    ]
    assert vetted(loose) == ["n1", "n3", "n4"]
    assert vetted([]) == []


def test_a_difference_that_the_policy_allows_is_no_mismatch() -> None:
    found = report(ranks(4, 5, **ODD), lock=lockfile(policy={"name": "functional", "overrides": {}}))
    assert (found.exit_code, found.headline) == (0, "matches under policy functional: 8 ranks alike")


def test_facts_that_were_lost_are_no_match() -> None:
    made = ranks(4, 5, **ODD)
    found = report([(statement, None if each in (4, 5) else kept) for each, (statement, kept) in enumerate(made)])
    assert (found.exit_code, messages(found)) == (
        4,
        ["unknown: n3 (ranks 4-5): differs from other ranks, and its facts are missing"],
    )


def test_many_odd_groups_are_counted() -> None:
    made = [rank(each, 20, TF_NUM_INTRAOP_THREADS=str(each) if each > 11 else None) for each in range(20)]
    found = report(made, size=20)
    assert len(found.findings) == 6
    assert messages(found)[-1] == "error: n[9-10] (ranks 17-19): 3 more environments that are odd"


@pytest.mark.parametrize("number", ["0", "3", "7"])
def test_which_gpu_of_a_node_a_rank_has_is_not_compared(number: str) -> None:
    made = [rank(each, CUDA_VISIBLE_DEVICES=str(each % 4)) for each in range(8)]
    held = lockfile(facts=facts(CUDA_VISIBLE_DEVICES=number))
    assert report(made, lock=held).match
    two = [*made[:7], rank(7, CUDA_VISIBLE_DEVICES="2,3")]
    assert messages(report(two)) == [
        "info: n4 (rank 7): environ.CUDA_VISIBLE_DEVICES: most ranks 1 device, here 2 devices"
    ]


def test_where_xla_dumps_programs_is_not_compared() -> None:
    paths = [None, "--xla_dump_to=sha256:" + "1" * 64, "--xla_dump_to=sha256:" + "2" * 64 + " --xla_dump_hlo_as_text"]
    made = [rank(each, 3, XLA_FLAGS=paths[each]) for each in range(3)]
    assert report(made, 3).findings == []
    assert report(made, 3, lock=lockfile(facts=facts(XLA_FLAGS="--xla_dump_to=sha256:" + "3" * 64))).match
    other = "--xla_gpu_autotune_level=0 --xla_dump_to=sha256:" + "4" * 64
    assert messages(report([*made[:2], rank(2, 3, XLA_FLAGS=other)], 3)) == [
        "error: n2 (rank 2): environ.XLA_FLAGS: most ranks unset, here --xla_gpu_autotune_level=0"
    ]


PATHS = ("/opt/lib", "/scratch/n3/lib:/opt/lib", "ghp_0123456789", "/opt/lib\x1b[2J", "/" + "x" * 300)


def with_path(number: int, path: str, size: int = 3) -> Made:
    """Return what a rank states, with LD_LIBRARY_PATH as a SHA-256 and, where that may be, as text."""
    recorded = {"LD_LIBRARY_PATH": hash_value(path)}
    statement, found = rank(number, size, LD_LIBRARY_PATH=hash_value(path))
    return statement, {**found, "texts": collect_texts(recorded, {"LD_LIBRARY_PATH": path})}


@pytest.mark.longer
def test_paths_that_differ_are_shown_as_text_and_nothing_else_is() -> None:
    shown = [with_path(2, path) for path in PATHS]
    here = [report([with_path(0, PATHS[0]), with_path(1, PATHS[0]), each], 3) for each in shown[1:]]
    start = "error: n2 (rank 2): environ.LD_LIBRARY_PATH: most ranks /opt/lib, here "
    assert [messages(each) for each in here] == [
        [start + text] for text in (PATHS[1], hash_value(PATHS[2]), hash_value(PATHS[3]), hash_value(PATHS[4]))
    ]
    locked = lockfile(facts=facts(LD_LIBRARY_PATH=hash_value("/usr/lib")))
    (against,) = report([with_path(0, PATHS[0], 1)], 1, lock=locked).findings
    assert against.message == f"all ranks: environ.LD_LIBRARY_PATH: locked {hash_value('/usr/lib')}, live /opt/lib"


def test_a_text_is_that_of_its_digest() -> None:
    _, found = with_path(0, PATHS[1])
    assert found["texts"] == {hash_value(PATHS[1]): PATHS[1]}
    assert is_document(found)
    lies: list[Any] = [{hash_value("/a"): "/b"}, {hash_value("a"): "a"}, {"x": 5}, {5: "/a"}, [], None]
    for lie in lies:
        assert not is_document({**found, "texts": lie})
    many = {hash_value(f"/{each}"): f"/{each}" for each in range(21)}
    assert not is_document({**found, "texts": many})
    flags = "--xla_dump_to=/a --xla_gpu_cuda_data_dir=/b --xla_x=word"
    recorded = make_recordable(flags, {"records": "flags", "words": []})
    assert collect_texts({"XLA_FLAGS": recorded}, {"XLA_FLAGS": flags}) == {
        hash_value("/a"): "/a",
        hash_value("/b"): "/b",
    }
    assert collect_texts({"X": None, "LD_LIBRARY_PATH": hash_value("/a:/b")}, {"LD_LIBRARY_PATH": "/a:/b"}) == {
        hash_value("/a:/b"): "/a:/b"
    }


def of_nodes(**system: Any) -> dict[str, Any]:
    return {**facts(), "system": {"libc_version": "2.36", **system}}


def test_facts_that_no_policy_judges_make_no_groups() -> None:
    """Each node has another kernel, another pip and another limit of the processors."""
    made = []
    for each in range(8):
        other = {**of_nodes(kernel_release=f"6.1.{each}"), "cpu": {**facts()["cpu"], "quota": each}}
        other["packages"] = {**facts()["packages"], "pip": {"version": f"{each}.0"}}
        made.append(rank(each, facts=other))
    held = lockfile(facts=of_nodes(kernel_release="5.10"))
    for lock in (None, held, lockfile(facts=held["facts"], machines=[{"facts": {"cpu": {}}, "unavailable": {}}])):
        found = report(made, lock=lock)
        assert (found.exit_code, found.findings, len(found.attachments["fleet"]["groups"])) == (0, [], 1)
        assert found.notes[1] == "not compared, and different between ranks: facts of cpu, packages, system"


def test_what_a_project_ignores_makes_no_groups_and_what_it_judges_does() -> None:
    rules = {"system.libc_version": "ignore", "system.kernel_release": "exact"}
    held = lockfile(facts=of_nodes(kernel_release="6.0"), policy={"name": "strict", "overrides": rules})
    made = [
        rank(each, facts=of_nodes(kernel_release=f"6.{each // 7}", libc_version=f"2.{each}"), rules=rules)
        for each in range(8)
    ]
    found = report(made, lock=held)
    assert [each["ranks"] for each in found.attachments["fleet"]["groups"]] == ["0-6", "7"]
    assert messages(found) == ["error: n4 (rank 7): system.kernel_release: locked 6.0, live 6.1"]
    assert found.notes[2] == "not compared, and different between ranks: facts of system"


def test_what_ranks_leave_out_is_what_every_policy_ignores() -> None:
    """For each row of the policies, with a name for each wildcard; devices are counted instead."""
    paths = [row["path"].replace("**", "x").replace("*", "x") for row in table("policy")]
    ignored = {path for path in paths if {Policy(name).row(path)["rule"] for name in names()} == {"ignore"}}
    for path in paths:
        value: Any = 0
        for step in reversed(path.split(".")):
            value = {step: value}
        kept = dict(iter_leaves(drop_unjudged(value, {}, {})[0])) == dict(iter_leaves(value))
        assert kept == (path not in ignored or path == "environ.CUDA_VISIBLE_DEVICES"), path


def test_what_a_launcher_changes_on_all_ranks_is_one_finding_with_the_recipe() -> None:
    bound = {**facts(), "cpu": {"affinity_count": 1, "intra_op_threads": 1, "inter_op_threads": 1}}
    made = [rank(each, facts=bound, launch={"OMPI_COMM_WORLD_SIZE": "1"}) for each in range(8)]
    (finding,) = report(made, lock=lockfile()).findings
    row = next(row for row in load_launcher_table().launcher if row.name == "Open MPI")
    assert (finding.rule, finding.severity, finding.fix) == ("launcher", "error", row.fix)
    assert finding.message == (
        "all ranks: Open MPI started this process (OMPI_COMM_WORLD_SIZE is set) and explains cpu.affinity_count, "
        "cpu.intra_op_threads, cpu.inter_op_threads, the only differences from the lockfile (cpu.intra_op_threads: "
        "locked 2, live 1; cpu.inter_op_threads: locked 2, live 1; cpu.affinity_count: locked 2, live 1)"
    )
    other = [rank(each, facts={**bound, "python": {"version": "3.12.1"}}) for each in range(8)]
    assert len(report(other, lock=lockfile()).findings) == 4


def test_a_proof_counts_for_the_machine_that_has_it() -> None:
    held = lockfile(policy={"name": "bits", "overrides": {}}, numerics=section())
    other = {**facts(), "cpu": {**facts()["cpu"], "affinity_count": 2, "flags": ["avx"]}}
    held["facts"]["cpu"]["flags"] = ["avx", "avx2"]
    assert report([rank(each, facts=other, proven=True) for each in range(8)], lock=held).match
    half = [rank(each, facts=other, proven=each < 6) for each in range(8)]
    assert [each.partition(": cpu")[0] for each in messages(report(half, lock=held)) if each.startswith("error")] == [
        "error: n4 (ranks 6-7)"
    ]


def test_a_machine_that_the_lockfile_accepts_can_stand_beside_another() -> None:
    other = {**facts(), "cpu": {"affinity_count": 4, "intra_op_threads": 4, "inter_op_threads": 4}}
    made = [rank(each, facts=other if each > 5 else None) for each in range(8)]
    profile = {"facts": {"cpu": other["cpu"]}, "unavailable": {}}
    assert report(made, lock=lockfile(machines=[profile])).match
    assert not report(made, lock=lockfile()).match


def test_a_statement_is_small_and_says_what_it_stands_for() -> None:
    live = take_snapshot()
    statement, document = make_statement(Rank(123456, 200000, "n" * 64, "j" * 64), live, {}, "a" * 32)
    assert len(canonical(statement)) <= LIMIT
    # What a process has loaded is seen after the imports.
    assert statement["sections"].keys() == Facts.model_fields.keys() - {"loaded"}
    assert root_of(json.loads(canonical(document))) == statement["root"]
    assert make_statement(Rank(1, 2, "other"), live, {})[0]["root"] == statement["root"]


def test_an_unavailable_fact_counts_by_its_code_and_not_by_its_words() -> None:
    def root(reason: str, code: str) -> str:
        live = Snapshot({"cpu": {}}, {"gpu.devices": {"reason": reason, "code": code}})
        return str(make_statement(Rank(0, 1, "n"), live, {})[0]["root"])

    assert root("one", "nvml-9") == root("other", "nvml-9")
    assert root("one", "nvml-9") != root("one", "nvml-3")


@given(st.none() | st.booleans() | st.integers() | st.text() | st.dictionaries(st.text(), st.integers(), max_size=3))
def test_what_comes_from_outside_is_looked_at_first(value: Any) -> None:
    good, document = rank(3)
    assert is_statement(good)
    assert is_document(document)
    assert not is_statement(value)
    assert not is_document(value)
    fits: dict[str, Any] = {
        "rank": lambda value: 0 <= value < MOST,
        "node": is_name,
        "root": lambda value: len(value) <= 64,
        "sections": lambda value: not value,  # of numbers
    }
    for name in ("rank", "node", "root", "proven", "sections"):
        fitting = type(value) is type(good[name]) and (name not in fits or fits[name](value))
        assert is_statement({**good, name: value}) == fitting


@pytest.mark.parametrize(
    "lie",
    [
        {"node": "n" * 254},
        {"node": ""},
        {"node": "<script>::error::x[a](b)"},
        {"node": "n1 n2"},
        {"node": "n\u00e9"},
        {"job": "x" * 254},
        {"root": "0" * 65},
        {"root": []},
        {"lock": "0" * 65},
        {"mode": "loose"},
        {"mode": ["warn"]},
        {"sections": {"cpu": 5}},
        {"sections": {"cpu" * 99: ""}},
        {"problem": 5},
        {"problem": "x" * 301},
    ],
)
def test_a_statement_that_lies_about_its_form_is_none(lie: dict[str, Any]) -> None:
    assert not is_statement({**rank(3)[0], **lie})


@pytest.mark.parametrize("length", [1, 253])
def test_a_name_is_as_long_as_that_of_a_host(length: int) -> None:
    assert is_statement({**rank(3)[0], "node": "n" * length})


@pytest.mark.parametrize(
    "lie",
    [
        {"tooling": [{"a": 1}]},
        {"tooling": [5]},
        {"launch": {"PMI_RANK": 3}},
        {"unavailable": {"cpu.vendor": {"reason": 5, "code": ["x"]}}},
        {"unavailable": {"cpu.vendor": {"reason": "x"}}},
        {"unavailable": {"cpu.vendor": "x"}},
        {"facts": {"cpu": {"flags": [{}]}}},
        {"facts": {"weather": {}}},
    ],
)
def test_facts_that_lie_about_their_form_are_none(lie: dict[str, Any], tmp_path: Path) -> None:
    """`fleet check` has a verdict on the job whatever one rank has written, under the digest of what it has written."""
    statement, found = rank(1, 2)
    lying = {**found, **lie}
    assert not is_document(lying)
    board = Folder(str(tmp_path), "7.0")
    board.keep(*rank(0, 2))
    board.keep({**statement, "root": "f" * 64}, lying)
    report_of_all = check_fleet(str(tmp_path), wait=0)
    assert report_of_all.headline == "cannot decide: facts of ranks could not be collected"


def test_facts_that_no_rank_states_are_not_read(tmp_path: Path) -> None:
    """Forty of them, 101 MB, took 1,233 MB."""
    board = Folder(str(tmp_path), "7.0")
    board.keep(*rank(0, 1))
    flood = tmp_path / "7.0" / f"facts.{'f' * 64}.json"
    flood.write_text(f'{{"facts": [{"[]," * 600_000}[]]}}', encoding="ascii")
    tracemalloc.start()
    try:
        statements, documents = read_statements(str(tmp_path), "7.0")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert set(documents) == {each["root"] for each in statements}
    assert peak < flood.stat().st_size / 2


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "cpu", "gpu.devices"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["cpu", "gpu", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.data())
def test_whatever_a_rank_states_is_reduced_or_left_out(data: st.DataObject) -> None:
    """No value inside of it ends the reduction, with a lockfile and without."""
    statement, found = rank(7, 8, **ODD)
    key = data.draw(st.sampled_from(["facts", "unavailable", "tooling", "launch"]))
    section = data.draw(st.sampled_from(sorted(found["facts"])))
    value = data.draw(VALUES)
    document = {**found, key: {**found["facts"], section: value} if key == "facts" else value}
    if is_document(document):
        stating = {**statement, "root": root_of(document)}
        for lock in (None, lockfile()):
            report([*ranks()[:7], (stating, document)], lock=lock)


def test_a_statement_does_not_say_how_long_the_others_are_looked_for() -> None:
    good, _ = rank(3)
    assert all(is_statement({**good, "size": size}) for size in (None, 8, MOST))
    assert not any(is_statement({**good, "size": size}) for size in (MOST + 1, 2**63, "8"))


@exhaustive
@pytest.mark.slow
@given(st.permutations(range(8)), st.sets(st.integers(0, 7), max_size=3))
def test_the_order_of_statements_does_not_matter(order: list[int], odd: set[int]) -> None:
    made = ranks(*odd, **ODD)
    shuffled = report([made[each] for each in order])
    assert shuffled.to_json() == report(made).to_json()
    assert shuffled.match == (not odd)


def test_what_the_policy_lets_differ_makes_no_groups() -> None:
    """With a lockfile what its policy judges counts, without one what `strict` judges; each difference is listed."""
    held = lockfile(policy={"name": "functional", "overrides": {}})
    found = report(ranks(4, 5, **ODD), lock=held)
    assert (len(found.attachments["fleet"]["groups"]), found.notes) == (1, ["8 ranks on 4 nodes, job 7.0"])
    assert messages(found) == ["info: n3 (ranks 4-5): environ.TF_ENABLE_ONEDNN_OPTS: locked unset, live 0"]
    assert len(report(ranks(4, 5, **ODD)).attachments["fleet"]["groups"]) == 2


def test_one_odd_fact_is_one_group_whatever_else_may_differ() -> None:
    """Each odd rank has a number of threads of its own, which `functional` lets differ."""
    held = lockfile(policy={"name": "functional", "overrides": {}})
    made = []
    for each in range(8):
        own = {**facts(), "cpu": {**facts()["cpu"], "intra_op_threads": each + 1}}
        own["python"] = {"version": "3.12.1" if each > 5 else "3.11.7"}
        made.append(rank(each, facts=own))
    found = report(made, lock=held)
    assert [group["ranks"] for group in found.attachments["fleet"]["groups"]] == ["0-5", "6-7"]
    assert messages(found)[:2] == [
        "error: n4 (ranks 6-7): python.version: locked 3.11.7, live 3.12.1",
        "info: n1 (rank 0): cpu.intra_op_threads: locked 2, live 1",
    ]
