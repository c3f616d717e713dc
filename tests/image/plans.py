"""A complete lock, and a base for each route, for tests of what is made of them."""

from __future__ import annotations

import functools
import hashlib
import tempfile
from pathlib import Path
from typing import Any

from envlock.image.plan import Base, BuildPlan, plan
from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from envlock.runtime.collectors import take_snapshot
from tests.locks import document
from tests.machines import complete

DIGEST = "sha256:" + "c8" * 32
DONOR = "sha256:" + "d0" * 32
WHEELS = {
    "keras": ("3.5.0", "keras-3.5.0-py3-none-any.whl"),
    "numpy": ("1.26.4", "numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"),
    "nvidia-ml-py": ("12.570.86", "nvidia_ml_py-12.570.86-py3-none-any.whl"),
    "nvidia-nccl-cu12": ("2.21.5", "nvidia_nccl_cu12-2.21.5-py3-none-manylinux2014_x86_64.whl"),
    "tensorflow": ("2.17.0", "tensorflow-2.17.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"),
    "tensorflow-datasets": ("4.9.6", "tensorflow_datasets-4.9.6-py3-none-any.whl"),
}
DEBIAN = {
    "wanted": ["libsndfile1", "libgomp1=12.2.0-14+deb12u1"],
    "sources": ["http://mirror.example/debian/20251101T000000Z bookworm main"],
    "packages": [
        {
            "name": name,
            "version": version,
            "architecture": architecture,
            "size": 115772,
            "sha256": "de" * 32,
            "url": f"http://mirror.example/pool/{name}.deb",
        }
        for name, version, architecture in (
            ("libsndfile1", "1.2.0-1+deb12u1", "amd64"),
            ("sounds", "1:2~3", "all"),
        )
    ],
}
BASES = {
    "ngc": Base(
        f"nvcr.io/nvidia/tensorflow:25.02-tf2-py3@{DIGEST}",
        "ngc",
        ("/opt/nvidia/nvidia_entrypoint.sh",),
        ("/bin/bash",),
        (("LD_LIBRARY_PATH", "/usr/local/cuda/compat/lib"), ("TF_ENABLE_ONEDNN_OPTS", "0")),
    ),
    "cuda": Base(
        f"docker.io/nvidia/cuda:12.5.1-cudnn-runtime-ubuntu22.04@{DIGEST}",
        "cuda",
        python_from=f"docker.io/library/python:3.11.7-slim-bullseye@{DONOR}",
    ),
    "captured": Base(f"docker.io/team/train:3@{DIGEST}", "captured", ("/entry.sh",), (), ()),
    "wheels": Base(f"docker.io/library/python:3.11.7-slim-bookworm@{DIGEST}", "wheels", (), ("python3",), ()),
}


def content(name: str) -> bytes:
    """Return what the wheel of a package holds, for a test."""
    return f"the wheel of {name}\n".encode() * 100


@functools.cache
def _facts() -> tuple[dict[str, Any], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        found = take_snapshot(complete(Path(folder)))
    own = {
        "python": {**found.facts["python"], "version": "3.11.7", "abi": "cpython-311-x86_64-linux-gnu"},
        "cpu": {**found.facts["cpu"], "affinity_count": 2, "intra_op_threads": 2, "inter_op_threads": 2},
        "system": {**found.facts["system"], "kernel": "Linux", "kernel_release": "6.1", "machine": "x86_64"},
    }  # this machine's own, which golden files must not hold
    own["python"].update(implementation="cpython", compiler="GCC 12.2.0", prefix_kind="venv")
    own["system"].update(libc="glibc", libc_version="2.36")
    return {**found.facts, **own}, found.unavailable


def lock(**changes: Any) -> dict[str, Any]:
    """Return a lock with everything that a lock can hold; `changes` replace top-level fields."""
    facts, unavailable = _facts()
    packages = {name: _identity(name, *wheel) for name, wheel in WHEELS.items()}
    packages["mine"] = {
        **_identity("mine", "1.0", "mine-1.0-py3-none-any.whl"),
        "wheel": None,
        "proof": None,
        "reason": "it is an editable install",
        "origin": "editable",
    }
    pinned = {"name": "nvcr.io/nvidia/tensorflow", "tag": "25.02-tf2-py3", "digest": DIGEST, "manifest": DIGEST}
    image = {
        "id": DIGEST,
        "layers": [DIGEST],
        "config": "ab" * 32,
        "base": DIGEST,
        "base_config": {"entrypoint": ["/entry.sh"], "command": ["/bin/bash"], "environ": {"LD_LIBRARY_PATH": "/x"}},
        "deterministic": False,
        "epoch": 315532800,
        "engine": "buildx",
        "engine_version": "0.13.1",
    }
    fields = {
        "facts": facts,
        "unavailable": unavailable,
        "policy": {"name": "strict", "overrides": {"cpu.*": "superset"}},
        "identity": {"packages": packages},
        "base_image": {
            **pinned,
            "platform": "linux/amd64",
            "route": "ngc",
            "reason": "It has the very build.",
            "apt": DEBIAN,
        },
        "image": image,
    }
    return document(**{**fields, **changes})


def _identity(name: str, version: str, file: str) -> dict[str, Any]:
    data = content(name)
    wheel = {"name": file, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    return {
        "version": version,
        "content": "cd" * 32,
        "origin": "index",
        "proof": "file",
        "wheel": {**wheel, "url": f"https://example.org/{file}", "index": "https://example.org/simple"},
        "reason": None,
    }


def without(held: dict[str, Any], *packages: str) -> dict[str, Any]:
    """Return a lock without these packages in its identity."""
    kept = {name: entry for name, entry in held["identity"]["packages"].items() if name not in packages}
    return {**held, "identity": {"packages": kept}}


def model(held: dict[str, Any]) -> Lockfile:
    """Return a lock as its model."""
    return validate(held, "envlock.lock")


def planned(route: str, held: dict[str, Any] | None = None, **options: Any) -> BuildPlan:
    """Return the plan of a lock on the base of a route, with every wheel at hand."""
    return plan(model(without(lock(), "mine") if held is None else held), BASES[route], None, **options)


def wheelhouse(folder: Path) -> Path:
    """Fill a folder with the wheels of the lock."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (_, file) in WHEELS.items():
        (folder / file).write_bytes(content(name))
    return folder
