"""The test bed itself: what it reads of the machine, and what it promises to the tests that use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.exhaustive import exhaustive
from tests.image.bed import session
from tests.image.bed.debian import BedError, mirror
from tests.image.bed.fixtures import StartEngine, absent
from tests.machines import write

RELEASE = 'PRETTY_NAME="Debian"\nID=debian\nVERSION_CODENAME=bookworm\n'
ONE_LINE = """\
# deb http://archive.example.org/debian bookworm main
deb-src http://archive.example.org/debian bookworm main
deb http://security.example.org/debian-security bookworm-security main
deb [arch=amd64 signed-by=/k.gpg] http://archive.example.org/debian/ bookworm main contrib # the one
"""
DEB822 = """\
Types: deb
URIs: http://security.example.org/debian-security
Suites: bookworm-security
Components: main

Types: deb
# a comment
URIs: http://archive.example.org/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc

Types: deb
URIs: http://other.example.org
Suites: nodistro
Components: main
"""


def test_the_mirror_is_read_from_one_line_sources(tmp_path: Path) -> None:
    etc = write(tmp_path, {"os-release": RELEASE, "apt/sources.list": ONE_LINE})
    found = mirror(etc)
    assert (found["uris"], found["signed-by"]) == ("http://archive.example.org/debian/", "/k.gpg")


def test_the_mirror_is_read_from_deb822_sources(tmp_path: Path) -> None:
    etc = write(tmp_path, {"os-release": RELEASE, "apt/sources.list.d/debian.sources": DEB822})
    found = mirror(etc)
    assert found["uris"] == "http://archive.example.org/debian"
    assert found["signed-by"] == "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc"


@pytest.mark.parametrize("text", [f"Enabled: no\n{DEB822.split(chr(10) * 2)[1]}", DEB822.split("\n\n")[0], ""])
def test_a_machine_without_a_mirror_is_told(tmp_path: Path, text: str) -> None:
    etc = write(tmp_path, {"os-release": RELEASE, "apt/sources.list.d/debian.sources": text})
    with pytest.raises(BedError) as raised:
        mirror(etc)
    assert str(raised.value) == "apt has no source for bookworm main on this machine"


def test_another_system_is_told(tmp_path: Path) -> None:
    with pytest.raises(BedError) as raised:
        mirror(write(tmp_path, {"os-release": "ID=ubuntu\nVERSION_CODENAME=noble\n"}))
    assert str(raised.value) == "the engines are made of Debian's packages, and this machine is ubuntu"


def test_a_bed_that_cannot_be_had_fails_in_ci_and_is_skipped_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(BedError) as raised, session.shared():
        pass
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception) as failed:
        absent(raised.value)
    assert str(failed.value) == "no test bed: a container engine of one's own needs root"
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception) as skipped:
        absent(raised.value)
    assert str(skipped.value) == str(failed.value)


def test_what_uses_the_bed_is_marked(request: pytest.FixtureRequest) -> None:
    others = [item for item in request.session.items if "bed" in getattr(item, "fixturenames", ())]
    assert [item.name for item in others if item.get_closest_marker("engine") is None] == []


@pytest.mark.engine
def test_the_engine_takes_the_stand_ins_by_their_real_names(bed: session.Bed) -> None:
    for name in (bed.ngc, bed.cuda, bed.python):
        assert bed.engine.docker("pull", "-q", name).stdout.strip() == name
    code = "import tensorflow as t, ssl; print(t.__version__)"
    said = bed.engine.docker("run", "--rm", "--network=none", bed.ngc, "python3", "-c", code)
    assert (said.stdout, said.stderr) == ("2.17.0\n", "== TensorFlow == NVIDIA Release 25.02-tf2 (build 143088766)\n")


@pytest.mark.engine
def test_what_is_private_is_refused_without_the_key(bed: session.Bed) -> None:
    done = bed.engine.docker("pull", "-q", bed.private, check=False)
    assert done.returncode == 1
    assert "denied: requested access to the resource is denied" in done.stderr


@pytest.mark.engine
def test_the_names_lead_to_the_bed_only_inside_it(bed: session.Bed) -> None:
    inside = subprocess.check_output([*bed.engine.enter, "getent", "hosts", "nvcr.io"], text=True)
    assert inside.split() == [bed.registry.address, "nvcr.io"]
    assert bed.registry.address not in Path("/etc/hosts").read_text()
    assert not Path("/etc/docker/certs.d/nvcr.io/ca.crt").exists()


@pytest.mark.engine
def test_all_processes_of_a_checkout_share_one_bed(bed: session.Bed) -> None:
    code = "from tests.image.bed import session\nwith session.shared() as bed: print(bed.engine.pid)"
    other = subprocess.run([sys.executable, "-c", code], cwd=session.ROOT, capture_output=True, text=True, check=True)
    assert int(other.stdout) == bed.engine.pid
    assert bed.engine.alive  # the other one left, and did not take it down


@exhaustive
@pytest.mark.engine
def test_an_engine_of_ones_own_knows_the_registry_too(start_engine: StartEngine, bed: session.Bed) -> None:
    own = start_engine(gpus=True)
    shown = own.docker("run", "--rm", "--gpus=device=3", bed.python, "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES")
    assert shown.stdout == "3\n"
    own.stop()
    assert not own.folder.exists()


@exhaustive
@pytest.mark.engine
@pytest.mark.slow
def test_docker_20_10_takes_them_as_well(start_engine: StartEngine, bed: session.Bed) -> None:
    old = start_engine("20")
    assert old.docker("version", "--format={{.Server.Version}}").stdout.startswith("20.10.")
    assert old.docker("pull", "-q", bed.ngc).stdout.strip() == bed.ngc
