"""Before anything is fetched: what an expert would choose, what TensorFlow needs, and what a policy accepts."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envlock.image.base import resolve_offline
from envlock.image.bases.base_request import BaseRequest
from envlock.image.bases.candidate import Candidate, Value
from envlock.image.bases.choose import candidates
from envlock.image.bases.drivers import JETSON
from envlock.image.bases.needs import BaseNeeds, collect_needs
from envlock.image.bases.preflight import CannotMatchError, check_base, find_mismatches
from envlock.image.bases.reference import parse
from envlock.runtime.errors import UsageError
from envlock.runtime.release import parse_release
from tests.golden_files import assert_as_golden
from tests.image.bases.asking import TABLES, choose, facts
from tests.image.bases.experts import GOLDEN, LOCKS, NOTHING, UBUNTUS, choices, locked
from tests.image.plans import lock, model, without
from tests.image.test_injection import put
from tests.locks import document, encode

UBU = locked("2.19.1", "3.11.7", UBUNTUS, "ubuntu 22.04")
SLIM = "docker.io/library/python:3.11.7-slim-bookworm"


@pytest.mark.parametrize("name", LOCKS)
def test_the_first_choice_is_the_experts(name: str) -> None:
    asked, expert = LOCKS[name]
    best = choose(asked)[0]
    answer = f"{best.reference.repository}:{best.reference.tag}"
    assert (answer if best.able else NOTHING) == expert


@pytest.mark.longer
def test_every_reason_is_the_one_that_was_reviewed() -> None:
    assert_as_golden(choices(), GOLDEN)


def _slim(asked: BaseNeeds) -> Candidate:
    return next(each for each in candidates(asked, TABLES) if str(each.reference) == SLIM)


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        (
            "strict",
            [
                "system.libc_version is 2.36, locked 2.35",
                "system.os is debian, locked ubuntu",
                "system.os_version is 12, locked 22.04",
            ],
        ),
        ("functional", []),
    ],
)
def test_a_base_is_held_to_the_lock_by_the_locks_own_policy(policy: str, found: list[str]) -> None:
    assert list(_slim(collect_needs(UBU, policy=policy)).mismatches) == found


def test_an_override_counts() -> None:
    asked = collect_needs(UBU, overrides={"system.*": "ignore"})
    assert _slim(asked).mismatches == ()
    held = collect_needs(UBU, policy="functional", overrides={"python.compiler": "exact"})
    assert list(_slim(held).mismatches) == ["python.compiler is GCC 12.2.0, locked GCC 11.4.0"]


def test_the_refusal_names_the_facts_and_the_image_that_can() -> None:
    asked = collect_needs(UBU)
    with pytest.raises(CannotMatchError) as caught:
        check_base(_slim(asked), candidates(asked, TABLES), asked)
    assert (caught.value.exit_code, str(caught.value)) == (
        1,
        "cannot match under policy strict: system.libc_version is 2.36, locked 2.35; system.os is debian, locked "
        f"ubuntu; system.os_version is 12, locked 22.04 ({SLIM})\n"
        "hint: use docker.io/library/ubuntu:22.04, which can: `--base docker.io/library/ubuntu:22.04`",
    )


def test_where_no_image_can_the_hint_is_to_lock_less() -> None:
    asked = collect_needs(locked("2.19.1", "3.11.13", "Clang 17.0.6", "ubuntu 23.10"))
    found = candidates(asked, TABLES)
    with pytest.raises(CannotMatchError) as caught:
        check_base(found[0], found, asked)
    assert caught.value.message.startswith("no known base image can match under policy strict; the nearest, docker.io")
    assert caught.value.hint == "accept the facts with `envlock ignore`, or choose a less strict policy"


def test_a_base_of_ones_own_that_cannot_match_is_named() -> None:
    asked = collect_needs(UBU)
    own = Candidate("wheels", parse("team/base:1"), {"libc": Value("2.36")}, "")
    with pytest.raises(CannotMatchError) as caught:
        check_base(replace(own, mismatches=("system.libc_version is 2.36, locked 2.35",)), [], asked)
    assert str(caught.value) == (
        "cannot match under policy strict: system.libc_version is 2.36, locked 2.35 (docker.io/team/base:1)\n"
        "hint: accept the facts with `envlock ignore`, or choose a less strict policy"
    )


def test_a_python_that_only_a_newer_release_can_have_is_looked_for_where_the_network_is_used() -> None:
    held = {
        "python": {"version": "3.14.99", "compiler": "Clang 30.1.0"},
        "tensorflow": {"version": "2.21.0", "cuda_build": False},
        "system": {"os": "ubuntu", "os_version": "20.04", "libc": "glibc", "libc_version": "2.31"},
        "packages": {},
    }
    locked_by = model(document(facts=held, unavailable={}))
    with pytest.raises(CannotMatchError) as caught:
        resolve_offline(locked_by, BaseRequest())
    assert caught.value.hint == (
        "run `envlock build --pin`, which looks for this Python in the newest release of python-build-standalone, "
        "or accept the facts with `envlock ignore`, or choose a less strict policy"
    )


def test_what_is_only_expected_is_no_reason() -> None:
    asked = collect_needs(UBU)
    held = {"libc": Value("2.36", expected=True), "python": Value("3.11")}
    base = Candidate("ngc", parse("nvcr.io/nvidia/tensorflow:x"), held, "", exact=True)
    assert list(find_mismatches(base, asked)) == []


TF_217, _ = LOCKS["2.17.1, system CUDA 12.3, cuDNN 8.9, Ubuntu 22.04"]


def test_what_is_only_expected_is_no_match_either() -> None:
    """NVIDIA's 24.12 was the first choice here: another TensorFlow and Python, and wheels that cannot be installed."""
    asked = replace(collect_needs(TF_217), wheel_pythons=("3.11",))
    found = {each.reference.tag: each for each in candidates(asked, TABLES)}
    nvidias = found["24.12-tf2-py3"]
    assert nvidias.refuses_wheels
    assert nvidias.mismatches == (
        "tensorflow.version is 2.17.0, locked 2.17.1",
        "tensorflow.nvidia_build is another one of NVIDIA's, and the locked one is not NVIDIA's",
    )
    functional = replace(asked, policy="functional", overrides=(("tensorflow.*", "ignore"),))
    assert list(find_mismatches(nvidias, functional)) == []


