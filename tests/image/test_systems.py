"""A system's own Python, which has no pip: the image is chosen by the lock alone, and built on a real engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.exhaustive import exhaustive
from tests.image.bed.session import Bed
from tests.image.project import Project
from tests.image.stocked import captured, demo_wheel, published

pytestmark = pytest.mark.engine

SYSTEM = """\
FROM {python}
RUN rm -rf /usr/local/bin/python /usr/local/lib/python3.11 /usr/share/python-wheels /usr/lib/python3.11/ensurepip
"""
"""Debian with the Python that its other packages need: no pip, no ensurepip."""


@exhaustive
def test_an_installed_project_on_the_python_of_debian(bed: Bed, tmp_path: Path) -> None:
    """A package of an index, a project's own and a Git checkout, locked with a tool that puts no pip beside them."""
    published(bed, tmp_path / "image", SYSTEM, "library/buildpack-deps", "bookworm-scm")
    wheelhouse = tmp_path / "wheelhouse"
    for name in ("alpha", "mine", "checkout"):
        demo_wheel(wheelhouse, name, "1.0")
    lock: dict[str, Any] = captured(bed, bed.python, wheelhouse, system=False)
    lock["identity"]["packages"]["mine"]["origin"] = "editable"
    lock["identity"]["packages"]["checkout"]["origin"] = "vcs"
    made = Project(bed, tmp_path, lock)
    done = made("build", "--tag", "test/system:1")
    assert done.returncode == 0, done.stderr
    assert "test/system:1 was verified inside: it matches under policy strict\n" in done.stderr
    held = (made.folder / "envlock.lock").read_text(encoding="utf-8")
    assert '"name": "docker.io/library/buildpack-deps"' in held
    run = ["run", "--rm", "--network=none", "test/system:1"]
    assert [bed.engine.docker(*run, name).stdout for name in ("alpha", "mine", "checkout")] == ["1.0\n"] * 3
    again = made("build", "--rebuild")
    assert (again.returncode, again.stderr.endswith("identical: the same image ID\n")) == (0, True), again.stderr
    classic = made("build", "--rebuild", "--engine", "docker")
    assert classic.stderr.splitlines()[-1].startswith("identical in layers and configuration"), classic.stderr
