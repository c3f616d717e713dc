"""A training of several processes: where devices are combined, the cause can stand in another process."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.evidence.diverge.comparison import compare
from envlock.evidence.diverge.observed_runs import Observed, Request
from envlock.evidence.diverge.readings import describe_other_workers
from envlock.evidence.diverge.threads import ThreadEvidence
from envlock.guest.target import parse_target
from envlock.guest.tracing.runs import count_workers
from tests.evidence.diverge.traces import HEADER, op


@pytest.mark.parametrize(
    ("config", "count"),
    [
        ("", 1),
        ("[]", 1),
        ('{"cluster": 3}', 1),
        ('{"cluster": {}}', 1),
        ('{"cluster": {"worker": ["a:1", "b:1"], "ps": ["c:1"]}}', 3),
    ],
)
def test_workers_are_counted_as_tf_config_names_them(config: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", config)
    assert count_workers() == count


@pytest.mark.parametrize(
    ("kind", "count", "said"),
    [
        ("CollectiveReduceV2", 2, "the program is one of 2 that TF_CONFIG names, and the others are not traced"),
        ("Call", 3, "the program is one of 3 that TF_CONFIG names, and the others are not traced"),
        ("CollectiveReduceV2", 1, None),
        ("RandomUniform", 2, None),
    ],
)
def test_what_combines_devices_or_is_a_graph_can_bring_it_from_elsewhere(
    kind: str, count: int, said: str | None, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.touch()
    runs = compare([[op(kind, 7, [1], [made])] for made in (2, 3)])
    answers = {"ends": {number: {"workers": count} for number in range(2)}}
    seen = Observed(Request(parse_target(f"{script}:step"), None, 2, fresh=False), tmp_path, HEADER, runs, answers)
    assert describe_other_workers(seen, ThreadEvidence()) == said
