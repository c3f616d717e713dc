"""How sets of runs that were saved are described."""

from __future__ import annotations

from pathlib import Path

from envlock.numerics.results import Results
from envlock.workflows import repeat
from tests.numerics.test_comparison import run


def test_numbers_of_runs_have_their_thousands_apart() -> None:
    folder = Path("saved")
    one = [run("A0", {"loss": 1})]
    several = [run(f"A{number}", {"loss": number + 1}) for number in range(1001)]
    assert repeat._describe_set("A", Results(folder, runs=one)) == "A: 1 run of ? in saved (versions unknown)"
    many = repeat._describe_set("A", Results(folder, runs=several, environment={"numpy": "2.3.4"}))
    assert many == "A: 1,001 runs of ? in saved, 1,001 different results (numpy 2.3.4)"
