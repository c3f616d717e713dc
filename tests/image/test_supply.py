"""What a build finds by itself: wheels, of an environment of files from an index of our own; the base is made up."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.image import build, supply
from envlock.image.base import Chosen
from envlock.image.engines.engine import Built
from envlock.image.engines.engine_errors import EngineError
from envlock.image.inside import Inside
from envlock.image.known_images import remember
from envlock.image.payload import compute_inputs_digest
from envlock.image.supply import BuildSources, ImageRequest
from envlock.lock.document import dump, load, validate
from envlock.lock.live_facts import collect_live
from envlock.lock.models import BaseImage, Lockfile, Project
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import EnvironmentMismatch, FactError, OutsideError, UsageError
from tests.image.plans import BASES, DIGEST
from tests.locks import document
from tests.packages.projects import make_archive
from tests.packages.server import IndexServer, index_server
from tests.packages.wheels import make_environment, make_wheel

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
NAMES = ("more", "thing")
WHEELS = [f"{name}-1.0-py3-none-any.whl" for name in NAMES]
PINNED: dict[str, Any] = {
    "name": "docker.io/library/python",
    "tag": "3.11.7-slim-bookworm",
    "digest": DIGEST,
    "manifest": DIGEST,
    "platform": "linux/amd64",
    "route": "wheels",
    "reason": "It has the very Python.",
}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexServer]:
    """Return a running index with two wheels, the only one that is asked."""
    for name in NAMES:
        make_wheel(tmp_path / "index", name)
    with index_server(tmp_path / "index") as server:
        monkeypatch.setenv("ENVLOCK_INDEX_URL", server.url)
        yield server


@pytest.fixture
def python(index: IndexServer, tmp_path: Path) -> Path:
    """Return the interpreter of an environment in which both are installed."""
    return make_environment(tmp_path / "environment", [index.folder / name for name in WHEELS])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a project, in which the test is; settings and cache are its own."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[project]\nname = 'train'\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setattr(supply, "resolve_base", lambda lock, *_: Chosen(BASES["wheels"], BaseImage(**PINNED)))
    return folder


def fresh(python: Path) -> Lockfile:
    """Return a lock of the packages of an environment as `capture` writes it: no wheel, no base."""
    return validate(document(facts={"packages": collect_live(python).facts["packages"]}), "envlock.lock")


class Told:
    """A progress that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def line(self, text: str) -> None:
        """Forget what another program prints."""

    @contextmanager
    def bar(self, title: str, total: int, *, in_bytes: bool = False) -> Iterator[Any]:
        yield lambda amount: None


def requirements(folder: Path) -> str:
    """Return the lines by which a context installs its small packages."""
    with tarfile.open(folder / "packages.tar") as tar:
        held = tar.extractfile("wheels/packages/requirements.txt")
        assert held is not None
        return held.read().decode()


def test_a_fresh_lock_becomes_a_context(project: Path, python: Path, index: IndexServer, tmp_path: Path) -> None:
    told = Told()
    made = build.context(fresh(python), project / "made", sources=BuildSources(python=python), progress=told)
    house = tmp_path / "cache" / "envlock" / "wheelhouse"
    assert told.said == [
        "proving the wheels of 2 packages",
        "2 of 2 packages have a proven wheel",
        f"filling {house}: 2 wheels",
    ]
    assert sorted(file.name for file in house.iterdir()) == WHEELS
    assert [line.partition(" ")[0] for line in requirements(project / "made").splitlines()] == [
        "more==1.0",
        "thing==1.0",
    ]
    identity = made.lock.identity
    assert identity is not None
    assert [each.proof for each in identity.packages.values()] == ["file", "file"]
    assert made.lock.base_image == BaseImage(**PINNED)
    assert not (project / "wheelhouse").exists()


def test_a_checkout_of_a_package_that_came_from_an_index_has_that_package(
    project: Path, python: Path, index: IndexServer
) -> None:
    """As where a README says `pip install NAME` and one works in the repository of NAME."""
    lock = fresh(python)
    assert lock.facts.packages is not None
    others = {name: fact for name, fact in lock.facts.packages.items() if name != "thing"}
    facts = lock.facts.model_copy(update={"packages": others})
    lock = lock.model_copy(update={"facts": facts, "project": Project(name="thing")})
    sources = BuildSources(python=python)
    made = build.context(lock, project / "made", sources=sources)
    assert made.lock.identity is not None
    assert made.lock.identity.packages["thing"].origin == "index"
    assert "thing==1.0" in requirements(project / "made")
    told = Told()
    again = build.context(made.lock, project / "again", sources=sources, progress=told)
    assert (again.lock, told.said) == (made.lock, [])


