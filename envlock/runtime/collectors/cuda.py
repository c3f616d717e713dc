"""Facts `cuda.*`: the CUDA libraries that TensorFlow's loader takes in this process, told from files alone.

No CUDA library is loaded: whoever loads one before TensorFlow is imported changes which one TensorFlow uses.
"""

from __future__ import annotations

import os

from envlock.runtime.build_info import LIMIT, parse_build_info
from envlock.runtime.cuda_facts import CudaFacts
from envlock.runtime.cuda_libraries import LIBRARIES, OTHER_USERS, is_cuda
from envlock.runtime.cuda_resolution import Replay, Resolved
from envlock.runtime.cuda_versions import Headers
from envlock.runtime.elf import read_elf
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import read_text
from envlock.runtime.loader import Loader
from envlock.runtime.ptxas import CUDA_HOME_SINCE, candidates, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Tuple

    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host


def collect(host: Host) -> Optional[Tree]:
    """Return the facts of every CUDA library by key, `ptxas` and `other_cuda`; None without a CUDA TensorFlow.

    A library that this TensorFlow does not use has `linkage` "absent" and nothing else. Costs about 5 ms.
    """
    package = find_tensorflow(host.path)
    if package is None:
        return None
    build = parse_build_info(_text(os.path.join(package, "python/platform/build_info.py")) or "")
    if not build.get("is_cuda_build"):
        return None
    release = google_release(package)
    headers = Headers()
    tree: Tree = {}
    try:
        loader = Loader(host, [os.path.dirname(package), *filter(None, host.path)])
        replay = Replay(package, loader, headers, build, release)
        facts = CudaFacts(host, loader, headers)
        for key, answer in replay.run():
            tree[key] = facts.library(answer) if isinstance(answer, Resolved) else answer
    except (OSError, ValueError):
        reason = Unavailable("TensorFlow's library or this process's own files cannot be read", "no-framework")
        return {library.key: reason for library in LIBRARIES}
    toolkit = (replay.config or {}).get("CUDA_TOOLKIT_PATH", "")
    tree["ptxas"] = _ptxas(host, facts, loader, toolkit, package, _version_of(release) >= CUDA_HOME_SINCE)
    tree["other_cuda"] = _other_users(host, loader)
    return tree


def find_tensorflow(path: List[str]) -> Optional[str]:
    """Return the tensorflow folder that `import tensorflow` would take, or None."""
    for folder in path:
        package = os.path.join(folder or ".", "tensorflow")
        if os.path.isfile(os.path.join(package, "__init__.py")):
            return os.path.abspath(package)
    return None


def google_release(package: str) -> Optional[str]:
    """Return major.minor of a TensorFlow whose dist-info bears a plain version; None for builds of others (`+nv`)."""
    try:
        names = os.listdir(os.path.dirname(package))
    except OSError:
        return None
    for name in names:
        project, _, version = name.partition("-")
        if name.endswith(".dist-info") and project in ("tensorflow", "tensorflow_cpu", "tensorflow_gpu"):
            version = version[: -len(".dist-info")]
            return None if "+" in version else ".".join(version.split(".")[:2])
    return None


def _version_of(release: Optional[str]) -> Tuple[int, ...]:
    return tuple(int(part) for part in (release or "").split(".") if part.isdigit())


def _text(path: str) -> Optional[str]:
    try:
        return read_text(path, LIMIT)
    except OSError:
        return None


def _ptxas(host: Host, facts: CudaFacts, loader: Loader, toolkit: str, package: str, cuda_home: bool) -> Tree:
    """Return the facts of the ptxas that XLA would run."""
    for path, reason in candidates(host.environ, toolkit, package, cuda_home):
        place = loader.place(os.path.abspath(path))
        if not os.access(place, os.X_OK) or os.path.isdir(place):
            continue
        try:
            elf = read_elf(place)
        except (OSError, ValueError):
            elf = None
        found = facts.file(place, elf, None)
        version = found["version"]
        if version is None:
            found["version"] = Unavailable("ptxas belongs to no wheel; only running it tells its version", "no-version")
        elif isinstance(version, str) and refused(version):
            continue
        return {"linkage": "program", "resolved_by": reason, **found}
    return {"linkage": "program", "resolved_by": "not found", "file": None, "version": None, "wheel_version": None}


def _other_users(host: Host, loader: Loader) -> List[str]:
    """Return the imported packages that use CUDA on their own, where a CUDA library is mapped in this process."""
    if not any(is_cuda(os.path.basename(path)) for path in loader.mapped):
        return []
    return [package for package in OTHER_USERS if host.imported(package)]
