"""What is exported, installed by real installers into an empty environment, is the locked one: all on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.exhaustive import exhaustive
from tests.packages.projects import make_archive, make_project
from tests.packages.server import index_server
from tests.packages.wheels import make_wheel

pytestmark = pytest.mark.slow

Installer = Callable[..., list[str]]
UV = str(Path(sys.executable).with_name("uv"))
REPOSITORY = "https://git.example.org/built.git"


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Return variables under which installers know our index, our folder of wheels, and where the repository is."""
    make_wheel(tmp_path / "index", "thing")
    make_wheel(tmp_path / "links", "found")
    make_archive(tmp_path / "index", "packed")
    (tmp_path / ".gitconfig").write_text(
        f'[url "{(tmp_path / "built").as_uri()}"]\n    insteadOf = {REPOSITORY}\n'
        "[user]\n    name = a\n    email = a@example.org\n"
    )
    with index_server(tmp_path / "index") as server:
        yield {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "PIP_INDEX_URL": server.url,
            "PIP_FIND_LINKS": str(tmp_path / "links"),
            "PIP_CONFIG_FILE": os.devnull,
            "UV_NO_CONFIG": "1",
            "UV_DEFAULT_INDEX": server.url,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }


@pytest.fixture
def commit(environ: dict[str, str], tmp_path: Path) -> str:
    """Make a repository with a package in a folder that needs nothing to be built; return its commit."""
    folder = tmp_path / "built"
    make_project(folder / "python", "built")
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=x"]):
        _run(["git", *words], folder, environ)
    return _run(["git", "rev-parse", "HEAD"], folder, environ).strip()


def _run(argv: list[str], folder: Path, environ: dict[str, str]) -> str:
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _empty(folder: Path) -> str:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(folder / "bin" / "python")


def _pip(python: str, *args: str) -> list[str]:
    return [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *args]


def _uv(python: str, *args: str) -> list[str]:
    return [UV, "pip", "install", "--quiet", "--python", python, *args]


def _lock(envlock: Command, python: str, environ: dict[str, str]) -> list[str]:
    """Lock and hash; return what was said of packages without a proven wheel."""
    done = envlock("capture", "--hashes", "--python", python, environ=environ)
    assert done.returncode == 0, done.stderr
    return [line.split(":")[0].split()[0] for line in done.stderr.splitlines() if line.startswith("    ")]


