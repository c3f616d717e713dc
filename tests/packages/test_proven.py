"""What counts as proven, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from envlock.lock.models import UnavailableFact
from envlock.packages.identity import Checkout, find_checkout, list_proven
from envlock.runtime.errors import UsageError
from tests.packages.identified import doubt, lock_of, proof, wheel


def test_a_package_is_proven_or_left_out_with_its_reason() -> None:
    known, others = list_proven(
        lock_of(
            {
                "zz": proof("1.0", wheel("zz-1.0-py3-none-any.whl")),
                "mine": doubt("0.1", "it was installed from a checkout"),
                "a-b": proof("1.0+cpu", wheel("A_b-1.0+cpu-cp311-cp311-linux_x86_64.whl")),
            }
        ),
        "x.lock",
    )
    assert [(each.name, each.version, each.wheel.name) for each in known] == [
        ("a-b", "1.0+cpu", "A_b-1.0+cpu-cp311-cp311-linux_x86_64.whl"),
        ("zz", "1.0", "zz-1.0-py3-none-any.whl"),
    ]
    assert [str(each) for each in others] == ["mine 0.1: it was installed from a checkout"]


@pytest.mark.parametrize(
    ("name", "version", "file", "reason"),
    [
        (
            "a",
            "1.0",
            "b-1.0-py3-none-any.whl",
            "its wheel is named `b-1.0-py3-none-any.whl`, like one of another package",
        ),
        (
            "a",
            "1.0",
            "a-1.1-py3-none-any.whl",
            "its wheel is named `a-1.1-py3-none-any.whl`, like one of another package",
        ),
        ("a", "1.0", "a-1.0.whl", "installers do not accept version `1.0` or file name `a-1.0.whl`"),
        ("a", "odd!", "a-1.0-py3-none-any.whl", "installers do not accept version `odd!`"),
        ("a", None, "a-1.0-py3-none-any.whl", "its version is unknown"),
    ],
)
def test_a_wheel_that_no_installer_would_take_for_it_proves_nothing(
    name: str, version: str | None, file: str, reason: str
) -> None:
    known, others = list_proven(lock_of({name: proof(version, wheel(file))}), "x.lock")
    assert (known, [each.name for each in others]) == ([], [name])
    assert others[0].reason.startswith(reason)


def test_a_checkout_in_an_unknown_folder_is_none() -> None:
    origin = {"url": "https://git.example.org/a.git", "vcs": "git", "commit": "c" * 40}
    lock = lock_of({"a": doubt("1.0", "x")}, packages={"a": {"version": "1.0", "origin": origin}})
    assert find_checkout(lock, "a") == Checkout("a", "https://git.example.org/a.git", "c" * 40, None)
    unknown = {"packages.a.origin.subdirectory": UnavailableFact(reason="it is no path", code="malformed")}
    assert find_checkout(lock.model_copy(update={"unavailable": unknown}), "a") is None


def test_versions_are_compared_as_installers_do() -> None:
    known, others = list_proven(lock_of({"a": proof("1.0", wheel("a-1.0.0-py3-none-any.whl"))}), "x.lock")
    assert (len(known), others) == (1, [])


def test_a_lock_without_identities_is_refused() -> None:
    lock = lock_of({}, packages={"a": {"version": "1.0"}}).model_copy(update={"identity": None})
    with pytest.raises(UsageError) as error:
        list_proven(lock, "x.lock")
    assert str(error.value) == (
        "lockfile x.lock does not name the wheels of its packages\nhint: run `envlock capture --hashes` where they are "
        "installed; `envlock sync` and `envlock export --format requirements --no-hashes` need no hashes"
    )


@pytest.mark.parametrize(
    "packages", [{}, {"a": {"version": "2.0"}}, {"a": {"version": "1.0"}, "b": {"version": "1.0"}}, {"a": {}}]
)
def test_identities_of_other_packages_are_refused(packages: dict[str, Any]) -> None:
    lock = lock_of({"a": proof("1.0", wheel("a-1.0-py3-none-any.whl"))}, packages=packages)
    with pytest.raises(UsageError) as error:
        list_proven(lock, "x.lock")
    name = "b" if "b" in packages else "a"
    assert str(error.value) == (
        f"lockfile x.lock: the recorded wheel of {name} is for another version\nhint: run `envlock capture --hashes` again"
    )
