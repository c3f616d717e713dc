"""Which driver and which GPU a CUDA needs."""

from __future__ import annotations

import pytest

from envlock.data.image_tables import find_driver_floor, find_oldest_driver
from envlock.image.bases.candidate import Value
from envlock.image.bases.cards import list_runnable
from envlock.image.bases.drivers import judge_driver, judge_gpus
from envlock.image.bases.needs import BaseNeeds
from envlock.runtime.release import parse_release
from tests.image.bases.asking import TABLES


def test_the_driver_that_came_with_a_cuda_and_the_oldest_that_runs_it() -> None:
    drivers = {
        "12.8.0": ("570.26", "525.60.13"),
        "12.8.1": ("570.124.06", "525.60.13"),
        "12.8": ("570.26", "525.60.13"),
        "12.4.99": ("550.54.14", "525.60.13"),
        "11.0.167": ("450.36.06", "450.36.06"),
        "10.1.243": ("418.39", "418.39"),
        "13.0.1": ("580.82.07", "580"),
        "13.3.1": ("610.43.02", "580"),
        "13.4.2": ("615.71.09", "580"),
    }
    floors = {cuda: find_driver_floor(cuda, TABLES.cuda) for cuda in drivers}
    assert {
        cuda: (floor and floor.driver, find_oldest_driver(cuda, TABLES.cuda)) for cuda, floor in floors.items()
    } == drivers


@pytest.mark.parametrize(
    ("driver", "doubt", "note"),
    [
        ("570.26", None, "Driver 570.26 is new enough for CUDA 12.8.0, which came with 570.26."),
        (
            "535.104.05",
            None,
            "Driver 535.104.05 is older than 570.26, which came with CUDA 12.8.0; it runs it by minor version "
            "compatibility (525.60.13 or newer), except for PTX of CUDA 12.8.0.",
        ),
        (
            "525.60.12",
            "Driver 525.60.12 is too old for CUDA 12.8.0, which needs 525.60.13 or newer; on data-centre GPUs the "
            "cuda-compat of the image may suffice.",
            None,
        ),
        (None, None, None),
    ],
)
def test_a_driver_under_a_cuda(driver: str | None, doubt: str | None, note: str | None) -> None:
    assert judge_driver(Value("12.8.0"), BaseNeeds(driver=driver), TABLES.cuda) == (doubt, note)


def test_of_a_cuda_that_is_not_known_nothing_is_said() -> None:
    said = {cuda: judge_driver(Value(cuda), BaseNeeds(driver="470.57"), TABLES.cuda) for cuda in (None, "7.5", "99.9")}
    assert said == dict.fromkeys(said, (None, None))


def test_a_cuda_that_makes_no_code_for_a_gpu() -> None:
    rows = [
        *(("11.7", "9.0", "11.8"), ("11.8", "9.0", None), ("12.6", "12.0", "12.8"), ("12.9", "11.0", "13.0")),
        *(("8.0", "7.5", "9.0"), ("12.6", "8.9", None), ("11.0", "99.0", None), ("11.0", "8.8", None)),
        # Machine code for a lower minor number runs, too.
        *(("12.6", "12.1", "12.8"), ("12.8", "12.1", None), ("12.8", "10.3", None), ("12.8", "10.7", None)),
        # Not that of, or on, a Tegra.
        *(("11.3", "8.7", "11.4"), ("11.4", "8.7", None), ("9.0", "7.2", "9.1"), ("9.1", "7.2", None)),
    ]
    for cuda, capability, first in rows:
        found = list(judge_gpus(Value(cuda), None, BaseNeeds(capabilities=(capability,)), TABLES.cuda))
        said = f"CUDA {cuda} does not support compute capability {capability} ({first} and later do)."
        assert found == ([] if first is None else [said]), (cuda, capability)


@pytest.mark.parametrize("capability", [row.compute_capability for row in TABLES.cuda.gpu])
def test_a_lock_and_a_card_get_the_same_answer(capability: str) -> None:
    first = list_runnable(capability, TABLES)["gpu"]["first_cuda"]
    for row in TABLES.cuda.driver:
        doubted = list(judge_gpus(Value(row.cuda), None, BaseNeeds(capabilities=(capability,)), TABLES.cuda))
        assert bool(doubted) == (parse_release(row.cuda)[:2] < parse_release(first)), row.cuda
