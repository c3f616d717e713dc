"""A real environment from pip: every wheel is proven, and what is installed from the export is what was locked.

An environment of uv's own making is in tests/packages/test_round_trip.py, NVIDIA's libraries in test_identity_cuda.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.exhaustive import exhaustive

UV = Path(sys.executable).with_name("uv")
CACHE = Path(__file__).resolve().parents[2] / ".venvs" / "cache"


@pytest.fixture
def asking() -> dict[str, str]:
    """Return what this machine says of its index and certificates; wheels are kept beside the environments.

    Its folders of wheels are left out: what is known from a disk has no URL to export.
    """
    folders = ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "UV_FIND_LINKS")
    known = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
    kept = {name: value for name, value in os.environ.items() if name in known or name.startswith(("PIP_", "UV_"))}
    plain = {name: value for name, value in kept.items() if name not in folders}
    return {**plain, "PIP_CONFIG_FILE": os.devnull, "XDG_CACHE_HOME": str(CACHE)}


@pytest.fixture
def rebuilt(tmp_path: Path) -> Iterator[Path]:
    """Return a folder for rebuilt environments, which are gigabytes and do not outlive the test."""
    folder = tmp_path / "rebuilt"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def hash_all(envlock: Command, python: Path, asking: dict[str, str]) -> dict[str, Any]:
    """Lock and hash an environment; return what the lock says of its packages."""
    done = envlock("capture", "--hashes", "-q", "--python", str(python), environ=asking, timeout=900)
    assert (done.returncode, done.stderr) == (0, "")
    lock = json.loads((envlock.folder / "envlock.lock").read_bytes())
    packages: dict[str, Any] = lock["identity"]["packages"]
    assert packages.keys() == lock["facts"]["packages"].keys()
    return packages


def rebuild(envlock: Command, folder: Path, argv: list[str], environ: dict[str, str]) -> None:
    """Install into an empty environment, and verify it against the lock."""
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    whole = [part.format(python=python) for part in argv]
    plain = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    done = subprocess.run(
        whole, cwd=envlock.folder, env={**plain, **environ}, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    verified = envlock("verify", "--python", str(python))
    assert (verified.returncode, verified.stdout.partition(" (")[0].strip()) == (0, "matches under policy strict")
    shutil.rmtree(folder)


BY_UV = [str(UV), "pip", "install", "-q", "--no-cache", "--python", "{python}", "-r", "pylock.toml"]
BY_PIP = [sys.executable, "-m", "pip", "--python", "{python}", "install", "-q", "--no-cache-dir", "--no-deps"]
BY_PIP += ["--require-hashes", "-r", "requirements.txt"]


@exhaustive
def test_the_environment_with_tensorflow_is_proven_and_rebuilt(
    envlock: Command, tensorflow_python: Path, asking: dict[str, str], rebuilt: Path
) -> None:
    packages = hash_all(envlock, tensorflow_python, asking)
    assert {name: each["reason"] for name, each in packages.items() if each["proof"] != "file"} == {}
    assert any(name.startswith("tensorflow") for name in packages)
    for to, file, argv in (("pylock", "pylock.toml", BY_UV), ("requirements", "requirements.txt", BY_PIP)):
        assert envlock("export", "--format", to, "-o", file).returncode == 0
        rebuild(envlock, rebuilt / to, argv, asking)
