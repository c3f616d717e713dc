"""In real life: an environment is locked, hashed, exported and vendored, and installed anew it is the locked one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.exhaustive import exhaustive

pytestmark = pytest.mark.slow

PACKAGES = ("charset-normalizer==3.4.4", "idna==3.11", "markupsafe==3.0.3", "zipp==3.23.0")
UV = str(Path(sys.executable).with_name("uv"))
PIP = (sys.executable, "-m", "pip")
KEPT = ("PATH", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
KEPT_PREFIXES = ("PIP_CERT", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
DEAD = "http://127.0.0.1:9"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Return variables under which the installers find the public index, or the one that is named in its place."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT or name in KEPT_PREFIXES}
    own = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "UV_CACHE_DIR": str(tmp_path / "uv")}
    return {**kept, **own, "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def _run(argv: list[str], folder: Path, environ: dict[str, str]) -> None:
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _empty(folder: Path, environ: dict[str, str]) -> str:
    """Make an environment without any package; return its interpreter."""
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder.parent, environ)
    return str(folder / "bin" / "python")


def _pip(python: str, *args: str) -> list[str]:
    return [*PIP, "--python", python, "install", "--quiet", *args]


def _uv(python: str, *args: str) -> list[str]:
    return [UV, "pip", "install", "--quiet", "--python", python, *args]


@exhaustive
def test_what_python_itself_brings_is_proven_or_the_reason_mends_it(
    envlock: Command, tmp_path: Path, environ: dict[str, str]
) -> None:
    """Debian's, Ubuntu's and Fedora's `venv` brings a pip and, up to Python 3.11, a setuptools that are patched."""
    _run([sys.executable, "-m", "venv", "env"], tmp_path, environ)
    python = str(tmp_path / "env" / "bin" / "python")
    environ |= {"PATH": f"{tmp_path}/env/bin:{environ['PATH']}"}
    reasons = {name: each["reason"] for name, each in _identities(envlock, python, environ).items() if each["reason"]}
    assert set(reasons) == ({"pip"} if sysconfig.get_config_var("WHEEL_PKG_DIR") else set())
    for reason in reasons.values():
        assert reason.startswith("it is the distribution's own build (")
        wanted = reason.partition("; reinstall ")[2].split()[0]
        _run([python, "-m", "pip", "install", "--force-reinstall", wanted], tmp_path, environ)
    assert {each["proof"] for each in _identities(envlock, python, environ).values()} == {"file"}


def _identities(envlock: Command, python: str, environ: dict[str, str]) -> dict[str, Any]:
    """Lock and hash the packages of an environment; return what the lock says of them."""
    done = envlock("capture", "--hashes", "--quiet", "--python", python, environ=environ, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    packages: dict[str, Any] = json.loads((envlock.folder / "envlock.lock").read_bytes())["identity"]["packages"]
    return packages


Installer = Callable[..., list[str]]
WAYS = {
    "uv, pylock": ("pylock", "pylock.toml", _uv, ("-r", "pylock.toml")),
    "pip, requirements": ("requirements", "req.txt", _pip, ("--no-deps", "--require-hashes", "-r", "req.txt")),
    "uv, requirements": ("requirements", "req.txt", _uv, ("--no-deps", "--require-hashes", "-r", "req.txt")),
}
"""Name -> format, file, installer and its options."""


@pytest.fixture(params=[_pip, _uv], ids=["pip", "uv"])
def locked(request: pytest.FixtureRequest, envlock: Command, tmp_path: Path, environ: dict[str, str]) -> Path:
    """Lock and hash an environment that was made by an installer; return the folder with the lock."""
    python = _empty(tmp_path / "origin", environ)
    first = subprocess.run(
        request.param(python, *PACKAGES), env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    if first.returncode != 0 and not os.environ.get("CI"):
        pytest.skip(f"no package index to be reached: {first.stderr[-300:]}")
    assert first.returncode == 0, first.stderr
    hashed = envlock("capture", "--hashes", "--python", python, environ=environ, timeout=300)
    assert hashed.returncode == 0, hashed.stderr
    assert hashed.stderr.endswith(f"  {len(PACKAGES)} of {len(PACKAGES)} packages have a proven wheel\n")
    return tmp_path


@exhaustive
@pytest.mark.parametrize(
    "vendored", [pytest.param(False, marks=exhaustive), True], ids=["from the index", "from a wheelhouse"]
)
def test_what_is_exported_installs_as_what_was_locked(
    vendored: bool, locked: Path, envlock: Command, environ: dict[str, str]
) -> None:
    house: tuple[str, ...] = ()
    if vendored:
        house = ("--wheelhouse", "wheelhouse")
        nowhere = {"HTTP_PROXY": DEAD, "HTTPS_PROXY": DEAD, "NO_PROXY": ""}
        environ = {**environ, **nowhere, "UV_CACHE_DIR": str(locked / "fresh"), "PIP_CACHE_DIR": str(locked / "fresh")}
    for number, (to, file, installer, options) in enumerate(WAYS.values()):
        written = envlock("export", "--format", to, "-o", file, *house, environ=environ)
        how = "4 already there" if number else "4 from the cache"
        filled = f"wheelhouse: 4 wheels ({how})\n" if vendored else ""
        assert (written.returncode, written.stderr) == (0, f"{filled}wrote {file}\n")
        python = _empty(locked / f"again-{number}", environ)
        _run(installer(python, *options), locked, environ)
        verified = envlock("verify", "--python", python, environ=environ)
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert verified.stdout.startswith("matches under policy strict")
