"""TensorFlow, described from its files; it is never imported."""

from __future__ import annotations

import os
import sys

from envlock.runtime.build_info import parse_build_info
from envlock.runtime.distributions import (
    NO_VERSION,
    Distribution,
    find_distributions,
    find_package_folder,
    is_version,
)
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host, note, read_text
from envlock.runtime.shadows import find_shadows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Union

    from envlock.runtime.facts import Tree

PLUGINS = "tensorflow-plugins"
_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
SCHEMES = (
    f"lib/{_VERSION}/site-packages",
    "lib/python",
    "lib/python3/dist-packages",
    f"local/lib/{_VERSION}/dist-packages",
)
"""Folders below a prefix, as the schemes of sysconfig (and Debian's) name them."""

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
"""Every name under which the `tensorflow` package is distributed; if several are installed, they
overwrite each other's files.
"""


def collect(host: Host) -> Optional[Union[Tree, Unavailable]]:
    """Return the TensorFlow that `import tensorflow` loads, and how it was built; None if there is
    no TensorFlow.
    """
    hidden = find_shadows(host).get("tensorflow")
    if hidden is not None:
        return hidden
    folder = find_package_folder(host, "tensorflow")
    distributions = find_distributions(host)
    if folder is None:
        return None
    site = os.path.dirname(folder)
    owners = []
    for name, distribution in sorted(distributions.items()):
        if name in DISTRIBUTIONS and distribution.folder == site:
            owners.append(distribution)
    build = parse_build_info(read_text(os.path.join(folder, "python/platform/build_info.py")) or "")
    version = _find_version(folder, owners)
    return {
        "distributions": [owner.name for owner in owners],
        "version": version,
        "nvidia_build": _parse_nvidia_build(version),
        "cuda_build": _check_flag(build.get("is_cuda_build")),
        "built_with_cuda": _check_text(build.get("cuda_version")),
        "built_with_cudnn": _check_text(build.get("cudnn_version")),
        "compute_capabilities": _check_list(build.get("cuda_compute_capabilities")),
        "compiled_against_cudnn": _parse_defines(
            os.path.join(folder, "include/third_party/gpus/cudnn/include/cudnn_version.h"),
            ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"),
        ),
        "plugins": _find_plugins(host),
    }


def _find_plugins(host: Host) -> Union[List[str], Unavailable]:
    """Return the libraries that `import tensorflow` opens in `tensorflow-plugins`, by their content.

    It looks in each site-packages on the import path, and in each that sysconfig can name, of which the
    user's own may be on no path (tensorflow/__init__.py).
    """
    folders = [entry for entry in host.path if "site-packages" in entry]
    home = os.path.join(host.environ.get("HOME") or "/", ".local")
    for base in (sys.prefix, host.environ.get("PYTHONUSERBASE") or home):
        folders += [os.path.join(base, scheme) for scheme in SCHEMES]
    found: List[str] = []
    for folder in dict.fromkeys(folders):
        place = os.path.join(folder, PLUGINS)
        note(place)
        if os.access(place, os.F_OK):
            # Not at the top: hardly any environment has plug-ins.
            from envlock.runtime.named_content import identify_libraries

            try:
                found += identify_libraries(place)
            except OSError as error:
                return Unavailable(f"a plug-in cannot be read: {error.strerror}", "unreadable")
    return sorted(set(found))


def _find_version(folder: str, owners: List[Distribution]) -> Union[str, Unavailable]:
    """Return the version of the distribution, or that of the headers if several overwrite each
    other.

    The headers have the number up to 2.19; later ones get it from the build, and then it is
    unavailable.
    """
    versions = {owner.version for owner in owners}
    for owner in owners:
        versions.update(owner.rivals)
    if versions == {""}:
        return NO_VERSION
    if len(versions) == 1:
        return versions.pop()
    header = os.path.join(folder, "include/tensorflow/core/public/version.h")
    version = _parse_defines(header, ("TF_MAJOR_VERSION", "TF_MINOR_VERSION", "TF_PATCH_VERSION"))
    if version is not None:
        return version
    if not versions:
        return Unavailable(
            "the tensorflow package belongs to no installed distribution", "no-metadata"
        )
    names = ", ".join([f"{owner.name} {owner.version or '(no version)'}" for owner in owners])
    return Unavailable(
        f"several distributions are installed over one another ({names}); keep one", "ambiguous"
    )


def _parse_nvidia_build(version: Union[str, Unavailable]) -> Optional[str]:
    """Return the label of NVIDIA's own builds, such as `nv25.2` of 2.17.0+nv25.2."""
    if isinstance(version, Unavailable):
        return None
    label = version.partition("+")[2]
    return label if label.startswith("nv") else None


def _parse_defines(header: str, names: tuple[str, ...]) -> Optional[str]:
    """Return the `#define`d numbers of a C header joined by dots, or None if one is missing."""
    numbers = {}
    for line in (read_text(header) or "").splitlines():
        words = line.split()
        if len(words) >= 3 and words[0] == "#define" and words[1] in names and words[2].isdigit():
            numbers[words[1]] = words[2]
    if len(numbers) != len(names):
        return None
    return ".".join([numbers[name] for name in names])


def _check_flag(value: object) -> Optional[Union[bool, Unavailable]]:
    if value is None or isinstance(value, bool):
        return value
    return _MALFORMED


def _check_text(value: object) -> Optional[Union[str, Unavailable]]:
    if value is None or value == "":
        return None
    if isinstance(value, str) and is_version(value):
        return value
    return _MALFORMED


def _check_list(value: object) -> Optional[Union[List[str], Unavailable]]:
    if value is None:
        return None
    if isinstance(value, list) and all(len(word) <= 64 and is_version(word) for word in value):
        return value
    return _MALFORMED


_MALFORMED = Unavailable("its build_info.py has unexpected content", "malformed")
