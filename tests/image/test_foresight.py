"""What is refused inside an image is refused before its first layer, as far as the plan shows it."""

from __future__ import annotations

import copy
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envlock.image.bases.choose import candidates
from envlock.image.bases.needs import collect_lock_needs
from envlock.image.foresight import find_differences, find_foreign_wheels, find_overwritten
from envlock.image.image_verification import is_of_machine
from envlock.image.layers import Wheel
from envlock.image.supply import DEFECT, check_environment, check_plan
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import EnvlockError, ImageMismatch, OutsideError
from envlock.runtime.facts import iter_leaves
from envlock.runtime.judgement import judge
from envlock.runtime.report import ERROR
from tests.image.bases.asking import TABLES
from tests.image.plans import BASES, lock, model, planned, without
from tests.trees import put

LOCKED = {**without(lock(), "mine"), "policy": {"name": "strict", "overrides": {}}}


def changed(path: str, value: object, held: dict[str, Any] = LOCKED) -> dict[str, Any]:
    """Return a lock with another value for a fact."""
    facts = copy.deepcopy(held["facts"])
    facts = put(facts, path, value)
    unavailable = {key: reason for key, reason in held["unavailable"].items() if key != path}
    return {**held, "facts": facts, "unavailable": unavailable}


def check(route: str, held: dict[str, Any]) -> None:
    """Refuse what a build refuses before it looks for wheels."""
    plan = planned(route, held)
    check_environment(model(held), plan.base.route)
    check_plan(plan)


@pytest.mark.parametrize("route", BASES)
def test_a_lock_that_can_be_built_is_not_refused(route: str) -> None:
    check(route, LOCKED)


EARLY: dict[str, tuple[str, object, str]] = {
    "a setting of this machine's keras.json": (
        "keras.config.floatx",
        "float16",
        "keras.config.floatx: locked float16, in the image float32",
    ),
    "another implementation": (
        "python.implementation",
        "pypy",
        "python.implementation: locked pypy, in the image cpython",
    ),
    "a variable without its value": (
        "environ.LD_LIBRARY_PATH",
        "sha256:" + "ab" * 32,
        f"environ.LD_LIBRARY_PATH: locked sha256:{'ab' * 32}, in the image unset",
    ),
}


@pytest.mark.parametrize(("path", "value", "message"), EARLY.values(), ids=EARLY)
def test_what_no_image_can_have_is_known_before(path: str, value: object, message: str) -> None:
    held = changed(path, value)
    if path.startswith("environ."):  # one that leads to nothing decides nothing
        held = changed(path.replace("environ", "named"), ["libm.so.6 sha256:" + "cd" * 32], held)
    with pytest.raises(ImageMismatch) as caught:
        check("wheels", held)
    assert caught.value.message == f"the image cannot match under policy strict:\n  {message}"
    assert caught.value.hint


def test_a_variable_that_the_base_sets_is_no_difference() -> None:
    held = changed("environ.LD_LIBRARY_PATH", "sha256:" + "ab" * 32)
    plan = planned("wheels", held)
    own = replace(plan, base=replace(plan.base, environ=(("LD_LIBRARY_PATH", "/x"),)))
    unread = replace(plan, base=replace(plan.base, environ=None))
    assert [find_differences(each) for each in (own, unread)] == [[], []]


def _wheel(folder: Path, name: str, files: dict[str, str]) -> Wheel:
    file = f"{name}-1-py3-none-any.whl"
    rows = "".join(f"{path},sha256={digest},1\n" for path, digest in files.items())
    with zipfile.ZipFile(folder / file, "w") as archive:
        for path in files:
            archive.writestr(path, "x")
        archive.writestr(f"{name}-1.dist-info/RECORD", rows)
    return Wheel(name, "1", file, "00" * 32)


def test_a_hook_that_no_wheel_brings_is_known_before(tmp_path: Path) -> None:
    held = changed("python.startup", {"pth": {"mine": "sha256:" + "ab" * 32}, "sitecustomize": "sha256:" + "cd" * 32})
    plan = planned("wheels", held)
    brought = _wheel(tmp_path, "hook", {"mine.pth": "a", "hook-1.data/purelib/sitecustomize.py": "b"})
    other = _wheel(tmp_path, "other", {"other/mine.pth": "a"})
    assert find_differences(plan) == []
    assert find_differences(replace(plan, wheels=(brought,)), tmp_path) == []
    found = find_differences(replace(plan, wheels=(other,)), tmp_path)
    assert {each.where.fact for each in found} >= {"python.startup.pth.mine", "python.startup.sitecustomize"}


def test_two_wheels_that_install_one_file_are_known_before(tmp_path: Path) -> None:
    one = _wheel(tmp_path, "one", {"tensorflow/a.py": "aa", "both/same.py": "bb"})
    two = _wheel(tmp_path, "two", {"tensorflow/a.py": "cc", "both/same.py": "bb"})
    assert list(find_overwritten([one, two], tmp_path)) == ["one and two install 1 same files, such as tensorflow/a.py"]
    assert list(find_overwritten([one], tmp_path)) == []


