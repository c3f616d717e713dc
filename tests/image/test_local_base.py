"""Bases that no registry has: built in the engine, captured there or named, and built upon; and the page on that."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envlock.image import render
from envlock.image.bases.reference import is_local, name_local_image, parse
from envlock.image.engines import buildah
from envlock.image.local_base import find_local_base, is_only_local
from envlock.image.plan import Base, base_plan
from envlock.lock.document import load
from envlock.runtime.errors import UsageError
from tests.image.bed.session import ROOT, Bed
from tests.image.plans import planned
from tests.image.project import Project
from tests.image.stocked import captured, demo_wheel
from tests.locks import document, encode

ID = "sha256:" + "ab" * 32
NAME = f"localhost/envlock-base:{'ab' * 32}"
FENCE = re.compile(r"^```dockerfile\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = (ROOT / "docs/guides/extend.md").read_text(encoding="utf-8")


def test_the_name_of_a_local_image_is_its_id() -> None:
    reference = name_local_image(ID)
    assert str(reference) == f"{NAME}@{ID}"
    assert is_local(parse(str(reference)))
    assert name_local_image(ID.removeprefix("sha256:")) == reference, "podman's"
    assert not is_local(parse("localhost/team/base:1"))


@pytest.mark.parametrize(
    ("image", "digests", "expected"),
    [
        ("team/x:1", None, True),
        ("team/x:1", [f"team/x@{ID}"], False),
        ("team/x:1", [f"ghcr.io/team/x@{ID}"], True),
        ("docker.io/team/x:1", [f"team/x@{ID}"], False),
        ("abcdef", [], True),
    ],
)
def test_which_images_no_registry_has(image: str, digests: list[str] | None, expected: bool) -> None:
    assert is_only_local(image, {"RepoDigests": digests}) is expected


@pytest.mark.parametrize(
    ("first", "asked", "expected"),
    [
        ("docker.io/library/python:3.11-slim", f"docker.io/library/python:3.11-slim@{ID}", True),
        ("docker.io/library/python:3.11-slim", "python:3.11-slim", True),
        ("localhost/team/x:1", "team/x:1", False),
        ("localhost/team/x:1", "localhost/team/x:1", False),
        ("", "abcdef", False),
    ],
)
def test_buildah_knows_which_images_a_registry_gave(
    first: str, asked: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"FromImage": first, "FromImageID": "ab" * 32, "FromImageDigest": ID, "OCIv1": {"rootfs": {"diff_ids": []}}}
    monkeypatch.setattr(buildah, "call", lambda *args: json.dumps({"version": "1", **found}))
    assert is_only_local(asked, buildah.Buildah().inspect(asked)) is not expected


class Stub:
    """An engine that has one image under every name, and none of a registry's digests."""

    name = "docker"

    def inspect(self, image: str) -> dict[str, Any]:
        assert not image.startswith("-")
        return {"Id": ID, "RepoDigests": []}


def test_a_release_of_nvidias_is_never_one_that_the_engine_has_made() -> None:
    engine: Any = Stub()
    assert find_local_base(engine, "team/x:1") == name_local_image(ID)
    assert find_local_base(engine, "nvcr.io/nvidia/tensorflow:25.02-tf2-py3") is None
    with pytest.raises(UsageError):
        find_local_base(engine, "--help")


def test_a_dockerfile_names_a_local_base_by_its_id() -> None:
    plan = replace(planned("captured"), base=Base(NAME, "captured", (), (), ()))
    text = render.dockerfile(plan)
    assert f"FROM {NAME} AS built" in text
    assert "by its ID: only the engine that builds has it" in text
    assert f"Bootstrap: docker-daemon\nFrom: {NAME}\nStage: built" in render.apptainer(plan)


def test_a_base_that_verifies_does_not_verify_twice() -> None:
    own = ("/nvidia.sh", "python3", "-B", "/opt/envlock/entrypoint.py")
    plan = replace(planned("captured"), base=Base(NAME, "captured", own, (), ()))
    assert plan.entrypoint.count("/opt/envlock/entrypoint.py") == 1
    assert plan.entrypoint[0] == "/nvidia.sh"


