"""What an installed envlock holds: the templates too, and nothing that does not belong."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


def test_the_templates_are_in_the_wheel(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if "_templates" in name} == {
        f"envlock/_templates/{file.name}" for file in (ROOT / "templates").iterdir()
    }
    tables = {"envlock/data/determinism_recipes.toml", "envlock/data/image.toml"}
    assert {"envlock/guest/image/donor.py", *tables} <= set(names)
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"envlock"}


def test_the_wheel_renders_what_the_checkout_renders(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import sys; from envlock.containers import render, plan\n"
        "base = plan.Base('nvcr.io/nvidia/tensorflow:25.02-tf2-py3@sha256:"
        "c83b37d26f19ab00d8a13cf974edd079c3d099918ec3110c304a989d6e2f75d5', 'ngc')\n"
        "sys.stdout.write(render.dockerfile(plan.base_plan(base)))\n"
        "assert render.__file__.startswith(sys.path[0]), render.__file__"
    )
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}"
    done = subprocess.run([sys.executable, "-c", program], cwd="/", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (ROOT / "Dockerfile.base").read_text(encoding="utf-8")
