"""What runs on a card: by the tables, and in the words of `envlock images --gpu`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envlock.data.compatibility import find_failure, find_ptx_cuda
from envlock.data.image_tables import load_image_tables
from envlock.images.cards import ORDER, find_capability, list_runnable
from envlock.reports.image_text import render_answers
from envlock.runtime.errors import UsageError
from tests.conftest import Command

TABLES = load_image_tables()
NGC = "nvcr.io/nvidia/tensorflow"
BLACKWELL = """\
GPUs of compute capability 12.0 (RTX 5070, RTX 5070 Ti, RTX 5080, RTX 5090, RTX PRO 6000)

Runs, by machine code:
  nvcr.io/nvidia/tensorflow:25.02-tf2-py3
    Its CUDA makes machine code for this GPU.
  nvcr.io/nvidia/tensorflow:25.01-tf2-py3
    Its CUDA makes machine code for this GPU, by other images of that month.

Runs where the driver can compile its PTX, which takes minutes at the first start:
  wheels of TensorFlow 2.15, 2.14, 2.13, 2.12
    TensorFlow holds only PTX (compute_80) for compute capability 12.0: the driver compiles it at
    first use, if its CUDA version is at least that of the PTX.

Not to be expected to run:
  nvcr.io/nvidia/tensorflow:24.12-tf2-py3 to 16.12 (133 images; `--all` names each), wheels of
  TensorFlow 2.11, 2.10, 2.9, 2.8, 2.7, 2.6, 2.5, 2.4, 2.3, 2.2, 2.1, 2.0, 1.15, 1.14, 1.13
    Its CUDA is older than 12.8, the first that makes machine code for this GPU.
  wheels of TensorFlow 2.21, 2.20, 2.19, 2.18, 2.17, 2.16
    Users report that official wheels fail on such GPUs with new drivers too:
    `CUDA_ERROR_INVALID_PTX`, or `PTX version 8.5 does not support target 'sm_120'`. What works: use
    NVIDIA's image 25.01 or 25.02 (`envlock images`), or a wheel built for sm_120.
