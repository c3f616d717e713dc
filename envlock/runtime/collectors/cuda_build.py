"""The CUDA libraries that TensorFlow loads in this process, for a CUDA build."""

from __future__ import annotations

import os

from envlock.runtime.build_info import LIMIT, parse_build_info
from envlock.runtime.distributions import find_package_folder
from envlock.runtime.host import Host, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from envlock.runtime.facts import Tree


def collect(host: Host) -> Optional[Tree]:
    """Return the file of each CUDA library that TensorFlow loads; None without a CUDA build."""
    package = find_package_folder(host, "tensorflow")
    if package is None:
        return None
    path = os.path.join(package, "python/platform/build_info.py")
    build = parse_build_info(read_text(path, LIMIT) or "")
    if not build.get("is_cuda_build"):
        return None
    # Not at the top: it costs 3 ms, which a CPU build need not pay.
    from envlock.runtime.cuda.section import collect_section

    return collect_section(host, package, build)
