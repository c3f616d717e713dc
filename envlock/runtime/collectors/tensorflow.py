"""TensorFlow as its files tell it; it is never imported."""

from __future__ import annotations

import os

from envlock.runtime.build_info import parse_build_info
from envlock.runtime.distributions import NO_VERSION, installed, is_version, package_folder, shadow
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import read_text
from envlock.runtime.shadows import shadows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Union

    from envlock.runtime.distributions import Distribution
    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host

DISTRIBUTIONS = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-gpu",
    "tensorflow-cpu-aws",
    "tensorflow-intel",
    "tensorflow-macos",
    "tensorflow-rocm",
    "intel-tensorflow",
    "intel-tensorflow-avx512",
    "tf-nightly",
    "tf-nightly-cpu",
    "tf-nightly-gpu",
)
"""Every name the `tensorflow` package is distributed under; several at once overwrite each other's files."""


def collect(host: Host) -> Optional[Union[Tree, Unavailable]]:
    """Return which TensorFlow `import tensorflow` would load and what it was built with; None without one."""
    hidden = shadow(host, "tensorflow") or shadows(host).get("tensorflow")
    if hidden is not None:
        return hidden
    folder = package_folder(host, "tensorflow")
    owners = [found for name, found in installed(host).items() if name in DISTRIBUTIONS]
    if folder is None:
        return None
    site = os.path.dirname(folder)
    beside = sorted(
        (found for found in owners if found.folder == site), key=lambda found: found.name
    )
    build = parse_build_info(read_text(os.path.join(folder, "python/platform/build_info.py")) or "")
    version = _version(folder, beside)
    return {
        "distributions": [found.name for found in beside],
        "version": version,
        "nvidia_build": _nvidia_build(version),
        "cuda_build": _flag(build.get("is_cuda_build")),
        "built_with_cuda": _text(build.get("cuda_version")),
        "built_with_cudnn": _text(build.get("cudnn_version")),
        "compute_capabilities": _list(build.get("cuda_compute_capabilities")),
        "compiled_against_cudnn": _defined(
            os.path.join(folder, "include/third_party/gpus/cudnn/include/cudnn_version.h"),
            ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"),
        ),
    }


def _version(folder: str, owners: List[Distribution]) -> Union[str, Unavailable]:
    """Return the version: one distribution's, or where several lie over each other, what the files say.

    The headers carry the number up to 2.19; later ones get it from the build, so then it cannot be told.
    """
    versions = {owner.version for owner in owners}
    for owner in owners:
        versions.update(owner.rivals)
    if versions == {""}:
        return NO_VERSION
    if len(versions) == 1:
        return versions.pop()
    header = os.path.join(folder, "include/tensorflow/core/public/version.h")
    written = _defined(header, ("TF_MAJOR_VERSION", "TF_MINOR_VERSION", "TF_PATCH_VERSION"))
    if written is not None:
        return written
    if not versions:
        return Unavailable(
            "the tensorflow package belongs to no installed distribution", "no-metadata"
        )
    names = ", ".join(f"{owner.name} {owner.version or '(no version)'}" for owner in owners)
    return Unavailable(
        f"several distributions are installed over one another ({names}); keep one", "ambiguous"
    )


def _nvidia_build(version: Union[str, Unavailable]) -> Optional[str]:
    """Return the label of NVIDIA's own builds, such as `nv25.2` of 2.17.0+nv25.2."""
    local = "" if isinstance(version, Unavailable) else version.partition("+")[2]
    return local if local.startswith("nv") else None


def _defined(header: str, names: tuple[str, ...]) -> Optional[str]:
    """Return the `#define`d numbers of a C header joined by dots, or None when one is missing."""
    numbers = {}
    for line in (read_text(header) or "").splitlines():
        words = line.split()
        if len(words) >= 3 and words[0] == "#define" and words[1] in names and words[2].isdigit():
            numbers[words[1]] = words[2]
    return ".".join(numbers[name] for name in names) if len(numbers) == len(names) else None


def _flag(value: Any) -> Optional[Union[bool, Unavailable]]:
    return value if value is None or isinstance(value, bool) else _MALFORMED


def _text(value: Any) -> Optional[Union[str, Unavailable]]:
    if value is None or value == "":
        return None
    return value if isinstance(value, str) and is_version(value) else _MALFORMED


def _list(value: Any) -> Optional[Union[List[str], Unavailable]]:
    if value is None:
        return None
    fits = isinstance(value, list) and all(len(word) <= 64 and is_version(word) for word in value)
    return value if fits else _MALFORMED


_MALFORMED = Unavailable("its build_info.py has unexpected content", "malformed")
