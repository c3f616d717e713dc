"""The tables about base images: sourced, in order, at one with each other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from envlock.data import Row, image_tables, read
from envlock.image.bases.reference import Reference, parse
from envlock.runtime.release import minor, parse_release

TABLES = image_tables.load_image_tables()
EACH = {"ngc": TABLES.ngc, "cuda": TABLES.cuda, "python": TABLES.python, "builds": TABLES.builds}


def rows(table: Row) -> list[Any]:
    """Return every row of a table."""
    return [
        row for name in type(table).model_fields if name not in ("evidence", "horizon") for row in getattr(table, name)
    ]


def sources(table: Row) -> list[str]:
    """Return the source of every row; one with two kinds of facts may have two."""
    found = [(row.source, getattr(row, "tensorflow_source", None)) for row in rows(table)]
    return [source for pair in found for source in pair if source is not None]


@pytest.mark.parametrize("table", EACH.values(), ids=EACH)
def test_every_row_has_a_source_that_can_be_followed(table: Any) -> None:
    lost = {source for source in sources(table) if not source.startswith(("https://", *table.evidence))}
    assert lost == set()
    assert len(rows(table)) > 30


@pytest.mark.parametrize("table", EACH.values(), ids=EACH)
def test_no_evidence_is_left_without_a_row(table: Any) -> None:
    text = "; ".join(sources(table))
    assert {key for key in table.evidence if key not in text} == set()


def ascending(versions: Iterable[str]) -> bool:
    """Return whether versions ascend, none of them twice."""
    found = [parse_release(version) for version in versions]
    return found == sorted(set(found))


def test_versions_ascend_and_stand_once() -> None:
    assert ascending(row.release for row in TABLES.ngc.release)
    assert ascending(row.cuda for row in TABLES.cuda.driver)
    assert ascending(row.cuda for row in TABLES.cuda.minor_version)
    assert ascending(row.compute_capability for row in TABLES.cuda.gpu)
    assert ascending(row.tensorflow for row in TABLES.builds.build)
    assert ascending(row.tensorflow for row in TABLES.builds.and_cuda)
    for names in (
        [tag for row in TABLES.ngc.release for tag in row.tags],
        [row.tag for row in TABLES.cuda.image],
        [(row.python, row.suite) for row in TABLES.python.slim],
        [row.name for row in TABLES.python.system],
        [row.digest for row in TABLES.ngc.digest],
    ):
        assert len(set(names)) == len(names) > 0


def test_a_newer_cuda_of_a_minor_version_wants_no_older_driver() -> None:
    for one, other in zip(TABLES.cuda.driver, TABLES.cuda.driver[1:], strict=False):
        assert parse_release(one.driver) <= parse_release(other.driver), other.cuda


def test_no_release_is_lost() -> None:
    releases = [row.release for row in TABLES.ngc.release]
    assert (len(releases) >= 97, releases[0]) == (True, "16.12")
    assert {"17.08", "20.04", "20.05"} & set(releases) == set()
    assert "22.10.1" in releases


def test_a_tag_names_its_release_and_line() -> None:
    for row in TABLES.ngc.release:
        for tag in row.tags:
            assert re.fullmatch(re.escape(row.release) + r"(-py3|-tf[12]-py3)?", tag)
        assert (row.tf2 is None) or any("-tf2-" in tag for tag in row.tags)
        assert (row.tf1 is None) or any("-tf2-" not in tag for tag in row.tags)


def test_a_sibling_is_of_a_month_that_has_a_release() -> None:
    assert {row.release for row in TABLES.ngc.sibling} <= {row.release for row in TABLES.ngc.release}


def test_where_a_release_and_its_siblings_both_tell_they_agree_on_cuda() -> None:
    """It is why the siblings may be called expected. 21.07: the image says cuDNN 8.2.2.26, Triton's notes 8.2.2.6."""
    told = {row.release: row for row in TABLES.ngc.release}
    pairs = [(told[row.release].cuda, row.cuda) for row in TABLES.ngc.sibling if row.cuda and told[row.release].cuda]
    differing = [pair for pair in pairs if minor(pair[0] or "") != minor(pair[1] or "")]
    assert (len(pairs) >= 26, differing) == (True, [])


def test_all_digests_are_references_of_a_release() -> None:
    tags = {tag for row in TABLES.ngc.release for tag in row.tags}
    assert len(TABLES.ngc.digest) >= 38
    for row in TABLES.ngc.digest:
        reference = Reference("nvcr.io", "nvidia/tensorflow", row.tag, row.digest)
        assert parse(str(reference)) == reference
        assert row.tag is None or row.tag in tags
    assert [row.digest[7:15] for row in TABLES.ngc.digest if row.tag is None] == ["fdc2f7f3"]
    assert "c83b37d2" in [row.digest[7:15] for row in TABLES.ngc.digest if row.index]