def test_a_damaged_wheel_is_named(tmp_path: Path) -> None:
    one = _wheel(tmp_path, "one", {"a.py": "aa"})
    (tmp_path / one.file).write_bytes(b"PK")
    with pytest.raises(OutsideError, match=r"cannot read the wheel .*one-1"):
        list(find_overwritten([one], tmp_path))


def test_two_tensorflows_are_known_before() -> None:
    held = changed("tensorflow.distributions", ["tensorflow", "tensorflow-cpu"])
    with pytest.raises(ImageMismatch, match="tensorflow and tensorflow-cpu are installed over one another"):
        check("wheels", held)
    # NVIDIA's image has its own, over which nothing is installed.
    check("ngc", held)


def test_a_package_with_which_tensorflow_does_not_import_is_known_before() -> None:
    stock = changed("tensorflow.nvidia_build", None, changed("tensorflow.version", "2.17.0"))
    held = changed("packages.numpy.version", "2.2.6", stock)
    with pytest.raises(ImageMismatch) as caught:
        check("wheels", held)
    assert caught.value.message.startswith(
        "the locked environment does not work: numpy is 2.2.6, and TensorFlow 2.17.0 needs <2.0.0,>=1.23.5\n"
        "  `import tensorflow` fails with"
    )
    assert caught.value.hint == DEFECT
    # Another version that TensorFlow was not tested with may work.
    check_environment(model(changed("packages.numpy.version", "1.22.4", stock)), "wheels")


@pytest.mark.parametrize(
    ("file", "fits"),
    [
        ("numpy-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", True),
        ("numpy-1-cp38-abi3-manylinux_2_28_x86_64.whl", True),
        ("numpy-1-py2.py3-none-any.whl", True),
        ("numpy-1-cp311-cp311-linux_x86_64.whl", True),
        ("numpy-1-cp312-cp312-manylinux_2_17_x86_64.whl", False),
        ("numpy-1-cp312-abi3-manylinux_2_17_x86_64.whl", False),
        ("numpy-1-cp311-cp311t-manylinux_2_17_x86_64.whl", False),
        ("numpy-1-cp311-cp311-manylinux_2_17_aarch64.whl", False),
        ("numpy-1-cp311-cp311-manylinux_2_39_x86_64.whl", False),
        ("numpy-1-cp311-cp311-musllinux_1_2_x86_64.whl", False),
        ("numpy-1-py2-none-any.whl", False),
    ],
)
def test_a_wheel_for_another_interpreter_is_known_before(file: str, fits: bool) -> None:
    plan = planned("wheels", LOCKED)
    plan = replace(plan, wheels=(Wheel("numpy", "1", file, "00" * 32),))
    assert find_foreign_wheels(plan) == ([] if fits else [f"numpy ({file})"])


PLANNED = ("environ.", "system.machine", "system.kernel")
"""What an image gets from the lock itself, or cannot be another."""
LATE = [
    "keras.legacy_version",
    "numpy.blas.configuration",
    "numpy.blas.name",
    "numpy.blas.version",
    "packages.mine.origin.url",
    "packages.mine.origin.vcs",
    "packages.mine.version",
    "packages.tensorflow.version",
    "packages.tf-keras.version",
    "python.version",
    "system.libc",
    "tensorflow.compiled_against_cudnn",
    "tensorflow.nvidia_build",
    "tensorflow.version",
]
"""The facts of this lock that only the image shows: what is in the files of wheels, what this lock names no wheel for, a
Python that no table has, and NVIDIA's label, which no wheel can have."""


def test_how_many_facts_are_refused_late() -> None:
    facts, unavailable = LOCKED["facts"], LOCKED["unavailable"]
    late: list[str] = []
    for path, value in iter_leaves(facts):
        if not isinstance(value, str) or is_of_machine(path) or path.startswith(PLANNED):
            continue
        held = changed(path, f"{value}9")
        try:
            found = find_differences(planned("wheels", held))
        except EnvlockError:
            continue
        report = judge(held, Snapshot(facts, unavailable))
        refused = {each.where.fact for each in report.findings if each.severity == ERROR}
        known = {each.where.fact for each in found} | _list_mismatches(held)
        late += refused - known
    assert sorted(set(late)) == LATE


def _list_mismatches(held: dict[str, Any]) -> set[str]:
    """Return the facts of Python's image for which it is refused when a base is chosen."""
    found = candidates(collect_lock_needs(model(held)), TABLES)
    slim = next(each for each in found if "python:3.11" in str(each.reference) and "bookworm" in str(each.reference))
    return {text.partition(" is ")[0] for text in slim.mismatches}
