"""Deep verification where the files are large: tensorflow[and-cuda], and wheels that overwrite each other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from envlock.packages.file_verification import survey, verify_files
from envlock.packages.installation import find_installation
from envlock.runtime.report import INFO
from tests.real.corruption import Copy, Damage
from tests.real.test_cuda_install import INTERPRETERS, each_environment
from tests.real.test_deep_files import corrupt_in_rounds, rng

pytestmark = pytest.mark.cuda_wheels
one_environment = pytest.mark.parametrize("python", INTERPRETERS[:1], ids=[INTERPRETERS[0].parents[1].name])
"""For what takes a minute and more, and would find the same in the other."""


@each_environment
def test_an_untouched_environment_with_cuda(python: Path) -> None:
    seen = survey(find_installation(python))
    assert seen.size > 3_000_000_000
    assert [each.to_json() for each in verify_files(seen, python, {}) if each.severity != INFO] == []


@one_environment
def test_200_random_corruptions_with_cuda(python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = Copy(python, tmp_path)
    assert corrupt_in_rounds(copy, rng(capsys)) == 200
    assert copy.wrong() == []


@one_environment
def test_a_changed_byte_of_each_large_library_comes_first(
    python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Copy(python, tmp_path)
    damage = Damage(copy, rng(capsys))
    for name in ("libcublas.so.12", "libcudnn.so.9", "libcufft.so.11", "tensorflow/__init__.py"):
        damage.flip(damage.take(name))
    found = sorted(copy.wrong(), key=lambda finding: -finding.weight)
    assert {finding.where.fact for finding in found} == set(damage.named)
    assert [finding.where.fact.startswith("nvidia/") for finding in found] == [True, True, True, False]


@each_environment
def test_two_wheels_that_fight_for_a_cuda_library(python: Path, tmp_path: Path) -> None:
    """As `pip install nvidia-cublas-cu12 nvidia-cublas` leaves it: one file, two RECORDs with other hashes."""
    copy = Copy(python, tmp_path)
    (info,) = copy.site.glob("nvidia_cublas_cu12-*.dist-info")
    rival = copy.site / "nvidia_cublas-13.0.0.dist-info"
    rival.mkdir()
    (path,) = [line.split(",")[0] for line in (info / "RECORD").read_text().splitlines() if "libcublas.so.12," in line]
    text = f"{path},sha256={'A' * 43},1\n{rival.name}/RECORD,,\n"
    (rival / "RECORD").write_text(text)
    shutil.copymode(info / "RECORD", rival / "RECORD")
    (finding,) = copy.wrong()
    ours = f"nvidia-cublas-cu12 {info.name.split('-')[1].removesuffix('.dist')}"
    assert (finding.rule, finding.where.fact) == ("file-doubly-owned", path)
    assert finding.actual["what"] == f"{ours} has overwritten the file of nvidia-cublas 13.0.0"
    assert finding.weight == 95
    assert (copy.site / path).is_symlink()
