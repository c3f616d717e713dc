"""NumPy, and the BLAS that multiplies its matrices."""

from __future__ import annotations

import os

from envlock.runtime.distributions import NO_VERSION, installed, package_folder, shadow
from envlock.runtime.host import read_text
from envlock.runtime.shadows import shadows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Union

    from envlock.runtime.facts import Tree, Unavailable
    from envlock.runtime.host import Host

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
    hidden = shadow(host, "numpy") or shadows(host).get("numpy")
    if hidden is not None:
        return hidden
    found = installed(host).get("numpy")
    folder = package_folder(host, "numpy")
    if found is None or folder is None:
        return None
    return {"version": found.version or NO_VERSION, "blas": _blas(folder)}


def _blas(folder: str) -> Tree:
    """Return what NumPy was built with, and the BLAS files its wheel brings (their names carry a hash)."""
    config = read_text(os.path.join(folder, "__config__.py")) or ""
    block = config.partition('"blas": {')[2].partition("}")[0]  # NumPy 1.26 and later
    name, version = _field(block, "name"), _field(block, "version")
    if not block:  # up to 1.25: one assignment per library that was found
        name = next(
            (
                word
                for word in ("openblas64_", "openblas", "blas_mkl", "blis")
                if f"{word}_info={{" in config
            ),
            None,
        )
    return {
        "name": name,
        "version": version,
        "configuration": " ".join((_field(block, "openblas configuration") or "").split()) or None,
        "files": _bundled(folder),
    }


def _field(block: str, name: str) -> Optional[str]:
    rest = block.partition(f'"{name}": ')[2].lstrip("r")
    return rest[1:].partition('"')[0] or None if rest.startswith('"') else None


def _bundled(folder: str) -> List[str]:
    names: List[str] = []
    for place in (folder + ".libs", os.path.join(folder, ".libs")):
        if os.path.isdir(place):
            names += [name for name in os.listdir(place) if name.startswith(BLAS_PREFIXES)]
    return sorted(names)
