"""What registries say of the best candidates, and what the lock keeps of one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envlock.image.bases.candidate import Value, explain_candidate
from envlock.image.bases.choose import ChosenImage, MovedTagError, Pinned, candidates, look_up, make_base_image
from envlock.image.bases.manifest import ImageConfig, RegistryError, read_versions
from envlock.image.bases.needs import collect_needs
from envlock.image.bases.reference import Reference
from tests.image.bases.asking import BUILDS, LABELLED, TABLES, gpu, nvidias

LAST = next(image for image in LABELLED if image[1] == "25.02-tf2-py3")
ASKED = collect_needs(nvidias(LAST[0], "2.17.0"))
FOUND = candidates(ASKED, TABLES)
DIGEST, MANIFEST = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def config(environ: dict[str, str], labels: dict[str, str] | None = None) -> ImageConfig:
    return ImageConfig("linux/amd64", environ, labels or {}, (), (), "", "", ())


def pinned(reference: Reference, environ: dict[str, str] | None = None) -> Pinned:
    place = reference.at(DIGEST)
    return Pinned(place, place, "linux/amd64", MANIFEST, config(environ or {}))


def test_what_an_image_tells_of_itself() -> None:
    rows: list[tuple[dict[str, str], dict[str, str], dict[str, str]]] = [
        ({"CUDA_VERSION": "12.8.0.038"}, {}, {"cuda": "12.8.0"}),
        ({"CUDNN_VERSION": "8.3.2.44+cuda11.5"}, {}, {"cudnn": "8.3.2.44"}),
        ({"NV_CUDNN_VERSION": "8.9.6.50", "NCCL_VERSION": "2.19.3-1"}, {}, {"cudnn": "8.9.6.50", "nccl": "2.19.3"}),
        ({"TENSORFLOW_VERSION": "1.9.0+"}, {"com.nvidia.tensorflow.version": "1.8.0"}, {"tensorflow": "1.9.0"}),
        ({}, {"com.nvidia.cudnn.version": "9.5.1.17"}, {"cudnn": "9.5.1.17"}),
        ({"PYTHON_VERSION": "3.11.7"}, {}, {"python": "3.11.7"}),
        ({"CUDA_VERSION": "", "NCCL_VERSION": "x", "CUDNN_VERSION": "9", "PYTHON_VERSION": "3.\u0661"}, {}, {}),
    ]
    assert [(environ, labels, read_versions(config(environ, labels))) for environ, labels, _ in rows] == rows


def test_what_the_image_says_wins_over_the_table_and_changes_the_order() -> None:
    def find(reference: Reference) -> Pinned:
        wrong = reference.tag == "25.02-tf2-py3"
        return pinned(reference, {"CUDA_VERSION": "11.0.3"} if wrong else {"CUDNN_VERSION": "9.7.1.26"})

    ordered, found = look_up(FOUND, ASKED, TABLES, find)
    best = ordered[0]
    assert best.reference.tag == "25.02-tf2-py3", "the lock's own build stays first"
    assert best.holds["cuda"] == Value("11.0.3")
    assert explain_candidate(best, ASKED).endswith("The image says: CUDA 11.0.3.")
    assert "Not as locked: CUDA 11.0.3 (locked 12.8.0)." in explain_candidate(best, ASKED)
    assert ordered[1].holds["cudnn"] == Value("9.7.1.26")
    assert len(found) == 3


def test_what_is_installed_from_wheels_is_not_the_images_to_tell() -> None:
    asked = collect_needs(gpu(BUILDS[-1], "3.12.11"))
    ordered, _ = look_up(
        candidates(asked, TABLES),
        asked,
        TABLES,
        lambda one: pinned(one, {"CUDA_VERSION": "1.0", "PYTHON_VERSION": "3.12.11"}),
    )
    assert ordered[0].route == "wheels"
    assert ordered[0].holds["cuda"] == Value(BUILDS[-1].cuda)
    assert explain_candidate(ordered[0], asked).endswith("The image says: Python 3.12.11.")


def test_one_that_is_gone_falls_behind_the_others_and_says_so() -> None:
    def find(reference: Reference) -> Pinned:
        if reference.tag == "25.02-tf2-py3":
            raise RegistryError("nvcr.io has no nvidia/tensorflow:25.02-tf2-py3", gone=True)
        return pinned(reference)

    ordered, _ = look_up(FOUND, ASKED, TABLES, find)
    assert ordered[0].reference.tag == "25.01-tf2-py3"
    gone = next(one for one in ordered if one.reference.tag == "25.02-tf2-py3")
    assert gone.obstacles == ("It is not available: nvcr.io has no nvidia/tensorflow:25.02-tf2-py3.",)


def test_a_runner_up_that_cannot_be_asked_for_is_noted() -> None:
    def find(reference: Reference) -> Pinned:
        if reference.tag != "25.02-tf2-py3":
            raise RegistryError("it does not answer")
        return pinned(reference)

    ordered, found = look_up(FOUND, ASKED, TABLES, find)
    assert list(found) == [ordered[0].reference]
    assert explain_candidate(ordered[1], ASKED).endswith("It could not be looked up: it does not answer.")


def test_a_runner_up_whose_tag_has_moved_is_noted() -> None:
    def find(reference: Reference) -> Pinned:
        if reference.tag != "25.02-tf2-py3":
            raise MovedTagError("it is another image than the known one")
        return pinned(reference)

    ordered, _ = look_up(FOUND, ASKED, TABLES, find)
    assert ordered[0].reference.tag == "25.02-tf2-py3"
    moved = [one.obstacles for one in ordered if any("moved" in each for each in one.obstacles)]
    assert moved == [("Its tag has moved: it is another image than the known one.",)] * 2


@pytest.mark.parametrize("gone", [True, False])
def test_where_the_best_cannot_be_had_at_all_that_is_the_answer(gone: bool) -> None:
    asked = []

    def find(reference: Reference) -> Pinned:
        asked.append(reference)
        raise RegistryError(f"no {reference.tag}", gone=gone)

    with pytest.raises(RegistryError) as caught:
        look_up(FOUND, ASKED, TABLES, find)
    assert caught.value.message == "no 25.02-tf2-py3"
    assert len(asked) == (3 if gone else 1)


def test_what_the_lock_keeps() -> None:
    chosen = ChosenImage(FOUND[0], pinned(FOUND[0].reference), None)
    kept = make_base_image(chosen, ASKED)
    assert kept.model_dump() == {
        "name": "nvcr.io/nvidia/tensorflow",
        "tag": "25.02-tf2-py3",
        "digest": DIGEST,
        "manifest": MANIFEST,
        "platform": "linux/amd64",
        "route": "ngc",
        "reason": explain_candidate(FOUND[0], ASKED),
        "python": None,
        "python_archive": None,
        "apt": None,
    }
    arm = replace(pinned(FOUND[0].reference), platform="linux/arm64")
    assert make_base_image(replace(chosen, image=arm), ASKED).platform == "linux/arm64"


def test_a_base_without_python_keeps_where_its_python_is_from() -> None:
    facts = gpu(next(row for row in BUILDS if row.tensorflow == "2.13.0"), "3.11.13")
    asked = replace(collect_needs(facts), libc="2.35", cudnn="8.9.6")
    best = candidates(asked, TABLES)[0]
    assert best.python_from is not None
    chosen = ChosenImage(best, pinned(best.reference), pinned(best.python_from))
    kept = make_base_image(chosen, asked)
    assert kept.python is not None
    assert (kept.name, kept.python.tag) == ("docker.io/nvidia/cuda", "3.11.13-slim-bullseye")
    with pytest.raises(ValueError, match="a base of the route ngc has a Python of its own"):
        type(kept).model_validate({**kept.model_dump(), "route": "ngc"})
