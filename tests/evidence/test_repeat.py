"""How sets of runs that were saved are described, and with which hash seed runs start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envlock.evidence import repeated_runs
from envlock.evidence.repeat import repeat
from envlock.evidence.results import Results
from envlock.guest import launch
from envlock.guest.target import Target
from tests.evidence.test_comparison import run
from tests.locks import FACTS, document, encode


def test_numbers_of_runs_have_their_thousands_apart() -> None:
    folder = Path("saved")
    one = [run("A0", {"loss": 1})]
    several = [run(f"A{number}", {"loss": number + 1}) for number in range(1001)]
    assert repeat._describe_set("A", Results(folder, runs=one)) == "A: 1 run of ? in saved (versions unknown)"
    many = repeat._describe_set("A", Results(folder, runs=several, environment={"numpy": "2.3.4"}))
    assert many == "A: 1,001 runs of ? in saved, 1,001 different results (numpy 2.3.4)"


@pytest.mark.parametrize(
    ("locked", "own", "given"),
    [("7", "", "7"), ("7", "random", "7"), ("7", "3", None), (None, "", None), ("random", "", None), (..., "", None)],
)
def test_the_locked_hash_seed_is_that_of_the_runs(
    locked: Any, own: str, given: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has one already keeps it."""
    environ = {} if locked is ... else {"PYTHONHASHSEED": locked}
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONHASHSEED", own)
    assert repeat._read_locked_hash_seed() is None
    (tmp_path / "envlock.lock").write_bytes(encode(document(facts={**FACTS, "environ": environ})))
    assert repeat._read_locked_hash_seed() == given


@pytest.mark.parametrize(
    ("hash_seed", "seed", "found"), [("7", None, "7"), ("7", 5, "7"), (None, 5, "5"), (None, None, None)]
)
def test_runs_start_with_that_seed(
    hash_seed: str | None, seed: int | None, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)

    def start(*_: object, environ: dict[str, str], **__: object) -> None:
        raise InterruptedError(environ.get("PYTHONHASHSEED"))

    monkeypatch.setattr(launch, "start", start)
    plan = repeated_runs.Plan(Target(Path("train.py"), "step"), 2, seed=seed, hash_seed=hash_seed)
    with pytest.raises(InterruptedError) as caught:
        repeated_runs.repeat(plan, tmp_path)
    assert caught.value.args == (found,)
