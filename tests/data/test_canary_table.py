"""The canary's table: its operations are the battery's, its causes have signs that can be seen, and sources."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from envlock.data.canary_tables import Cause, load_canary_table
from envlock.data.determinism import load_operation_groups
from envlock.data.replay_table import ReplayTable, load_replay_table
from envlock.runtime.tables import table
from tests.ground import battery

TABLE = load_canary_table()
GROUPS = {"libm", "numpy", "cpu-onednn", "cpu-eigen", "cpu-graph", "xla", "bf16"}


def test_the_operations_are_those_of_the_battery() -> None:
    assert [row.name for row in TABLE.operation] == battery()


def test_the_causes_of_the_issue_are_there_and_each_is_another_set_of_signs() -> None:
    assert [row.id for row in TABLE.cause] == [
        *("threads", "onednn-off", "isa-avx2", "isa-sse41", "reduced-precision"),
        *("determinism", "xla", "tensorflow", "numpy", "numpy-loops", "libm", "libm-kernels"),
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


@pytest.mark.parametrize("change", [{"positive": ["Unknown"]}, {"operations": [*load_replay_table().operations] * 2}])
def test_a_list_that_contradicts_itself_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="operations that are not in the list, or twice"):
        ReplayTable.model_validate({**load_replay_table().model_dump(), **change})


def test_no_operation_that_is_run_from_a_lockfile_touches_a_file_python_or_the_state_of_a_process() -> None:
    found = load_replay_table().operations
    assert found == sorted(found)
    words = (
        "PyFunc File Rpc Remote Save Restore Print Send Recv Variable Resource Dataset Iterator Queue TPU Collective"
    )
    assert [name for name in found for word in words.split() if word in name] == []
    stateful = (
        load_operation_groups()["random"] | load_operation_groups()["python"] | load_operation_groups()["next_element"]
    )
    assert set(found) & stateful == set()
    assert table("replay") == load_replay_table().model_dump(
        exclude={"source": True, "undefined": {"__all__": {"source"}}}
    )
