"""What runs on a card: by the tables, and in the words of `envlock images --gpu`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envlock.data.compatibility import find_failure, find_ptx_cuda
from envlock.data.image_tables import load_image_tables
from envlock.image.bases.card_names import simplify_name
from envlock.image.bases.cards import ORDER, find_capability, list_runnable, split_gpu
from envlock.image.bases.drivers import JETPACK, TEGRA
from envlock.image.image_text import list_answers
from envlock.reports.text import paint
from envlock.runtime.errors import UsageError
from envlock.runtime.release import parse_release
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
  nvcr.io/nvidia/tensorflow:24.12-tf2-py3 to 16.12 (133 images; `--format json` names each), wheels
  of TensorFlow 2.11, 2.10, 2.9, 2.8, 2.7, 2.6, 2.5, 2.4, 2.3, 2.2, 2.1, 2.0, 1.15, 1.14, 1.13
    Its CUDA is older than 12.8, the first that makes machine code for this GPU.
  wheels of TensorFlow 2.22, 2.21, 2.20, 2.19, 2.18, 2.17, 2.16
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
        # What NVML and nvidia-smi print.
        ("Tesla T4", "7.5"),
        ("NVIDIA T4G", "7.5"),
        ("NVIDIA A100-SXM4-40GB", "8.0"),
        ("NVIDIA A100 80GB PCIe MIG 1g.10gb", "8.0"),
        ("NVIDIA A100-SXM4-80GB MIG 1c.3g.40gb", "8.0"),
        ("NVIDIA A10G", "8.6"),
        ("A10G", "8.6"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("NVIDIA H100 PCIe", "9.0"),
        ("NVIDIA H200 NVL", "9.0"),
        ("NVIDIA GH200 144G HBM3e", "9.0"),
        ("NVIDIA B300 SXM6 AC", "10.3"),
        ("NVIDIA GB10", "12.1"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9"),
        ("NVIDIA GeForce RTX 2080 with Max-Q Design", "7.5"),
        ("NVIDIA GeForce RTX 5060 Ti", "12.0"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0"),
        ("NVIDIA RTX 4000 SFF Ada Generation", "8.9"),
        ("NVIDIA RTX A2000 8GB Laptop GPU", "8.6"),
        ("Quadro RTX 6000", "7.5"),
        ("Tesla V100-SXM2-16GB", "7.0"),
        ("Tesla V100S-PCIE-32GB", "7.0"),
        ("Tesla P100-PCIE-16GB", "6.0"),
        ("GeForce GTX 1060 6GB", "6.1"),
        ("NVIDIA TITAN X (Pascal)", "6.1"),
        ("NVIDIA GeForce GTX TITAN X", "5.2"),
        ("Tesla M60", "5.2"),
        ("Quadro K2200", "5.0"),
        ("Tesla K80", "3.7"),
        ("Tesla K40m", "3.5"),
        ("Orin (nvgpu)", "8.7"),
        ("NVIDIA Thor", "11.0"),
        ("GPU 0: Tesla T4 (UUID: GPU-6f1c)", "7.5"),
        # Virtual GPUs.
        ("GRID T4-16Q", "7.5"),
        ("GRID V100DX-32Q", "7.0"),
        ("GRID RTX6000-4Q", "7.5"),
        ("NVIDIA RTX6000-Ada-48Q", "8.9"),
        ("NVIDIA RTXA6000-48Q", "8.6"),
        ("NVIDIA A100D-1-10CME", "8.0"),
        ("NVIDIA H100XM-80C", "9.0"),
        ("NVIDIA L40S-48Q", "8.9"),
        # What people write.
        ("rtx4090", "8.9"),
        ("RTX 3050Ti", "8.6"),
        ("Jetson Orin NX 16GB", "8.7"),
        ("Jetson T5000", "11.0"),
        ("GB200 NVL72", "10.0"),
        ("GeForce(R) GTX 1650 Ti", "7.5"),
        # By NVIDIA's list, not by the GK106 that somebody sold under this name.
        ("GeForce GTX 750 Ti", "5.0"),
    ],
)
def test_a_card_is_named_by_number_or_name(text: str, capability: str) -> None:
    assert find_capability(text, TABLES) == capability


ASK = "`nvidia-smi --query-gpu=compute_cap --format=csv` prints it"


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("", ""),
        ("NVIDIA Graphics Device", ""),
        ("sm_", ""),
        ("9", ""),
        ("RTX 6000", "; the nearest known: RTX 6000D (12.0), RTX 6000 Ada (8.9), Quadro RTX 6000 (7.5)"),
        ("4090", "; the nearest known: RTX 4090 (8.9), GeForce RTX 4090 D (8.9)"),
        ("H10", "; the nearest known: H100 (9.0)"),
    ],
)
def test_a_card_that_no_table_has_is_refused_with_the_nearest_ones(text: str, near: str) -> None:
    with pytest.raises(UsageError) as raised:
        find_capability(text, TABLES)
    assert raised.value.message == f"unknown GPU `{text}`"
    assert raised.value.hint == f"name its compute capability, such as sm_120: {ASK}{near}"


def test_a_name_of_several_gpus_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        find_capability("GeForce GT 730", TABLES)
    assert raised.value.message == "`GeForce GT 730` is the name of GPUs of several compute capabilities: 2.1, 3.0, 3.5"
    assert raised.value.hint == f"name the one instead: {ASK}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("H100", ("H100", None)),
        ("535.104.05", (None, "535.104.05")),
        ("driver 535.104", (None, "535.104")),
        ("NVIDIA H100 80GB HBM3, 535.104.05", ("NVIDIA H100 80GB HBM3", "535.104.05")),
        ("9.0, 570.26", ("9.0", "570.26")),
        ("12.0", ("12.0", None)),
        ("120", ("120", None)),
        ("H100, PCIe", ("H100, PCIe", None)),
    ],
)
def test_a_driver_is_told_from_a_gpu(text: str, found: tuple[str | None, str | None]) -> None:
    assert split_gpu(text) == found


def runs_with(driver: str, capability: str | None = None) -> dict[str, tuple[str, str]]:
    answers = list_runnable(capability, TABLES, driver)["answers"]
    return {row["name"]: (row["runs"], row["why"]) for row in answers}


def test_what_runs_with_a_driver() -> None:
    own = "Its CUDA came with this driver or an older one."
    newer = "Its CUDA is newer than this driver, which runs it by minor version compatibility"
    compatible = f"{newer} (525.60.13 or newer), but no PTX."
    found = runs_with("535.104")
    assert found == runs_with("535.104.05")
    assert found[f"{NGC}:25.02-tf2-py3"] == found["tensorflow 2.21"] == ("yes", compatible)
    assert found[f"{NGC}:23.10-tf2-py3"] == found["tensorflow 2.15"] == ("yes", own)
    assert found[f"{NGC}:24.06-tf2-py3"] == ("unknown", "No source states which driver its CUDA needs.")
    old = runs_with("470.57.02")
    assert old["tensorflow 2.21"] == ("no", "Its CUDA needs driver 525.60.13 or newer.")
    assert old[f"{NGC}:25.02-tf2-py3"] == (
        "no",
        "Its CUDA needs driver 525.60.13 or newer; on data-centre GPUs the cuda-compat of the image may suffice.",
    )
    assert {each[0] for each in runs_with("999.10").values()} == {"yes", "unknown"}


def test_what_runs_on_a_gpu_with_a_driver() -> None:
    """Code and driver must both suffice; PTX needs a driver that is not older than the CUDA that made it."""
    found = runs_with("525.60.13", "9.0")
    assert found["tensorflow 2.21"][0] == "yes"
    assert found["tensorflow 2.15"] == ("no", "It holds only PTX for this GPU, which needs driver 535.54.03 or newer.")
    assert found["tensorflow 2.14"][0] == "driver"
    assert found["tensorflow 2.11"][0] == "no"
    sources = {row["name"]: row["source"] for row in list_runnable("9.0", TABLES, "525.60.13")["answers"]}
    assert sources["tensorflow 2.15"] == TABLES.cuda.evidence["table-3"]


def test_a_jetson_is_told_in_one_sentence(envlock: Command) -> None:
    for capability in ("8.7", "11.0"):
        assert set(runs(capability).values()) == {("no", TEGRA)}
    done = envlock("images", "--gpu", "JetPack 7")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: `JetPack 7` names no single GPU\nhint: name one, such as Jetson Orin NX. {JETPACK}\n"


def test_every_name_of_the_table_is_found() -> None:
    capabilities: dict[str, set[str]] = {}
    for row in TABLES.cuda.card:
        for name in row.names:
            assert simplify_name(name)
            capabilities.setdefault(simplify_name(name), set()).add(row.compute_capability)
    assert len(capabilities) > 400
    several = {key: each for key, each in capabilities.items() if len(each) > 1}
    # Since the RTX cards of 2018 every name is that of one GPU.
    assert {max(each, key=parse_release) for each in several.values()} <= {"2.1", "3.0", "3.5", "5.0", "6.1"}
    for row in TABLES.cuda.card:
        for name in row.names:
            if simplify_name(name) not in several:
                assert find_capability(name, TABLES) == row.compute_capability
    known = {row.compute_capability for row in TABLES.cuda.gpu}
    assert {key for row in TABLES.cuda.card if parse_release(key := row.compute_capability) >= (6,)} <= known


def test_what_runs_on_blackwell() -> None:
    assert paint(list_answers(list_runnable("12.0", TABLES)), color=False) + "\n" == BLACKWELL


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
    assert (
        paint(list_answers(list_runnable("3.5", TABLES)), color=False).splitlines()[0]
        == "GPUs of compute capability 3.5 (K20, K40)"
    )


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
    assert done.stdout == paint(list_answers(list_runnable("12.0", TABLES)), color=False) + "\n"
    told = json.loads(envlock("images", "--gpu", "H100", "-f", "json").stdout)
    assert told["gpu"] == {"compute_capability": "9.0", "cards": ["H100", "H200", "GH200"], "first_cuda": "11.8"}
    assert told["driver"] is None
    both = envlock("images", "--gpu", "NVIDIA A10G, 535.104.05").stdout.splitlines()
    assert both[0].startswith("GPUs of compute capability 8.6 (")
    assert "with driver 535.104.05, of CUDA 12.2.2" in " ".join(both[:2])
    alone = envlock("images", "--gpu", "535.104.05")
    assert alone.stdout.startswith("GPUs with driver 535.104.05, of CUDA 12.2.2\n\nRuns:\n  nvcr.io/")
    told = json.loads(envlock("images", "--gpu", "535.104.05", "-f", "json").stdout)
    assert (told["gpu"], told["driver"]) == (None, {"version": "535.104.05", "newest_cuda": "12.2.2"})
    wrong = envlock("images", "envlock.lock", "--gpu", "sm_120")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "error: `--gpu` and `LOCK` exclude each other\nhint: remove `LOCK`\n",
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
