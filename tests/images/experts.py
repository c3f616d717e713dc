"""What an engineer of this field chooses for a lock, and what we answer: `python -m tests.images.experts` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envlock.images.candidate import explain_candidate
from envlock.images.choose import choose
from envlock.images.needs import collect_needs
from envlock.lock.fact_models import Facts
from tests.images.asking import LABELLED, facts

GOLDEN = Path(__file__).parent / "golden" / "experts.txt"
WHEELS: dict[str, Any] = {"nvidia-cuda-runtime-cu12": {}, "nvidia-cudnn-cu12": {}}
SYSTEMS = {
    "ubuntu 18.04": "2.27",
    "ubuntu 20.04": "2.31",
    "ubuntu 22.04": "2.35",
    "ubuntu 24.04": "2.39",
    "ubuntu 23.10": "2.38",
    "debian 11": "2.31",
    "debian 12": "2.36",
    "debian 13": "2.41",
}


def locked(
    tensorflow: str,
    python: str,
    compiler: str,
    system: str,
    *,
    cuda: str | None = None,
    cudnn: str | None = None,
    nccl: str | None = None,
    packages: dict[str, Any] | None = None,
    capability: str | None = None,
    driver: str = "550.54.15",
    against: str | None = None,
    prefix: str = "venv",
) -> Facts:
    """Return the facts of a machine, as `capture` would tell them."""
    label = tensorflow.partition("+")[2] or None
    libraries = {"cudart": cuda, "cudnn": cudnn, "nccl": nccl}
    name, version = system.split(" ")
    devices = {"0": {"compute_capability": capability}} if capability else None
    return facts(
        tensorflow={
            "version": tensorflow,
            "nvidia_build": label if label and label.startswith("nv") else None,
            "cuda_build": capability is not None,
            "compiled_against_cudnn": against,
        },
        python={"version": python, "compiler": compiler, "prefix_kind": prefix},
        cuda={key: {"version": value} for key, value in libraries.items() if value},
        packages=packages or {},
        gpu={"driver_version": driver, "devices": devices} if devices else None,
        system={
            "os": name,
            "os_version": version,
            "libc": "glibc",
            "libc_version": SYSTEMS[system],
            "machine": "x86_64",
            "kernel": "Linux",
        },
    )


UBUNTUS = "GCC 11.4.0"  # deadsnakes and pyenv build with it on 22.04
LOCKS: dict[str, tuple[Facts, str]] = {
    "TensorFlow 1.15.5, Python 3.7, CUDA 10.0, V100": (
        locked("1.15.5", "3.7.17", "GCC 7.5.0", "ubuntu 18.04", cuda="10.0.130", cudnn="7.6.5", capability="7.0"),
        "nvidia/cuda:10.0-cudnn7-runtime-ubuntu18.04",
    ),
    "1.15.5+nv22.12": (
        locked("1.15.5+nv22.12", "3.8.10", "GCC 9.4.0", "ubuntu 20.04", capability="8.0"),
        "nvidia/tensorflow:22.12-tf1-py3",
    ),
    "2.13.1, CUDA 11.8, NCCL 2.16.2, Ubuntu 22.04": (
        locked(
            *("2.13.1", "3.11.7", UBUNTUS, "ubuntu 22.04"),
            cuda="11.8.89",
            cudnn="8.9.6",
            nccl="2.16.2",
            capability="8.6",
            against="8.6.0",
        ),
        "nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04",
    ),
    "2.13.1, CUDA 11.8, cuDNN 8.6, Ubuntu 22.04": (
        locked(
            *("2.13.1", "3.11.7", UBUNTUS, "ubuntu 22.04"),
            cuda="11.8.89",
            cudnn="8.6.0",
            capability="8.6",
            against="8.6.0",
        ),
        "nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04",
    ),
    "2.17.1, system CUDA 12.3, cuDNN 8.9, Ubuntu 22.04": (
        locked(
            *("2.17.1", "3.11.7", UBUNTUS, "ubuntu 22.04"),
            cuda="12.3.101",
            cudnn="8.9.7",
            capability="8.9",
            driver="535.104.05",
        ),
        "nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04",
    ),
    "2.13.0+nv23.8": (
        locked("2.13.0+nv23.8", "3.10.6", "GCC 11.3.0", "ubuntu 22.04", capability="8.0"),
        "nvidia/tensorflow:23.08-tf2-py3",
    ),
    "2.17.1[and-cuda], Python 3.11.7, Ubuntu 22.04": (
        locked(
            *("2.17.1", "3.11.7", UBUNTUS, "ubuntu 22.04"),
            cuda="12.3.101",
            cudnn="8.9.7",
            packages=WHEELS,
            capability="8.6",
        ),
        "library/ubuntu:22.04",
    ),
    "2.17.0+nv25.2": (
        locked("2.17.0+nv25.2", "3.12.3", "GCC 13.3.0", "ubuntu 24.04", capability="9.0"),
        "nvidia/tensorflow:25.02-tf2-py3",
    ),
    "2.18.1[and-cuda], Debian 12": (
        locked(
            *("2.18.1", "3.11.7", "GCC 12.2.0", "debian 12"),
            cuda="12.5.82",
            cudnn="9.3.0",
            packages=WHEELS,
            capability="8.6",
        ),
        "library/python:3.11.7-slim-bookworm",
    ),
    "2.18.1, system CUDA 12.5, cuDNN 9.3, Ubuntu 22.04": (
        locked(
            *("2.18.1", "3.11.7", UBUNTUS, "ubuntu 22.04"),
            cuda="12.5.82",
            cudnn="9.3.0",
            capability="8.6",
            against="9.3.0",
        ),
        "nvidia/cuda:12.6.1-cudnn-runtime-ubuntu22.04",
    ),
    "2.21.0[and-cuda], Python 3.12.3 of Ubuntu 24.04": (
        locked(
            *("2.21.0", "3.12.3", "GCC 13.3.0", "ubuntu 24.04"),
            cuda="12.5.82",
            cudnn="9.3.0",
            packages=WHEELS,
            capability="8.6",
        ),
        # the expert wrote ubuntu:24.04 for its own Python, which that image does not have: this one is Ubuntu with it
        "library/buildpack-deps:24.04-scm",
    ),
    "2.17.0+nv25.9, which no release has": (
        locked(
            *("2.17.0+nv25.9", "3.12.3", "GCC 13.3.0", "ubuntu 24.04"),
            cuda="12.8.0",
            cudnn="9.7.1",
            capability="9.0",
        ),
        f"nvidia/tensorflow:{LABELLED[-1].tag}",
    ),
    "2.19.1, uv's Python 3.11.13, Ubuntu 22.04": (
        locked("2.19.1", "3.11.13", "Clang 20.1.4", "ubuntu 22.04"),
        "library/ubuntu:22.04",
    ),
    "2.20.0, uv's Python 3.12.11, Debian 13": (
        locked("2.20.0", "3.12.11", "Clang 20.1.4", "debian 13"),
        "library/debian:trixie-slim",
    ),
    "2.21.0, Debian's own Python 3.13.5": (
        locked("2.21.0", "3.13.5", "GCC 14.2.0", "debian 13"),
        "library/buildpack-deps:trixie-scm",
    ),
    "2.19.1, conda's Python 3.11.13, Ubuntu 20.04": (
        locked("2.19.1", "3.11.13", "GCC 13.3.0", "ubuntu 20.04", prefix="conda"),
        "library/ubuntu:20.04",
    ),
    "2.19.1, Ubuntu 23.10, of which no image is known": (
        locked("2.19.1", "3.11.13", "Clang 17.0.6", "ubuntu 23.10"),
        "library/ubuntu:24.04",
    ),
    "2.19.1, system CUDA 12.8, RTX 50": (
        locked(
            *("2.19.1", "3.11.7", UBUNTUS, "ubuntu 22.04"),
            cuda="12.8.57",
            cudnn="9.8.0",
            capability="12.0",
            driver="575.57.08",
            against="9.3.0",
        ),
        "nvidia/cuda:12.8.1-cudnn-runtime-ubuntu22.04",
    ),
    "2.20.0+selfbuilt for sm_120, system CUDA 12.8, RTX 50": (
        locked(
            *("2.20.0+selfbuilt", "3.12.3", "GCC 13.3.0", "ubuntu 24.04"),
            cuda="12.8.57",
            cudnn="9.8.0",
            capability="12.0",
            driver="575.57.08",
            against="9.8.0",
        ),
        "nvidia/cuda:12.8.1-cudnn-runtime-ubuntu24.04",
    ),
    "2.21.0+selfbuilt, system CUDA 13.3, RTX 50": (
        locked(
            *("2.21.0+selfbuilt", "3.12.3", "GCC 13.3.0", "ubuntu 24.04"),
            cuda="13.3.29",
            cudnn="9.24.0",
            capability="12.0",
            driver="610.43.02",
            against="9.24.0",
        ),
        "nvidia/cuda:13.3.1-cudnn-runtime-ubuntu24.04",
    ),
}
"""A lock, its facts, and the expert's choice without its registry. The first ten are those of a review."""


def choices() -> str:
    """Return our first choice for each, with its reason."""
    lines = []
    for name, (asked, expert) in LOCKS.items():
        best = choose(asked)[0]
        python = best.python_from or (best.python_archive and best.python_archive.file) or "its own"
        verdict = "can match" if not best.mismatches else "cannot match"
        lines += [f"{name}", f"    expert   {expert}", f"    envlock  {best.reference.repository}:{best.reference.tag}"]
        lines += [
            f"    python   {python}",
            f"    {verdict}",
            f"    {explain_candidate(best, collect_needs(asked))}",
            "",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    GOLDEN.write_text(choices(), encoding="utf-8")
