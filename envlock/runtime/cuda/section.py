"""The section `cuda`: the libraries that TensorFlow loads in this process, and XLA's `ptxas`.

They are found from files alone. No CUDA library is loaded: loading one before TensorFlow is
imported would change which one TensorFlow uses.
"""

from __future__ import annotations

import os

from envlock.runtime.cuda.library_facts import CudaFacts
from envlock.runtime.cuda.library_list import LIBRARIES, is_cuda, list_other_users
from envlock.runtime.cuda.resolution import Replay, Resolved
from envlock.runtime.cuda.versions import Headers
from envlock.runtime.distributions import find_distributions
from envlock.runtime.facts import Unavailable
from envlock.runtime.loader.elf import read_elf
from envlock.runtime.loader.search import Loader
from envlock.runtime.release import parse_release
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Mapping, Optional, Tuple

    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host


def collect_section(host: Host, package: str, build: Mapping[str, object]) -> Tree:
    """Return the facts of every CUDA library by key, `ptxas` and `other_cuda`.

    A library that this TensorFlow does not use has `linkage` "absent" and nothing else. Costs about
    5 ms.

    Args:
        host: the machine and the process.
        package: the tensorflow folder, of a CUDA build.
        build: its `build_info`.
    """
    release = find_google_release(host, package)
    headers = Headers()
    tree: Tree = {}
    try:
        loader = Loader(host, [os.path.dirname(package), *filter(None, host.path)])
        replay = Replay(package, loader, headers, build, release)
        facts = CudaFacts(host, loader, headers)
        for key, answer in replay.run():
            if isinstance(answer, Resolved):
                tree[key] = facts.describe_library(answer)
            else:
                tree[key] = answer
    except (OSError, ValueError):
        reason = Unavailable(
            "TensorFlow's library or this process's own files cannot be read", "no-framework"
        )
        return {library.key: reason for library in LIBRARIES}
    toolkit = (replay.config or {}).get("CUDA_TOOLKIT_PATH", "")
    paths = list_ptxas_candidates(host.environ, toolkit, package, is_cuda_home_read(release))
    tree["ptxas"] = _describe_ptxas(paths, facts, loader)
    tree["other_cuda"] = _find_other_users(host, loader)
    return tree


def find_google_release(host: Host, package: str) -> Optional[str]:
    """Return major.minor of a TensorFlow with a plain version; None for other builds (`+nv`)."""
    distributions = find_distributions(host)
    for name in ("tensorflow", "tensorflow-cpu", "tensorflow-gpu"):
        distribution = distributions.get(name)
        if distribution is not None and distribution.folder == os.path.dirname(package):
            if "+" in distribution.version:
                return None
            return ".".join(distribution.version.split(".")[:2])
    return None


def _describe_ptxas(paths: Iterator[Tuple[str, str]], facts: CudaFacts, loader: Loader) -> Tree:
    """Return the facts of the ptxas that XLA would run, the first usable one of (path, reason)."""
    for path, reason in paths:
        location = loader.locate(os.path.abspath(path))
        # A folder that can be entered counts as executable, too.
        if not os.access(location, os.X_OK) or os.path.isdir(location):
            continue
        try:
            elf = read_elf(location)
        except (OSError, ValueError):
            elf = None
        file_facts = facts.describe_file(location, elf, None)
        version = file_facts["version"]
        if version is None:
            file_facts["version"] = Unavailable(
                "ptxas belongs to no wheel, and only running it would show its version",
                "no-version",
            )
        elif isinstance(version, str) and is_ptxas_refused(version):
            continue
        return {"linkage": "program", "resolved_by": reason, **file_facts}
    return {
        "linkage": "program",
        "resolved_by": "not found",
        "file": None,
        "version": None,
        "wheel_version": None,
    }


def _find_other_users(host: Host, loader: Loader) -> List[str]:
    """Return the imported packages that use CUDA on their own, if a CUDA library is mapped."""
    for path in loader.mapped:
        if is_cuda(os.path.basename(path)):
            return [package for package in list_other_users() if host.has_imported(package)]
    return []


DATA_DIR_FLAG = "--xla_gpu_cuda_data_dir="
DEFAULT_DATA_DIR = "./cuda_sdk_lib"
"""Source: xla/debug_options_flags.cc."""


def list_ptxas_candidates(
    environ: Mapping[str, str], toolkit: str, package: str, cuda_home: bool
) -> Iterator[Tuple[str, str]]:
    """Yield (path, reason) in the order in which XLA looks for `ptxas`.

    Args:
        environ: the variables as they are when XLA looks (XLA_FLAGS, PATH, CUDA_HOME).
        toolkit: `TF_CUDA_TOOLKIT_PATH` of cuda_config.h, often empty.
        package: the tensorflow folder.
        cuda_home: whether this TensorFlow looks at CUDA_HOME (`reads_cuda_home`).
    """
    data_dir = DEFAULT_DATA_DIR
    for word in environ.get("XLA_FLAGS", "").split():
        if word.startswith(DATA_DIR_FLAG):
            data_dir = word[len(DATA_DIR_FLAG) :].strip("'\"")
    yield os.path.join(data_dir, "bin", "ptxas"), "xla_gpu_cuda_data_dir"
    for folder in environ.get("PATH", "").split(":"):
        yield os.path.join(folder, "ptxas"), "PATH"
    if cuda_home and environ.get("CUDA_HOME"):
        yield os.path.join(environ["CUDA_HOME"], "bin", "ptxas"), "CUDA_HOME"
    if toolkit:
        yield os.path.join(toolkit, "bin", "ptxas"), "TF_CUDA_TOOLKIT_PATH"
    yield "/usr/local/cuda/bin/ptxas", "/usr/local/cuda"
    for up in ("..", "../.."):
        yield os.path.join(package, up, "nvidia", "cuda_nvcc", "bin", "ptxas"), "wheel"


def is_cuda_home_read(release: Optional[str]) -> bool:
    """Return whether TensorFlow major.minor uses CUDA_HOME; False for an unknown version."""
    return parse_release(release or "") >= tuple(table("cuda")["ptxas"]["cuda_home_since"])


def is_ptxas_refused(version: Optional[str]) -> bool:
    """Return whether XLA skips a ptxas of this version; False for an unknown version."""
    if version is None:
        return False
    rules = table("cuda")["ptxas"]
    release = parse_release(version)
    return release[:2] < tuple(rules["oldest"]) or list(release) in rules["refused"]