def test_a_tag_with_two_digests_has_moved_from_the_earlier_one() -> None:
    both = {row.digest[7:15]: row.earlier for row in TABLES.ngc.digest if row.tag == "22.09-tf2-py3"}
    assert both == {"557d3b55": False, "2000ac1f": True}
    later = [row.tag for row in TABLES.ngc.digest if row.tag and not row.earlier]
    assert len(set(later)) == len(later)


def test_every_system_that_an_image_stands_on_is_known() -> None:
    known = {row.name for row in TABLES.python.system}
    stacks: list[image_tables.Stack | image_tables.CudaImage] = [
        *TABLES.ngc.release,
        *TABLES.ngc.sibling,
        *TABLES.cuda.image,
    ]
    ubuntus = {row.ubuntu for row in stacks if row.ubuntu}
    assert {f"ubuntu{ubuntu}" for ubuntu in ubuntus} | {row.suite for row in TABLES.python.slim} == known


def test_where_ubuntu_and_python_are_both_told_they_belong_together() -> None:
    python = {row.name: row.python for row in TABLES.python.system}
    told = [row for row in [*TABLES.ngc.release, *TABLES.ngc.sibling] if row.ubuntu and row.python]
    assert len(told) > 30
    newest = max(str(row.ubuntu) for row in told)
    assert {(row.ubuntu, row.python) for row in told} == {
        (ubuntu, version)
        for name, version in python.items()
        if version and name.startswith("ubuntu") and (ubuntu := name.removeprefix("ubuntu")) <= newest
    }


def test_what_is_as_new_as_the_newest_ubuntu_python_and_ptx_is_known() -> None:
    systems = {row.name: row for row in TABLES.python.system}
    assert (systems["ubuntu26.04"].libc, systems["ubuntu26.04"].own) == ("2.43", "3.14.4")
    assert "13.3.1-cudnn-runtime-ubuntu26.04" in {row.tag for row in TABLES.cuda.image}
    slim = {(row.python, row.suite): (row.first, row.last) for row in TABLES.python.slim}
    for suite in ("bookworm", "trixie"):
        assert slim["3.14", suite][0] == slim["3.15", suite][0] == 0
    built = {(row.python, row.release, row.machine) for row in TABLES.standalone.build}
    assert built >= {("3.15.2", "20261110", machine) for machine in ("x86_64", "aarch64")}
    isas = [row["isa"] for row in read("cuda")["ptx_isa"]]
    assert isas[isas.index("9.0") :] == ["9.0", "9.1", "9.2", "9.3", "9.4", "9.5"]


def test_a_driver_is_known_for_every_cuda_of_an_image() -> None:
    minors = {minor(row.cuda) for row in TABLES.cuda.driver}
    stacks: list[image_tables.Stack | image_tables.CudaImage] = [
        *TABLES.ngc.release,
        *TABLES.ngc.sibling,
        *TABLES.cuda.image,
    ]
    held = [row.cuda for row in stacks if row.cuda]
    assert {minor(cuda) for cuda in held} - minors == {"8.0"}  # of 17.05, and of no TensorFlow since 1.13


def test_the_extra_brings_the_cuda_that_its_tensorflow_was_built_for() -> None:
    built = {minor(row.tensorflow): row for row in TABLES.builds.build}
    for row in TABLES.builds.and_cuda:
        assert built[minor(row.tensorflow)].and_cuda
        assert minor(row.cuda) == built[minor(row.tensorflow)].cuda
        assert minor(row.cudnn) == built[minor(row.tensorflow)].cudnn


@pytest.mark.parametrize(
    ("model", "row"),
    [
        (image_tables.NgcRelease, {"release": "25.2", "tags": ["x"], "source": "x"}),
        (image_tables.NgcRelease, {"release": "25.02", "tags": [], "source": "x"}),
        (image_tables.NgcRelease, {"release": "25.02", "tags": ["x"], "tf2": "2.17", "source": "x"}),
        (image_tables.NgcRelease, {"release": "25.02", "tags": ["x"], "confidence": "high", "source": "x"}),
        (image_tables.NgcRelease, {"release": "25.02", "tags": ["x:y"], "source": "x"}),
        (image_tables.KnownDigest, {"digest": "sha256:" + "0" * 63, "source": "x"}),
        (image_tables.CudaImage, {"cuda": "12.0", "ubuntu": "22.10", "token": "cudnn8", "cudnn": "8.0", "source": "x"}),
        (image_tables.SlimImages, {"python": "3.11", "suite": "slim-sid", "first": 0, "last": 1, "source": "x"}),
    ],
)
def test_a_row_that_is_none_is_refused(model: type[BaseModel], row: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(row)
