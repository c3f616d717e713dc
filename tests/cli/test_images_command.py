"""`envlock images` as a shell sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.locks import document, encode

TAG = "25.02-tf2-py3"
NVIDIAS: dict[str, Any] = {
    "python": {"version": "3.12.3"},
    "tensorflow": {"version": "2.17.0+nv25.2", "nvidia_build": "nv25.2", "cuda_build": True},
    "cuda": {"cudart": {"version": "12.8"}, "cudnn": {"version": "9.7.1"}},
    "packages": {},
    "gpu": {"driver_version": "570.86.10", "devices": {"0": {"compute_capability": "9.0"}}},
}
HEAD = (
    "locked: TensorFlow 2.17.0+nv25.2, Python 3.12.3, CUDA 12.8, cuDNN 9.7.1, linux/amd64; base images, the best first:"
)
BEST = """\
1  nvcr.io/nvidia/tensorflow:25.02-tf2-py3
   NVIDIA's release 25.02 has the locked build nv25.2 of TensorFlow 2.17.0. As locked: Python 3.12,
   CUDA 12.8.0, cuDNN 9.7.1. Driver 570.86.10 is new enough for CUDA 12.8.0, which came with 570.26."""


@pytest.fixture
def lock(envlock: Command) -> Path:
    path = envlock.folder / "gpu.lock"
    path.write_bytes(encode(document(facts=NVIDIAS, unavailable={})))
    return path


def test_the_images_for_a_lock_as_a_table_with_reasons(envlock: Command, lock: Path) -> None:
    done = envlock("images", "gpu.lock")
    assert (done.returncode, done.stderr) == (0, "")
    # How the others are ranked is tested in tests/image/bases: the next release stands among them.
    head, table, reason, *_ = done.stdout.split("\n\n")
    titles, best, *others = map(str.split, table.splitlines())
    assert (head, titles) == (HEAD, ["route", "image", "TensorFlow", "Python", "CUDA", "cuDNN"])
    assert best == ["1", "ngc", "nvcr.io/nvidia/tensorflow:25.02-tf2-py3", "2.17.0", "3.12", "12.8.0", "9.7.1"]
    assert [row[0] for row in others] == ["2", "3", "4", "5"]
    assert reason.startswith(BEST)
    assert " docker.io/library/python:3.12.3-slim-bookworm (not usable)\n" in done.stdout
    assert done.stdout.endswith(" more with `--format json`\n")


def test_json_is_for_programs(envlock: Command, lock: Path) -> None:
    done = envlock("images", "gpu.lock", "-f", "json")
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr, told["listing_version"]) == (0, "", 1)
    assert told["wanted"]["label"] == "nv25.2"
    best = told["candidates"][0]
    reason = best.pop("reason")
    assert reason.startswith("NVIDIA's release 25.02 has the locked build")
    assert best == {
        "route": "ngc",
        "image": f"nvcr.io/nvidia/tensorflow:{TAG}",
        "exact": True,
        "usable": True,
        "holds": {
            "tensorflow": {"version": "2.17.0", "expected": False},
            "python": {"version": "3.12", "expected": False},
            "cuda": {"version": "12.8.0", "expected": False},
            "cudnn": {"version": "9.7.1", "expected": False},
            "nccl": {"version": "2.25.1", "expected": False},
            "os": {"version": "ubuntu 24.04", "expected": True},
            "libc": {"version": "2.39", "expected": True},
        },
        "mismatches": [],
        "python_from": None,
        "python_archive": None,
    }


def test_without_a_lock_it_is_the_nearest_one(envlock: Command, lock: Path) -> None:
    missing = envlock("images")
    assert (missing.returncode, missing.stdout) == (3, "")
    lock.rename(envlock.folder / "envlock.lock")
    done = envlock("images")
    assert (done.returncode, done.stderr, done.stdout.splitlines()[0]) == (0, "", HEAD)


def test_an_unknown_format(envlock: Command, lock: Path) -> None:
    done = envlock("images", "gpu.lock", "-f", "xml")
    message = "error: unknown format `xml`\nhint: choose from: text, json\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_a_terminal_is_not_told_what_to_do_by_a_lock(envlock: Command) -> None:
    facts = {**NVIDIAS, "tensorflow": {"version": "2.17.0", "nvidia_build": "nv" + "9" * 60, "cuda_build": True}}
    path = envlock.folder / "odd.lock"
    path.write_bytes(encode(document(facts=facts, unavailable={})))
    done = envlock("images", "odd.lock")
    assert done.returncode == 0
    assert all(line.isprintable() for line in done.stdout.splitlines())
