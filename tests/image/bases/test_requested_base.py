"""A base that is asked for: by route, by name, by digest, and what cannot be had."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from envlock.image.bases import choose as choosing
from envlock.image.bases.base_request import BaseRequest
from envlock.image.bases.candidate import Value
from envlock.image.bases.choose import (
    ChosenImage,
    Trust,
    _guess_route,
    candidates,
    choose_offline,
    choose_online,
    collect_trust,
    make_base_image,
)
from envlock.image.bases.cuda_requirements import check_gpu_code
from envlock.image.bases.drivers import judge_candidate
from envlock.image.bases.needs import collect_needs
from envlock.image.bases.preflight import CannotMatchError
from envlock.image.bases.reference import get_machine, parse
from envlock.image.bases.sources import cuda, ngc
from envlock.lock.models import BaseImage
from envlock.runtime.errors import UsageError
from tests.image.bases.asking import BUILDS, TABLES, cpu, facts, gpu
from tests.image.bases.test_pin import ASKED, DIGEST, FOUND, LAST, pinned

NGC = "nvcr.io/nvidia/tensorflow"
PLAIN = collect_needs(cpu(BUILDS[-1].tensorflow, "3.11.7"))


def test_a_request_is_read_once() -> None:
    found = BaseRequest.parse("auto", "linux/arm64", ["nvcr.io=harbor.example/nvcr"])
    assert (found.platform, len(found.mirrors)) == ("linux/arm64", 1)
    assert BaseRequest.parse("ngc", None, ()) == BaseRequest("ngc")


def test_a_route_that_has_nothing_and_a_name_without_tag_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^no base image of route ngc for this lockfile\n"):
        choose_offline(PLAIN, BaseRequest("ngc"), TABLES)
    with pytest.raises(UsageError, match=r"^example\.org/mine has neither a tag nor a digest\nhint: use "):
        choose_offline(PLAIN, BaseRequest("example.org/mine"), TABLES)


def test_a_lock_that_no_image_can_become_is_refused_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    unable = replace(FOUND[0], obstacles=("It has no Python.",))
    monkeypatch.setattr(choosing, "candidates", lambda *_: [unable])
    with pytest.raises(CannotMatchError) as caught:
        choose_offline(ASKED, BaseRequest(), TABLES)
    assert caught.value.message == (
        f"no known base image can do what the lockfile does; the nearest is {unable.reference}: It has no Python"
    )


def test_an_image_of_the_tables_is_named_with_all_that_is_known_of_it() -> None:
    known = FOUND[0]
    assert choose_offline(ASKED, BaseRequest(str(known.reference)), TABLES).holds == known.holds


@pytest.mark.parametrize(
    ("name", "route"),
    [
        ("harbor.example/nvidia/cuda:12.5.1-runtime", "cuda"),
        ("harbor.example/nvidia/tensorflow:1", "ngc"),
        ("example.org/mine:1", "wheels"),
    ],
)
def test_the_route_of_an_image_that_no_table_has(name: str, route: str) -> None:
    assert _guess_route(parse(name), PLAIN) == route
    assert choose_offline(PLAIN, BaseRequest("example.org/mine:1"), TABLES).lead == "It was chosen with --base."


def test_online_the_python_of_a_base_is_looked_up_too() -> None:
    best = candidates(PLAIN, TABLES)[0]
    chosen = choose_online(PLAIN, BaseRequest(best.route), TABLES, pinned)
    assert (chosen.candidate.reference, chosen.python) == (best.reference, None)
    older = gpu(next(row for row in BUILDS if row.tensorflow == "2.13.0"), "3.11.13")
    needs = replace(collect_needs(older), libc="2.35", cudnn="8.9.6")
    assert choose_online(needs, BaseRequest(), TABLES, pinned).python is not None


def test_a_downloaded_python_is_recorded() -> None:
    archive = SimpleNamespace(
        file="cpython-3.11.9+20240415-x86_64-unknown-linux-gnu-install_only.tar.gz", sha256="0a" * 32
    )
    best = replace(candidates(PLAIN, TABLES)[0], route="cuda", python_from=None, python_archive=cast("Any", archive))
    kept = make_base_image(ChosenImage(best, pinned(best.reference), None), PLAIN)
    assert kept.python_archive is not None
    assert kept.python_archive.file == archive.file


def test_known_digests_are_the_locks_then_the_published_ones() -> None:
    image = {"name": NGC, "tag": "25.02-tf2-py3", "digest": DIGEST, "manifest": None}
    python = {**image, "name": "docker.io/library/python", "tag": "3.11-slim"}
    held = {**image, "platform": "linux/amd64", "route": "cuda", "reason": "It is.", "python": python}
    trust = collect_trust(BaseImage.model_validate(held))
    assert len(trust.locked) == 2
    assert trust.find_digest(parse(f"{NGC}:25.02-tf2-py3")) == DIGEST
    published = Trust(tables=TABLES).find_digest(parse(f"{NGC}:{LAST[1]}"))
    assert published is not None
    assert published.startswith("sha256:")
    assert collect_trust(None).locked == ()
    assert len(collect_trust(BaseImage.model_validate({**held, "python": None})).locked) == 1
    assert trust.find_digest(parse("docker.io/library/python:3.11-slim")) is None, "no registry of releases"
    assert trust.find_digest(parse(f"{NGC}:99.99-tf2-py3")) is None
    for unknown in (f"{NGC}:99.99-tf2-py3", "nvcr.io/nvidia/other:1", "docker.io/library/python:3.11"):
        assert Trust().find_digest(parse(unknown)) is None


def test_a_tag_that_has_moved_stands_for_its_newest_image() -> None:
    (moved,) = [row for row in TABLES.ngc.digest if row.earlier]
    ngc = TABLES.ngc.model_copy(update={"digest": TABLES.ngc.digest[::-1]})
    assert Trust(tables=TABLES.model_copy(update={"ngc": ngc})).find_digest(parse(f"{NGC}:{moved.tag}")) not in (
        None,
        moved.digest,
    )


def test_a_machine_has_a_platform() -> None:
    assert get_machine("linux/arm64") == "aarch64"
    with pytest.raises(KeyError):
        get_machine("windows/amd64")


def test_images_with_the_locked_cudnn_are_taken_where_any_cuda_will_do() -> None:
    rows = TABLES.cuda.image
    assert cuda._select_images(rows, (0,), None) == rows


def test_an_image_that_is_not_built_for_arm_says_so() -> None:
    row = TABLES.cuda.image[0].model_copy(update={"arm64": False})
    needs = collect_needs(gpu(BUILDS[-1], "3.11.7"), "linux/arm64")
    assert "It is not available for arm64." in cuda._make_candidate(row, needs, TABLES).obstacles


def test_an_ubuntu_that_only_its_python_tells_is_expected() -> None:
    release = LAST[0].model_copy(update={"release": "99.01", "ubuntu": None, "python": "9.9"})
    contents = ngc.describe_contents(release, TABLES)
    assert (contents["ubuntu"], contents["libc"]) == (Value(None, expected=True), Value(None, expected=True))


def test_gpus_and_wheels_that_say_nothing() -> None:
    devices = {"0": {"compute_capability": None}, "1": {"compute_capability": "9.0"}}
    found = collect_needs(
        facts(
            tensorflow={"version": "2.21.0", "cuda_build": True},
            gpu={"devices": devices},
            packages={
                "a": {"wheel_tags": ["cp311-cp311-linux_x86_64"]},
                "b": {"wheel_tags": ["py3-none-any"]},
                "c": {},
            },
        )
    )
    assert (found.capabilities, found.wheel_pythons) == (("9.0",), ("3.11",))


def test_a_build_of_another_index_is_judged_by_its_own_cuda() -> None:
    needs = replace(ASKED, targets=("sm_80",), capabilities=("9.0",), label="nv25.2")
    assert all("compute capability 9.0" in doubt for doubt in check_gpu_code(needs))
    assert list(check_gpu_code(replace(needs, capabilities=("8.0",)))) == []


def test_a_doubt_about_the_driver_is_the_candidates() -> None:
    needs = replace(PLAIN, gpu=True, driver="450.80.02")
    doubted = judge_candidate(replace(FOUND[0], holds={"cuda": Value("12.8.0")}), needs, TABLES.cuda)
    assert doubted.doubts
