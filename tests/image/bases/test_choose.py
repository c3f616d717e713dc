"""Which image is chosen: by rules for every version, word for word in the golden file, and where something is odd."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.data.image_tables import WheelBuild
from envlock.image.bases.candidate import SUBJECTS, explain_candidate
from envlock.image.bases.choose import candidates
from envlock.image.bases.needs import BaseNeeds, collect_needs
from envlock.image.bases.reference import parse
from envlock.image.bases.sources import SOURCES, cuda, ngc, slim
from envlock.image.bases.sources.ngc import NgcImage
from envlock.runtime.release import describe_beyond, minor, parse_release
from tests.exhaustive import exhaustive
from tests.golden_files import assert_as_golden
from tests.image.bases.asking import (
    BUILDS,
    GOLDEN,
    LABELLED,
    PYTHONS,
    TABLES,
    choices,
    choose,
    cpu,
    facts,
    gpu,
    nvidias,
    reviewed,
)

REVIEWED = reviewed()
NEWEST = TABLES.builds.horizon.through
H100 = {"driver_version": "535.104.05", "devices": {"0": {"compute_capability": "9.0"}}}


@exhaustive
@pytest.mark.slow
def test_every_choice_and_its_reason_is_the_one_that_was_reviewed() -> None:
    """`python -m tests.image.bases.asking` writes the file anew; read the difference before committing it."""
    assert_as_golden(choices(), GOLDEN)


def test_without_a_known_cuda_there_is_no_image_of_one() -> None:
    future = {"version": "99.0", "cuda_build": True, "nvidia_build": None}
    asked = collect_needs(facts(tensorflow=future, python={"version": "3.11.7"}, packages={}))
    assert (asked.gpu, list(cuda.list_candidates(asked, TABLES))) == (True, [])


SUPPORT = re.compile(r" Support of \w+ [0-9.]+ ended on [0-9-]+: it gets no security updates\.")
"""What stands behind the reasons where the nearest system is an old one."""


def test_a_system_whose_support_has_ended_says_so() -> None:
    asked = collect_needs(facts(tensorflow={"version": "2.11.1", "cuda_build": False}, python={"version": "3.8.20"}))
    notes = {each.reference.tag: each.notes for each in slim.list_candidates(asked, TABLES)}
    assert notes["3.8-slim-buster"][0] == "Support of Debian 10 ended on 2024-06-30: it gets no security updates."
    assert not any(SUPPORT.fullmatch(f" {note}") for note in notes["3.8.20-slim-bookworm"])
    for system in TABLES.python.system:
        assert (system.ended is None) == (
            system.name in (*("ubuntu22.04", "ubuntu24.04", "ubuntu26.04", "bookworm", "trixie"),)
        )


def test_a_python_after_the_last_image_gets_the_nearest() -> None:
    asked = collect_needs(facts(tensorflow={"version": "2.21.0", "cuda_build": False}, python={"version": "3.99.0"}))
    found = list(slim.list_candidates(asked, TABLES))
    newest = max((row.python for row in TABLES.python.slim), key=parse_release)
    assert found
    assert {each.notes[0] for each in found} == {f"No slim image has Python 3.99; {newest} is the nearest."}


def test_an_image_of_the_cuda_that_a_build_was_tested_with_says_so() -> None:
    build = next(each for each in BUILDS if each.tensorflow.startswith("2.12."))
    known = {"version": build.tensorflow, "cuda_build": True, "nvidia_build": None}
    asked = collect_needs(facts(tensorflow=known, python={"version": "3.11.7"}, packages={}))
    said = f"The locked CUDA is unknown; the locked TensorFlow was built for {build.cuda}"
    found = list(cuda.list_candidates(asked, TABLES))
    assert [any(note.startswith(said) for note in each.notes) for each in found] == [True] * len(found) != []


def test_every_tensorflow_from_1_15_on_is_among_them() -> None:
    assert [minor(build.tensorflow) for build in BUILDS] == [
        "1.15",
        *(f"2.{number}" for number in range(len(BUILDS) - 1)),
    ]
    assert [minor(python) for python in PYTHONS] == [f"3.{number}" for number in range(6, 15)]


def test_every_build_and_every_release_was_reviewed() -> None:
    """What follows looks at those that were."""
    builds = {f"{build.tensorflow} Python {python}" for build, python in product(BUILDS, PYTHONS)}
    lacking = [who for who in builds for kind in ("cpu", "gpu") if f"{who} {kind}" not in REVIEWED]
    lacking += [who for who in map(_name_release, LABELLED) if who not in REVIEWED]
    assert lacking == [], "run `python -m tests.image.bases.asking`, and read what changes"


def _name_release(image: NgcImage) -> str:
    return f"{image.tensorflow}+{min(image.release.labels, key=len)} of {image.release.release}"


def test_a_lock_without_cuda_gets_its_very_python() -> None:
    wrong = []
    for build, python in product(BUILDS, PYTHONS):
        if f"{build.tensorflow} Python {python} cpu" not in REVIEWED:
            continue
        image, why = REVIEWED[f"{build.tensorflow} Python {python} cpu"]
        lead = f"TensorFlow {build.tensorflow} is installed from its locked wheel, by hash."
        said = f"{lead} As locked: Python {python}.{_no_wheel(build, python)}"
        why = SUPPORT.sub("", why)
        if not image.startswith(f"wheels docker.io/library/python:{python}-slim-") or why != said:
            wrong.append((image, why, said))
    assert wrong == []


@pytest.mark.parametrize("build", [BUILDS[0], BUILDS[-1]], ids=lambda build: build.tensorflow)
def test_a_lock_without_cuda_is_offered_nothing_but_pythons(build: WheelBuild) -> None:
    found = choose(cpu(build.tensorflow, "3.11.13"))
    assert {candidate.route for candidate in found} == {"wheels"}
    assert (found[0].exact, found[0].usable) == (True, True)


def test_a_lock_with_cuda_gets_what_its_cuda_came_from() -> None:
    wrong = []
    for build, python in product(BUILDS, PYTHONS):
        if f"{build.tensorflow} Python {python} gpu" not in REVIEWED:
            continue
        image, why = REVIEWED[f"{build.tensorflow} Python {python} gpu"]
        if build.and_cuda:
            expected, said = rf"wheels docker\.io/library/python:{python}-slim-[a-z]+", f"Python {python}, CUDA"
        else:
            tag = rf"{build.cuda}(\.\d+)?-cudnn{build.cudnn.partition('.')[0]}-runtime-ubuntu[\d.]+"
            source = rf"; (the one of python:{minor(python)}|cpython-{python}\+\d+)"
            expected, said = rf"cuda docker\.io/nvidia/cuda:{tag}", source
        note = _no_wheel(build, python)
        alike = re.fullmatch(expected, image) and re.search(said, why) and note in why
        if not alike or ("are known for Python" in why) is not bool(note):
            wrong.append((image, why, expected, said, note))
    assert wrong == []


def _no_wheel(build: WheelBuild, python: str) -> str:
    known = ", ".join(build.python)
    odd = f" Wheels of TensorFlow {minor(build.tensorflow)} are known for Python {known}, not for {minor(python)}."
    return "" if minor(python) in build.python else odd


def test_a_build_of_nvidias_gets_the_very_release() -> None:
    """Several months have the label nv: what the lock has besides chooses among them."""
    wrong = []
    for each in LABELLED:
        release, tag, tensorflow = each
        if _name_release(each) not in REVIEWED:
            continue
        label = min(release.labels, key=len)
        image, why = REVIEWED[_name_release(each)]
        expected = r"\d\d\.\d\d-tf\d-py3" if label == "nv" else re.escape(tag)
        lead = f"is one of several with the locked build {label}" if label == "nv" else f"has the locked build {label}"
        version = ngc.describe_contents(release, TABLES)["cuda"].version
        cuda = f"CUDA {version}" if version else ""
        alike = re.fullmatch(rf"ngc nvcr\.io/nvidia/tensorflow:{expected}", image)
        if not alike or f" {lead} of TensorFlow {tensorflow}" not in why or cuda not in why:
            wrong.append((image, why, expected, lead, cuda))
    assert wrong == []


@pytest.mark.parametrize("tag", ["20.10-tf1-py3", "20.10-tf2-py3", "21.02-tf2-py3", "21.09-tf1-py3", "22.03-tf2-py3"])
def test_exact_is_every_release_with_the_locks_label_and_no_other(tag: str) -> None:
    release, _, tensorflow = next(image for image in LABELLED if image[1] == tag)
    found = choose(nvidias(release, tensorflow or ""))
    exact = [candidate.reference.tag for candidate in found if candidate.exact]
    assert found[0].exact
    assert (tag in exact) if release.label == "nv" else exact == [tag]


@pytest.mark.parametrize(
    ("sections", "image", "sentence"),
    [
        (
            {"tensorflow": {"version": "2.99.0", "cuda_build": False}, "python": {"version": "3.12.3"}},
            "docker.io/library/python:3.12.3-slim-bookworm",
            f"{describe_beyond('TensorFlow', '2.99.0', NEWEST)}.",
        ),
        (
            {"tensorflow": {"version": "1.4.1", "cuda_build": False}, "python": {"version": "3.6.15"}},
            "docker.io/library/python:3.6.15-slim-bullseye",
            f"TensorFlow 1.4.1 is not among the builds known here, up to {NEWEST}.",
        ),
        (
            {"tensorflow": {"version": "2.17.0+nv25.9", "nvidia_build": "nv25.9", "cuda_build": True}},
            f"nvcr.io/nvidia/tensorflow:{LABELLED[-1][1]}",
            f"No known release has the locked build nv25.9; the newest is {LABELLED[-1][0].release}.",
        ),
        (
            {"tensorflow": {"version": "2.99.0+nv99.4", "nvidia_build": "nv99.4", "cuda_build": True}},
            f"nvcr.io/nvidia/tensorflow:{LABELLED[-1][1]}",
            f"Not as locked: TensorFlow {LABELLED[-1][2]} (locked 2.99.0).",
        ),
        (
            {"tensorflow": {"version": "2.14.0+nv23.10", "nvidia_build": "nv23.10", "cuda_build": True}},
            "nvcr.io/nvidia/tensorflow:23.10-tf2-py3",
            "NVIDIA's release 23.10 has the locked build nv23.10, although no source names its TensorFlow.",
        ),
        (
            {"python": {"version": "3.14.9"}},
            "docker.io/library/debian:bookworm-slim",
            "It has no Python; cpython-3.14.9+20261021-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz is",
        ),
        (
            {"python": {"version": "3.11.99"}},
            "docker.io/library/python:3.11-slim-bookworm",
            "No image of 3.11.99 on bookworm is known; the tag names the newest 3.11 on it.",
        ),
        ({}, "docker.io/library/python:3.15-slim-bookworm", "A plain Python, as no TensorFlow is locked."),
        (
            {"tensorflow": None},
            "docker.io/library/python:3.15-slim-bookworm",
            "A plain Python, as no TensorFlow is locked.",
        ),
        (
            {"tensorflow": {"version": "2.6.0+nv", "nvidia_build": "nv"}, "cuda": {"cudart": {"version": "11.5"}}},
            "nvcr.io/nvidia/tensorflow:21.11-tf2-py3",
            "NVIDIA's release 21.11 is one of several with the locked build nv of TensorFlow 2.6.0.",
        ),
        (
            {"tensorflow": {"version": "2.8.0+nv21.12", "nvidia_build": "nv21.12", "cuda_build": True}},
            "nvcr.io/nvidia/tensorflow:22.03-tf2-py3",
            "NVIDIA's release 22.03 has the locked build nv21.12 of TensorFlow 2.8.0.",
        ),
        (
            {
                "tensorflow": {"version": "2.16.1+nv24.6", "nvidia_build": "nv24.6", "cuda_build": True},
                "cuda": {"cudart": {"version": "12.5"}},
            },
            "nvcr.io/nvidia/tensorflow:24.06-tf2-py3",
            "Unknown: CUDA (locked 12.5).",
        ),
        (
            {
                "tensorflow": {"version": "2.15.0+nv24.5", "nvidia_build": "nv24.5", "cuda_build": True},
                "cuda": {"cudart": {"version": "12.4"}, "cudnn": {"version": "9.1.0"}},
            },
            "nvcr.io/nvidia/tensorflow:24.05-tf2-py3",
            "Expected as locked, by other images of that month: CUDA 12.4.1, cuDNN 9.1.0.70.",
        ),
    ],
)
def test_what_is_unknown_or_ambiguous_is_answered_with_the_nearest_and_a_sentence(
    sections: dict[str, Any], image: str, sentence: str
) -> None:
    asked = facts(**sections)
    best = choose(asked)[0]
    assert str(best.reference) == image
    assert sentence in explain_candidate(best, collect_needs(asked))


@pytest.mark.parametrize(
    ("libc", "suite"),
    [("2.36", "bookworm"), ("2.31", "bullseye"), ("2.41", "trixie"), (None, "bookworm")],
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
    assert obstacles == {("It has no CUDA, and none of NVIDIA's wheels is locked.",)}


def test_on_arm64_only_releases_that_are_there_for_it() -> None:
    asked = facts(
        tensorflow={"version": "2.5.0+nv", "nvidia_build": "nv", "cuda_build": True}, system={"machine": "aarch64"}
    )
    found = {candidate.reference.tag: candidate for candidate in choose(asked) if candidate.route == "ngc"}
    assert found["21.07-tf2-py3"].obstacles == ("No image for arm64 is known before 21.10.",)
    late = choose(asked.model_copy(update={"tensorflow": nvidias(LABELLED[-1][0], "2.17.0").tensorflow}))
    assert late[0].obstacles == ()
    assert choose(asked, platform="linux/amd64")[0].obstacles == ()


def test_the_driver_and_the_gpu_of_the_lock_are_held_against_the_cuda() -> None:
    tensorflow = {"version": "2.3.1", "cuda_build": True}
    asked = facts(tensorflow=tensorflow, gpu=H100, cuda={"cudart": {"version": "11.1"}}, packages={})
    best = choose(asked)[0]
    assert best.doubts == ("CUDA 11.1.1 does not support compute capability 9.0 (11.8 and later do).",)
    assert best.driver == "Driver 535.104.05 is new enough for CUDA 11.1.1, which came with 455.32."


def test_the_release_of_the_locks_label_stays_first_whatever_its_gpu() -> None:
    """The lock was taken in it, so it does run there."""
    asked = facts(
        tensorflow={"version": "2.17.0+nv25.2", "nvidia_build": "nv25.2", "cuda_build": True},
        gpu={"driver_version": "570.86.10", "devices": {"0": {"compute_capability": "6.0"}}},
    )
    best, *others = choose(asked)
    assert best.reference.tag == "25.02-tf2-py3"
    assert best.doubts == ("It is for GPUs of compute capability 7.5 or higher; locked 6.0.",)
    assert [other.reference.tag for other in others if not other.doubts and other.able] == ["24.12-tf2-py3"]
    assert not any(other.usable for other in others), "another build of NVIDIA's is not the locked one"


VERSIONS = (
    st.none() | st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}([a-z+][a-z0-9.]{1,6})?", fullmatch=True) | st.just("x")
)


@pytest.mark.slow
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
        assert explain_candidate(candidate, collect_needs(asked, platform)).endswith(".")
        assert len(explain_candidate(candidate, collect_needs(asked, platform))) <= 4000
    assert [not candidate.able for candidate in found] == sorted(not candidate.able for candidate in found)


def test_the_sources_do_not_depend_on_their_order() -> None:
    asked = collect_needs(gpu(BUILDS[-1], "3.12.11"))
    once = candidates(asked, TABLES)
    turned = [candidate for source in reversed(SOURCES.values()) for candidate in source(asked, TABLES)]
    assert {candidate.reference for candidate in turned} == {candidate.reference for candidate in once}


def test_what_is_compared_is_what_is_asked_for() -> None:
    assert set(SUBJECTS) <= set(BaseNeeds.__dataclass_fields__)


def test_siblings_that_contradict_each_other_tell_nothing() -> None:
    (release,) = [row for row in TABLES.ngc.release if row.release == "24.06"]
    held = ngc.describe_contents(release, TABLES)
    assert (held["cuda"].version, held["python"].version, held["libc"]) == (None, "3.10", ("2.35", True))
    (release,) = [row for row in TABLES.ngc.release if row.release == "24.04"]
    assert ngc.describe_contents(release, TABLES)["cuda"] == ("12.4.1", True)


def test_an_ubuntu_between_two_different_ones_is_not_known() -> None:
    (release,) = [row for row in TABLES.ngc.release if row.release == "23.04"]
    assert ngc.describe_contents(release, TABLES)["python"].version is None


def test_a_tag_of_python_is_that_of_the_very_patch_where_there_was_one() -> None:
    rows = {(row.python, row.suite): row for row in TABLES.python.slim}
    assert slim.choose_tag(rows["3.11", "bookworm"], "3.11.16") == ("3.11.16-slim-bookworm", "3.11.16")
    assert slim.choose_tag(rows["3.11", "bookworm"], "3.11.99") == ("3.11-slim-bookworm", "3.11")
    assert slim.choose_tag(rows["3.11", "bookworm"], "3.11.3") == ("3.11-slim-bookworm", "3.11")
    assert slim.choose_tag(rows["3.11", "bookworm"], None) == ("3.11-slim-bookworm", "3.11")
