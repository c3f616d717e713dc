"""Debian packages: resolved by apt in the base, locked by hash, installed without a network, the same each time."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import _pydantic_core

from tests.exhaustive import exhaustive
from tests.fakes.elf_writer import write_elf
from tests.image.bed import archive
from tests.image.bed.podman import Podman
from tests.image.bed.session import CACHE, Bed
from tests.image.project import Project
from tests.image.stocked import captured, demo_wheel, written

pytestmark = pytest.mark.engine

Served = tuple[Path, str]
Locked = tuple[dict[str, Any], Path]
ENGINE = "podman"
"""Buildah builds in engines/test_commands.py."""
WRONG = "correct `apt`: names and versions are those of its archives"
FIT = (
    "name the versions that fit the base, or archives of its day with `apt-sources`; or put them into a base of your "
    "own, and name it with `--base`"
)
SCRIPT = """\
date +%s%N > /var/log/demo.log
mkdir -p /var/cache/demo && date +%s%N > /var/cache/demo/times
date +%s%N > /etc/machine-id
ln -sf demo /usr/bin/demo-link
echo demo >> /etc/demo.list
chown 7:8 /etc/demo.list
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Return the folder of an archive, and its address."""
    folder = tmp_path_factory.mktemp("archive")
    files = {"usr/bin/demo": "#!/bin/sh\necho demo\n"}
    archive.deb(folder, "demo", "1.0-1", files, Depends="demo-data (= 1:2~3+b)", Recommends="bully", postinst=SCRIPT)
    archive.deb(folder, "demo-data", "1:2~3+b", {"usr/share/demo/data": "data\n"}, "all")
    archive.deb(folder, "netbase", "99", {"usr/share/netbase/x": "x\n"}, "all")
    archive.deb(folder, "newer", "1", {"usr/share/newer/x": "x\n"}, "all", Depends="netbase (= 99)")
    archive.deb(folder, "bully", "1", {"usr/share/bully/x": "x\n"}, "all", Conflicts="netbase")
    archive.deb(folder, "eater", "1", {"usr/share/eater/x": "x\n"}, "all", postinst="rm /etc/protocols")
    with archive.served(folder) as address:
        yield folder, address


@pytest.fixture(scope="module")
def base(bed: Bed, packages: Served) -> str:
    """Return a Debian with apt and that archive, by digest."""
    digest = bed.registry.push("library/with-apt", "1", archive.with_apt(CACHE, packages[1]))
    return f"docker.io/library/with-apt:1@{digest}"


@pytest.fixture(scope="module")
def lock(bed: Bed, base: str, tmp_path_factory: pytest.TempPathFactory) -> Locked:
    wheelhouse = tmp_path_factory.mktemp("stock")
    demo_wheel(wheelhouse, "alpha", "1.0")
    return captured(bed, base, wheelhouse, system=False), wheelhouse


def asking(bed: Bed, folder: Path, lock: Locked, *wanted: str, environ: Mapping[str, str] | None = None) -> Project:
    """Return a project that asks for Debian packages."""
    made = Project(bed, folder, lock[0], environ)
    (folder / "wheelhouse").symlink_to(lock[1])
    (folder / "pyproject.toml").write_text(f"[tool.envlock.container]\napt = {json.dumps(wanted)}\n", encoding="utf-8")
    return made


@exhaustive
def test_a_module_whose_library_the_image_lacks_is_named_until_a_package_brings_it(
    bed: Bed, base: str, packages: Served, tmp_path: Path
) -> None:
    """As OpenCV's, which find libGL.so.1 on a desktop, and not in a base for servers."""
    library = "libgcc_z.so.1"
    module = Path(_pydantic_core.__file__)
    code = module.read_bytes().replace(b"libgcc_s.so.1", library.encode())
    wheelhouse = tmp_path / "stock"
    demo_wheel(wheelhouse, "drawn", "1.0", **{module.name: code})
    brought = {f"usr/lib/x86_64-linux-gnu/{library}": write_elf(tmp_path / library).read_bytes()}
    archive.deb(packages[0], "libgcc-z1", "1", brought)
    made = asking(bed, tmp_path / "p", (captured(bed, base, wheelhouse, system=False), wheelhouse))
    done = made("build", "--base", base)
    assert (
        f"warning: a module of drawn cannot be imported in the image, which lacks {library}; add their Debian packages "
        "to `apt` in [tool.envlock.container] of pyproject.toml, and build again\n"
    ) in done.stderr
    assert done.returncode == 0
    settings = made.folder / "pyproject.toml"
    settings.write_text('[tool.envlock.container]\napt = ["libgcc-z1"]\n', encoding="utf-8")
    done = made("build", "--base", base, "--network", "host")
    assert (done.returncode, "cannot be imported" in done.stderr) == (0, False), done.stderr