@pytest.mark.engine
def test_an_image_that_only_the_engine_has_is_captured_and_built_upon(bed: Bed, tmp_path: Path) -> None:
    made = Project(bed, tmp_path / "project", document())
    (tmp_path / "Dockerfile").write_text(f"FROM {bed.ngc}\nRUN echo team > /etc/team\n", encoding="ascii")
    tag = f"team/local:{tmp_path.name}"
    bed.engine.docker("build", "-q", "--network=none", "-t", tag, tmp_path)
    done = made("capture", "--image", tag)
    assert done.returncode == 0, done.stderr
    assert f"no registry has {tag}: `envlock build` takes it from the engine that has it now" in done.stderr
    base = load(made.folder / "envlock.lock").base_image
    assert base is not None
    image = json.loads(bed.engine.docker("image", "inspect", tag).stdout)[0]
    assert (base.name, base.digest, base.route) == ("localhost/envlock-base", image["Id"], "captured")
    for engine in ("buildx", "docker"):
        built = made("build", "--engine", engine, "--tag", f"test/local:{engine}")
        assert f"test/local:{engine} was verified inside: it matches under policy strict\n" in built.stderr, (
            built.stderr
        )
        ran = bed.engine.docker("run", "--rm", "--network=none", f"test/local:{engine}", "cat", "/etc/team")
        assert ran.stdout == "team\n"
    assert made("build", "--rebuild").returncode == 0
    # The tag moves, and the lockfile's base stays.
    bed.engine.docker("tag", "test/local:docker", tag)
    assert made("build", "--offline").returncode == 0
    bed.engine.docker("rmi", "-f", tag, f"{base.name}:{base.tag}", "test/local:buildx", "test/local:docker")


@pytest.mark.engine
def test_a_local_base_that_is_gone_is_said_so(bed: Bed, tmp_path: Path) -> None:
    reference = name_local_image(ID)
    base = {"name": reference.name, "tag": reference.tag, "digest": ID, "manifest": None, "platform": "linux/amd64"}
    made = Project(bed, tmp_path / "project", document(base_image={**base, "route": "captured", "reason": "A test."}))
    done = made("build")
    assert (done.returncode, done.stdout) == (5, "")
    assert "does not have the base image sha256:abababababab, and no registry has it" in done.stderr


def rename(text: str) -> str:
    """Give the page's images names of their own: the pages that test_guides.py runs name theirs like it."""
    return text.replace("team/", "extending/")


class Page:
    """The page's Dockerfiles and commands, in a project of their own."""

    def __init__(self, bed: Bed, folder: Path) -> None:
        self.bed, self.folder = bed, folder
        wheel = demo_wheel(folder / "wheelhouse", "alpha", "1.0")
        (folder / "envlock.lock").write_bytes(encode(captured(bed, bed.python, wheel.parent, system=False)))
        # A Python without any package computes nothing, so nothing would be verified.
        shutil.unpack_archive(wheel, folder / "python" / "site", "zip")
        text = f"FROM {bed.python}\nCOPY site/ /usr/lib/python3/dist-packages/\n"
        (folder / "python" / "Dockerfile").write_text(text, encoding="ascii")
        bed.engine.docker("build", "-q", "--network=none", "-t", "extending/python:1", folder / "python")
        for name, text in FENCE.findall(PAGE):
            (folder / name).write_text(rename(text).replace("python:3.11-slim", "extending/python:1"), encoding="utf-8")
        (folder / "company-ca.crt").write_text("a certificate\n", encoding="ascii")
        (folder / "archive.conf").write_text("password\n", encoding="ascii")
        (folder / "start.sh").write_text("cat /srv/cache/state /etc/team\n", encoding="ascii")
        base = render.dockerfile(base_plan(Base(bed.ngc, "ngc")))
        (folder / "Dockerfile.base").write_text(base, encoding="utf-8")
        shutil.copytree(ROOT / "envlock", folder / "envlock", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "bin").mkdir()
        tool = folder / "bin" / "envlock"
        tool.write_text(f'#!/bin/sh\ncd "$OLD"; exec {sys.executable} -P -m envlock "$@"\n', encoding="utf-8")
        tool.chmod(0o755)

    def __call__(self, command: str) -> subprocess.CompletedProcess[str]:
        environ = {
            "HOME": str(self.folder),
            "PYTHONPATH": str(ROOT),
            "OLD": str(self.folder),
            **self.bed.engine.environ,
        }
        environ["PATH"] = f"{self.folder / 'bin'}:{self.bed.engine.root / 'usr/bin'}:{os.environ['PATH']}"
        enter = [*self.bed.engine.enter, "env", "-C", str(self.folder), "sh", "-c", command]
        return subprocess.run(enter, env=environ, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.engine
def test_the_page_on_extending_does_what_it_says(bed: Bed, tmp_path: Path) -> None:
    page = Page(bed, tmp_path)
    commands = [line.strip() for line in PAGE.splitlines() if line.startswith("    ")]
    assert len(commands) == 10
    printed = {}
    for command in commands:
        # The bed's engine has no network of its own for a build.
        here = rename(command).replace("docker build --secret", "docker build --network none --secret")
        here = here.replace("docker build -f", "docker build --network none -f")
        done = page(here.replace("docker run", "docker run --network none"))
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        printed[command] = done.stdout
    assert printed["docker run --rm team/final:1"] == "warm\nteam\n"
    assert printed["docker run --rm team/final:1 envlock verify"].startswith("matches under policy strict")
    labels = bed.engine.docker("image", "inspect", "-f", "{{json .Config.Labels}}", "extending/train:1").stdout
    assert '"org.opencontainers.image.vendor":"Team"' in labels
    history = bed.engine.docker("history", "--no-trunc", "extending/train:1").stdout
    assert "password" not in history