def test_cudnn_of_another_major_version_is_never_taken() -> None:
    found = [each for each in choose(TF_217) if each.route == "cuda"]
    assert [each.holds["cudnn"].version for each in found if each.able] == ["8.9.6.50", "8.9.6.50"]
    other = next(each for each in found if (each.reference.tag or "").startswith("12.4.1"))
    assert other.unmet_requirements == (
        "TensorFlow 2.17.1 was compiled against cuDNN 8.9 and needs that or a later 8.x; the image has 9.1.0.70.",
    )
    unknown = replace(collect_needs(TF_217), tensorflow="2.99.0")
    found = [each for each in candidates(unknown, TABLES) if (each.reference.tag or "").startswith("12.4.1")]
    unmet = ("The locked cuDNN is 8.9.7; the image has 9.1.0.70, which is another library.",)
    assert {each.unmet_requirements for each in found} == {unmet}


def test_an_image_that_cannot_install_the_wheels_ranks_behind_those_that_can() -> None:
    asked, expert = LOCKS["2.13.1, CUDA 11.8, cuDNN 8.6, Ubuntu 22.04"]
    found = candidates(replace(collect_needs(asked), wheel_libc="2.34"), TABLES)
    assert f"{found[0].reference.repository}:{found[0].reference.tag}" == expert
    refused = [each.refuses_wheels for each in found if each.able]
    assert refused == sorted(refused)
    assert any(refused)


