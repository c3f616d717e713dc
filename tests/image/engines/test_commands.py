"""Podman and buildah by name: no daemon, the same image each time, verified inside."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envlock.lock.document import load
from tests.exhaustive import exhaustive
from tests.image.bed.podman import Podman
from tests.image.bed.session import ROOT, Bed
from tests.image.stocked import captured, demo_wheel
from tests.locks import encode

pytestmark = [pytest.mark.engine, pytest.mark.slow]

ENGINE = "buildah"
"""Podman, whose builds are Buildah's code, builds in tests/image/test_debian.py."""


@pytest.fixture(scope="module")
def locked(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """Return a lock of a plain Python with a package, and its wheelhouse."""
    stock = tmp_path_factory.mktemp("stock")
    demo_wheel(stock, "alpha", "1.0")
    return captured(bed, bed.python, stock, system=False), stock


def run(bed: Bed, store: Podman, folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command where nvcr.io and docker.io are the bed's registry, and podman is the only engine."""
    return subprocess.run(
        [*bed.engine.enter, "env", "-C", folder, *command],
        env={"PYTHONPATH": str(ROOT), **bed.engine.trust, **store.environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@exhaustive
def test_the_same_image_twice_and_verified_inside(
    bed: Bed, store: Podman, locked: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    lock, stock = locked
    shutil.copytree(stock, tmp_path / "wheelhouse")
    (tmp_path / "envlock.lock").write_bytes(encode(lock))
    envlock = (sys.executable, "-m", "envlock", "build", "--base", bed.python, "--engine", ENGINE)
    done = run(bed, store, tmp_path, *envlock, "--tag", f"team/{ENGINE}:1", "--no-cache")
    assert done.returncode == 0, done.stderr
    assert f"team/{ENGINE}:1 was verified inside" in done.stderr
    image = load(tmp_path / "envlock.lock").image
    assert image is not None
    assert (image.engine, image.envlock is not None) == (ENGINE, True)
    done = run(bed, store, tmp_path, *envlock, "--rebuild")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "identical: the same image ID"), done.stderr
    options = ("--rm", "--network=none", "-e", "TF_ENABLE_ONEDNN_OPTS=0")
    refused = run(bed, store, tmp_path, "podman", "run", *options, f"localhost/team/{ENGINE}:1", "alpha")
    assert (refused.returncode, refused.stdout) == (1, ""), refused.stderr
    ran = run(bed, store, tmp_path, "podman", "run", *options[:2], f"localhost/team/{ENGINE}:1", "alpha")
    assert ran.stdout == "1.0\n", ran.stderr
    capture = (sys.executable, "-m", "envlock", "capture", "-o", "again.lock", "--engine", ENGINE)
    done = run(bed, store, tmp_path, *capture, "--image", f"localhost/team/{ENGINE}:1")
    assert done.returncode == 0, done.stderr
    said = run(bed, store, tmp_path, sys.executable, "-m", "envlock", "diff", "-v", "envlock.lock", "again.lock")
    lines = said.stdout.splitlines()
    assert lines[:2] == ["matches under policy strict", "1 difference that policy strict allows"], said.stdout
    assert lines[2].startswith(
        "  i system.container: "
    )  # the engine that captured it first marks its containers otherwise