@exhaustive
def test_packages_are_locked_installed_and_the_same_each_time(
    bed: Bed, base: str, lock: Locked, packages: Served, tmp_path: Path
) -> None:
    made = asking(bed, tmp_path / "p", lock, "demo", "demo-data=1:2~3+b")
    refused = made("build", "--base", base, "--output", "context")
    said = "error: no Debian packages are locked for `apt` in [tool.envlock.container]\n"
    assert (refused.returncode, refused.stderr) == (2, f"{said}hint: run `envlock build --pin` to lock them\n")
    pinned = made("build", "--pin", "--base", base, "--network", "host")
    assert (pinned.returncode, pinned.stderr) == (0, f"wrote envlock.lock: base image {base}, 2 Debian packages\n")
    digests = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in packages[0].glob("*.deb")}
    assert json.loads((made.folder / "envlock.lock").read_bytes())["base_image"]["apt"] == {
        "wanted": ["demo", "demo-data=1:2~3+b"],
        "sources": [],
        "packages": [
            locked(packages, digests, "demo", "1.0-1", "amd64"),
            locked(packages, digests, "demo-data", "1:2~3+b", "all"),
        ],
    }
    images = []
    for extra in ((), ("--no-cache",)):
        done = made("build", "--tag", "test/apt:1", *extra)
        assert done.returncode == 0, done.stderr
        assert "test/apt:1 was verified inside: it matches under policy strict\n" in done.stderr
        images.append(made.image["id"])
    assert images[0] == images[1]
    assert made("build", "--rebuild").stderr.endswith("identical: the same image ID\n")
    classic = made("build", "--rebuild", "--engine", "docker")
    assert classic.stderr.splitlines()[-1].startswith("identical in layers and configuration"), classic.stderr
    run = ["run", "--rm", "--network=none", "test/apt:1"]
    assert bed.engine.docker(*run, "demo").stdout == "demo\n"
    query = ["dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n", "demo", "demo-data"]
    assert bed.engine.docker(*run, *query).stdout == "demo 1.0-1 installed\ndemo-data 1:2~3+b installed\n"
    shown = ["stat", "-c", "%a %u %g %Y %n", "/usr/bin/demo", "/usr/bin/demo-link", "/etc/demo.list"]
    assert bed.engine.docker(*run, *shown).stdout.splitlines() == [
        "2755 0 0 315532800 /usr/bin/demo",
        "777 0 0 315532800 /usr/bin/demo-link",
        "644 7 8 315532800 /etc/demo.list",
    ]
    left = [name for name in written(bed, base, made.image["id"], tmp_path) if not name.startswith(("opt/", "home/"))]
    dpkg = [name for name in left if name.startswith("var/lib/dpkg/")]
    assert {"var/lib/dpkg/status", "var/lib/dpkg/info/demo.list", "var/lib/dpkg/info/demo.postinst"} <= set(dpkg)
    assert [name for name in left if name not in dpkg] == [
        *("etc/demo.list", "etc/group", "etc/passwd", "usr/bin/demo", "usr/bin/demo-link"),
        *("usr/lib/python3/dist-packages/zzz_envlock.pth", "usr/share/demo/data"),
    ]
    assert [name for name in dpkg if name.endswith(("-old", "lock", "Lock", "lock-frontend"))] == []


def locked(packages: Served, digests: Mapping[str, str], *names: str) -> dict[str, Any]:
    """Return what a lock has of a package."""
    name, version, architecture = names
    file = f"{name}_{version.replace(':', '%3a')}_{architecture}.deb"
    url = f"{packages[1]}/./{file.replace('%', '%25').replace('~', '%7e').replace('+', '%2b')}"
    size = (packages[0] / file).stat().st_size
    fields = {"name": name, "version": version, "architecture": architecture, "size": size}
    return {**fields, "sha256": digests[file], "url": url}