def test_what_no_index_has_as_a_wheel_is_built(project: Path, python: Path, index: IndexServer) -> None:
    archive = make_archive(index.folder, "old")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*pip, str(archive)], check=True)
    sources = BuildSources(python=python)
    made = build.context(fresh(python), project / "made", sources=sources)
    unpacked = runpy.run_path(str(ROOT / "tools" / "demo.py"))["unpacked"]
    layers = unpacked(project / "made", project / "layers")
    assert "old==1.0" in "".join(file.read_text(encoding="utf-8") for file in layers)
    assert made.lock.identity is not None
    assert made.lock.identity.packages["old"].wheel is not None


def test_the_demo_installs_a_context_elsewhere(project: Path, python: Path, index: IndexServer) -> None:
    """By the wheels and the hashes in its tars, as `make demo` does without an engine."""
    build.context(fresh(python), project / "made", sources=BuildSources(python=python))
    unpacked = runpy.run_path(str(ROOT / "tools" / "demo.py"))["unpacked"]
    (file,) = unpacked(project / "made", project / "layers")
    assert sorted(each.name for each in file.parent.iterdir()) == [WHEELS[0], "requirements.txt", WHEELS[1]]
    words = ["install", "-q", "--no-index", "--no-deps", "--require-hashes", "--find-links", file.parent, "-r", file]
    subprocess.run([sys.executable, "-m", "pip", *words, "--target", project / "site"], check=True)
    assert sorted(each.name for each in (project / "site").glob("*.dist-info")) == [
        f"{name}-1.0.dist-info" for name in NAMES
    ]