@exhaustive
def test_a_git_package_and_pip_itself(envlock: Command, tmp_path: Path, environ: dict[str, str], commit: str) -> None:
    """The environment has the pip that `python -m venv` brings, which our index does not have."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "origin")], check=True)
    python = str(tmp_path / "origin" / "bin" / "python")
    _run(
        [python, "-m", "pip", "install", "thing", f"built @ git+{REPOSITORY}@{commit}#subdirectory=python"],
        tmp_path,
        environ,
    )
    assert [name for name in _lock(envlock, python, environ) if name != "setuptools"] == ["built", "pip"]

    written = envlock("export", "--format", "pylock", "-o", "pylock.toml", environ=environ)
    assert (written.returncode, written.stderr) == (0, "wrote pylock.toml\n")
    for number, installer in enumerate((_uv, _pip)):
        again = _empty(tmp_path / f"again-{number}")
        _run(installer(again, "-r", "pylock.toml"), tmp_path, environ)
        verified = envlock("verify", "--python", again, environ=environ)
        assert verified.returncode == 0, verified.stdout
        assert verified.stdout.startswith("matches under policy strict")


@exhaustive
@pytest.mark.parametrize(
    ("to", "file", "installer", "options"),
    [
        ("pylock", "pylock.toml", _uv, ["-r", "pylock.toml"]),
        ("requirements", "req.txt", _pip, ["--no-deps", "--require-hashes", "-r", "req.txt"]),
    ],
)
def test_a_wheel_of_a_folder(
    to: str,
    file: str,
    installer: Installer,
    options: list[str],
    envlock: Command,
    tmp_path: Path,
    environ: dict[str, str],
) -> None:
    python = _empty(tmp_path / "origin")
    _run(_pip(python, "thing", "found"), tmp_path, environ)
    assert _lock(envlock, python, environ) == []
    before = envlock("export", "--format", "pylock", environ=environ)
    reason = "its wheel is known from a disk, not from a URL (`envlock export --wheelhouse` may have it)"
    assert before.stderr == f"error: 1 package not exported:\n  found 1.0: {reason}\n"
    written = envlock("export", "-f", to, "-o", file, "--wheelhouse", "wheelhouse", environ=environ)
    assert written.returncode == 0, written.stderr
    again = _empty(tmp_path / "again")
    _run(installer(again, *options), tmp_path, environ)
    verified = envlock("verify", "--python", again, environ=environ)
    assert verified.returncode == 0, verified.stdout
    assert verified.stdout.startswith("matches under policy strict")


HOUSE = ("--wheelhouse", "wheelhouse")
INSTALLED = {
    "pylock.toml": ("pylock", _uv, ["-r"]),
    "requirements.txt": ("requirements", _pip, ["--no-deps", "--require-hashes", "-r"]),
    "req.uv.txt": ("requirements", _uv, ["--no-deps", "--require-hashes", "-r"]),
}
"""What is written -> its format, and how it is installed."""


@exhaustive
@pytest.mark.parametrize("installer", [_pip, _uv], ids=["pip", "uv"])
def test_what_was_built_here(
    installer: Installer, envlock: Command, tmp_path: Path, environ: dict[str, str], commit: str
) -> None:
    """An editable package, the project itself, a folder, a wheel on the disk, a commit, a source archive."""
    own, edited, folder = (make_project(tmp_path / name, name) for name in ("own", "edited", "folder"))
    wheel = make_wheel(tmp_path / "disk", "lying")
    python = _empty(tmp_path / "origin")
    checkout = f"built @ git+{REPOSITORY}@{commit}#subdirectory=python"
    _run(
        installer(python, "-e", str(own), "-e", str(edited), str(folder), str(wheel), checkout, "packed"),
        tmp_path,
        environ,
    )
    for file in tmp_path.glob("*/left-behind"):  # installers build in the folder itself
        file.unlink()
    envlock.folder = own
    hashed = envlock("capture", "--hashes", "--build", "--python", python, environ=environ)
    assert hashed.returncode == 0, hashed.stderr
    said = hashed.stderr.splitlines()
    assert "  6 of 6 packages have a proven wheel (2 built from their sources)" in said
    first = (own / "envlock.lock").read_bytes()
    assert not [*tmp_path.glob("*/left-behind")]
    assert envlock("capture", "--hashes", "--quiet", "--build", "--python", python, environ=environ).returncode == 0
    assert (own / "envlock.lock").read_bytes() == first, "a wheel that was built again is another one"

    for number, (name, (to, install, options)) in enumerate(INSTALLED.items()):
        assert envlock("export", "-f", to, "-o", name, *HOUSE, environ=environ).returncode == 0
        again = _empty(tmp_path / f"again-{number}")
        _run(install(again, *options, name), own, environ)
        deep = envlock("verify", "--deep", "--python", again, environ=environ)
        assert deep.returncode == 0, deep.stdout
        assert _run([again, "-c", "import built, edited, folder, lying, own, packed"], tmp_path, environ) == ""


@exhaustive
def test_another_wheel_of_the_same_version_is_another_package(
    envlock: Command, tmp_path: Path, environ: dict[str, str]
) -> None:
    edited = make_project(tmp_path / "edited", "edited")
    python = _empty(tmp_path / "origin")
    _run(_pip(python, "-e", str(edited)), tmp_path, environ)
    assert envlock("capture", "--hashes", "--build", "-q", "--python", python, environ=environ).returncode == 0
    again = _empty(tmp_path / "again")
    _run(_pip(again, str(make_wheel(tmp_path / "other", "edited"))), tmp_path, environ)
    verified = envlock("verify", "-v", "--python", again, environ=environ)
    assert verified.returncode == 1
    assert "packages.edited.origin.editable: locked true, live false" in verified.stdout
