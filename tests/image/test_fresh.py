"""From a lock as `capture` writes it to a verified image, with an index of our own: the whole way, on a real engine."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from envlock.lock.document import load
from tests.exhaustive import exhaustive
from tests.image.bed.session import Bed
from tests.image.project import Project
from tests.image.stocked import captured, demo_wheel

pytestmark = pytest.mark.engine
NAMES = {"alpha": "1.0", "beta": "2.5"}


@pytest.fixture
def stock(tmp_path: Path) -> Path:
    """Return a folder of wheels, laid out as a package index of files."""
    for name, version in NAMES.items():
        wheel = demo_wheel(tmp_path / "index" / name, name, version)
        (wheel.parent / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
        demo_wheel(tmp_path / "stock", name, version)
    return tmp_path / "stock"


@pytest.fixture
def python(stock: Path, tmp_path: Path) -> Path:
    """Return the interpreter of an environment that has these wheels."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python3.*/site-packages"))
    for wheel in stock.iterdir():
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
        next(site.glob(f"{wheel.name.split('-')[0]}*.dist-info")).joinpath("INSTALLER").write_text("pip\n")
    return folder / "bin" / "python"


def fresh(held: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in held.items() if key != "identity"}


def test_capture_then_build(bed: Bed, stock: Path, python: Path, tmp_path: Path) -> None:
    lock = fresh(captured(bed, bed.python, stock, system=False))
    own = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_CONFIG_FILE": "/dev/null"}
    own["ENVLOCK_INDEX_URL"] = (tmp_path / "index").as_uri()
    made = Project(bed, tmp_path / "project", lock, own)
    done = made("build", "--base", bed.python, "--python", str(python))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "proving the wheels of 2 packages\n2 of 2 packages have a proven wheel\n" in done.stderr
    assert f"filling {tmp_path}/cache/envlock/wheelhouse: 2 wheels\n" in done.stderr
    assert done.stderr.endswith("wrote envlock.lock: wheels, base and image\n")
    found = load(made.folder / "envlock.lock")
    assert found.identity is not None
    assert {name: each.version for name, each in found.identity.packages.items()} == NAMES
    shutil.rmtree(tmp_path / "index")
    shutil.rmtree(python.parents[1])
    again = made("build", "--base", bed.python)
    assert again.returncode == 0, again.stderr
    assert made.image["id"] == (found.image and found.image.id)
    offline = made("build", "--offline")
    assert offline.returncode == 0, offline.stderr
    assert made.image["id"] == (found.image and found.image.id)
    checked = made("build", "--rebuild", "--offline")
    assert (checked.returncode, checked.stderr.splitlines()[-1]) == (0, "identical: the same image ID"), checked.stderr


@exhaustive
def test_with_nothing_to_install_nothing_is_proven(bed: Bed, tmp_path: Path, stock: Path) -> None:
    """What was captured in an image needs nothing but that image, and no wheelhouse."""
    lock = captured(bed, bed.python, stock, system=False)
    made = Project(bed, tmp_path / "project", lock, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    took = made("capture", "--image", bed.ngc, "--engine", "docker")
    assert took.returncode == 0, took.stderr
    done = made("build", "--engine", "docker")
    assert done.returncode == 0, done.stderr
    assert "proving" not in done.stderr
    assert done.stderr.endswith("wrote envlock.lock: base and image\n")
    assert not (tmp_path / "cache" / "envlock" / "wheelhouse").exists()