def test_what_is_there_is_not_asked_again(
    project: Path, python: Path, index: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build.context(fresh(python), project / "made", sources=BuildSources(python=python))
    asked = len(index.requests)
    told = Told()
    again = build.context(first.lock, project / "again", sources=BuildSources(), progress=told)
    assert (len(index.requests), told.said, again.lock) == (asked, [], first.lock)
    for name in ("Dockerfile", "packages.tar", "lock.tar"):
        assert (project / "made" / name).read_bytes() == (project / "again" / name).read_bytes()
    (project / "wheelhouse").mkdir()  # the user's own, from then on
    build.context(first.lock, project / "third", sources=BuildSources())
    assert (len(index.requests), sorted(each.name for each in Path("wheelhouse").iterdir())) == (asked, WHEELS)


def test_the_command_writes_what_it_found(
    project: Path, python: Path, index: IndexServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from envlock.__main__ import main

    Path("envlock.lock").write_bytes(dump(fresh(python)))
    monkeypatch.setattr(sys, "argv", ["__main__.py", "build", "-o", "made", "--python", str(python)])
    monkeypatch.setenv("ENVLOCK_INDEX_URL", index.url)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "wrote made: Dockerfile, .dockerignore and tars with 2 wheels",
        "wrote envlock.lock: base and wheels",
    ]
    found = load("envlock.lock")
    assert found.identity is not None
    assert (sorted(found.identity.packages), found.base_image) == (list(NAMES), BaseImage(**PINNED))


def test_an_index_that_fails_leaves_everything_as_it_was(project: Path, python: Path, index: IndexServer) -> None:
    index.troubles.add("500")
    with pytest.raises(OutsideError):
        build.context(fresh(python), project / "made", sources=BuildSources(python=python))
    assert not (project / "made").exists()


def test_another_environment_proves_nothing(project: Path, python: Path, index: IndexServer) -> None:
    lock = fresh(python)
    shutil.rmtree(next(python.parents[1].rglob("more-1.0.dist-info")))
    with pytest.raises(EnvironmentMismatch) as raised:
        build.context(lock, project / "made", sources=BuildSources(python=python))
    assert "packages.more" in raised.value.message
    assert raised.value.hint == (
        "wheels are proven in the locked environment: activate it, name its interpreter with `--python`, or run "
        "`envlock capture --hashes` where it is"
    )
    assert index.requests == []


HINT = "run the commands above, or `envlock build` once without `--offline`"


def test_offline_says_all_that_is_missing_and_how_to_get_it(project: Path, python: Path, index: IndexServer) -> None:
    engine: Any = SimpleNamespace(inspect=_has_nothing)
    wanted = ImageRequest("python:3.11.7-slim-bookworm")
    with pytest.raises(UsageError) as raised:
        supply.prepare_build(fresh(python), wanted, BuildSources(offline=True), engine)
    assert raised.value.message == (
        "`--offline` forbids the network, and these are missing:\n"
        "  the digest of the base image docker.io/library/python:3.11.7-slim-bookworm: run `envlock build --pin`\n"
        "  the proven wheels of more, thing: run `envlock capture --hashes`"
    )
    assert raised.value.hint == HINT
    assert index.requests == []


def _has_nothing(image: str) -> dict[str, Any]:
    raise EngineError(f"there is no image {image}")


def test_offline_with_everything_there(project: Path, python: Path, index: IndexServer, tmp_path: Path) -> None:
    proven = build.context(fresh(python), project / "made", sources=BuildSources(python=python)).lock
    reference = f"docker.io/library/python:3.11.7-slim-bookworm@{DIGEST}"
    config = {"Entrypoint": ["/entry.sh"], "Cmd": ["python3"], "Env": ["PATH=/bin", "TF_DETERMINISTIC_OPS=1"]}
    engine: Any = SimpleNamespace(inspect=lambda image: {"Config": config})
    found = supply.prepare_build(proven, ImageRequest(), BuildSources(offline=True), engine)
    assert found.plan.base == replace(
        BASES["wheels"], entrypoint=("/entry.sh",), command=("python3",), environ=(("TF_DETERMINISTIC_OPS", "1"),)
    )
    assert (found.chosen.kept, [each.file for each in found.plan.wheels]) == (proven.base_image, WHEELS)
    for file in (tmp_path / "cache" / "envlock").rglob(WHEELS[0]):
        file.unlink()
    house = tmp_path / "cache" / "envlock" / "wheelhouse"
    with pytest.raises(UsageError) as raised:
        supply.prepare_build(proven, ImageRequest(), BuildSources(offline=True), SimpleNamespace(inspect=_has_nothing))  # type: ignore[arg-type]
    assert raised.value.message == (
        "`--offline` forbids the network, and these are missing:\n"
        f"  {WHEELS[0]} in {house}: run `envlock export --wheelhouse {house}`\n"
        f"  the image {reference} in the engine: pull it"
    )
    with pytest.raises(UsageError) as raised:
        supply.prepare_build(proven, ImageRequest(), BuildSources(wheelhouse=index.folder, offline=True), None)
    assert raised.value.message == (
        "`--offline` forbids the network, and this is missing:\n"
        f"  the configuration of {reference}: run `envlock build` once, which records it"
    )


def test_no_wheel_is_read_for_an_image_that_was_built_from_the_same(
    project: Path, python: Path, index: IndexServer, tmp_path: Path
) -> None:
    proven = build.context(fresh(python), project / "made", sources=BuildSources(python=python)).lock
    built = Built("sha256:" + "ab" * 32, (), "buildx", "1", {})
    engine: Any = SimpleNamespace(name="buildx", inspect=lambda _: {"Config": {}}, find_built=lambda _: built)
    offline = BuildSources(offline=True)
    whole = supply.prepare_build(proven, ImageRequest(), offline, engine)
    for file in (tmp_path / "cache" / "envlock").rglob(WHEELS[0]):
        file.write_bytes(bytes(file.stat().st_size))
    for known in (False, True):
        if known:
            remember(built, compute_inputs_digest(whole.plan), os.environ)
        for reuse in (False, True):
            if known and reuse:
                assert supply.prepare_build(proven, ImageRequest(), offline, engine, reuse=True) == whole
                continue
            with pytest.raises(OutsideError, match=r"1 of \d wheels could not be had"):
                supply.prepare_build(proven, ImageRequest(), offline, engine, reuse=reuse)


def test_over_a_base_with_packages_only_what_it_lacks_is_proven(
    project: Path, python: Path, index: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a wheelhouse of the user's own, the base is looked into."""
    from envlock.image import inside

    engine: Any = SimpleNamespace(name="docker")
    for has, installed in (({"thing": "1.0", "more": "0.9"}, ["more"]), (dict.fromkeys(NAMES, "1.0"), [])):
        facts = {"packages": {name: {"version": version} for name, version in has.items()}}
        seen = Inside(Snapshot(facts, {}), BaseImage(**PINNED))
        monkeypatch.setattr(inside, "look_inside", lambda engine, image, say, seen=seen: seen)
        monkeypatch.setattr(supply, "resolve_base", lambda lock, *_: Chosen(BASES["captured"], BaseImage(**PINNED)))
        found = supply.prepare_build(fresh(python), ImageRequest(), BuildSources(python=python), engine)
        assert [each.name for each in found.plan.wheels] == installed
        assert (found.lock.identity is not None) == bool(installed)


def test_a_base_that_cannot_tell_keeps_its_packages(
    project: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from envlock.image import inside

    def refuse(*_: object, **__: object) -> Inside:
        raise FactError("the Python of team/train:3 is 3.6.9, and envlock needs 3.8 or newer")

    told = Told()
    monkeypatch.setattr(inside, "look_inside", refuse)
    monkeypatch.setattr(supply, "resolve_base", lambda lock, *_: Chosen(BASES["captured"], BaseImage(**PINNED)))
    engine: Any = SimpleNamespace(name="docker")
    found = supply.prepare_build(fresh(python), ImageRequest(), BuildSources(), engine, progress=told)
    assert found.plan.wheels == ()
    assert told.said == [
        "warning: the Python of team/train:3 is 3.6.9, and envlock needs 3.8 or newer; only the base's own packages "
        "are in the image"
    ]
