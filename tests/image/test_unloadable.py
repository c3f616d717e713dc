"""The warning about packages that cannot be imported in an image, and the Debian packages that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.image import unloadable
from envlock.image.unloadable import describe_unloadable


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the machine this folder of what dpkg has installed."""
    monkeypatch.setattr(unloadable, "LISTS", tmp_path)
    return tmp_path


def test_the_debian_packages_of_this_machine_are_named(lists: Path) -> None:
    (lists / "libgl1:amd64.list").write_text("/.\n/usr/lib/x86_64-linux-gnu/libGL.so.1\n")
    (lists / "browser.list").write_text("/usr/lib/browser/libGL.so.1\n")
    unloadable = {"cv2": ["libGL.so.1"], "drawn": [f"lib{n}.so" for n in range(8)]}
    assert describe_unloadable(unloadable, ["ffmpeg", "libgl1"]) == [
        "a module of cv2 cannot be imported in the image, which lacks libGL.so.1",
        "a module of drawn cannot be imported in the image, which lacks lib0.so, lib1.so, lib2.so, lib3.so, lib4.so, "
        'lib5.so and 2 more; set `apt = ["ffmpeg", "libgl1"]` in [tool.envlock.container] of pyproject.toml, and build '
        "again",
    ]


def test_on_another_system_the_setting_is_named(lists: Path) -> None:
    assert describe_unloadable({"cv2": ["libGL.so.1"]}, []) == [
        "a module of cv2 cannot be imported in the image, which lacks libGL.so.1; add their Debian packages to `apt` in "
        "[tool.envlock.container] of pyproject.toml, and build again"
    ]


def test_an_image_in_which_all_can_be_imported() -> None:
    assert describe_unloadable({}, ["ffmpeg"]) == []
