"""From a lock to an image on a real engine: verified inside, refused when tampered with, the same when rebuilt."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envlock.lock.document import load
from tests.containers.bed.session import ROOT, Bed
from tests.containers.stocked import captured, demo_wheel, identity
from tests.locks import encode

pytestmark = pytest.mark.engine

ENGINES = ["buildx", "docker"]


class Project:
    """A folder with a lock and a wheelhouse, and the command line there, where nvcr.io is the bed's registry."""

    def __init__(self, bed: Bed, folder: Path, lock: dict[str, Any]) -> None:
        self.bed = bed
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.write(lock)

    def write(self, lock: dict[str, Any]) -> None:
        (self.folder / "envlock.lock").write_bytes(encode(lock))

    def __call__(self, *args: str, umask: int = 0o022, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        names = ("PATH", "HOME", "LANG", "CI")
        plain = {name: value for name, value in os.environ.items() if name in names}
        return subprocess.run(
            [*self.bed.engine.enter, "env", "-C", self.folder, sys.executable, "-m", "envlock", *args],
            env={**plain, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1", **self.bed.engine.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            umask=umask,
            check=False,
        )

    @property
    def image(self) -> dict[str, Any]:
        lock = load(self.folder / "envlock.lock")
        assert lock.image is not None
        return lock.image.model_dump()


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stock")
    demo_wheel(folder, "alpha", "1.0")
    demo_wheel(folder, "beta", "2.5")
    return folder


@pytest.fixture(scope="session")
def ngc_lock(bed: Bed, stock: Path) -> dict[str, Any]:
    """Return a lock of NVIDIA's image with two packages more."""
    return captured(bed, bed.ngc, stock, system=True)


@pytest.fixture(scope="session")
def plain_lock(bed: Bed, stock: Path) -> dict[str, Any]:
    """Return a lock of a plain Python with two packages."""
    return captured(bed, bed.python, stock, system=False)


def project(bed: Bed, folder: Path, lock: dict[str, Any], stock: Path) -> Project:
    made = Project(bed, folder, lock)
    shutil.copytree(stock, folder / "wheelhouse")
    return made


@pytest.fixture
def ngc(bed: Bed, tmp_path: Path, ngc_lock: dict[str, Any], stock: Path) -> Project:
    return project(bed, tmp_path / "ngc", ngc_lock, stock)


@pytest.fixture(scope="session")
def image(bed: Bed, ngc_lock: dict[str, Any], stock: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a built image, for tests that only run it."""
    made = project(bed, tmp_path_factory.mktemp("image") / "project", ngc_lock, stock)
    done = made("build", "--base", bed.ngc)
    assert done.returncode == 0, done.stderr
    return str(made.image["id"])


@pytest.mark.parametrize("engine", ENGINES)
def test_the_locked_environment_is_built_and_verified_inside(engine: str, ngc: Project, bed: Bed) -> None:
    done = ngc("build", "--base", bed.ngc, "--engine", engine, "--tag", f"test/train:{engine}")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert f"test/train:{engine} was verified inside: it matches under policy strict\n" in done.stderr
    assert done.stderr.endswith("wrote base and image into envlock.lock\n")
    assert (ngc.image["engine"], ngc.image["base"]) == (engine, bed.ngc.rpartition("@")[2])
    ran = bed.engine.docker("run", "--rm", "--network=none", f"test/train:{engine}", "beta")
    assert ran.stdout == "2.5\n"
    assert "== TensorFlow == NVIDIA Release" in ran.stderr  # the base's own entrypoint is in front
    script = "import envlock, os, tensorflow; print(os.getuid(), tensorflow.__version__, envlock.assert_locked().match)"
    ran = bed.engine.docker("run", "--rm", "--network=none", f"test/train:{engine}", "python", "-c", script)
    assert ran.stdout == "1000 2.17.0 True\n"


def derived(bed: Bed, image: str, command: str, folder: Path) -> str:
    """Return an image that somebody has made of ours."""
    (folder / "tampered").mkdir()
    text = f"FROM tampered-from:{folder.name}\nUSER 0\nRUN {command}\nUSER 1000:1000\n"
    (folder / "tampered" / "Dockerfile").write_text(text, encoding="utf-8")
    bed.engine.docker("tag", image, f"tampered-from:{folder.name}")
    built = bed.engine.docker("build", "-q", "--network=none", folder / "tampered")
    return built.stdout.strip()


def refused(bed: Bed, image: str, *options: str) -> str:
    """Return what the entrypoint says when it refuses."""
    done = bed.engine.docker("run", "--rm", "--network=none", *options, image, "echo", "started", check=False)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "envlock: this container is refused\n" in done.stderr
    return done.stderr


def test_a_tampered_package_is_refused(bed: Bed, image: str, tmp_path: Path) -> None:
    site = "/opt/venv/lib/python3.11/site-packages"
    other = derived(bed, image, f"mv {site}/beta-2.5.dist-info {site}/beta-2.6.dist-info", tmp_path)
    assert "  x packages.beta.version is 2.6 live, the lock has 2.5\n" in refused(bed, other)


def test_another_value_of_a_variable_is_refused(bed: Bed, image: str) -> None:
    said = refused(bed, image, "-e", "TF_ENABLE_ONEDNN_OPTS=1")
    assert "  x environ.TF_ENABLE_ONEDNN_OPTS is 1 live, the lock has 0\n" in said


def test_a_replaced_tensorflow_is_refused(bed: Bed, image: str, tmp_path: Path) -> None:
    site = "/usr/local/lib/python3.11/dist-packages"
    move = f"mv {site}/tensorflow-2.17.0+nv25.2.dist-info {site}/tensorflow-2.18.0.dist-info"
    said = refused(bed, derived(bed, image, move, tmp_path))
    assert "  x tensorflow.version is 2.18.0 live, the lock has 2.17.0+nv25.2\n" in said
    assert "  x tensorflow.nvidia_build is none live, the lock has nv25.2\n" in said


def test_a_missing_gpu_is_refused(bed: Bed, tmp_path: Path, ngc_lock: dict[str, Any], stock: Path) -> None:
    gpu = {"driver_version": "570.86.10", "devices": {"0": {"name": "NVIDIA H100 80GB HBM3"}}}
    lock = {**ngc_lock, "facts": {**ngc_lock["facts"], "gpu": gpu}}
    made = project(bed, tmp_path / "gpu", lock, stock)
    done = made("build", "--base", bed.ngc)
    assert done.returncode == 0, done.stderr
    assert "it is the locked environment; this machine is not the locked one (gpu), so the image refuses" in done.stderr
    assert "  x gpu is none live, the lock has {devices, driver_version}\n" in refused(bed, made.image["id"])


def test_the_emergency_switch_is_loud(bed: Bed, image: str) -> None:
    run = ["run", "--rm", "--network=none", "-e", "TF_ENABLE_ONEDNN_OPTS=1"]
    warned = bed.engine.docker(*run, "-e", "ENVLOCK_MODE=warn", image, "echo", "started")
    assert warned.stdout == "started\n"
    assert "ENVLOCK_MODE=warn: going on although /opt/envlock/envlock.lock: does not match" in warned.stderr
    off = bed.engine.docker(*run, "-e", "ENVLOCK_MODE=off", image, "echo", "started")
    assert off.stdout == "started\n"
    assert "envlock: ENVLOCK_MODE=off: the environment is NOT verified\n" in off.stderr


def test_the_same_image_from_another_place_umask_and_builder(
    bed: Bed, tmp_path: Path, ngc_lock: dict[str, Any], stock: Path
) -> None:
    images = {}
    for place, engine, umask in [("a", "buildx", 0o022), ("b/c", "buildx", 0o077), ("d", "docker", 0o027)]:
        made = project(bed, tmp_path / place, ngc_lock, stock)
        done = made("build", "--base", bed.ngc, "--engine", engine, "--no-cache", umask=umask)
        assert done.returncode == 0, done.stderr
        images[place] = made.image
    assert images["a"]["id"] == images["b/c"]["id"]
    assert images["a"]["layers"] == images["b/c"]["layers"] == images["d"]["layers"]
    assert images["a"]["config"] == images["d"]["config"]


def test_check_says_identical_or_which_files_differ(ngc: Project, bed: Bed) -> None:
    assert ngc("build", "--base", bed.ngc).returncode == 0
    done = ngc("build", "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "identical: the same image ID\n")
    done = ngc("build", "--check", "--engine", "docker")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("identical in layers and configuration (its ID is another: docker ")
    held = json.loads((ngc.folder / "envlock.lock").read_bytes())
    wheel = demo_wheel(ngc.folder / "wheelhouse", "alpha", "1.1")
    (ngc.folder / "wheelhouse" / "alpha-1.0-py3-none-any.whl").unlink()
    ngc.write({**held, "identity": identity(wheel.parent)})
    done = ngc("build", "--check")
    lines = done.stderr.splitlines()
    assert (done.returncode, lines[0]) == (1, "the image is another one than envlock.lock has:")
    assert "  the layers are others" in lines
    assert "  another content: /opt/venv/lib/python3.11/site-packages/alpha/__init__.py" in lines
    assert "  only now: /opt/venv/lib/python3.11/site-packages/alpha-1.1.dist-info/METADATA" in lines


def test_a_plain_python_with_wheels(bed: Bed, tmp_path: Path, plain_lock: dict[str, Any], stock: Path) -> None:
    images = []
    for engine in ENGINES:
        made = project(bed, tmp_path / engine, plain_lock, stock)
        done = made("build", "--base", bed.python, "--engine", engine, "--no-cache")
        assert done.returncode == 0, done.stderr
        assert "it matches under policy strict" in done.stderr
        images.append(made.image)
    assert images[0]["layers"] == images[1]["layers"]
    ran = bed.engine.docker("run", "--rm", "--network=none", images[0]["id"], "alpha")
    assert ran.stdout == "1.0\n"


def test_a_context_builds_without_envlock(ngc: Project, bed: Bed) -> None:
    done = ngc("build", "--base", bed.ngc, "--output", "context")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("\nwrote context: Dockerfile, .dockerignore and payload.tar with 2 wheels\n")
    built = bed.engine.docker("build", "-q", "--network=none", ngc.folder / "context").stdout.strip()
    assert bed.engine.docker("run", "--rm", "--network=none", built, "beta").stdout == "2.5\n"


def test_an_image_that_is_not_the_locked_environment_gets_no_name(
    bed: Bed, tmp_path: Path, ngc_lock: dict[str, Any], stock: Path
) -> None:
    facts = {**ngc_lock["facts"], "numpy": {"version": "9.9", "blas": None}}
    made = project(bed, tmp_path / "other", {**ngc_lock, "facts": facts}, stock)
    before = (made.folder / "envlock.lock").read_bytes()
    done = made("build", "--base", bed.ngc, "--tag", "test/wrong:1")
    assert done.returncode == 1
    assert "is built, and is not the environment of envlock.lock:\ndoes not match under policy strict" in done.stderr
    assert bed.engine.docker("images", "-q", "test/wrong:1").stdout == ""
    assert (made.folder / "envlock.lock").read_bytes() == before


def test_the_build_fails_when_a_package_of_nvidias_changes(ngc: Project, bed: Bed) -> None:
    assert ngc("build", "--base", bed.ngc, "--output", "context").returncode == 0
    dockerfile = ngc.folder / "context" / "Dockerfile"
    record = "/usr/local/lib/python3.11/dist-packages/tensorflow-2.17.0+nv25.2.dist-info/RECORD"
    spoil = f"""RUN echo 'open("{record}", "a").write("x")' >> /opt/envlock/envlock/runtime/assertion.py\n"""
    text = dockerfile.read_text(encoding="utf-8")
    dockerfile.write_text(text.replace("RUN [", f"{spoil}RUN [", 1), encoding="utf-8")
    done = bed.engine.docker("build", "--network=none", ngc.folder / "context", check=False)
    assert done.returncode != 0
    assert "envlock: the base's own tensorflow changed; NVIDIA's builds are never replaced" in done.stderr
