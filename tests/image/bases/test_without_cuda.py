"""A wheel for CUDA where there is no CUDA: what it was built for is not what the environment has."""

from __future__ import annotations

from typing import Any

import pytest

from envlock.data.image_tables import WheelBuild
from envlock.image.bases.candidate import Candidate, explain_candidate
from envlock.image.bases.choose import candidates
from envlock.image.bases.needs import BaseNeeds, collect_needs
from envlock.image.bases.preflight import CannotMatchError, check_base
from envlock.runtime.release import parse_release
from tests.image.bases.asking import BUILDS, TABLES, facts

NEW = [build for build in BUILDS if parse_release(build.tensorflow) >= (2, 15)]
TOOLKIT = "/usr/local/cuda-12.5/lib64"
CORE = ("cudart", "cublas", "cublasLt", "cufft", "cusolver", "cusparse")


def library(name: str, place: str | None, version: str | None = None) -> dict[str, Any]:
    """Return the facts of a library; without a place, it is not found."""
    found: dict[str, Any] = {"linkage": "dlopen", "soname": f"lib{name}.so.12", "wheel_version": None}
    if place is None:
        return {**found, "file": None, "resolved_by": "not found", "version": None}
    return {**found, "file": f"{place}/lib{name}.so.12", "resolved_by": "ld.so.cache", "version": version, "size": 51}


def plain(build: WheelBuild, *, toolkit: tuple[str, ...] = (), driver: bool = False, **sections: Any) -> Any:
    """Return the facts after `pip install tensorflow`, where a system has these libraries of a toolkit."""
    names = ("cuda_driver", *CORE, "cudnn", "cupti")
    libraries = {name: library(name, TOOLKIT if name in toolkit else None, build.cuda) for name in names}
    libraries["cudnn"]["version"] = build.cudnn if "cudnn" in toolkit else None
    if driver:
        libraries["cuda_driver"] = library("cuda_driver", "/usr/lib/x86_64-linux-gnu", "570.86")
    libraries["nccl"] = {"linkage": "static", "version": "2.99.9"}
    ptxas: dict[str, Any] = {**library("ptxas", None), "linkage": "program"}
    del ptxas["soname"]
    if "ptxas" in toolkit:
        ptxas = {"linkage": "program", "resolved_by": "PATH", "file": "/usr/local/bin/ptxas", "size": 51}
    system = {"os": "debian", "os_version": "12", "libc": "glibc", "libc_version": "2.36", "machine": "x86_64"}
    tensorflow = {
        "version": build.tensorflow,
        "cuda_build": True,
        "nvidia_build": None,
        "built_with_cuda": f"{build.cuda}.1",
        "compiled_against_cudnn": build.cudnn,
        "distributions": ["tensorflow"],
    }
    gpu = {"driver_version": "570.86", "devices": {"0": {"compute_capability": "9.0"}}} if driver else None
    wanted = {
        "tensorflow": tensorflow,
        "python": {"version": "3.11.7", "compiler": "GCC 12.2.0"},
        "system": system,
        "cuda": {**libraries, "ptxas": ptxas},
        "gpu": gpu,
        "packages": {"tensorflow": {"version": build.tensorflow}},
    }
    return facts(**{**wanted, **sections})


def ranked(asked: Any, **options: Any) -> tuple[list[Candidate], BaseNeeds]:
    needs = collect_needs(asked, **options)
    return candidates(needs, TABLES), needs


UNUSED = {
    "nothing": (),
    "a profiler and a compiler": ("cupti", "ptxas"),
    "no cuDNN": (*CORE, "cupti", "ptxas"),
    "a whole toolkit": (*CORE, "cudnn", "cupti", "ptxas"),
}


@pytest.mark.parametrize("toolkit", UNUSED.values(), ids=UNUSED)
@pytest.mark.parametrize("build", NEW, ids=lambda build: build.tensorflow)
def test_without_a_driver_the_plain_python_is_first_and_matches(build: WheelBuild, toolkit: tuple[str, ...]) -> None:
    found, needs = ranked(plain(build, toolkit=toolkit))
    assert str(found[0].reference) == "docker.io/library/python:3.11.7-slim-bookworm"
    assert (found[0].usable, found[0].exact, found[0].mismatches) == (True, True, ())
    check_base(found[0], found, needs)


