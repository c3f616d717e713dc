"""What installed distributions require, by the markers of their interpreter."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import pytest
from packaging.markers import default_environment

from envlock.diagnosis.diagnosed_environment import Requirement
from envlock.diagnosis.examine import list_requirements
from envlock.guest.environment import collect_markers
from envlock.packages.installation import (
    Installation,
    collect_distributions,
    find_installation,
    iter_requirements,
    read_field,
)
from tests.machines import distribution

METADATA = """\
Metadata-Version: 2.1
Name: thing
Version: 1.0
Provides-Extra: fast
Requires-Dist: Six_Of.One>=1.16
Requires-Dist: old; python_version < "3.9"
Requires-Dist: new<2; python_version >= "3.9"
Requires-Dist: windows; sys_platform == "win32"
Requires-Dist: speed[more]==2.*; extra == "fast"
Requires-Dist: other @ https://example.org/other.whl
Requires-Dist: not a requirement of any specification
Requires-Dist: uncomparable; platform_release ~= "x"

Requires-Dist: a-line-of-the-description
"""


def test_metadata_that_are_a_fifo_or_a_link_in_a_circle_name_no_package(tmp_path: Path) -> None:
    distribution(tmp_path, "thing", "1.0", {"METADATA": METADATA})
    for name in ("other", "third"):
        (tmp_path / f"{name}-1.0.dist-info").mkdir()
    os.mkfifo(tmp_path / "other-1.0.dist-info" / "METADATA")
    (tmp_path / "third-1.0.dist-info" / "METADATA").symlink_to("METADATA")
    (tmp_path / "fourth-1.0.dist-info").symlink_to("fourth-1.0.dist-info")
    assert list(collect_distributions(Installation(tmp_path, (tmp_path,)))) == ["thing"]


def test_metadata_need_not_be_utf_8(tmp_path: Path) -> None:
    """As `envlock capture --hashes` and `envlock doctor` meet it in what was packaged long ago."""
    text = METADATA.replace("Version: 1.0\n", "Version: 1.0\nAuthor: Mul\xf1oz\n")
    distribution(tmp_path, "thing", "1.0", {"METADATA": ""})
    (tmp_path / "thing-1.0.dist-info" / "METADATA").write_bytes(text.encode("latin-1"))
    place = Installation(tmp_path, (tmp_path,))
    found = collect_distributions(place)["thing"]
    assert (found.version, found.metadata["Author"]) == ("1.0", "Mul\ufffdoz")
    assert [
        each.name for each, _ in iter_requirements(found, {**collect_markers(), "python_version": "3.8"}, [""])
    ] == [
        "Six_Of.One",
        "old",
        "other",
    ]


def test_metadata_may_lack_any_field(tmp_path: Path) -> None:
    """A damaged installation: newer Pythons warn of `metadata["Name"]` where there is none."""
    distribution(tmp_path, "thing", "1.0", {"METADATA": "Name: thing\n"})
    distribution(tmp_path, "other", "1.0", {"METADATA": "Version: 1.0\n"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = collect_distributions(Installation(tmp_path, (tmp_path,)))
        assert [(name, read_field(each, "Version")) for name, each in found.items()] == [("thing", None)]


def of(folder: Path, **values: str) -> list[tuple[str, str]]:
    """Return (requirement without its marker, extra) of the distribution `thing`."""
    distribution(folder, "thing", "1.0", {"METADATA": METADATA})
    place = Installation(folder, (folder,))
    found = iter_requirements(collect_distributions(place)["thing"], {**place.markers, **values})
    return [(each.url or str(each).partition(";")[0], extra) for each, extra in found]


def test_requirements_follow_the_markers(tmp_path: Path) -> None:
    always = ("Six_Of.One>=1.16", "")
    rest = [("speed[more]==2.*", "fast"), ("https://example.org/other.whl", "")]
    assert of(tmp_path, python_version="3.8") == [always, ("old", ""), *rest]
    assert of(tmp_path, python_version="3.13") == [always, ("new<2", ""), *rest]


def test_the_markers_are_those_that_packaging_finds() -> None:
    assert collect_markers() == {name: str(value) for name, value in default_environment().items()}


@pytest.mark.processes
def test_of_another_interpreter_its_own(tmp_path: Path) -> None:
    """The interpreter in a virtual environment is the same, so its markers are, and its packages are not."""
    home = tmp_path / "env"
    site = home / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
    distribution(site, "thing", "1.0", {"METADATA": METADATA})
    (home / "bin").mkdir()
    python = home / "bin" / "python"
    python.symlink_to(Path(sys.executable).resolve())
    settings = f"home = {Path(sys.executable).resolve().parent}\ninclude-system-site-packages = false\n"
    (home / "pyvenv.cfg").write_text(settings, encoding="utf-8")
    assert find_installation(python).markers == collect_markers()
    assert list_requirements(python) == [
        Requirement("thing", "1.0", "six-of-one", ">=1.16"),
        Requirement("thing", "1.0", "new", "<2"),
        Requirement("thing", "1.0", "speed", "==2.*", ("more",), extra="fast"),
        Requirement("thing", "1.0", "other", url="https://example.org/other.whl"),
    ]
