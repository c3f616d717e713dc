"""Deep verification of a real TensorFlow environment: silent where nothing was touched, and 200 random corruptions."""

from __future__ import annotations

import marshal
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from envlock.packages.file_verification import survey, verify_files
from envlock.packages.installation import find_installation
from envlock.runtime.files.compiled_file import parse_compiled_name
from envlock.runtime.report import INFO
from tests.conftest import Command
from tests.exhaustive import exhaustive
from tests.real.corruption import Copy, Damage, fits

SEED = "ENVLOCK_TEST_SEED"
"""Names the seed of the random corruptions, to repeat a run; it is printed."""
ROUNDS, EACH = 2, 100


def rng(capsys: pytest.CaptureFixture[str]) -> random.Random:
    seed = int(os.environ.get(SEED) or time.time_ns() % 10**9)
    with capsys.disabled():
        sys.stdout.write(f"\nseed of the corruptions: {seed} ({SEED})\n")
    return random.Random(seed)


def corrupt_in_rounds(copy: Copy, random_: random.Random) -> int:
    """Damage, verify, restore, round by round; return how many corruptions were found and named."""
    found = 0
    for _ in range(ROUNDS):
        damage = Damage(copy, random_)
        try:
            damage.do(EACH)
            findings = {finding.where.fact: finding for finding in copy.wrong()}
            assert sorted(findings) == sorted(damage.named)
            misnamed = {path: kind for path, kind in damage.named.items() if not fits(kind, findings[path])}
            assert misnamed == {}
            found += EACH
        finally:
            damage.undo()
    return found


@exhaustive
def test_an_untouched_environment_of_pip(tensorflow_python: Path) -> None:
    seen = survey(find_installation(tensorflow_python))
    assert len(seen.claims) > 5000
    assert any(path.endswith(".pyc") for path in seen.claims)
    assert [each.to_json() for each in verify_files(seen, tensorflow_python, {}) if each.severity != INFO] == []


@exhaustive
def test_200_random_corruptions_are_found_and_named(
    tensorflow_python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Copy(tensorflow_python, tmp_path)
    assert corrupt_in_rounds(copy, rng(capsys)) == 200
    assert copy.wrong() == []


@exhaustive
def test_a_changed_byte_of_bytecode_is_named_or_python_runs_the_same(
    tensorflow_python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A byte of a file name or of a time stamp changes nothing that runs: Python replaces it, or compiles anew."""
    copy = Copy(tensorflow_python, tmp_path)
    random_ = rng(capsys)
    damage = Damage(copy, random_)
    damage._files = sorted(map(str, copy.site.rglob("*.pyc")))
    random_.shuffle(damage._files)
    for _ in range(60):
        damage.flip(damage.take())
    found = {finding.where.fact for finding in copy.wrong()}
    assert found <= set(damage.named)
    silent = [copy.site / path for path in damage.named if path not in found]
    assert len(silent) <= 20
    if sys.version_info[:2] == tuple(map(int, copy.site.parent.name.removeprefix("python").split("."))):
        assert [path for path in silent if not _same(path)] == []


def _same(path: Path) -> bool:
    made_of = parse_compiled_name(str(path))
    assert made_of is not None
    held, whole = path.read_bytes(), Path(made_of.path).resolve()
    if held[:16] != _original_header(whole, made_of.source):
        return True  # Python does not take it
    code = compile(Path(made_of.source).read_bytes(), made_of.source, "exec", dont_inherit=True)
    return bool(marshal.loads(held[16:]) == code)


def _original_header(path: Path, source: str) -> bytes:
    import importlib.util

    status = Path(source).stat()
    numbers = (0, int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
    return importlib.util.MAGIC_NUMBER + b"".join(number.to_bytes(4, "little") for number in numbers)


@exhaustive
def test_the_command_line_on_the_real_environment(cli: Command, lock: dict[str, Any]) -> None:
    done = cli("verify", "--deep", "--quiet", timeout=500)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].partition(" (")[0] == "matches under policy strict"


UV = str(Path(sys.executable).with_name("uv"))
PACKAGES = ("requests", "coverage", "setuptools", "protobuf")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache of uv's, so that each package is fetched once; nothing but uv writes there."""
    return tmp_path_factory.mktemp("uv")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["copy", "hardlink", "symlink"])
@exhaustive
def test_an_untouched_environment_of_uv(mode: str, cache: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "UV_CACHE_DIR": str(cache), "UV_NO_PROGRESS": "1"}
    target = tmp_path / "target"
    python = target / "bin" / "python"
    subprocess.run([UV, "venv", "-q", "-p", sys.executable, str(target)], check=True, env=environ)
    install = [UV, "pip", "install", "-q", "-p", str(python), "--link-mode", mode, "numpy", *PACKAGES]
    subprocess.run(install, check=True, env=environ)
    writes = {name: value for name, value in environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    imports = [str(python), "-c", "import numpy, requests"]
    subprocess.run(imports, check=True, env=writes)  # leaves bytecode that no RECORD lists
    seen = survey(find_installation(python))
    assert list(Path(seen.sites[0]).rglob("*.pyc"))
    assert [each.to_json() for each in verify_files(seen, python, {}) if each.severity != INFO] == []


@pytest.mark.slow
@pytest.mark.parametrize("umask", [0o077, 0o002, 0o000])
@exhaustive
def test_an_untouched_environment_under_another_umask(umask: int, tmp_path: Path) -> None:
    target = tmp_path / "target"
    python = target / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(target)], check=True, umask=umask)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True, umask=umask)
    found = verify_files(survey(find_installation(python)), python, {})
    assert [each.to_json() for each in found if each.severity != INFO] == []
