"""Which modes are those of an installer, and which are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.runtime.files.check_file import FileMode, find_world_writable, judge_modes


def file(name: str, mode: int, **fields: object) -> FileMode:
    known = {"program": None, "may_run": False, "generated": False, **fields}
    return FileMode(f"/v/{name}", "numpy 1", mode, "." + name.rpartition(".")[2], **known)  # type: ignore[arg-type]


def package(mode: int, count: int = 5) -> list[FileMode]:
    return [file(f"{number}.py", mode) for number in range(count)]


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077, 0o027, 0o222, 0o000])
def test_what_installers_leave_under_any_umask_is_fine(umask: int) -> None:
    """As pip and uv do: x for everyone or for those who may read, and r with it on scripts that they write."""
    plain = 0o666 & ~umask
    files = [
        *package(plain),
        file("a.so", plain | 0o111, may_run=True),
        file("b.so", 0o777 & ~umask, may_run=True),
        file("f2py", (plain | 0o555) & 0o777, program="a script", may_run=True, generated=True),
        file("ptxas", plain | 0o111, program="a program", may_run=True),
        file("odd.py", plain | 0o111),
    ]
    assert judge_modes(files) == []


@pytest.mark.parametrize(
    ("mode", "expected", "what"),
    [
        (0o4644, 0o644, "has setuid, setgid or the sticky bit"),
        (0o2755, 0o755, "has setuid, setgid or the sticky bit"),
        (0o1644, 0o644, "has setuid, setgid or the sticky bit"),
        (0o000, 0o644, "its owner cannot read it"),
        (0o244, 0o644, "its owner cannot read it"),
        (0o666, 0o644, "anyone can write to it"),
        (0o777, 0o755, "anyone can write to it"),
        (0o600, 0o644, "differs from the rest of the package"),
        (0o664, 0o644, "differs from the rest of the package"),
        (0o444, 0o644, "differs from the rest of the package"),
        (0o744, 0o755, "some users can run it but not read it, or the reverse"),
        (0o645, 0o755, "some users can run it but not read it, or the reverse"),
    ],
)
def test_a_mode_that_no_installer_leaves(mode: int, expected: int, what: str) -> None:
    (verdict,) = judge_modes([*package(0o644), file("a.so", mode, may_run=True)])
    assert verdict == ("/v/a.so", mode, expected, what, True)


def test_a_program_that_cannot_be_run() -> None:
    files = [*package(0o644), file("ptxas", 0o644, program="a program"), file("f2py", 0o644, program="a script")]
    assert [(verdict.path, verdict.expected, verdict.what) for verdict in judge_modes(files)] == [
        ("/v/ptxas", 0o755, "a program that its owner cannot run"),
        ("/v/f2py", 0o755, "a script that its owner cannot run"),
    ]


def test_the_only_one_of_many_that_may_be_run_is_for_information() -> None:
    (verdict,) = judge_modes([*package(0o644, 20), file("odd.py", 0o755)])
    assert verdict == ("/v/odd.py", 0o755, None, "is executable, unlike every other .py of the package", False)
    assert judge_modes([*package(0o644, 19), file("odd.py", 0o755)]) == []
    assert judge_modes([*package(0o644, 20), file("odd.py", 0o755), file("two.py", 0o755)]) == []
    assert judge_modes([*package(0o644, 20), file("odd.py", 0o755, may_run=True)]) == []


def test_a_package_that_anyone_may_write_to_is_one_verdict() -> None:
    assert judge_modes(package(0o666)) == []
    assert find_world_writable(package(0o666)) == ["numpy 1"]
    assert find_world_writable([*package(0o644), file("a.so", 0o666)]) == []


def test_where_two_modes_are_as_frequent_the_environment_decides() -> None:
    other = [FileMode(f"/v/o{number}", "other 1", 0o644, ".py", None, False, False) for number in range(9)]
    (verdict,) = judge_modes([file("a.py", 0o644), file("b.py", 0o640), *other])
    assert (verdict.path, verdict.expected) == ("/v/b.py", 0o644)


def _is_as_left(mode: int) -> bool:
    """Whether a mode is one of those that 0644 can have become in an installer's hands."""
    return mode in (0o644, 0o755)


@given(st.integers(0, 0o7777))
def test_every_other_mode_is_named(mode: int) -> None:
    found = judge_modes([*package(0o644), file("a.so", mode, may_run=True)])
    named = [verdict.path for verdict in found if verdict.sure]
    assert named == ([] if _is_as_left(mode) else ["/v/a.so"])