@exhaustive
@pytest.mark.slow
def test_podman_installs_the_same_files_each_time(
    bed: Bed, base: str, lock: Locked, store: Podman, tmp_path: Path
) -> None:
    made = asking(bed, tmp_path / "p", lock, "demo", "demo-data=1:2~3+b", environ=store.environ)
    pinned = made("build", "--pin", "--base", base, "--network", "host", "--engine", ENGINE)
    assert pinned.returncode == 0, pinned.stderr
    images = []
    for extra in (("--no-cache",), ()):
        done = made("build", "--tag", "test/apt:1", "--engine", ENGINE, *extra)
        assert done.returncode == 0, done.stderr
        assert "test/apt:1 was verified inside: it matches under policy strict\n" in done.stderr
        images.append((made.image["id"], made.image["layers"]))
    assert images[0] == images[1]
    checked = made("build", "--rebuild", "--engine", ENGINE)
    assert (checked.returncode, checked.stderr.splitlines()[-1]) == (0, "identical: the same image ID"), checked.stderr
    query = ["dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n", "demo", "demo-data"]
    for command, output in (
        (["demo"], "demo\n"),
        (query, "demo 1.0-1 installed\ndemo-data 1:2~3+b installed\n"),
        (["stat", "-c", "%a %u %g %Y", "/usr/bin/demo", "/etc/demo.list"], "2755 0 0 315532800\n644 7 8 315532800\n"),
    ):
        run = ["podman", "run", "--rm", "--network=none", "test/apt:1", *command]
        ran = subprocess.run(
            [*bed.engine.enter, *run],
            env={**os.environ, **store.environ},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (ran.returncode, ran.stdout) == (0, output), ran.stderr


REFUSED = [
    ("absent", 2, "apt in {base}: Unable to locate package absent", WRONG),
    ("demo=9", 2, "apt in {base}: Version '9' for 'demo' was not found", WRONG),
    ("dpkg=1", 2, "apt in {base}: Version '1' for 'dpkg' was not found", WRONG),
    ("newer", 5, "apt would replace or remove packages of {base}: netbase", FIT),
    ("bully", 5, "apt would replace or remove packages of {base}: netbase", FIT),
]


@exhaustive
@pytest.mark.parametrize(("wanted", "code", "message", "hint"), REFUSED)
def test_what_cannot_be_locked_is_refused(
    wanted: str, code: int, message: str, hint: str, bed: Bed, base: str, lock: Locked, tmp_path: Path
) -> None:
    made = asking(bed, tmp_path / "p", lock, wanted)
    done = made("build", "-q", "--pin", "--base", base, "--network", "host")
    assert (done.returncode, done.stderr) == (code, f"error: {message.format(base=base)}\nhint: {hint}\n")
    assert "base_image" not in json.loads((made.folder / "envlock.lock").read_bytes())


@exhaustive
def test_a_base_without_apt_and_an_archive_out_of_reach(bed: Bed, base: str, lock: Locked, tmp_path: Path) -> None:
    made = asking(bed, tmp_path / "p", lock, "demo")
    done = made("build", "-q", "--pin", "--base", bed.python)
    hint = "hint: use a base of Debian or Ubuntu, or remove `apt`\n"
    assert (done.returncode, done.stderr) == (2, f"error: {bed.python} has no apt-get\n{hint}")
    done = made("build", "-q", "--pin", "--base", base)  # the bed's containers have no network
    assert done.returncode == 5
    assert done.stderr.startswith(f"error: apt in {base} failed: Failed to fetch http://127.0.0.1:"), done.stderr
    assert done.stderr.endswith("\nhint: check its archives; `--network host` lets it use this machine's network\n")


def test_archives_of_ones_own_must_be_signed(
    bed: Bed, base: str, lock: Locked, packages: Served, tmp_path: Path
) -> None:
    made = asking(bed, tmp_path / "p", lock, "demo")
    source = f"{packages[1]}/elsewhere bookworm main"
    with (made.folder / "pyproject.toml").open("a", encoding="utf-8") as stream:
        stream.write(f"apt-sources = [{json.dumps(source)}]\n")
    done = made("build", "-q", "--pin", "--base", base, "--network", "host")
    said = f"The repository '{packages[1]}/elsewhere bookworm Release' does not have a Release file."
    assert (done.returncode, done.stderr.splitlines()[0]) == (5, f"error: apt in {base} failed: {said}")


@exhaustive
def test_another_file_than_the_locked_one_and_a_script_that_removes_one_are_refused(
    bed: Bed, base: str, lock: Locked, packages: Served, tmp_path: Path
) -> None:
    made = asking(bed, tmp_path / "p", (lock[0], tmp_path / "own"), "eater")
    shutil.copytree(lock[1], tmp_path / "own")
    assert made("build", "--pin", "--base", base, "--network", "host").returncode == 0
    done = made("build", "-q")
    assert done.returncode == 5
    assert "envlock: the scripts of the Debian packages remove /etc/protocols of the base; put them into" in done.stderr
    file = tmp_path / "own" / "eater_1_all.deb"
    file.write_bytes(file.read_bytes() + b"x")
    done = made("build", "-q")
    assert done.returncode == 5
    assert done.stderr.startswith("error: wheelhouse/eater_1_all.deb is not the locked Debian package: locked sha256 ")
    file.unlink()
    held = (made.folder / "envlock.lock").read_text(encoding="utf-8")
    (made.folder / "envlock.lock").write_text(held.replace("/./eater_1", "/./gone"), encoding="utf-8")
    done = made("build", "-q")
    assert done.returncode == 5
    assert done.stderr.startswith("error: cannot download eater_1_all.deb: "), done.stderr
