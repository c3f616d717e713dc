"""CUDA_VISIBLE_DEVICES as CUDA reads it: values in, values out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.runtime.gpu.visible import (
    Gpu,
    Instance,
    Undecided,
    choose,
    parse,
    parse_driver_branch,
    parse_leading_number,
)

NUMBERS: list[tuple[str, list[int]]] = [
    ("", []),
    ("-1", []),
    ("0", [0]),
    ("0,1", [0, 1]),
    ("2,1", [2, 1]),
    (" 0 , 1 ", [0, 1]),
    ("0,2,-1,1", [0, 2]),  # the guide's own example
    ("0,,1", [0]),
    ("0,x,1", [0]),
    ("NoDevFiles", []),  # what Slurm sets where it gives no GPU
    ("void", []),
    ("none", []),
    ("all", []),
    ("1gpu2,2ampere", [1, 2]),  # strtoul stops where the number ends
    ("+1", [1]),
    ("0x1", [0]),
    ("007", [7]),
    ("0,0", []),
    ("0,1,0", []),
    ("0,-1,0", [0]),
    ("1,01", []),
    ("0,GPU-1", [0]),
    (",0", []),
    ("+", []),
    ("\u0663", []),  # a digit to Python, none to C
]
NAMES: list[tuple[str, list[str]]] = [
    ("GPU-1", ["GPU-1"]),
    ("GPU-1,GPU-2", ["GPU-1", "GPU-2"]),
    ("GPU-1,GPU-1", []),
    ("GPU-1,0,GPU-2", ["GPU-1"]),
    ("MIG-1,MIG-2", ["MIG-1", "MIG-2"]),
    ("MIG-1,GPU-2", ["MIG-1"]),
    ("MIG-GPU-1/2/0", ["MIG-GPU-1/2/0"]),
    ("GPU-1, GPU-2", ["GPU-1"]),
]


def test_numbers() -> None:
    assert [(text, parse(text).ordinals) for text, _ in NUMBERS] == NUMBERS
    assert [text for text, _ in NUMBERS if parse(text).ids is not None] == []


def test_names() -> None:
    assert [(text, parse(text).ids) for text, _ in NAMES] == NAMES
    assert [text for text, _ in NAMES if parse(text).ordinals is not None] == []


def test_not_set_is_everything() -> None:
    assert parse(None).ids is None
    assert parse(None).ordinals is None


@given(st.text())
def test_any_text_has_a_reading(text: str) -> None:
    selection = parse(text)
    assert (selection.ids is None) != (selection.ordinals is None)
    chosen = selection.ordinals if selection.ids is None else selection.ids
    assert chosen is not None
    assert len(set(chosen)) == len(chosen)


@given(st.integers(min_value=0, max_value=10**30), st.text(alphabet="abcx, -+"))
def test_a_number_is_read_up_to_its_end(number: int, rest: str) -> None:
    assert parse_leading_number(f"{number}{rest}") == number


def test_numbers_of_thousands_of_digits_are_of_no_gpu() -> None:
    """From Python 3.11 on `int` refuses them."""
    endless = "9" * 5000
    assert parse_leading_number(endless) > 10**30
    assert (parse_leading_number(f"-{endless}"), parse_driver_branch(endless)) == (-1, None)
    assert parse_driver_branch("²") is None


def gpu(index: int, kind: str | None = "a", mig: list[Instance] | None = None, uuid: str | None = None) -> Gpu:
    return Gpu(index, uuid or f"GPU-{index}{index}{index}-x", kind, mig)


def instance(gpu_index: int, index: int, gpu_instance: int, compute_instance: int = 0) -> Instance:
    return Instance(gpu_index, index, f"MIG-{gpu_index}{index}", gpu_instance, compute_instance)


TWO = [gpu(0), gpu(1)]
MIXED = [gpu(0, "a"), gpu(1, "b")]
MIG = [gpu(0, "m", [instance(0, 0, 2, 0), instance(0, 1, 2, 1), instance(0, 2, 3)]), gpu(1, "a")]
EMPTY_MIG = [gpu(0, "m", []), gpu(1, "a")]
PCI, FAST = "PCI_BUS_ID", "FASTEST_FIRST"


def names(text: str | None, gpus: list[Gpu], order: str = FAST, branch: int | None = 580) -> list[str]:
    found = choose(parse(text), gpus, order, branch)
    return [f"{one.index}" if isinstance(one, Gpu) else f"{one.gpu}.{one.index}" for one in found]


SHOWN: list[tuple[str | None, list[Gpu], str, int | None, list[str]]] = [
    (None, TWO, FAST, 580, ["0", "1"]),
    ("", TWO, FAST, 580, []),
    ("1,0", TWO, FAST, 580, ["1", "0"]),
    ("0,5,1", TWO, FAST, 580, ["0"]),
    (None, MIXED, FAST, 580, ["0", "1"]),
    ("1", MIXED, PCI, 580, ["1"]),
    ("", MIXED, FAST, 580, []),
    ("GPU-1", MIXED, FAST, 580, ["1"]),
    ("GPU-1,GPU-11", MIXED, FAST, 580, []),  # one GPU by two names
    ("GPU-", TWO, FAST, 580, []),  # not unique
    ("GPU-1,GPU-7,GPU-0", TWO, FAST, 580, ["1"]),
    ("0", [gpu(0), gpu(1, None)], FAST, 580, ["0"]),
    (None, MIG, FAST, 580, ["0.0", "0.2", "1"]),
    (None, MIG, FAST, 569, ["0.0"]),
    ("MIG-01", MIG, FAST, 525, ["0.1"]),
    ("MIG-02,MIG-01,MIG-00", MIG, FAST, 570, ["0.2", "0.1"]),
    ("MIG-02,MIG-01", MIG, FAST, 550, ["0.2"]),
    ("MIG-GPU-000-x/2/1", MIG, FAST, 460, ["0.1"]),
    ("GPU-0", MIG, FAST, 580, ["0.0", "0.2"]),
    ("1", MIG, PCI, 535, ["1"]),
    ("1", MIG, PCI, None, ["1"]),
    (None, EMPTY_MIG, FAST, 580, ["1"]),
    ("0", [gpu(0, "m", [instance(0, 3, 9)])], FAST, None, ["0.3"]),
]


def test_what_cuda_shows() -> None:
    assert [
        (text, gpus, order, branch, names(text, gpus, order, branch)) for text, gpus, order, branch, _ in SHOWN
    ] == SHOWN


UNTOLD: list[tuple[str | None, list[Gpu], str, int | None, str]] = [
    ("0", MIXED, FAST, 580, "device-order-unknown"),
    ("0", EMPTY_MIG, PCI, 580, "mig-ordinals"),
    ("GPU-7", [gpu(0), Gpu(1, None, None)], FAST, 580, "device-name-unknown"),
    (None, MIG, FAST, None, "mig-driver-unknown"),
]


def test_what_cannot_be_told() -> None:
    for text, gpus, order, branch, code in UNTOLD:
        with pytest.raises(Undecided) as raised:
            choose(parse(text), gpus, order, branch)
        assert raised.value.code == code


def test_driver_branch() -> None:
    assert parse_driver_branch("570.124.04") == 570
    assert parse_driver_branch({"unavailable": 999}) is None
    assert parse_driver_branch("beta") is None