"""


def runs(capability: str) -> dict[str, tuple[str, str]]:
    """Return how each image and wheel runs, and why, by its name."""
    return {row["name"]: (row["runs"], row["why"]) for row in list_runnable(capability, TABLES)["answers"]}


@pytest.mark.parametrize(
    ("text", "capability"),
    [
        ("sm_120", "12.0"),
        ("SM_90a", "9.0"),
        ("compute_80", "8.0"),
        ("12.1", "12.1"),
        ("75", "7.5"),
        ("H100", "9.0"),
        ("NVIDIA GeForce RTX 5090", "12.0"),
        ("rtx-4090", "8.9"),
    ],
)
def test_a_card_is_named_by_number_or_name(text: str, capability: str) -> None:
    assert find_capability(text, TABLES) == capability


@pytest.mark.parametrize("text", ["", "RTX 9999", "sm_", "9", "NVIDIA"])
def test_a_card_that_no_table_has_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        find_capability(text, TABLES)
    assert raised.value.message == f"unknown GPU `{text}`"
    assert raised.value.hint == (
        "name its compute capability, such as sm_120: `nvidia-smi --query-gpu=compute_cap --format=csv` prints it"
    )


def test_no_card_has_two_capabilities() -> None:
    names = [name for row in TABLES.cuda.card for name in row.names]
    assert len(set(names)) == len(names)
    assert {row.compute_capability for row in TABLES.cuda.card} - {"3.7"} <= {
        row.compute_capability for row in TABLES.cuda.gpu
    }


def test_what_runs_on_blackwell() -> None:
    assert render_answers(list_runnable("12.0", TABLES)) + "\n" == BLACKWELL
    everything = render_answers(list_runnable("12.0", TABLES), every=True)
    assert f"{NGC}:24.11-tf2-py3,\n" in everything
    assert "--all" not in everything


def test_what_runs_on_hopper_by_machine_code_ptx_or_nobodys_word() -> None:
    found = runs("9.0")
    assert found["tensorflow 2.21"] == ("yes", "TensorFlow holds machine code for this GPU (compute_90 on 9.0).")
    assert found["tensorflow 2.15"][0] == "driver"
    assert found["tensorflow 2.17"] == ("unknown", "No source states for which GPUs it holds code.")
    assert found[f"{NGC}:23.02-tf2-py3"] == ("unknown", "No source states whether its CUDA makes code for this GPU.")
    older = "Its CUDA is older than 11.8, the first that makes machine code for this GPU."
    assert found[f"{NGC}:22.08-tf2-py3"] == found[f"{NGC}:18.10-py3"] == found["tensorflow 2.11"] == ("no", older)


def test_code_for_a_lower_minor_number_runs_too() -> None:
    assert runs("12.1")[f"{NGC}:25.02-tf2-py3"][0] == "yes"
    assert runs("8.9")[f"{NGC}:20.10-tf2-py3"][0] == "yes"
    assert list_runnable("8.9", TABLES)["gpu"]["first_cuda"] == "11.0"


def test_an_old_card_is_not_in_new_images_and_wheels() -> None:
    found = runs("3.5")
    assert found[f"{NGC}:25.02-tf2-py3"] == ("no", "It is made for compute capability 7.5 and later.")
    assert found["tensorflow 2.18"] == (
        "no",
        "TensorFlow holds no code for compute capability 3.5, only sm_60, sm_70, sm_80, sm_89, compute_90.",
    )
    assert render_answers(list_runnable("3.5", TABLES)).splitlines()[0] == "GPUs of compute capability 3.5"


def test_a_card_of_tomorrow_is_nobodys() -> None:
    found = runs("14.0")
    assert found[f"{NGC}:25.02-tf2-py3"] == ("unknown", "No source states whether its CUDA makes code for this GPU.")
    assert found["tensorflow 2.21"][0] == "driver"


@pytest.mark.parametrize("capability", ["5.2", "7.0", "9.0", "10.3", "12.0"])
def test_every_answer_has_a_source_and_its_place(capability: str) -> None:
    rows: list[dict[str, Any]] = list_runnable(capability, TABLES)["answers"]
    assert [row["runs"] for row in rows] == sorted((row["runs"] for row in rows), key=ORDER.index)
    assert all(row["source"] and row["why"].endswith(".") for row in rows)


def test_the_command(envlock: Command) -> None:
    done = envlock("images", "--gpu", "sm_120")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == render_answers(list_runnable("12.0", TABLES)) + "\n"
    told = json.loads(envlock("images", "--gpu", "H100", "-f", "json").stdout)
    assert told["gpu"] == {"compute_capability": "9.0", "cards": ["H100", "H200", "GH200"], "first_cuda": "11.8"}
    wrong = envlock("images", "--gpu", "sm_120", "--resolve")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "error: `--gpu` and `--resolve` exclude each other\nhint: remove `--resolve`\n",
    )


def test_a_gpu_that_is_newer_than_every_image_runs_the_code_for_its_elders() -> None:
    told = runs("10.7")
    assert told[f"{NGC}:25.02-tf2-py3"] == (
        "yes",
        "Its CUDA makes machine code for compute capability 10.0, which this GPU runs.",
    )
    assert told["tensorflow 2.21"][0] == "driver"
    assert list_runnable("10.7", TABLES)["gpu"]["first_cuda"] == "12.8"
    assert runs("8.9")[f"{NGC}:22.04-tf2-py3"][1] == (
        "Its CUDA makes machine code for compute capability 8.6, which this GPU runs."
    )


def test_what_is_known_of_official_wheels_is_not_said_of_anybody_elses() -> None:
    assert find_failure("2.20.0", "12.0") is not None
    assert find_failure("2.20.0+selfbuilt", "12.0") is None
    assert find_ptx_cuda("2.20.0") == "12.3"
    assert find_ptx_cuda("2.20.0+selfbuilt") is None
