"""The numbers that a version begins with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from envlock.runtime.release import minor, parse_release

RELEASES = st.lists(st.integers(0, 10**6), min_size=1, max_size=5).map(tuple)


@given(RELEASES, st.sampled_from(["", "rc1", ".dev0", "+nv24.1", "b2.post1"]))
def test_it_is_the_release_of_pep_440(release: tuple[int, ...], suffix: str) -> None:
    version = ".".join(map(str, release)) + suffix
    assert parse_release(version) == Version(version).release == release


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("", ()),
        ("ubuntu 22.04", ()),
        ("v1.2", ()),
        (".1", ()),
        ("12", (12,)),
        ("1..2", (1,)),
        ("1.2x.3", (1, 2)),
        ("1.\u0663", (1,)),
    ],
)
def test_other_texts_have_what_they_begin_with(version: str, expected: tuple[int, ...]) -> None:
    assert parse_release(version) == expected


@pytest.mark.parametrize(("version", "expected"), [("12.4.131", "12.4"), ("3", "3"), ("", ""), ("2.16rc1", "2.16")])
def test_the_minor_version_has_two_numbers(version: str, expected: str) -> None:
    assert minor(version) == expected
