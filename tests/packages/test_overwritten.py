"""A file that two packages install: whose it is, is proven, locked, foreseen, and so in the image."""

from __future__ import annotations

import sys
import zipfile
from dataclasses import replace
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from envlock.image.foresight import find_overwritten as foresee
from envlock.image.layers import Wheel
from envlock.lock.models import PackageIdentity
from envlock.packages import file_verification, installed_distributions
from envlock.packages.installation import Installation
from envlock.packages.prover import prove
from envlock.runtime.report import ERROR, WARNING
from tests.image.bed.session import Bed
from tests.image.project import Project
from tests.image.stocked import captured
from tests.packages.offered import FolderIndex
from tests.packages.wheels import make_wheel

SHARED = "examples/__init__.py"
NAMES = ("alpha", "beta")


def make_both(folder: Path, shared: str = SHARED) -> list[Path]:
    return [
        make_wheel(folder, name, files={shared: f"owner = {name!r}\n".encode(), f"{name}.py": b""}) for name in NAMES
    ]


def install(site: Path, wheels: list[Path]) -> None:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "venv/lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
    folder.mkdir(parents=True)
    return folder


def prove_both(site: Path, index: Path, cache: Path) -> dict[str, PackageIdentity]:
    """Return what `envlock capture --hashes` finds of the two packages."""
    facts = {"version": "1.0", "wheel_tags": ["py3-none-any"]}
    found = [
        installed_distributions.describe_installed(name, facts, PathDistribution(site / f"{name}-1.0.dist-info"))
        for name in NAMES
    ]
    return prove(installed_distributions.find_overwritten(found), FolderIndex(index), known={}).packages


def verify(site: Path, locked: dict[str, PackageIdentity]) -> dict[str, list[str]]:
    """Return severity -> messages of the deep check."""
    survey = file_verification.survey(Installation(site.parents[2], (site,)))
    found = file_verification.verify_files(survey, Path(sys.executable), locked)
    return {level: [each.message for each in found if each.severity == level] for level in (ERROR, WARNING)}


@pytest.mark.processes  # bytecode is compared in a child
@pytest.mark.parametrize("winner", NAMES)
def test_who_was_installed_last_is_locked(tmp_path: Path, site: Path, winner: str) -> None:
    wheels = sorted(make_both(tmp_path / "index"), key=lambda wheel: wheel.name.startswith(winner))
    loser = next(name for name in NAMES if name != winner)
    install(site, wheels)
    found = prove_both(site, tmp_path / "index", tmp_path / "cache")
    assert {name: identity.reason for name, identity in found.items()} == dict.fromkeys(NAMES)
    assert found[loser].overwritten == {SHARED: winner}
    assert "overwritten" not in found[winner].model_dump(exclude_unset=True)
    said = f"{loser}-1.0.dist-info: as locked, 1 of its files were overwritten by {winner}"
    assert verify(site, found) == {ERROR: [], WARNING: [said]}
    # The other order is another environment.
    install(site, wheels[::-1])
    assert [message.partition(":")[0] for message in verify(site, found)[ERROR]] == [SHARED]


def test_a_file_of_neither_is_no_proof(tmp_path: Path, site: Path) -> None:
    install(site, make_both(tmp_path / "index"))
    (site / SHARED).write_bytes(b"edited = 1\n")
    found = prove_both(site, tmp_path / "index", tmp_path / "cache")
    assert [identity.wheel for identity in found.values()] == [None, None]


def test_a_library_of_two_packages_is_no_proof(tmp_path: Path, site: Path) -> None:
    install(site, make_both(tmp_path / "index", "nvidia/lib/libcudnn.so.9"))
    found = prove_both(site, tmp_path / "index", tmp_path / "cache")
    assert [name for name, identity in found.items() if identity.wheel is None] == ["alpha"]


def test_only_what_no_lockfile_settles_is_refused_before_a_build(tmp_path: Path) -> None:
    alpha, beta = (
        Wheel(name, "1.0", path.name, "00" * 32) for name, path in zip(NAMES, make_both(tmp_path), strict=True)
    )
    assert list(foresee([alpha, beta], tmp_path)) == [f"alpha and beta install 1 same files, such as {SHARED}"]
    settled = replace(alpha, overwritten=((SHARED, "beta"),))
    assert list(foresee([settled, beta], tmp_path)) == []


@pytest.mark.parametrize(("winner", "origin"), [("alpha", "index"), ("beta", "index"), ("alpha", "local")])
def test_the_image_has_the_locked_one(bed: Bed, tmp_path: Path, winner: str, origin: str) -> None:
    wheelhouse = tmp_path / "wheelhouse"
    make_both(wheelhouse)
    lock = captured(bed, bed.python, wheelhouse, system=False)
    loser = next(name for name in NAMES if name != winner)
    lock["identity"]["packages"][loser]["overwritten"] = {SHARED: winner}
    # A wheel of a disk has a layer of its own.
    lock["identity"]["packages"]["beta"]["origin"] = origin
    made = Project(bed, tmp_path, lock)
    done = made("build", "--base", bed.python, "--tag", f"test/{winner}-{origin}:1")
    assert done.returncode == 0, done.stderr
    assert "was verified inside: it matches under policy strict" in done.stderr
    ask = "import examples; print(examples.owner)"
    ran = bed.engine.docker("run", "--rm", "--network=none", f"test/{winner}-{origin}:1", "python", "-c", ask)
    assert ran.stdout == f"{winner}\n"
