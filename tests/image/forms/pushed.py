"""A lock whose image is in a registry."""

from __future__ import annotations

from typing import Any

from tests.image import plans

DEVICES = {str(number): {"name": "NVIDIA A100-SXM4-40GB", "compute_capability": "8.0"} for number in range(2)}
REFERENCE = "ghcr.io/team/train@sha256:" + "aa" * 32


def pushed(**changes: Any) -> dict[str, Any]:
    """Return a lock with everything that a lock can hold, and a pushed image; `changes` replace fields of `image`."""
    held = plans.lock()
    own = {"lock": "ab" * 32, "wheels": ["keras", "numpy"], "envlock": "0.1.0", "reference": REFERENCE}
    held["facts"] = {**held["facts"], "gpu": {"devices": DEVICES}}
    return {**held, "image": {**held["image"], **own, **changes}}
