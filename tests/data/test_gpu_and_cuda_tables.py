"""The tables: each loads, names a source in every row, and says nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from envlock import data
from envlock.data import runtime_tables
from envlock.runtime.cuda import section
from envlock.runtime.cuda.library_list import LIBRARIES, get_tensorrt_number, list_cudnn_parts, list_other_users
from envlock.runtime.tables import table

SOURCED: dict[
    str,
    Callable[
        [], runtime_tables.PolicyTable | runtime_tables.GpuTable | runtime_tables.CudaTable | runtime_tables.FileTable
    ],
] = {
    "policy": runtime_tables.load_policy_table,
    "gpu": runtime_tables.load_gpu_table,
    "cuda": runtime_tables.load_cuda_table,
    "files": runtime_tables.load_file_table,
}


def rows(value: object) -> Iterator[data.Row]:
    """Yield every row of a table; what only groups rows (the table, `ptxas`) is none."""
    if isinstance(value, list):
        for item in value:
            yield from rows(item)
    elif isinstance(
        value,
        runtime_tables.PolicyTable
        | runtime_tables.GpuTable
        | runtime_tables.CudaTable
        | runtime_tables.FileTable
        | runtime_tables.PtxasRules,
    ):
        for name in type(value).model_fields:
            yield from rows(getattr(value, name))
    elif isinstance(value, data.Row) and not isinstance(value, data.Horizon):
        yield value


def sources(name: str) -> list[str]:
    """Return the source of every row."""
    found = [row.source for row in rows(SOURCED[name]())]  # type: ignore[attr-defined]
    assert found
    return found


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


@pytest.mark.parametrize("name", SOURCED)
def test_every_row_has_a_source_that_can_be_followed(name: str) -> None:
    keys = SOURCED[name]().evidence
    lost = {source for source in sources(name) if not source.startswith(("https://", *keys))}
    assert lost == set()


@pytest.mark.parametrize("name", SOURCED)
def test_no_evidence_is_left_without_a_row(name: str) -> None:
    text = sources(name)
    assert {key for key in SOURCED[name]().evidence if not any(source.startswith(key) for source in text)} == set()


def test_every_variable_and_every_group_of_flags_has_a_source() -> None:
    assert [row.name for row in runtime_tables.load_variables() if not all(row.sources)] == []
    assert [row.name for row in runtime_tables.load_variables()] == sorted(
        {row.name for row in runtime_tables.load_variables()}
    )
    assert runtime_tables.load_cpu_flags() == sorted(set(runtime_tables.load_cpu_flags()))


@pytest.mark.parametrize("name", ["architecture", "virtualization", "compute_mode"])
def test_a_number_of_nvml_has_one_name(name: str) -> None:
    found: list[runtime_tables.NvmlNumber] = getattr(runtime_tables.load_gpu_table(), name)
    order = [row.number for row in found]
    assert order == sorted(set(order))
    assert len({row.name for row in found}) == len(found)


def test_a_compute_capability_stands_in_one_row() -> None:
    groups = runtime_tables.load_gpu_table().cores_per_sm
    every = [capability for row in groups for capability in row.compute_capabilities]
    assert len(set(every)) == len(every) == len(table("gpu")["cores_per_sm"])
    assert [row.compute_capabilities for row in groups] == [
        sorted(row.compute_capabilities, key=numbers) for row in groups
    ]


def test_the_recordings_that_cores_per_sm_was_checked_against() -> None:
    per_sm = table("gpu")["cores_per_sm"]
    assert (6912 // per_sm["8.0"], 16896 // per_sm["9.0"]) == (108, 132)


def test_versions_ascend_and_stand_once() -> None:
    cuda = runtime_tables.load_cuda_table()
    for versions in ([row.tensorflow for row in cuda.tensorrt], [row.isa for row in cuda.ptx_isa]):
        ascending = [numbers(version) for version in versions]
        assert ascending == sorted(ascending)
        assert len(set(versions)) == len(versions)
    compiled_by = [numbers(row.cuda) for row in cuda.ptx_isa]
    assert compiled_by == sorted(compiled_by)


@pytest.mark.parametrize("major", sorted({row.cudnn for row in runtime_tables.load_cuda_table().cudnn_part}))
def test_a_part_of_cudnn_stands_once_and_behind_who_opens_it(major: str) -> None:
    known = ["cudnn"]
    for row in list_cudnn_parts(major):
        assert row["asker"] in known
        assert f"cudnn_{row['name']}" not in known
        known.append(f"cudnn_{row['name']}")
    assert len(known) > 1
    assert list_cudnn_parts("7") == []


def test_who_opens_a_library_is_a_library_or_a_part_of_cudnn() -> None:
    keys = {library.key for library in LIBRARIES} | {
        f"cudnn_{row.name}" for row in runtime_tables.load_cuda_table().cudnn_part
    }
    assert {library.asker for library in LIBRARIES if library.asker is not None} <= keys


def test_other_users_stand_once() -> None:
    assert len(set(list_other_users())) == len(list_other_users()) > 0


@pytest.mark.parametrize(
    ("release", "number"), [("2.12", "8"), ("2.17", "8.6.1"), ("2.13", None), ("2.21", None), ("", None), (None, None)]
)
def test_the_tensorrt_that_a_tensorflow_asks_for(release: str | None, number: str | None) -> None:
    assert get_tensorrt_number(release) == number


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("11.7.99", True),
        ("11.8.89", False),
        ("12.3.52", False),
        ("12.3.103", True),
        ("12.3.103.1", False),
        ("9.2", True),
        ("", True),
        (None, False),
    ],
)
def test_the_ptxas_that_xla_refuses(version: str | None, verdict: bool) -> None:
    assert section.is_ptxas_refused(version) is verdict


@pytest.mark.parametrize(
    ("release", "verdict"), [("2.18", False), ("2.20", False), ("2.21", True), ("2.100", True), ("3.0", True)]
)
def test_the_tensorflow_that_looks_at_cuda_home(release: str, verdict: bool) -> None:
    assert section.is_cuda_home_read(release) is verdict
    assert section.is_cuda_home_read(None) is False, "a build of others: not known"


@pytest.mark.parametrize(
    ("model", "row"),
    [
        (runtime_tables.CudnnPart, {"cudnn": "9", "name": "ops", "asker": "cudnn"}),
        (runtime_tables.CudnnPart, {"cudnn": "9", "name": "ops", "asker": "cudnn", "source": ""}),
        (runtime_tables.CudnnPart, {"cudnn": "9", "name": "ops", "asker": "libcudnn", "source": "x"}),
        (runtime_tables.TensorrtNumber, {"tensorflow": "2.12.1", "number": "8", "source": "x"}),
        (runtime_tables.PtxIsa, {"isa": "8", "cuda": "12.0", "source": "x"}),
        (runtime_tables.OtherUser, {"package": "a-b", "source": "x"}),
        (runtime_tables.SourcedVersion, {"version": "12.x", "source": "x"}),
        (runtime_tables.NvmlNumber, {"number": -1, "name": "x", "source": "x"}),
        (runtime_tables.CoresPerSm, {"cores": 64, "compute_capabilities": [], "source": "x"}),
        (runtime_tables.CoresPerSm, {"cores": 64, "compute_capabilities": ["9.0"], "source": "x", "sources": "x"}),
    ],
)
def test_a_row_that_is_none_is_refused(model: type[BaseModel], row: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(row)
