"""A report of any number of ranks, on nodes of any names, is short; and a rank learns what differs where it is."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.fleet import fleet_assertion
from envlock.fleet.digest import DOCUMENT_SIZE, LINES, PARTS, SIZE, digest, split_by_root
from envlock.fleet.fleet_assertion import Verdict, gather_report
from envlock.fleet.folder import Folder
from envlock.fleet.node_names import NAME_LIMIT, format_nodes, shorten_nodes
from envlock.fleet.node_sets import find_missing, list_ranks
from envlock.fleet.ranks import Rank
from envlock.fleet.reduction import reduction
from envlock.fleet.statement import canonical, make_failure
from envlock.runtime.report import Report
from tests.exhaustive import exhaustive
from tests.fleet.ranks import Made, facts, lockfile, rank
from tests.golden_files import assert_as_golden
from tests.test_documentation import ROOT

GOLDEN = ROOT / "tests/golden/fleet-aws.txt"
SCHEMA = json.loads((ROOT / "envlock/data/report.schema.json").read_bytes())
RANKS = 10_000


def aws(node: int) -> str:
    return f"ip-10-{node % 7}-{node // 251}-{node * 37 % 251}.eu-west-1.compute.internal"


def gke(node: int) -> str:
    return f"gke-train-pool-{node * 2654435761 % 2**32:08x}-{'abcdefghjkmnpqrstvwx'[node % 20]}{node % 97:02}z"


def longest(node: int) -> str:
    return f"{node:05}{'ab1-' * 80}"[:NAME_LIMIT]


def packages(number: int, **more: Any) -> dict[str, Any]:
    names = {f"package-{each}": {"version": "2.0" if each < number else "1.0"} for each in range(30)}
    return {**facts(**more), "packages": names}


def job(named: Any, kinds: list[dict[str, Any]], pick: Any, ranks: int = RANKS) -> tuple[list[Any], dict[str, Any]]:
    """Return the statements of ranks, 8 on a node, each with the facts that `pick` gives to the number of a rank."""
    made = [rank(0, ranks, facts=each, lock="a" * 32) for each in kinds]
    statements = []
    for number in range(ranks):
        statement = made[pick(number) % len(made)][0]
        statements.append({**statement, "rank": number, "node": named(number // 8)})
    return statements, {statement["root"]: found for statement, found in made}


def bounded(report: Report) -> Report:
    """Return the digest of a report, which is one, is short, and has its answer."""
    found = digest(report, "`--format json`")
    text = found.to_text()
    assert len(text.encode()) < SIZE
    assert text.count("\n") + 1 < LINES
    assert len(canonical(found.to_json())) < DOCUMENT_SIZE
    assert (found.exit_code, found.headline, found.match) == (report.exit_code, report.headline, report.match)
    jsonschema.validate(found.to_json(), SCHEMA)
    return found


@pytest.mark.parametrize("named", [aws, gke, longest])
def test_many_packages_that_are_odd_on_many_nodes(named: Any) -> None:
    """The case that was measured at 581,846 bytes: 30 packages on a third of the nodes."""
    statements, documents = job(named, [packages(0), packages(30)], lambda number: number // 8 % 3 == 1)
    report = reduction(statements, documents, RANKS)[0]
    found = bounded(report)
    assert len(found.of("error")) == 30
    assert found.findings[0].message.startswith("node set 1 (3,336 ranks): packages.")
    assert sum("node set 1 has 417 nodes: " in note for note in found.notes) == 1
    assert found.notes[-1] == "complete lists: `--format json`"
    listed = report.attachments["fleet"]["node_sets"]["1"]
    assert named(1) in listed or "[" in listed


def test_the_text_of_one() -> None:
    statements, documents = job(aws, [packages(0), packages(2, TF_ENABLE_ONEDNN_OPTS="0")], lambda n: n // 8 % 3 == 1)
    text = digest(reduction(statements, documents, RANKS)[0], "`--format json`").to_text()
    assert_as_golden(text + "\n", GOLDEN)


def test_each_node_has_a_lockfile_of_its_own() -> None:
    statements, documents = job(aws, [packages(0)], lambda number: 0)
    own = [{**each, "lock": f"{each['rank'] // 8:032x}"} for each in statements]
    found = bounded(reduction(own, documents, RANKS, lockfile(facts=packages(0)))[0])
    (message,) = [each.message for each in found.findings]
    assert message.startswith("ranks have different lockfiles: ip-10-0-0-0.eu-west-1.compute.internal (ranks 0-7) sha")
    assert message.endswith(", 1,245 more")


def test_failures_with_one_cause_are_together() -> None:
    """The case that was measured at 3,339 lines: the path of each rank is in its text."""
    causes = ("lockfile not found: /scratch/job.{0}/n{1}/envlock.lock", "cannot read {1}.so: error 0x{0:x}")
    made = [
        make_failure(Rank(each, RANKS, aws(each // 8), "7.0"), causes[each % 2].format(each, each // 8))
        for each in range(RANKS)
    ]
    report = reduction(made, {}, RANKS)[0]
    found = bounded(report)
    assert [each.message for each in found.findings] == [
        "node set 1 (5,000 ranks): cannot report: lockfile not found: /scratch/job.0/n0/envlock.lock "
        "(and 4,999 similar reasons)",
        "node set 1 (5,000 ranks): cannot report: cannot read 0.so: error 0x1 (and 4,999 similar reasons)",
    ]
    assert len(report.attachments["fleet"]["failed"]) == RANKS
    words = ["one", "two", "three", "four", "five", "six", "seven"]
    many = [make_failure(Rank(each, 7, f"n{each}", "7.0"), word) for each, word in enumerate(words)]
    assert [each.message for each in reduction(many, {}, 7)[0].findings][-1] == (
        "n[5-6] (ranks 5-6): cannot report: 2 other reasons"
    )


def test_ranks_that_are_missing_here_and_there_are_counted() -> None:
    statements, documents = job(aws, [packages(0)], lambda number: 0)
    odd = [each for each in statements if each["rank"] % 2]
    bounded(reduction(odd, documents, RANKS)[0])
    words = list_ranks(find_missing(odd, RANKS))
    assert words.startswith("ranks 0,2,4,")
    shown = words.removeprefix("ranks ").partition(" and ")[0].split(",")
    assert words.endswith(f" and {5_000 - len(shown):,} more")


NAMES = st.one_of(
    st.from_regex(r"\A[A-Za-z0-9._:@+-]{1,253}\Z"),
    st.builds(aws, st.integers(0, 5000)),
    st.builds(gke, st.integers(0, 5000)),
    st.from_regex(r"\A([0-9]{1,3}[.-]){2,60}[a-z]?\Z"),
)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[Made], int]:
    """Return what 300 ranks state, in up to 40 environments, of which each can differ in many facts."""
    nodes = draw(st.lists(NAMES, min_size=1, max_size=40, unique=True))
    words = st.text(min_size=1, max_size=60)
    values = draw(st.lists(st.dictionaries(words, words, max_size=4), min_size=1, max_size=12))
    kinds = [
        rank(0, 300, facts={**packages(each), "packages": {name: {"version": value} for name, value in many.items()}})
        for each, many in enumerate(values)
    ]
    problems = draw(st.lists(st.text(max_size=300), max_size=9))
    size = 300
    made: list[Made] = []
    for number in range(size):
        node = nodes[draw(st.integers(0, 10**6)) % len(nodes)] if number < 40 else nodes[number % len(nodes)]
        if problems and number % 5 == 0:
            made.append((make_failure(Rank(number, size, node, "7.0"), problems[number % len(problems)]), None))
        elif number % 7:
            statement, document = kinds[number % len(kinds)]
            made.append(({**statement, "rank": number, "node": node}, document))
    return made, size


@exhaustive
@pytest.mark.slow
@given(crowds(), st.booleans())
def test_no_names_and_no_groups_make_a_report_long(crowd: tuple[list[Made], int], is_locked: bool) -> None:
    made, size = crowd
    documents = {statement["root"]: found for statement, found in made if found is not None}
    report, groups = reduction([each for each, _ in made], documents, size, lockfile() if is_locked else None)
    bounded(report)
    given_to = split_by_root(groups)
    assert len(given_to) <= PARTS
    assert all(len(canonical(part["differs"])) < DOCUMENT_SIZE for part in given_to.values())


@given(st.lists(NAMES, min_size=1, max_size=60, unique=True), st.integers(1, 400))
def test_a_short_list_counts_what_it_leaves_out(names: list[str], limit: int) -> None:
    text = shorten_nodes(names, limit)
    whole = format_nodes(names)
    if text == whole:
        assert len(text) <= limit or len(names) == 1
        return
    shown, _, more = text.rpartition(" and ")
    assert len(shown) <= max(limit, NAME_LIMIT)
    assert 0 < int(more.removesuffix(" more").replace(",", "")) < len(names)


def test_the_number_that_differs_becomes_ranges() -> None:
    names = [f"ip-10-0-12-{each}.ec2.internal" for each in range(9, 12)]
    assert format_nodes(names) == "ip-10-0-12-[9-11].ec2.internal"
    assert format_nodes([*names, "ip-10-0-13-9.ec2.internal"]) == (
        "ip-10-0-12-[9-11].ec2.internal,ip-10-0-13-9.ec2.internal"
    )


def test_a_report_that_is_short_is_its_own_digest() -> None:
    made = [rank(each, TF_ENABLE_ONEDNN_OPTS="0" if each == 3 else None) for each in range(8)]
    report = reduction([each for each, _ in made], {each["root"]: found for each, found in made}, 8)[0]
    assert digest(report) is report


def test_a_rank_learns_what_differs_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 12 environments the report shows five; a rank has its own, and the whole report is a file."""
    kinds = [packages(30 if each else 0, TF_AUTOTUNE_THRESHOLD=str(each)) for each in range(12)]
    made = [rank(each, 12, per_node=1, facts=kinds[each]) for each in range(12)]
    monkeypatch.setattr(fleet_assertion, "inspect_rank", lambda rank, *_: (None, made[rank.rank]))
    heard: dict[int, Report] = {}

    def come(number: int) -> None:
        found = gather_report(Rank(number, 12, f"n{number + 1}", "7.0"), Folder(str(tmp_path), "7.0"), None, None, 30.0)
        assert found.report is not None
        heard[number] = found.report

    threads = [threading.Thread(target=come, args=(number,)) for number in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    (file,) = (tmp_path / "7.0").glob("report.*.json")
    whole = json.loads(file.read_bytes())
    jsonschema.validate(whole, SCHEMA)
    assert len(whole["attachments"]["fleet"]["groups"]) == 12
    assert heard[0].notes[-1] == f"complete lists: {file}"
    assert capsys.readouterr().err == f"envlock: {heard[0].to_text()}\n"
    for number in range(1, 12):
        own = heard[number].notes[len(heard[0].notes) :]
        assert len(own) == 31
        assert own[0] == f"this rank: environ.TF_AUTOTUNE_THRESHOLD: n1 (rank 0) 0, here {number}"


def test_a_part_that_a_file_server_does_not_show_yet_is_left_out() -> None:
    report = reduction([], {}, 1)[0].to_json()
    assert Verdict({"report": report, "own": None}, "").report is not None


def test_what_others_state_names_no_file() -> None:
    """The root of a statement becomes a part of the name of a file."""
    statement, found = rank(0, 2)
    other = {**rank(1, 2)[0], "root": "../../x"}
    _, groups = reduction([statement, other], {statement["root"]: found}, 2)
    assert [group.root for group in groups if group.odd] == ["../../x"]
    assert split_by_root(groups) == {}
