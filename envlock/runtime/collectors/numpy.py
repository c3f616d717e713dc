"""NumPy, and the BLAS that multiplies its matrices."""

from __future__ import annotations

import os

from envlock.runtime.distributions import (
    NO_VERSION,
    find_distributions,
    find_package_folder,
)
from envlock.runtime.host import Host, read_text
from envlock.runtime.shadows import find_shadows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Union

    from envlock.runtime.facts import Tree, Unavailable

BLAS_PREFIXES = (
    "libscipy_openblas",
    "libopenblas",
    "libmkl_rt",
    "libblas",
    "libcblas",
    "libblis",
    "libflexiblas",
)


def collect(host: Host) -> Optional[Union[Tree, Unavailable]]:
    """Return NumPy's version and its BLAS; None without NumPy."""
    hidden = find_shadows(host).get("numpy")
    if hidden is not None:
        return hidden
    distribution = find_distributions(host).get("numpy")
    folder = find_package_folder(host, "numpy")
    if distribution is None or folder is None:
        return None
    return {"version": distribution.version or NO_VERSION, "blas": _collect_blas(folder)}


def _collect_blas(folder: str) -> Tree:
    """Return NumPy's BLAS, and the BLAS files in its wheel (whose names contain a hash)."""
    config = read_text(os.path.join(folder, "__config__.py")) or ""
    block = config.partition('"blas": {')[2].partition("}")[0]  # NumPy 1.26 and later
    name = _get_field(block, "name")
    if not block:
        # Up to 1.25 the file has one assignment for each library that the build found.
        for library in ("openblas64_", "openblas", "blas_mkl", "blis"):
            if f"{library}_info={{" in config:
                name = library
                break
    configuration = _get_field(block, "openblas configuration") or ""
    return {
        "name": name,
        "version": _get_field(block, "version"),
        "configuration": " ".join(configuration.split()) or None,
        "files": _list_blas_files(folder),
    }


def _get_field(block: str, name: str) -> Optional[str]:
    """Return the text of a field, which is written as a literal (`"..."` or `r"..."`)."""
    literal = block.partition(f'"{name}": ')[2].lstrip("r")
    if not literal.startswith('"'):
        return None
    return literal[1:].partition('"')[0] or None


def _list_blas_files(folder: str) -> List[str]:
    names: List[str] = []
    for libs in (folder + ".libs", os.path.join(folder, ".libs")):
        if os.path.isdir(libs):
            names += [name for name in os.listdir(libs) if name.startswith(BLAS_PREFIXES)]
    return sorted(names)
