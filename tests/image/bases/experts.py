"""What an engineer of this field chooses for a lock, and what we answer: `python -m tests.image.bases.experts` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envlock.image.bases.candidate import explain_candidate
from envlock.image.bases.needs import collect_needs
from envlock.lock.fact_models import Facts
from tests.image.bases.asking import LABELLED, choose, facts

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
    machine: str = "x86_64",
    kernel: str | None = None,
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
            "machine": machine,
            "kernel": "Linux",
            **({"kernel_release": kernel} if kernel else {}),
        },
    )


NOTHING = "no known image"
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
    "2.17.0+nv25.2, H100, its driver": (
        locked("2.17.0+nv25.2", "3.12.3", "GCC 13.3.0", "ubuntu 24.04", capability="9.0", driver="570.86.15"),
        "nvidia/tensorflow:25.02-tf2-py3",
    ),
    "2.11.1, system CUDA 11.2, cuDNN 8.1, Ubuntu 20.04, V100": (
        locked(*("2.11.1", "3.9.18", "GCC 9.4.0", "ubuntu 20.04"), cuda="11.2.152", cudnn="8.1.1", capability="7.0"),
        "nvidia/cuda:11.2.2-cudnn8-runtime-ubuntu20.04",
    ),
    "2.15.0+nv24.5, Jetson Orin": (
        locked(
            *("2.15.0+nv24.5", "3.10.12", UBUNTUS, "ubuntu 22.04"),
            cuda="12.2.140",
            cudnn="8.9.4",
            capability="8.7",
            machine="aarch64",
            kernel="5.15.136-tegra",
        ),
        NOTHING,
    ),
    "2.21.0[and-cuda], Python 3.12.3 of Ubuntu 24.04, B200": (
        locked(
            *("2.21.0", "3.12.3", "GCC 13.3.0", "ubuntu 24.04"),
            cuda="12.5.82",
            cudnn="9.3.0",
            packages=WHEELS,
            capability="10.0",
            driver="570.133.20",
        ),
        "library/buildpack-deps:24.04-scm",
    ),
    "2.15.1[and-cuda], Python 3.11.7, Ubuntu 22.04, GTX 1080": (
        locked(
            *("2.15.1", "3.11.7", UBUNTUS, "ubuntu 22.04"),
            cuda="12.2.140",
            cudnn="8.9.4",
            packages=WHEELS,
            capability="6.1",
        ),
        "library/ubuntu:22.04",
    ),
    "2.19.1, Python 3.12.3 of Ubuntu 24.04, Graviton": (
        locked("2.19.1", "3.12.3", "GCC 13.3.0", "ubuntu 24.04", machine="aarch64"),
        "library/buildpack-deps:24.04-scm",
    ),
    "2.16.1+nv24.8, GH200": (
        locked("2.16.1+nv24.8", "3.10.12", UBUNTUS, "ubuntu 22.04", capability="9.0", machine="aarch64"),
        "nvidia/tensorflow:24.08-tf2-py3",
    ),
    "2.12.1, system CUDA 11.8, Python 3.11.2 of Debian 12, T4": (
        locked("2.12.1", "3.11.2", "GCC 12.2.0", "debian 12", cuda="11.8.89", cudnn="8.6.0", capability="7.5"),
        "nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04",
    ),
    "2.17.0+nv25.2, RTX 4090, an older driver": (
        locked("2.17.0+nv25.2", "3.12.3", "GCC 13.3.0", "ubuntu 24.04", capability="8.9", driver="535.104.05"),
        "nvidia/tensorflow:25.02-tf2-py3",
    ),
    "2.10.1, system CUDA 11.2, Ubuntu 20.04, K80": (
        locked(
            *("2.10.1", "3.9.18", "GCC 9.4.0", "ubuntu 20.04"),
            cuda="11.2.152",
            cudnn="8.1.1",
            capability="3.7",
            driver="470.199.02",
        ),
        "nvidia/cuda:11.2.2-cudnn8-runtime-ubuntu20.04",
    ),
    "2.18.1, system CUDA 12.5, RTX 5090": (
        locked(
            *("2.18.1", "3.11.7", UBUNTUS, "ubuntu 22.04"),
            cuda="12.5.82",
            cudnn="9.3.0",
            capability="12.0",
            driver="575.57.08",
            against="9.3.0",
        ),
        # the expert wrote 12.8 or later: of these the nearest to the locked one
        "nvidia/cuda:12.8.0-cudnn-runtime-ubuntu22.04",
    ),
    "2.15.0[and-cuda], Python 3.9.2 of Debian 11, A100": (
        locked(
            *("2.15.0", "3.9.2", "GCC 10.2.1 20210110", "debian 11"),
            cuda="12.2.140",
            cudnn="8.9.4",
            packages=WHEELS,
            capability="8.0",
        ),
        "library/buildpack-deps:bullseye-scm",
    ),
    "2.14.1, Python 3.10.12 of Ubuntu 22.04": (
        locked("2.14.1", "3.10.12", "GCC 11.4.0", "ubuntu 22.04"),
        "library/buildpack-deps:22.04-scm",
    ),
    "2.15.1, system CUDA 12.2, cuDNN 8.9, L4": (
        locked(*("2.15.1", "3.10.12", "GCC 11.4.0", "ubuntu 22.04"), cuda="12.2.140", cudnn="8.9.6", capability="8.9"),
        "nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04",
    ),
    "2.15.0+nv24.4, H200": (
        locked("2.15.0+nv24.4", "3.10.12", UBUNTUS, "ubuntu 22.04", capability="9.0"),
        "nvidia/tensorflow:24.04-tf2-py3",
    ),
    "2.20.0+selfbuilt, system CUDA 12.8, GB300": (
        locked(
            *("2.20.0+selfbuilt", "3.12.3", "GCC 13.3.0", "ubuntu 24.04"),
            cuda="12.8.57",
            cudnn="9.8.0",
            capability="10.3",
            driver="580.82.07",
            against="9.8.0",
        ),
        "nvidia/cuda:12.8.1-cudnn-runtime-ubuntu24.04",
    ),
    "2.21.0+selfbuilt, system CUDA 13.0, DGX Spark": (
        locked(
            *("2.21.0+selfbuilt", "3.12.3", "GCC 13.3.0", "ubuntu 24.04"),
            cuda="13.0.88",
            cudnn="9.13.0",
            capability="12.1",
            driver="580.95.05",
            against="9.13.0",
            machine="aarch64",
        ),
        "nvidia/cuda:13.0.1-cudnn-runtime-ubuntu24.04",
    ),
    "2.9.3, python:3.8.16-slim": (
        locked("2.9.3", "3.8.16", "GCC 10.2.1 20210110", "debian 11", prefix="system"),
        "library/python:3.8.16-slim-bullseye",
    ),
}
"""A lock, its facts, and the expert's choice without its registry, written down before envlock was asked. Two reviews
made the first ten, and eleven from H100 to RTX 5090; the last seven are of another hand.
"""


def choices() -> str:
    """Return our first choice for each, with its reason."""
    lines = []
    for name, (asked, expert) in LOCKS.items():
        best = choose(asked)[0]
        python = best.python_from or (best.python_archive and best.python_archive.file) or "its own"
        verdict = "can match" if not best.mismatches else "cannot match"
        if not best.able:
            verdict = NOTHING
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
