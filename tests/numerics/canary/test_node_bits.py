"""Canaries of several nodes in, findings out."""

from __future__ import annotations

import json

import pytest

from envlock.guest import launch
from envlock.numerics.canary.canary_run import Settings, make_request, read_answers
from envlock.numerics.canary.node_bits import compare_nodes
from envlock.runtime.errors import FactError
from envlock.runtime.policies import Policy
from tests.numerics.canaries import numerics

GOOD, OTHER = numerics(), numerics("matmul")


def test_nodes_with_the_same_bits() -> None:
    assert compare_nodes({"n1": GOOD, "n2": GOOD}, None, Policy()) == (
        [],
        "canary on 2 nodes, compared with n[1-2]: the same bits on all nodes",
    )


def test_the_operation_is_named_with_its_node() -> None:
    found, note = compare_nodes({"n1": GOOD, "n2": OTHER, "n3": GOOD}, None, Policy())
    assert [each.message.partition(": ")[0] for each in found] == ["n2"]
    assert "numerics.cpu-onednn.matmul" in found[0].message
    assert note == "canary on 3 nodes, compared with n[1,3]: 2 different results"


def test_the_lockfile_decides_where_it_has_a_canary() -> None:
    found, note = compare_nodes({"n1": GOOD, "n2": OTHER, "n3": GOOD}, OTHER, Policy())
    assert [each.message.partition(": ")[0] for each in found] == ["n[1,3]"]
    assert note == "canary on 3 nodes, compared with the lockfile: 2 different results"


def said(*answers: object) -> launch.Ended:
    return launch.Ended(0, "".join(f"{launch.MARK}{json.dumps(each)}\n" for each in answers).encode(), b"", 0)


def test_what_is_asked_leaves_out_what_could_end_the_job() -> None:
    assert make_request(Settings()) == {
        "device": "cpu",
        "skip": ["bf16"],
        "determinism": True,
        "intra_op_threads": 2,
        "inter_op_threads": 2,
    }


@pytest.mark.parametrize(
    ("ended", "message"),
    [
        (said(), "the canary did not answer"),
        (
            said({"failed": "No module named 'tensorflow'"}),
            "the canary cannot be computed: No module named 'tensorflow'",
        ),
    ],
)
def test_a_node_without_an_answer_is_said(ended: launch.Ended, message: str) -> None:
    with pytest.raises(FactError) as raised:
        read_answers(ended, Settings())
    assert raised.value.message == message
