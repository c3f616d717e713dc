"""Which image is chosen: by rules for every version, word for word in the golden file, and where something is odd."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.data.images import NgcRelease, WheelBuild
from envlock.images.candidate import SUBJECTS, Wanted, reason, wanted
from envlock.images.choose import candidates, choose
from envlock.images.reference import parse
from envlock.images.sources import SOURCES, ngc, slim
from envlock.images.versions import minor, numbers
from tests.images.asking import BUILDS, GOLDEN, LABELLED, PYTHONS, TABLES, choices, cpu, facts, gpu, nvidias

H100 = {"driver_version": "535.104.05", "devices": {"0": {"compute_capability": "9.0"}}}


def test_every_choice_and_its_reason_is_the_one_that_was_reviewed() -> None:
    """`python -m tests.images.asking` writes the file anew; read the difference before committing it."""
    assert choices() == GOLDEN.read_text(encoding="utf-8")


def test_every_tensorflow_from_1_15_to_2_21_is_among_them() -> None:
    assert [minor(build.tensorflow) for build in BUILDS] == ["1.15", *(f"2.{number}" for number in range(22))]
    assert [minor(python) for python in PYTHONS] == [f"3.{number}" for number in range(6, 14)]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.tensorflow)
def test_a_lock_without_cuda_gets_its_very_python(build: WheelBuild, python: str) -> None:
    found = choose(cpu(build.tensorflow, python))
    assert {candidate.route for candidate in found} == {"wheels"}
    assert found[0].reference.name == "docker.io/library/python"
    assert (found[0].reference.tag or "").startswith(f"{python}-slim-")
    assert (found[0].exact, found[0].usable) == (True, True)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.tensorflow)
def test_a_lock_with_cuda_gets_what_its_cuda_came_from(build: WheelBuild, python: str) -> None:
    best = choose(gpu(build, python))[0]
    ancient = build.cuda.startswith("10.") and numbers(python) >= (3, 8)  # no image has such a Python for Ubuntu 18.04
    assert best.route == ("wheels" if build.and_cuda else "ngc" if ancient else "cuda")
    assert best.exact is not ancient
    if best.route == "cuda":
        assert minor((best.reference.tag or "").partition("-")[0]) == build.cuda
        assert (best.reference.tag or "").split("-")[1].removeprefix("cudnn") == build.cudnn.partition(".")[0]
        assert best.python_from is not None
        assert (best.python_from.tag or "").startswith(minor(python))
    assert ("are known for Python" in reason(best, wanted(gpu(build, python)))) is (
        best.route != "ngc" and minor(python) not in build.python
    )


@pytest.mark.parametrize(
    ("release", "tag", "tensorflow"), LABELLED, ids=lambda value: value if type(value) is str else ""
)
def test_a_build_of_nvidias_gets_the_very_release(release: NgcRelease, tag: str, tensorflow: str) -> None:
    found = choose(nvidias(release, tensorflow))
    exact = [str(candidate.reference) for candidate in found if candidate.exact]
    own = f"nvcr.io/nvidia/tensorflow:{tag}"
    assert found[0].exact
    if release.label == "nv":  # several months have that label: what the lock has besides chooses among them
        assert own in exact
        assert found[0].holds["cuda"].version == ngc.contents(release, TABLES)["cuda"].version
    else:
        assert exact == [own]


@pytest.mark.parametrize(
    ("sections", "image", "sentence"),
    [
        (
            {"tensorflow": {"version": "2.22.0", "cuda_build": False}, "python": {"version": "3.12.3"}},
            "docker.io/library/python:3.12.3-slim-bookworm",
            "TensorFlow 2.22.0 is newer than the builds known here, up to 2.21.0.",
        ),
        (
            {"tensorflow": {"version": "1.4.1", "cuda_build": False}, "python": {"version": "3.6.15"}},
            "docker.io/library/python:3.6.15-slim-bullseye",
            "TensorFlow 1.4.1 is none of the builds known here, up to 2.21.0.",
        ),
        (
            {"tensorflow": {"version": "2.17.0+nv25.9", "nvidia_build": "nv25.9", "cuda_build": True}},
            "nvcr.io/nvidia/tensorflow:25.02-tf2-py3",
            "No release is known for the lock's build nv25.9; the last one is 25.02.",
        ),
        (
            {"tensorflow": {"version": "2.19.0+nv25.4", "nvidia_build": "nv25.4", "cuda_build": True}},
            "nvcr.io/nvidia/tensorflow:25.02-tf2-py3",
            "Not as in the lock: TensorFlow 2.17.0 (the lock has 2.19.0).",
        ),
        (
            {"tensorflow": {"version": "2.14.0+nv23.10", "nvidia_build": "nv23.10", "cuda_build": True}},
            "nvcr.io/nvidia/tensorflow:23.10-tf2-py3",
            "NVIDIA's release 23.10 is the one of the lock's build nv23.10, though no source tells its TensorFlow.",
        ),
        (
            {"python": {"version": "3.14.1"}},
            "docker.io/library/python:3.13-slim-bookworm",
            "There is no slim image of Python 3.14; 3.13 is the nearest.",
        ),
        (
            {"python": {"version": "3.11.99"}},
            "docker.io/library/python:3.11-slim-bookworm",
            "No image of 3.11.99 on bookworm is known; the tag stands for the newest 3.11 on it.",
        ),
        ({}, "docker.io/library/python:3.13-slim-bookworm", "The lock has no TensorFlow: a plain Python."),
        (
            {"tensorflow": None},
            "docker.io/library/python:3.13-slim-bookworm",
            "The lock has no TensorFlow: a plain Python.",
        ),
        (
            {"tensorflow": {"version": "2.6.0+nv", "nvidia_build": "nv"}, "cuda": {"cudart": {"version": "11.5"}}},
            "nvcr.io/nvidia/tensorflow:21.11-tf2-py3",
            "NVIDIA's release 21.11 is one of those with a build nv of TensorFlow 2.6.0, as the lock has.",
        ),
        (
            {"tensorflow": {"version": "2.8.0+nv21.12", "nvidia_build": "nv21.12", "cuda_build": True}},
            "nvcr.io/nvidia/tensorflow:22.03-tf2-py3",
            "NVIDIA's release 22.03 is the one of the lock's build nv21.12 of TensorFlow 2.8.0.",
        ),
        (
            {
                "tensorflow": {"version": "2.16.1+nv24.6", "nvidia_build": "nv24.6", "cuda_build": True},
                "cuda": {"cudart": {"version": "12.5"}},
            },
            "nvcr.io/nvidia/tensorflow:24.06-tf2-py3",
            "Not known: CUDA (the lock has 12.5).",
        ),
        (
            {
                "tensorflow": {"version": "2.15.0+nv24.5", "nvidia_build": "nv24.5", "cuda_build": True},
                "cuda": {"cudart": {"version": "12.4"}, "cudnn": {"version": "9.1.0"}},
            },
            "nvcr.io/nvidia/tensorflow:24.05-tf2-py3",
            "Expected as in the lock, though not told of this very image: CUDA 12.4.1, cuDNN 9.1.0.70.",
        ),
    ],
)
def test_what_is_unknown_or_ambiguous_is_answered_with_the_nearest_and_a_sentence(
    sections: dict[str, Any], image: str, sentence: str
) -> None:
    asked = facts(**sections)
    best = choose(asked)[0]
    assert str(best.reference) == image
    assert sentence in reason(best, wanted(asked))


@pytest.mark.parametrize(
    ("libc", "suite"),
    [("2.36", "bookworm"), ("2.31", "bullseye"), ("2.41", "trixie"), ("2.35", "bookworm"), (None, "bookworm")],
)
def test_the_c_library_chooses_among_images_that_are_alike_otherwise(libc: str | None, suite: str) -> None:
    asked = facts(
        tensorflow={"version": "2.20.0", "cuda_build": False},
        python={"version": "3.11.13"},
        system={"libc": "glibc", "libc_version": libc},
    )
    assert choose(asked)[0].reference.tag == f"3.11.13-slim-{suite}"


def test_cuda_from_the_system_needs_an_image_that_brings_it() -> None:
    asked = facts(
        tensorflow={"version": "2.20.0", "cuda_build": True}, cuda={"cudart": {"version": "12.5"}}, packages={}
    )
    found = choose(asked)
    assert found[0].route == "cuda"
    obstacles = {candidate.obstacles for candidate in found if candidate.route == "wheels"}
    assert obstacles == {("It brings no CUDA, and the lock has none of NVIDIA's wheels.",)}


def test_on_arm64_only_releases_that_are_there_for_it() -> None:
    asked = facts(
        tensorflow={"version": "2.5.0+nv", "nvidia_build": "nv", "cuda_build": True}, system={"machine": "aarch64"}
    )
    found = {candidate.reference.tag: candidate for candidate in choose(asked) if candidate.route == "ngc"}
    assert found["21.07-tf2-py3"].obstacles == ("No image of it for arm64 is known (21.10 is the first).",)
    late = choose(asked.model_copy(update={"tensorflow": nvidias(LABELLED[-1][0], "2.17.0").tensorflow}))
    assert late[0].obstacles == ()
    assert choose(asked, platform="linux/amd64")[0].obstacles == ()


def test_the_driver_and_the_gpu_of_the_lock_are_held_against_the_cuda() -> None:
    tensorflow = {"version": "2.3.1", "cuda_build": True}
    asked = facts(tensorflow=tensorflow, gpu=H100, cuda={"cudart": {"version": "11.1"}}, packages={})
    best = choose(asked)[0]
    assert best.doubts == ("CUDA 11.1.1 makes no code for compute capability 9.0 (11.8 is the first).",)
    assert best.driver == "Driver 535.104.05 is new enough for CUDA 11.1.1 (455.32 came with it)."


def test_the_release_of_the_locks_label_stays_first_whatever_its_gpu() -> None:
    """The lock was taken in it, so it does run there."""
    asked = facts(
        tensorflow={"version": "2.17.0+nv25.2", "nvidia_build": "nv25.2", "cuda_build": True},
        gpu={"driver_version": "570.86.10", "devices": {"0": {"compute_capability": "6.0"}}},
    )
    best, *others = choose(asked)
    assert best.reference.tag == "25.02-tf2-py3"
    assert best.doubts == ("It is for GPUs of compute capability 7.5 or higher; the lock has one of 6.0.",)
    assert [other.reference.tag for other in others if other.usable] == ["24.12-tf2-py3"]


VERSIONS = (
    st.none() | st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}([a-z+][a-z0-9.]{1,6})?", fullmatch=True) | st.just("x")
)


@given(
    tensorflow=VERSIONS,
    label=st.none() | st.from_regex(r"nv([0-9]{2}\.[0-9]{1,2})?", fullmatch=True),
    gpu=st.none() | st.booleans(),
    versions=st.lists(VERSIONS, min_size=7, max_size=7),
    wheels=st.booleans(),
    platform=st.sampled_from([None, "linux/amd64", "linux/arm64"]),
)
def test_there_is_always_an_answer_in_an_order_with_a_reason(
    tensorflow: str | None,
    label: str | None,
    gpu: bool | None,
    versions: list[str | None],
    wheels: bool,
    platform: str | None,
) -> None:
    python, cudart, cudnn, nccl, libc, driver, capability = versions
    asked = facts(
        tensorflow={"version": tensorflow, "nvidia_build": label, "cuda_build": gpu},
        python={"version": python},
        cuda={"cudart": {"version": cudart}, "cudnn": {"version": cudnn}, "nccl": {"version": nccl}},
        packages={"nvidia-cudnn-cu12": {}} if wheels else {},
        system={"libc": "glibc", "libc_version": libc, "machine": "x86_64"},
        gpu={"driver_version": driver, "devices": {"0": {"compute_capability": capability}}},
    )
    found = choose(asked, platform=platform)
    assert found
    assert len({candidate.reference for candidate in found}) == len(found)
    for candidate in found:
        assert parse(str(candidate.reference)) == candidate.reference
        assert reason(candidate, wanted(asked, platform)).endswith(".")
        assert len(reason(candidate, wanted(asked, platform))) <= 4000
    assert [bool(candidate.obstacles) for candidate in found] == sorted(bool(c.obstacles) for c in found)


def test_the_sources_do_not_depend_on_their_order() -> None:
    asked = wanted(gpu(BUILDS[-1], "3.12.11"))
    once = candidates(asked, TABLES)
    turned = [candidate for source in reversed(SOURCES.values()) for candidate in source(asked, TABLES)]
    assert {candidate.reference for candidate in turned} == {candidate.reference for candidate in once}


def test_what_is_compared_is_what_is_asked_for() -> None:
    assert set(SUBJECTS) <= set(Wanted.__dataclass_fields__)


def test_siblings_that_contradict_each_other_tell_nothing() -> None:
    (release,) = [row for row in TABLES.ngc.release if row.release == "24.06"]
    held = ngc.contents(release, TABLES)
    assert (held["cuda"].version, held["python"].version, held["libc"]) == (None, "3.10", ("2.35", True))
    (release,) = [row for row in TABLES.ngc.release if row.release == "24.04"]
    assert ngc.contents(release, TABLES)["cuda"] == ("12.4.1", True)


def test_an_ubuntu_between_two_different_ones_is_not_known() -> None:
    (release,) = [row for row in TABLES.ngc.release if row.release == "23.04"]
    assert ngc.contents(release, TABLES)["python"].version is None


def test_a_tag_of_python_is_that_of_the_very_patch_where_there_was_one() -> None:
    rows = {(row.python, row.suite): row for row in TABLES.python.slim}
    assert slim.tag_of(rows["3.11", "bookworm"], "3.11.15") == ("3.11.15-slim-bookworm", "3.11.15")
    assert slim.tag_of(rows["3.11", "bookworm"], "3.11.16") == ("3.11-slim-bookworm", "3.11")
    assert slim.tag_of(rows["3.11", "bookworm"], "3.11.3") == ("3.11-slim-bookworm", "3.11")
    assert slim.tag_of(rows["3.11", "bookworm"], None) == ("3.11-slim-bookworm", "3.11")
