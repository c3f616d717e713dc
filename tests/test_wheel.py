"""What an installed envlock holds: the templates too, and nothing that does not belong."""

from __future__ import annotations

import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from envlock import __version__
from tests.exhaustive import exhaustive

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _build(ROOT, folder, "-t", "wheel")
    return next(folder.glob("*.whl"))


def _build(source: Path, folder: Path, *options: str, umask: int = -1, environ: dict[str, str] | None = None) -> None:
    line = [sys.executable, "-m", "hatchling", "build", *options, "-d", str(folder)]
    whole = {**os.environ, **(environ or {})}
    done = subprocess.run(
        line, cwd=source, env=whole, umask=umask, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_templates_are_in_the_wheel(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if "_templates" in name} == {
        f"envlock/_templates/{file.name}" for file in (ROOT / "templates").iterdir()
    }
    tables = {"envlock/data/determinism_recipes.toml", "envlock/data/image.toml"}
    assert {"envlock/guest/image/donor.py", *tables} <= set(names)
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"envlock"}


def test_the_page_of_the_wheel_has_an_author_and_no_relative_link(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    head, _, description = archive.read(name).decode("utf-8").partition("\n\n")
    assert "Author: The envlock authors" in head.splitlines()
    assert "Description-Content-Type: text/markdown" in head.splitlines()
    assert description.startswith("# envlock\n")
    assert re.findall(r"\]\((?!https://|#)", description) == []


@pytest.mark.slow
def test_the_wheel_renders_what_the_checkout_renders(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import sys; from envlock.image import render, plan\n"
        "base = plan.Base('nvcr.io/nvidia/tensorflow:25.02-tf2-py3@sha256:"
        "c83b37d26f19ab00d8a13cf974edd079c3d099918ec3110c304a989d6e2f75d5', 'ngc')\n"
        "sys.stdout.write(render.dockerfile(plan.base_plan(base)))\n"
        "assert render.__file__.startswith(sys.path[0]), render.__file__"
    )
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}"
    done = subprocess.run([sys.executable, "-c", program], cwd="/", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (ROOT / "Dockerfile.base").read_text(encoding="utf-8")


@exhaustive
@pytest.mark.slow
def test_two_builds_are_the_same_bytes(tmp_path: Path) -> None:
    """Of another copy, at another path and time, with another umask, locale, order of hashes and order of files."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in tracked.split("\0") if name and (ROOT / name).is_file()]
    settings = ((0o022, "1", "C", 1e9), (0o077, "2", "C.UTF-8", 1.7e9))
    built = []
    for order, (umask, seed, locale, time) in enumerate(settings):
        source, dist = tmp_path / ("one" * (order + 1)) / "envlock", tmp_path / f"dist{order}"
        for name in names[:: -1 if order else 1]:
            copy = source / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy)
            copy.chmod((copy.stat().st_mode | 0o666) & ~umask)
            os.utime(copy, (time, time))
        _build(source, dist, umask=umask, environ={"PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": f"UTC{order}"})
        built.append({path.name: path.read_bytes() for path in dist.iterdir()})
    assert sorted(Path(name).suffix for name in built[0]) == [".gz", ".whl"]
    assert {name: built[1].get(name) == content for name, content in built[0].items()} == dict.fromkeys(built[0], True)
    (sdist,) = (tmp_path / "dist0").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        # Not by extractall(filter=...), which Debian 12's Python 3.11.2 does not know.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path / "unpacked")
    _build(next((tmp_path / "unpacked").iterdir()), tmp_path / "dist2", "-t", "wheel")
    (again,) = (tmp_path / "dist2").iterdir()
    assert again.read_bytes() == built[0][again.name], "the wheel of the source distribution is another"


def test_the_bill_of_materials_of_the_wheel(wheel: Path) -> None:
    text: str = runpy.run_path(str(ROOT / "tools" / "wheel_bill.py"))["bill"](wheel)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    found = json.loads(text)
    assert found["metadata"]["component"]["purl"] == f"pkg:pypi/tf-envlock@{__version__}?file_name={wheel.name}"
    assert {each["scope"] for each in found["components"]} == {"optional"}
    assert "cli:pydantic" in [each["bom-ref"] for each in found["components"]]


def test_what_installs_a_release_has_the_hash_of_every_file(wheel: Path) -> None:
    packages = (ROOT / "requirements" / "cli.txt").read_text(encoding="utf-8")
    render: Callable[[Path, str], str] = runpy.run_path(str(ROOT / "tools" / "wheel_requirements.py"))[
        "render_requirements"
    ]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert render(wheel, packages) == (f"tf-envlock[cli]=={__version__} \\\n    --hash=sha256:{digest}\n{packages}")
