"""The NumPy collector: versions 1 and 2 write what they were built with differently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envlock.lock.creation import capture
from envlock.lock.document import dump
from envlock.runtime.collectors import take_snapshot
from envlock.runtime.collectors.numpy import collect
from tests.machines import distribution, machine, write

CONFIG_1_23 = """\
openblas64__info={'libraries': ['openblas64_', 'openblas64_'], 'library_dirs': ['/usr/local/lib'], 'language': 'c'}
blas_ilp64_opt_info={'libraries': ['openblas64_', 'openblas64_'], 'library_dirs': ['/usr/local/lib']}
"""
CONFIG_MKL = "blas_mkl_info={'libraries': ['mkl_rt'], 'library_dirs': ['/opt/conda/lib']}\n"
CONFIG_2 = """\
CONFIG = _cleanup(
    {
        "Compilers": {"c": {"name": "gcc", "version": r"14.2.1"}},
        "Build Dependencies": {
            "blas": {
                "name": "scipy-openblas",
                "found": bool("True".lower().replace('false', '')),
                "version": "0.3.29",
                "openblas configuration": r"OpenBLAS 0.3.29  USE64BITINT DYNAMIC_ARCH NO_AFFINITY Haswell",
            },
            "lapack": {"name": "scipy-openblas", "version": "9.9.9"},
        },
    }
)
"""
NONE: dict[str, Any] = {"name": None, "version": None, "configuration": None, "files": []}


@pytest.mark.parametrize(
    ("version", "files", "blas"),
    [
        (
            "1.23.5",
            {"numpy/__config__.py": CONFIG_1_23, "numpy.libs/libopenblas64_p-r0-742d56dc.3.20.so": ""},
            {**NONE, "name": "openblas64_", "files": ["libopenblas64_p-r0-742d56dc.3.20.so"]},
        ),
        ("1.23.5", {"numpy/__config__.py": CONFIG_MKL}, {**NONE, "name": "blas_mkl"}),
        (
            "2.3.0",
            {
                "numpy/__config__.py": CONFIG_2,
                "numpy.libs/libscipy_openblas64_-8fb3d286.so": "",
                "numpy.libs/libgfortran-83c28eba.so.5.0.0": "",
            },
            {
                "name": "scipy-openblas",
                "version": "0.3.29",
                "configuration": "OpenBLAS 0.3.29 USE64BITINT DYNAMIC_ARCH NO_AFFINITY Haswell",
                "files": ["libscipy_openblas64_-8fb3d286.so"],
            },
        ),
        ("2.3.0", {}, NONE),
        ("2.3.0", {"numpy/__config__.py": b"\xff\x00"}, NONE),
        ("2.3.0", {"numpy/.libs/libblis.so": ""}, {**NONE, "files": ["libblis.so"]}),
    ],
)
def test_the_blas(version: str, files: dict[str, str | bytes], blas: dict[str, Any], tmp_path: Path) -> None:
    site = write(tmp_path / "site", {"numpy/__init__.py": "", **files})
    distribution(site, "numpy", version)
    host = machine(tmp_path / "root", site=site)
    assert collect(host) == {"version": version, "blas": blas}
    assert b'"blas"' in dump(capture(live=take_snapshot(host)))


@pytest.mark.parametrize("half", ["metadata", "package", "neither"])
def test_without_numpy_there_is_none(half: str, tmp_path: Path) -> None:
    site = write(tmp_path / "site", {"numpy/__init__.py": ""} if half == "package" else {})
    if half == "metadata":
        distribution(site, "numpy", "2.3.0")
    assert collect(machine(tmp_path / "root", site=site)) is None
