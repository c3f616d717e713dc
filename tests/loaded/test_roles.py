"""The parts that loaded libraries play: said once in the table, and once in the models."""

from __future__ import annotations

import pytest

from envlock.data.runtime_tables import load_loaded_table
from envlock.lock.fact_models import LoadedFacts
from envlock.runtime.collectors.python import ARITHMETIC
from envlock.runtime.loaded.agreement import IMPORTS
from envlock.runtime.loaded.description import INTERPRETER, PACKAGES, STANDARD, UNEXPLAINED
from envlock.runtime.loaded.startup_files import STARTUP


def test_each_role_of_the_table_is_a_fact() -> None:
    roles = [row.name for row in load_loaded_table().role]
    others = {ARITHMETIC, IMPORTS, INTERPRETER, PACKAGES, STANDARD, STARTUP, UNEXPLAINED}
    assert {*roles, *others} == set(LoadedFacts.model_fields)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("libm.so.6", "libm"),
        ("libm-2.31.so", "libm"),
        ("libmkl_rt.so.2", "blas"),
        ("libblas.so.3.10.0", "blas"),
        ("libgomp.so.1.0.0", "openmp"),
        ("libstdc++.so.6.0.30", "libstdcxx"),
        ("libc.so.6", "libc"),
        ("libcrypto.so.3", None),
        ("libz.so.1", "data"),
        ("libsqlite3.so.0", "data"),
    ],
)
def test_a_library_has_the_role_that_its_name_says(name: str, role: str | None) -> None:
    roles = {row.name: tuple(row.begins) for row in load_loaded_table().role}
    assert next((each for each, begins in roles.items() if name.startswith(begins)), None) == role