@pytest.mark.parametrize("build", NEW, ids=lambda build: build.tensorflow)
def test_a_gpu_without_cuda_libraries_needs_no_cuda_either(build: WheelBuild) -> None:
    found, _ = ranked(plain(build, driver=True))
    assert {each.route for each in found} == {"wheels"}
    assert (found[0].usable, found[0].mismatches) == (True, ())


@pytest.mark.parametrize("toolkit", UNUSED.values(), ids=UNUSED)
@pytest.mark.parametrize("driver", [False, True])
def test_what_is_not_locked_is_never_called_locked(driver: bool, toolkit: tuple[str, ...]) -> None:
    """The version that TensorFlow was built for was: "cuda.cudart.version is 12.6.1, locked 12.5.1"."""
    asked = plain(NEW[-1], toolkit=toolkit, driver=driver)
    found, needs = ranked(asked)
    said = [explain_candidate(each, needs) for each in found]
    assert not any(f"locked {NEW[-1].cuda}.1" in text for text in said)
    assert not any("nccl" in text or "2.99.9" in text for text in said)


def test_a_nccl_that_is_linked_into_the_wheel_is_that_of_no_base() -> None:
    system = {"os": "ubuntu", "os_version": "22.04", "libc": "glibc", "libc_version": "2.35", "machine": "x86_64"}
    build = next(build for build in NEW if build.tensorflow.startswith("2.18"))
    found, needs = ranked(plain(build, toolkit=(*CORE, "cudnn"), driver=True, system=system))
    assert (found[0].route, needs.nccl) == ("cuda", None)
    assert not any("nccl" in text for each in found for text in each.mismatches)


def test_what_a_base_adds_is_a_difference_too() -> None:
    """TensorFlow finds no cuDNN where this was locked, and computes on the CPU; in the image it would find one."""
    found, _ = ranked(plain(NEW[-1], toolkit=CORE, driver=True))
    mine = next(each for each in found if each.route == "cuda")
    held = mine.holds["cudnn"].version
    assert f"cuda.cudnn.version is {held}, locked none" in mine.mismatches


def test_a_driver_makes_a_toolkit_count() -> None:
    found, needs = ranked(plain(NEW[-1], toolkit=("cupti", "ptxas"), driver=True))
    assert set(found[0].mismatches) == {
        f"cuda.cupti is absent, locked {TOOLKIT}/libcupti.so.12",
        "cuda.ptxas is absent, locked /usr/local/bin/ptxas",
    }
    with pytest.raises(CannotMatchError) as caught:
        check_base(found[0], found, needs)
    assert caught.value.hint == (
        "capture where the CUDA toolkit is not visible, or name an image that has it with `--base IMAGE`"
    )


def test_a_locked_toolkit_gets_an_image_with_one() -> None:
    system = {"os": "ubuntu", "os_version": "22.04", "libc": "glibc", "libc_version": "2.35", "machine": "x86_64"}
    for toolkit, kind in ((), "runtime"), (("cupti", "ptxas"), "devel"):
        asked = plain(NEW[3], toolkit=(*CORE, "cudnn", *toolkit), driver=True, system=system)
        found, _ = ranked(asked)
        tags = {each.reference.tag for each in found if each.route == "cuda"}
        assert tags
        assert all(f"-{kind}-" in str(tag) for tag in tags)
        assert not any("cupti" in text or "ptxas" in text for each in found[:1] for text in each.mismatches)


@pytest.mark.parametrize("tensorflow", [None, {"version": "2.19.1", "cuda_build": True}])
def test_no_hint_loosens_a_lock_where_a_base_matches(tensorflow: Any) -> None:
    asked = plain(NEW[0], tensorflow=tensorflow, cuda=plain(NEW[0]).cuda)
    found, needs = ranked(asked)
    other = next(each for each in found if each.mismatches)
    with pytest.raises(CannotMatchError) as caught:
        check_base(other, found, needs)
    assert caught.value.hint == f"use {found[0].reference}, which can: `--base {found[0].reference}`"