def test_a_lock_with_wheels_for_another_python_than_its_own_is_refused_itself() -> None:
    asked = replace(collect_needs(UBU), wheel_pythons=("3.10", "3.11"))
    found = candidates(asked, TABLES)
    assert not any("locked wheels are for Python 3.10" in text for each in found for text in each.mismatches)
    with pytest.raises(CannotMatchError) as caught:
        check_base(found[0], found, asked)
    assert str(caught.value) == (
        "no image can match: the locked wheels are for Python 3.10, and the locked Python is 3.11.7\n"
        "hint: capture the environment again"
    )


@pytest.mark.parametrize(
    ("machine", "release", "jetson"),
    [("aarch64", "5.15.136-tegra", True), ("aarch64", "6.8.0-1013-nvidia-64k", False), ("x86_64", "5.15-tegra", False)],
)
def test_a_jetson_is_named_as_such(machine: str, release: str, jetson: bool) -> None:
    label = "nv24.5"
    asked = facts(
        tensorflow={"version": f"2.15.0+{label}", "nvidia_build": label, "cuda_build": True},
        system={"machine": machine, "kernel": "Linux", "kernel_release": release},
    )
    best = choose(asked)[0]
    assert best.able is not jetson
    assert [text for text in best.obstacles if "Jetson" in text] == [JETSON] * jetson


def test_wheels_for_another_python_are_told_before_anything_is_built() -> None:
    tags = {"wheel_tags": ["cp311-cp311-manylinux_2_17_x86_64"]}
    free = {"wheel_tags": ["cp39-abi3-manylinux_2_17_x86_64"]}
    asked = facts(
        tensorflow={"version": "2.19.1", "cuda_build": False},
        python={"version": "3.11.7"},
        packages={"numpy": tags, "six": {"wheel_tags": ["py2-none-any", "py3-none-any"]}, "abi": free},
    )
    base = Candidate("wheels", parse("a/b:1"), {"python": Value("3.12.3")}, "")
    assert list(find_mismatches(base, collect_needs(asked, overrides={"python.version": "ignore"}))) == [
        "the locked wheels are for Python 3.11, and it has 3.12.3"
    ]


def _tagged(*tags: str) -> BaseNeeds:
    packages = {"numpy": {"version": "2.3.0", "wheel_tags": list(tags)}, "six": {"wheel_tags": ["py3-none-any"]}}
    return collect_needs(facts(**{**UBU.model_dump(exclude_unset=True), "packages": packages}), policy="functional")


def test_wheels_for_a_newer_glibc_are_told_before_anything_is_built() -> None:
    asked = _tagged("cp311-cp311-manylinux_2_38_x86_64", "cp311-cp311-manylinux_2_41_x86_64")
    assert _slim(asked).mismatches == ("the locked wheels need glibc 2.38, and it has 2.36",)


@pytest.mark.parametrize(
    ("tags", "libc"),
    [
        (("cp311-cp311-manylinux_2_17_x86_64", "cp311-cp311-manylinux2014_x86_64"), "2.17"),
        (("cp311-cp311-manylinux1_x86_64",), "2.5"),
        (("cp311-cp311-manylinux2010_x86_64", "cp311-cp311-manylinux_2_28_aarch64"), "2.12"),
        (("cp311-cp311-manylinux_2_28_x86_64", "cp311-cp311-linux_x86_64"), None),
        (("cp311-cp311-musllinux_1_2_x86_64",), None),
        ((), None),
    ],
)
def test_the_glibc_that_wheels_need(tags: tuple[str, ...], libc: str | None) -> None:
    assert _tagged(*tags).wheel_libc == libc


