"""The TensorFlow collector on the shapes its releases have on disk, from 2.12 to 2.21 and NVIDIA's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envlock.lock.creation import capture
from envlock.lock.document import dump
from envlock.runtime.collectors import take_snapshot
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS, collect
from envlock.runtime.facts import Unavailable
from tests.machines import (
    BUILD_INFO_CPU_2_12,
    BUILD_INFO_CPU_2_21,
    BUILD_INFO_CUDA_2_12,
    BUILD_INFO_CUDA_2_21,
    CUDNN_HEADER,
    CUDNN_HEADER_PATH,
    VERSION_HEADER,
    VERSION_HEADER_PATH,
    distribution,
    machine,
    write,
)

BUILD_INFO = "python/platform/build_info.py"


def install(folder: Path, files: dict[str, str | bytes], **versions: str) -> Any:
    """Install the package `tensorflow` with distributions of these versions; return the facts."""
    site = folder / "site"
    write(site / "tensorflow", {"__init__.py": "", **files})
    for name, version in versions.items():
        distribution(site, name, version)
    return collect(machine(folder / "root", site=site))


def facts(**changes: Any) -> dict[str, Any]:
    cpu: dict[str, Any] = {
        "distributions": ["tensorflow"],
        "version": "2.21.0",
        "nvidia_build": None,
        "cuda_build": False,
        "built_with_cuda": None,
        "built_with_cudnn": None,
        "compute_capabilities": None,
        "compiled_against_cudnn": None,
        "plugins": [],
    }
    return {**cpu, **changes}


def test_no_tensorflow_is_none(tmp_path: Path) -> None:
    distribution(tmp_path / "site", "numpy", "1.0")
    assert collect(machine(tmp_path / "root", site=tmp_path / "site")) is None


def test_metadata_without_the_package_is_none(tmp_path: Path) -> None:
    """The tensorflow-cpu distribution of a half-removed installation, or the empty tensorflow-intel one on Linux."""
    distribution(tmp_path / "site", "tensorflow", "2.21.0")
    assert collect(machine(tmp_path / "root", site=tmp_path / "site")) is None


@pytest.mark.parametrize(
    ("build_info", "version", "expected"),
    [
        (BUILD_INFO_CPU_2_12, "2.12.1", {}),
        (BUILD_INFO_CPU_2_21, "2.21.0", {}),
        (
            BUILD_INFO_CUDA_2_12,
            "2.12.1",
            {
                "cuda_build": True,
                "built_with_cuda": "11.8",
                "built_with_cudnn": "8",
                "compute_capabilities": ["sm_35", "sm_80", "compute_80"],
            },
        ),
        (
            BUILD_INFO_CUDA_2_21,
            "2.17.0+nv25.2",
            {
                "nvidia_build": "nv25.2",
                "cuda_build": True,
                "built_with_cuda": "12.5.1",
                "built_with_cudnn": "9",
                "compute_capabilities": ["sm_60", "compute_90"],
            },
        ),
    ],
    ids=["CPU 2.12", "CPU 2.21", "CUDA 2.12", "CUDA 2.21, NVIDIA"],
)
def test_the_builds(build_info: str, version: str, expected: dict[str, Any], tmp_path: Path) -> None:
    found = install(tmp_path, {BUILD_INFO: build_info}, tensorflow=version)
    assert found == facts(version=version, **expected)


def test_the_cudnn_it_was_compiled_against(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {BUILD_INFO: BUILD_INFO_CPU_2_21, CUDNN_HEADER_PATH: CUDNN_HEADER}
    assert install(tmp_path, files, tensorflow="2.21.0") == facts(compiled_against_cudnn="9.3.0")


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_every_name_it_is_distributed_under(name: str, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {BUILD_INFO: BUILD_INFO_CPU_2_21}
    found = install(tmp_path, files, **{name.replace("-", "_"): "2.21.0"})
    assert found == facts(distributions=[name])


@pytest.mark.parametrize("local", ["+cpu", "+zzzcolab20240101", ""])
def test_another_label_is_not_nvidias(local: str, tmp_path: Path) -> None:
    found = install(tmp_path, {BUILD_INFO: BUILD_INFO_CPU_2_21}, tensorflow="2.21.0" + local)
    assert found == facts(version="2.21.0" + local)


def test_distributions_of_one_version_over_each_other_are_all_named(tmp_path: Path) -> None:
    found = install(
        tmp_path, {BUILD_INFO: BUILD_INFO_CPU_2_21}, tensorflow="2.21.0", tensorflow_cpu="2.21.0", numpy="1.0"
    )
    assert found == facts(distributions=["tensorflow", "tensorflow-cpu"])


@pytest.mark.parametrize(
    ("files", "version"),
    [
        (
            {},
            Unavailable(
                "several distributions are installed over one another (tensorflow 2.21.0, tf-nightly 2.22.0.dev1); "
                "keep one",
                "ambiguous",
            ),
        ),
        ({VERSION_HEADER_PATH: VERSION_HEADER}, "2.12.1"),
        (
            {VERSION_HEADER_PATH: "#define TF_MAJOR_VERSION 2\n"},
            Unavailable(
                "several distributions are installed over one another (tensorflow 2.21.0, tf-nightly 2.22.0.dev1); "
                "keep one",
                "ambiguous",
            ),
        ),
    ],
)
def test_several_versions_over_each_other(files: dict[str, str | bytes], version: Any, tmp_path: Path) -> None:
    build: dict[str, str | bytes] = {BUILD_INFO: BUILD_INFO_CPU_2_21}
    found = install(tmp_path, {**build, **files}, tensorflow="2.21.0", tf_nightly="2.22.0.dev1")
    assert found == facts(version=version, distributions=["tensorflow", "tf-nightly"])


def test_two_versions_of_one_distribution_over_each_other(tmp_path: Path) -> None:
    distribution(tmp_path / "site", "tensorflow", "2.20.0")
    found = install(tmp_path, {BUILD_INFO: BUILD_INFO_CPU_2_21}, tensorflow="2.21.0")
    assert isinstance(found["version"], Unavailable)
    assert (found["version"].code, found["distributions"]) == ("ambiguous", ["tensorflow"])


def test_a_package_of_no_distribution(tmp_path: Path) -> None:
    """Built from source and put on the path, or metadata deleted."""
    missing = Unavailable("the tensorflow package belongs to no installed distribution", "no-metadata")
    assert install(tmp_path, {BUILD_INFO: BUILD_INFO_CPU_2_21}) == facts(distributions=[], version=missing)


def test_a_distribution_in_another_folder_does_not_own_it(tmp_path: Path) -> None:
    distribution(tmp_path / "other", "tensorflow-cpu", "2.12.0")
    write(tmp_path / "site" / "tensorflow", {"__init__.py": "", BUILD_INFO: BUILD_INFO_CPU_2_21})
    distribution(tmp_path / "site", "tensorflow", "2.21.0")
    host = machine(tmp_path / "root")
    host.path = [str(tmp_path / "site"), str(tmp_path / "other")]
    assert collect(host) == facts()


@pytest.mark.parametrize(
    "build_info",
    [
        b"",
        b"\xff\x00",
        b"build_info = {'cuda_version': '', 'cudnn_version': \"9; rm -rf\", 'is_cuda_build': None}",
        b"build_info = {'cuda_version': '\x1b[2J', 'cuda_compute_capabilities': ['sm 60', '']}",
        b"build_info = {'cuda_version': '12",
        b"build_info = {'cuda_compute_capabilities': ['sm_60', '\xc3\xa9']}",
        b"build_info = {'cuda_compute_capabilities': [",
    ],
)
def test_garbage_in_its_files_never_keeps_a_lock_from_being_made(build_info: bytes, tmp_path: Path) -> None:
    install(tmp_path, {BUILD_INFO: build_info}, tensorflow="2.21.0")
    lock = capture(live=take_snapshot(machine(tmp_path / "root", site=tmp_path / "site")))
    assert b'"version": "2.21.0"' in dump(lock)


@pytest.mark.parametrize("name", ["tensorflow.egg-info", "tensorflow-.dist-info", "tensorflow-$(x).dist-info"])
def test_metadata_without_a_version(name: str, tmp_path: Path) -> None:
    write(tmp_path / "site" / name, {"PKG-INFO": "Name: tensorflow\n", "METADATA": ""})
    found = install(tmp_path, {BUILD_INFO: BUILD_INFO_CPU_2_21})
    assert found == facts(version=Unavailable("its metadata gives no version", "no-metadata"))


def test_a_file_that_cannot_be_read_makes_the_section_unavailable(tmp_path: Path) -> None:
    site = write(tmp_path / "site", {"tensorflow/__init__.py": "", f"tensorflow/{BUILD_INFO}/a-folder": ""})
    found = take_snapshot(machine(tmp_path / "root", site=site))
    expected = {"reason": "cannot read a file: Is a directory", "code": "unreadable"}
    assert (found.unavailable["tensorflow"], "tensorflow" in found.facts) == (expected, False)
