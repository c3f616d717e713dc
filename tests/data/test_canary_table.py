"""The canary's table: its operations are the battery's, its causes have signs that can be seen, and sources."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from envlock.data.canary import Cause, canary_table

BATTERY = Path(__file__).resolve().parents[2] / "envlock" / "guest" / "battery.py"
TABLE = canary_table()
GROUPS = {"numpy", "cpu-onednn", "cpu-eigen", "cpu-graph", "xla", "bf16"}


def test_the_operations_are_those_of_the_battery() -> None:
    """Read from its source: no TensorFlow is needed for that."""
    tree = ast.parse(BATTERY.read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.endswith("operations")]
    assert [each.name for each in functions] == ["numpy_operations", "onednn_operations", "eigen_operations"]
    written = [_keys(each) for each in functions]
    names = [*written[0], *written[1], *written[2], "train", "train_xla", "matmul_bf16"]
    assert [row.name for row in TABLE.operation] == names
    assert (len(written[0]), len(names)) == (6, 27)


def _keys(function: ast.FunctionDef) -> list[str]:
    (returned,) = [node for node in function.body if isinstance(node, ast.Return)]
    assert isinstance(returned.value, ast.Dict)
    return [key.value for key in returned.value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]


def test_the_causes_of_the_issue_are_there_and_each_is_another_set_of_signs() -> None:
    assert [row.id for row in TABLE.cause] == [
        *("threads", "onednn-off", "isa-avx2", "isa-sse41", "reduced-precision"),
        *("determinism", "xla", "tensorflow", "numpy"),
    ]
    assert len({(*sorted(row.always), "/", *sorted(row.often)) for row in TABLE.cause}) == len(TABLE.cause)


@pytest.mark.parametrize("row", TABLE.cause, ids=lambda row: row.id)
def test_every_sign_can_be_seen_and_every_source_is_known(row: Cause) -> None:
    operations = {each.name for each in TABLE.operation}
    for sign in [*row.always, *row.often]:
        kind, _, name = sign.partition(":")
        names = {"ended": GROUPS, "coarse": GROUPS, "version": {"tensorflow", "numpy"}}
        assert sign in operations if not name else name in names[kind]
    assert [source for source in row.sources if source not in TABLE.evidence] == []


def test_no_evidence_is_unused() -> None:
    assert {source for row in TABLE.cause for source in row.sources} == set(TABLE.evidence)


@pytest.mark.parametrize(
    "change",
    [{"always": ["a", "a"]}, {"always": [], "often": []}, {"always": ["died:bf16"]}, {"sources": []}, {"x": 1}],
)
def test_a_malformed_row_is_refused(change: dict[str, Any]) -> None:
    row = TABLE.cause[0].model_dump()
    with pytest.raises(ValidationError):
        Cause.model_validate({**row, **change})
