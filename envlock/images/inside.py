"""What an image says of its own contents; it counts more than any table. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from envlock.images.candidate import SUBJECTS, Candidate
from envlock.images.manifest import ImageConfig
from envlock.images.versions import Value

VARIABLES = {
    "TENSORFLOW_VERSION": "tensorflow",
    "PYTHON_VERSION": "python",
    "CUDA_VERSION": "cuda",
    "CUDNN_VERSION": "cudnn",
    "NV_CUDNN_VERSION": "cudnn",
    "NCCL_VERSION": "nccl",
}
LABELS = {"com.nvidia.tensorflow.version": "tensorflow", "com.nvidia.cudnn.version": "cudnn"}
OWN = {"ngc": {*SUBJECTS}, "cuda": {"cuda", "cudnn", "nccl"}, "wheels": {"python"}}
"""What the image of a route has to tell; the rest is installed from wheels, or taken from elsewhere."""

_VERSION = re.compile(r"(\d+(?:\.\d+){1,3})(?:[-+].*)?", re.ASCII)
_PARTS = {"cuda": 3}
"""CUDA's fourth number is that of a build."""


def told(config: ImageConfig) -> dict[str, str]:
    """Return the versions that an image's variables and labels tell; the variables win."""
    found: dict[str, str] = {}
    for names, values in ((VARIABLES, config.environ), (LABELS, config.labels)):
        for name, subject in names.items():
            match = _VERSION.fullmatch(values.get(name, ""))
            if match is not None:
                found.setdefault(subject, ".".join(match[1].split(".")[: _PARTS.get(subject)]))
    return found


def informed(candidate: Candidate, config: ImageConfig) -> Candidate:
    """Return the candidate with what its image tells in place of what the tables say."""
    facts = {name: version for name, version in told(config).items() if name in OWN[candidate.route]}
    if not facts:
        return candidate
    listed = ", ".join(f"{SUBJECTS[name]} {facts[name]}" for name in SUBJECTS if name in facts)
    holds = {**candidate.holds, **{name: Value(version) for name, version in facts.items()}}
    return replace(candidate, holds=holds, notes=(*candidate.notes, f"The image itself says: {listed}."))