def test_another_platform_is_another_machine() -> None:
    found = choose(UBU, platform="linux/arm64")[0]
    assert "system.machine is aarch64, locked x86_64" in found.mismatches


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (
            {"kernel": "Darwin", "machine": "arm64"},
            "the lockfile is from macOS (arm64), and images hold Linux",
        ),
        (
            {"kernel": "Linux", "machine": "ppc64le"},
            "the lockfile is from a ppc64le machine, and no base image with TensorFlow for it is known",
        ),
    ],
)
def test_a_machine_that_no_image_can_be_is_refused(system: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        collect_needs(facts(tensorflow={"version": "2.19.1"}, system=system))
    assert (caught.value.message, caught.value.exit_code) == (message, 2)


def test_a_cudnn_older_than_tensorflow_was_compiled_against_is_an_obstacle() -> None:
    asked, _ = LOCKS["2.18.1, system CUDA 12.5, cuDNN 9.3, Ubuntu 22.04"]
    found = {str(each.reference): each for each in choose(asked)}
    old = found["docker.io/nvidia/cuda:12.5.1-cudnn-runtime-ubuntu22.04"]
    assert old.unmet_requirements == (
        "TensorFlow 2.18.1 was compiled against cuDNN 9.3 and needs that or a later 9.x; the image has 9.2.1.18.",
    )
    assert not old.able
    able = [each.holds["cudnn"].version or "" for each in found.values() if each.route == "cuda" and each.able]
    assert min(able, key=parse_release) == "9.3.0.75"


def test_the_whole_major_version_of_a_cuda_is_offered_and_no_other() -> None:
    def cudas(tensorflow: str, cuda: str) -> set[str]:
        asked = locked(tensorflow, "3.8.10", "GCC 9.4.0", "ubuntu 20.04", cuda=cuda, capability="7.0")
        found = [each for each in choose(asked) if each.route == "cuda"]
        return {".".join(str(each.holds["cuda"].version).split(".")[:2]) for each in found}

    assert cudas("2.19.1", "12.5.82") >= {"12.5", "12.6", "12.8", "12.9"}
    assert cudas("2.19.1", "12.5.82") <= {f"12.{number}" for number in range(5, 10)}, "none older than it was built for"
    assert cudas("2.4.1", "11.0.221") == {"11.0"}, "11.1 has another libcusolver"
    assert cudas("1.15.5", "10.0.130") == {"10.0"}


def test_code_that_a_gpu_cannot_run_is_a_doubt() -> None:
    asked, _ = LOCKS["2.19.1, system CUDA 12.8, RTX 50"]
    ask = replace(collect_needs(asked), targets=("sm_80", "sm_90"))
    works = "use NVIDIA's image 25.01 or 25.02 (`envlock images`), or a wheel built for sm_120"
    for targets in (("sm_80", "sm_90"), ("sm_80", "compute_90")):
        best = candidates(replace(ask, targets=targets, cuda_driver="12.9"), TABLES)[0]
        assert best.doubts == (f"TensorFlow holds no machine code for compute capability 12.0: {works}.",)
    older = candidates(replace(ask, capabilities=("5.2",)), TABLES)[0]
    assert "TensorFlow holds no code for compute capability 5.2, only sm_80, sm_90." in older.doubts
    with_ptx = replace(ask, targets=("sm_80", "compute_80"), capabilities=("9.0",), cuda_driver="12.9")
    assert candidates(with_ptx, TABLES)[0].doubts == ()


REFUSED = """
import sys
from envlock.image.build import build
from envlock.image.supply import ImageRequest
try:
    build(sys.argv[1], ImageRequest("docker.io/library/python:3.11.7-slim-bookworm"))
except Exception as error:
    print(type(error).__name__)
"""


@pytest.mark.processes
def test_a_refusal_asks_neither_an_engine_nor_a_registry(tmp_path: Path) -> None:
    held = put(without(lock(base_image=..., image=...), "mine"), ("facts", "system", "libc_version"), "2.35")
    (tmp_path / "envlock.lock").write_bytes(encode(held))
    argv = [sys.executable, "-c", REFUSED, str(tmp_path / "envlock.lock")]
    nobody = {"PATH": "", "DOCKER_HOST": "tcp://127.0.0.1:1", "HTTPS_PROXY": "http://127.0.0.1:1"}
    done = subprocess.run(argv, cwd=tmp_path, env=nobody, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("CannotMatchError\n", "")
