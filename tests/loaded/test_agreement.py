"""What of two observations has to be equal: not the sets."""

from __future__ import annotations

from typing import Any

import pytest

from envlock.runtime.loaded.agreement import align

LOCKED: dict[str, Any] = {
    "imports": ["tensorflow"],
    "interpreter": {"python": "a"},
    "standard": {"json": "1 decoder", "random": "2"},
    "libm": ["libm.so.6 9 sha256:aa"],
    "data": ["libsqlite3.so.0 9 sha256:aa"],
    "unexplained": ["p.so 1 sha256:cc"],
    "packages": {"pip": "26.3 aa", "six": "1.17 aa"},
}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"standard": {"json": "1 decoder", "random": "2", "sqlite3": "7"}},
        {"standard": {"json": "9 decoder encoder", "random": "2"}},
        {"interpreter": {"python": "a", "_sqlite3": "7"}},
        {"libm": ["libm.so.6 9 sha256:aa", "libmvec.so.1 9 sha256:dd"]},
        {"blas": ["libblas.so.3 9 sha256:ee"]},
        {"unexplained": []},
        {"data": []},
        {"packages": {"six": "1.17 aa", "rich": "1 bb"}},
        {"packages": {"six": "1.18 bb"}},
        {"packages": {"six": "1.17 aa", "pip": "26.3 bb"}},
        {"packages": {}},
    ],
    ids=[
        "the same",
        "a module more",
        "other parts of a module",
        "an extension more",
        "a library more",
        "a role more",
        "a file less",
        "a library less, which comes with a module",
        "a package more",
        "another version, which is a fact of its own",
        "other files of an installer, which may differ",
        "a package less, which is one as well",
    ],
)
def test_what_a_host_or_an_optional_package_adds_is_no_difference(more: dict[str, Any]) -> None:
    assert align(LOCKED, {**LOCKED, **more}) == LOCKED


@pytest.mark.parametrize(
    ("more", "differs"),
    [
        ({"libm": ["libm.so.6 9 sha256:bb"]}, "libm"),
        ({"libm": []}, "libm"),
        ({"data": ["libsqlite3.so.0 9 sha256:bb"]}, "data"),
        ({"standard": {"json": "1 decoder", "random": "3"}}, "standard"),
        ({"interpreter": {"python": "b"}}, "interpreter"),
        ({"packages": {"six": "1.17 bb"}}, "packages"),
        ({"unexplained": ["p.so 1 sha256:cc", "q.so 1 sha256:dd"]}, "unexplained"),
    ],
)
def test_other_content_is_a_difference_where_it_can_be_compared(more: dict[str, Any], differs: str) -> None:
    aligned = align(LOCKED, {**LOCKED, **more})
    assert [name for name in LOCKED if aligned[name] != LOCKED[name]] == [differs]


def test_what_stands_in_a_locked_library_s_place_is_one_difference() -> None:
    seen = {**LOCKED, "libm": ["libm.so.6 9 sha256:bb"], "unexplained": ["libm.so.6 9 sha256:bb"]}
    assert align(LOCKED, seen)["unexplained"] == LOCKED["unexplained"]


def test_a_library_that_is_absent_says_something_only_after_all_imports() -> None:
    assert align(LOCKED, {**LOCKED, "libm": []}, is_whole=False) == LOCKED


def test_another_compiler_s_python_is_no_difference() -> None:
    assert align(LOCKED, {**LOCKED, "interpreter": {"python": "b"}}, is_same_build=False) == LOCKED
