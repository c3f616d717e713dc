"""An image that others pull: by its digest, on another engine, with its bill of materials and provenance beside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from envlock.image.bases.manifest import compute_digest
from envlock.lock.document import load
from tests.exhaustive import exhaustive
from tests.image.bed.fixtures import StartEngine
from tests.image.bed.session import ROOT, Bed
from tests.image.project import log_in
from tests.image.stocked import captured, demo_wheel
from tests.locks import encode

pytestmark = pytest.mark.engine

TAG = "nvcr.io/team/train:1"


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stock")
    demo_wheel(folder, "alpha", "1.0")
    return folder


@pytest.fixture
def project(bed: Bed, tmp_path: Path, stock: Path) -> Path:
    """Return a folder with a lock of a plain Python and a wheelhouse, and a configuration with a login."""
    folder = tmp_path / "project"
    shutil.copytree(stock, folder / "wheelhouse")
    (folder / "envlock.lock").write_bytes(encode(captured(bed, bed.python, stock, system=False)))
    log_in(bed, folder / "config", "nvcr.io")
    return folder


def run(bed: Bed, folder: Path, *args: str, login: bool = True) -> subprocess.CompletedProcess[str]:
    """Run envlock in a folder, where nvcr.io is the bed's registry."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT), **bed.engine.environ}
    environ["ENVLOCK_TOKEN_SERVERS"] = f"nvcr.io={bed.registry.tokens_address}"
    if login:
        environ["DOCKER_CONFIG"] = str(folder / "config")
    return subprocess.run(
        [*bed.engine.enter, "env", "-C", folder, sys.executable, "-m", "envlock", *args],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def fetched(bed: Bed, path: str) -> Any:
    """Return a document of the repository."""
    return json.loads(bed.registry.read("team/train", path))


@exhaustive
def test_it_is_pulled_by_digest_on_another_engine(bed: Bed, project: Path, start_engine: StartEngine) -> None:
    done = run(bed, project, "build", "--base", bed.python, "--tag", TAG, "--push")
    assert done.returncode == 0, done.stderr
    lock = load(project / "envlock.lock")
    assert lock.image is not None
    reference = str(lock.image.reference)
    assert done.stderr.endswith(f"pushed {reference}, with its bill of materials and provenance\n")
    other = start_engine("26")
    shutil.copy(project / "config/config.json", other.environ["DOCKER_CONFIG"])
    other.docker("pull", reference)
    assert json.loads(other.docker("inspect", reference).stdout)[0]["Id"] == lock.image.id
    ran = other.docker("run", "--rm", "--network=none", reference, "alpha")
    assert ran.stdout == "1.0\n"
    digest = reference.partition("@")[2]
    beside = fetched(bed, f"manifests/{digest.replace(':', '-')}")["manifests"]
    kinds = ["application/vnd.cyclonedx+json", "application/vnd.in-toto+json"]
    assert [each["artifactType"] for each in beside] == kinds
    exported = [run(bed, project, "export", "--format", "cyclonedx"),
                run(bed, project, "export", "--format", "slsa")]  # fmt: skip
    for each, text in zip(beside, (each.stdout for each in exported), strict=True):
        artifact = fetched(bed, f"manifests/{each['digest']}")
        assert artifact["subject"]["digest"] == digest
        assert artifact["layers"][0]["digest"] == compute_digest(text.encode())
    again = run(bed, project, "build", "--base", bed.python, "--tag", TAG, "--push")
    assert again.returncode == 0, again.stderr
    assert fetched(bed, f"manifests/{digest.replace(':', '-')}")["manifests"] == beside


def recipe() -> str:
    """Return the guide's commands that join images."""
    page = (ROOT / "docs/guides/deploy.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"(?:^    .*\n)*^    docker buildx imagetools create .*\n(?:^    .*\n)*", page, re.MULTILINE)
    return textwrap.dedent(found)


@exhaustive
def test_the_images_of_two_platforms_are_joined_as_the_guide_says(
    bed: Bed, project: Path, tmp_path: Path, start_engine: StartEngine
) -> None:
    """The image for arm64 is a stand-in with another lockfile: its programs do not run here."""
    done = run(bed, project, "build", "--base", bed.python, "--tag", "nvcr.io/team/joined:1-amd64", "--push")
    assert done.returncode == 0, done.stderr
    lock = load(project / "envlock.lock")
    assert lock.image is not None
    (tmp_path / "Dockerfile").write_text(f"FROM {bed.ngc}\nCOPY envlock.lock /opt/envlock/envlock.lock\n")
    (tmp_path / "envlock.lock").write_text("arm64\n")
    arm64 = "nvcr.io/team/joined:1-arm64"
    bed.engine.docker("build", "-q", "--platform=linux/arm64", "--network=none", "-t", arm64, tmp_path)
    config = ["--config", str(project / "config")]
    bed.engine.docker(*config, "push", "-q", arm64)
    (pushed,) = json.loads(bed.engine.docker("inspect", "-f", "{{json .RepoDigests}}", arm64).stdout)
    commands = recipe().replace("ghcr.io/team/train", "nvcr.io/team/joined")
    commands = commands.replace("nvcr.io/team/joined@sha256:AMD64", str(lock.image.reference))
    commands = commands.replace("nvcr.io/team/joined@sha256:ARM64", pushed)
    other = start_engine("26")
    shutil.copy(project / "config/config.json", other.environ["DOCKER_CONFIG"])
    joined = subprocess.run(
        [*other.enter, "sh", "-euc", commands], env={**os.environ, **other.environ}, capture_output=True, text=True
    )
    assert joined.returncode == 0, joined.stderr
    name = "nvcr.io/team/joined:1"
    lockfile = ("cat", "/opt/envlock/envlock.lock")
    assert other.docker("run", "--rm", "--network=none", "--platform=linux/arm64", name, *lockfile).stdout == "arm64\n"
    other.docker("pull", "-q", "--platform=linux/amd64", name)
    assert json.loads(other.docker("inspect", name).stdout)[0]["Id"] == lock.image.id
    assert other.docker("run", "--rm", "--network=none", name, "alpha").stdout == "1.0\n"
    verified = other.docker("run", "--rm", "--network=none", name, "envlock", "verify", "--deep").stdout
    assert verified.startswith("matches under policy strict"), verified


@exhaustive
def test_a_push_that_cannot_be_is_told(bed: Bed, project: Path) -> None:
    before = (project / "envlock.lock").read_bytes()
    done = run(bed, project, "build", "--base", bed.python, "--push")
    assert (done.returncode, done.stderr) == (
        2, "error: `--push` needs a name\nhint: add `--tag registry/name:tag`\n"
    )  # fmt: skip
    done = run(bed, project, "build", "--base", bed.python, "--tag", TAG, "--push", login=False)
    assert (done.returncode, done.stderr) == (
        5,
        "error: nvcr.io denies access to team/train: 401 without a login\n"
        "hint: check the name; if it is private, run `docker login nvcr.io`\n",
    )  # before anything is built
    assert (project / "envlock.lock").read_bytes() == before
