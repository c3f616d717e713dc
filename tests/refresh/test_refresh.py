"""`make refresh` on recorded answers: what is new comes in, nothing is lost, and bad sources end in a sentence."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import tomllib
from refresh.__main__ import DATA, LIMIT, MODULES, check_ages, refresh
from refresh.rows import find_list, format_row, parse_row
from refresh.web import Web

from envlock.packages.web.limits import Limits
from tests.diagnosis.test_fatbin import fatbin, image, library
from tests.golden_files import assert_as_golden
from tests.packages.file_server import files
from tests.packages.server import IndexServer, index_server
from tests.packages.web.hostile import Reply, always, answer

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.network

RECORDED = Path(__file__).parent / "recorded"
DAY = "2027-01-02"
QUICK = Limits(connect=1, silence=1, answer=3, attempts=1)
METADATA = (RECORDED / "tensorflow-2.22.0rc0-cp311-cp311-manylinux_2_27_x86_64.METADATA").read_text(encoding="utf-8")
RAW = "/raw.githubusercontent.com"
PLACES = {
    f"{RAW}/NVIDIA/open-gpu-kernel-modules/main/README.md": "README.md",
    f"{RAW}/pciutils/pciids/master/pci.ids": "pci.ids",
    f"{RAW}/docker-library/official-images/master/library/python": "python",
    f"{RAW}/triton-inference-server/server/main/docs/introduction/compatibility.md": "compatibility.md",
    f"{RAW}/singularityhub/shpc-registry/main/nvcr.io/nvidia/tensorflow/container.yaml": "container.yaml",
}
PRODUCTS, DEVICES, IMAGES, DRIVERS, DIGESTS = PLACES
TREE = "/gitlab.com/nvidia/container-images/cuda/-/archive/master/cuda-master.tar.gz"
PLACES[TREE] = "cuda-master.tar.gz"
RELEASES = "/git.launchpad.net/ubuntu/+source/distro-info-data/plain/debian.csv"
CONTENTS = f"{RAW}/docker-library/repo-info/master/repos/buildpack-deps/local"
PLACES |= {RELEASES: "debian.csv", RELEASES.replace("debian.csv", "ubuntu.csv"): "ubuntu.csv"}
PLACES |= {f"{CONTENTS}/{suite}.md": f"{suite}.md" for suite in ("trixie", "resolute")}
TARGETS = (60, 70, 80, 89, 90)
NAMES = (RECORDED / "names-2.22.0rc0.txt").read_bytes().split()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a copy of the tables."""
    return Path(shutil.copytree(DATA, tmp_path / "data"))


def add_wheel(folder: Path, name: str, version: str, tags: str, metadata: str, library: bytes) -> None:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-{version}-{tags}.whl", "w") as archive:
        archive.writestr(f"{name}-{version}.dist-info/METADATA", metadata)
        archive.writestr("tensorflow/libtensorflow_cc.so.2", library)


def make_library(
    names: list[bytes] = NAMES, isa: tuple[int, int] = (8, 3), targets: tuple[int, ...] = TARGETS
) -> bytes:
    """Return a library with code for some GPUs, and PTX for 9.0, which names variables and flags."""
    code = fatbin(*(image(2, number) for number in targets), image(1, 90, isa))
    return library(code) + b"\0" + b"\0".join(names) + b"\0"


LIBRARY = make_library()


def add_tensorflow(
    folder: Path,
    version: str,
    replaced: dict[str, str] | None = None,
    pythons: tuple[str, ...] = ("cp311", "cp315"),
    library: bytes = LIBRARY,
) -> None:
    """Put a TensorFlow into an index: the METADATA of 2.22.0rc0, with other texts in place of its own."""
    metadata = METADATA.replace("Version: 2.22.0rc0", f"Version: {version}")
    for old, new in (replaced or {}).items():
        assert old in metadata
        metadata = metadata.replace(old, new)
    for name in ("tensorflow", "tensorflow_cpu"):
        for python in pythons:
            add_wheel(folder, name, version, f"{python}-{python}-manylinux_2_27_x86_64", metadata, library)


def add_isa(folder: Path, table: str) -> None:
    """Put NVIDIA's bindings into an index, with their table of the PTX ISA."""
    name = "cuda_bindings-13.5.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr("cuda/bindings/utils/_ptx_utils.py", table)


@contextmanager
def recorded(folder: Path, odd: dict[str, Reply] | None = None, **changed: bytes) -> Iterator[tuple[Web, IndexServer]]:
    """Serve the recorded answers, and an index from the folder `index`; `changed` replaces a recorded file."""
    contents = {path: (RECORDED / name).read_bytes() for path, name in PLACES.items()}
    contents |= {path: changed[stem] for path, name in PLACES.items() if (stem := name.partition(".")[0]) in changed}
    (folder / "index").mkdir(parents=True, exist_ok=True)
    with files(contents, odd) as server, index_server(folder / "index") as index:
        yield Web(folder / "kept", server.url(), QUICK, index.url), index


def rows(data: Path, table: str, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((data / f"{table}.toml").read_text(encoding="utf-8"))[name]
    return found


def find_lost(data: Path) -> list[str]:
    """Return the lines of tables that a refresh took away: none but of a horizon, or of a row that has grown."""
    lost = []
    for file in DATA.glob("*.toml"):
        left = set((data / file.name).read_text(encoding="utf-8").splitlines())
        lost += [line for line in file.read_text(encoding="utf-8").splitlines() if line not in left]
    return [line for line in lost if not line.startswith("horizon = ")]


def test_from_nothing_to_a_made_up_tensorflow(tmp_path: Path, data: Path) -> None:
    add_tensorflow(tmp_path / "index", "2.23.0", {"keras-nightly": "keras", ">=9.10.2.21": ">=9.20.0"})
    with recorded(tmp_path) as (web, index):
        found = {name: refresh(name, web, data, DAY) for name in ("tensorflow", "needs")}
        asked = len(index.asked("/files/"))
        first = {file.name: file.read_bytes() for file in data.iterdir() if file.is_file()}
        again = {name: refresh(name, web, data, DAY) for name in ("tensorflow", "needs")}
        assert len(index.asked("/files/")) == asked > 0  # a wheel is read once
    assert {name: wrong for name, (wrong, _) in found.items()} == {"tensorflow": [], "needs": []}
    assert [each for _, decide in found.values() for each in decide] == [
        "`fails` of 2.23: the rows end before it",
    ]
    wheel = "tensorflow-2.23.0-cp311-cp311-manylinux_2_27_x86_64.whl"
    versions = {"cuda": "12.5", "cudnn": "9.20", "and_cuda": True}
    source = f"wheels: {wheel}, asked on {DAY}"
    assert rows(data, "tensorflow_builds", "build")[-1] == {
        "tensorflow": "2.23.0",
        "python": ["3.11", "3.15"],
        **versions,
        "source": source,
    }
    assert rows(data, "tensorflow_builds", "and_cuda")[-1]["nccl"] == "2.30.7"
    needs = {
        row["package"]: row["takes"] for row in rows(data, "compatibility", "needs") if row["tensorflow"] == "2.23"
    }
    assert needs == {"numpy": ">=1.26.0", "protobuf": "<8.0.0,>=6.31.1", "keras": ">=3.12.0.dev"}
    for table in ("tensorflow_builds", "compatibility"):
        horizon = tomllib.loads((data / f"{table}.toml").read_text(encoding="utf-8"))["horizon"]
        assert horizon == {"day": DAY, "of": "TensorFlow", "through": "2.23.0"}
    assert find_lost(data) == []
    assert again == found
    assert {file.name: file.read_bytes() for file in data.iterdir() if file.is_file()} == first


DECIDED = {
    "compatibility": (r"(?<=>=2\.16,)<2\.23(?=\")", "<2.24"),
    **dict.fromkeys(
        ("determinism_sources", "determinism_recipes"),
        (r"^horizon = .*$", f'horizon = {{ day = "{DAY}", of = "TensorFlow", through = "2.23.0" }}'),
    ),
}
"""What a person writes after `make refresh` has asked about a made-up TensorFlow 2.23: the answer to its question, and two
tables that no run asks."""
ABOUT_TENSORFLOW = ("tensorflow", "needs", "code", "ptx", "variables", "flags")
SUPPORTED = """
from tests.data import test_horizons, test_tensorflow_versions
for ask in (test_horizons.ask_doctor, test_horizons.ask_images, test_horizons.ask_linter):
    print(ask.__name__, [each for each in ask("2.23.0") if "newer than the sources checked here" in each])
try:
    test_tensorflow_versions.test_every_table_knows_the_newest_tensorflow()
except AssertionError as error:
    print(error)
"""


@pytest.mark.processes
def test_one_difference_supports_a_made_up_tensorflow(tmp_path: Path) -> None:
    """The golden file is that difference: what the run adds, what it asks, and what a person then writes."""
    copy = Path(shutil.copytree(ROOT / "envlock", tmp_path / "copy" / "envlock"))
    data, lines = copy / "data", ["# make refresh"]
    assert [line for line in ask_in(copy.parent).splitlines()[:3] if line.endswith(" []")] == []
    add_tensorflow(tmp_path / "index", "2.22.0rc0")
    add_tensorflow(tmp_path / "index", "2.23.0", {"keras-nightly": "keras", ">=9.10.2.21": ">=9.20.0"})
    with recorded(tmp_path) as (web, _):
        answers = [refresh(name, web, data, DAY) for name in ABOUT_TENSORFLOW]
    lines += list_new_lines(DATA, data)
    lines += ["# asks", *(each for wrong, decide in answers for each in [*wrong, *decide])]
    asked = Path(shutil.copytree(data, tmp_path / "asked"))
    for name, (old, new) in DECIDED.items():
        text, count = re.subn(old, new, (data / f"{name}.toml").read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert count > 0
        (data / f"{name}.toml").write_text(text, encoding="utf-8")
    lines += ["# a person writes", *list_new_lines(asked, data)]
    assert_as_golden("\n".join(lines) + "\n", Path(__file__).parent / "golden" / "2.23.txt")
    said = ask_in(copy.parent)
    assert said.splitlines()[:3] == ["ask_doctor []", "ask_images []", "ask_linter []"]
    # Left are the places that run TensorFlow itself; the test that names them is in tests/data.
    assert said.endswith("TensorFlow 2.23.0 is missing there: docs/contributing/tensorflow-version.md\n")


def ask_in(folder: Path) -> str:
    """Return what commands say of TensorFlow 2.23.0 with the tables of a copy of the package."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", SUPPORTED], cwd=folder, env=environ, capture_output=True, text=True, check=True
    ).stdout


def list_new_lines(before: Path, after: Path) -> list[str]:
    """Return each line of the tables that is only in the later ones, below the name of its table, cut at some length."""
    lines = []
    for file in sorted(after.glob("*.toml")):
        old = (before / file.name).read_text(encoding="utf-8").splitlines()
        new = [line for line in file.read_text(encoding="utf-8").splitlines() if line not in old]
        lines += [file.name, *(f"+ {line.strip()[:240]}" for line in new)] if new else []
    return lines


def test_a_name_that_is_new_keeps_the_horizon_where_it_is(tmp_path: Path, data: Path) -> None:
    add_tensorflow(tmp_path / "index", "2.22.0rc0")
    fresh = [b"TF_DETERMINISTIC_NEW", b"xla_new", b"xla_new_determinism"]
    add_tensorflow(tmp_path / "index", "2.23.0", library=make_library([*NAMES, *fresh]))
    before = (data / "environ.toml").read_bytes()
    with recorded(tmp_path) as (web, _):
        asked = [refresh(name, web, data, DAY) for name in ("variables", "flags")]
    assert asked == [
        ([], ["1 new since 2.22.0rc0: what these do: TF_DETERMINISTIC_NEW"]),
        ([], ["2 new since 2.22.0rc0: what these do: xla_new_determinism"]),
    ]
    assert (data / "environ.toml").read_bytes() == before


def test_a_ptx_isa_without_its_cuda_is_for_a_person(tmp_path: Path, data: Path) -> None:
    add_tensorflow(tmp_path / "index", "2.23.0", library=make_library(isa=(99, 0)))
    with recorded(tmp_path) as (web, _):
        wrong, (decide,) = refresh("ptx", web, data, DAY)
    assert (wrong, decide.startswith("PTX ISA 99.0 of tensorflow-2.23.0-cp311-")) == ([], True)
    assert (data / "compatibility.toml").read_bytes() == (DATA / "compatibility.toml").read_bytes()


def test_a_release_of_debian_is_a_row_and_its_slim_images_follow(tmp_path: Path, data: Path) -> None:
    released = (RECORDED / "debian.csv").read_bytes().replace(b"forky,2025-08-09", b"forky,2025-08-09,2026-12-31")
    odd = {f"{CONTENTS}/forky.md": always(answer((RECORDED / "trixie.md").read_bytes()))}
    images = (RECORDED / "python").read_bytes() + b"\nTags: 3.14.7-slim-forky\n"
    with recorded(tmp_path, odd, debian=released, python=images) as (web, _):
        wrong, decide = refresh("systems", web, data, DAY)
        assert (wrong, decide) == ([], ["`image` and `with_python` of forky: whether there are any"])
        assert refresh("slim", web, data, DAY)[0] == []
    system = rows(data, "python_images", "system")[-1]
    assert (system["name"], system["os"], system["libc"], "image" in system) == ("forky", "debian 14", "2.41", False)
    assert ("3.14", "forky") in {(row["python"], row["suite"]) for row in rows(data, "python_images", "slim")}


def test_an_image_that_no_release_has_is_for_a_person(tmp_path: Path, data: Path) -> None:
    known = (RECORDED / "container.yaml").read_bytes()
    listed = known + f"  25.03-tf2-py3: sha256:{'1' * 64}\n  25.03-tf2-py3-igpu: sha256:{'2' * 64}\n".encode()
    with recorded(tmp_path, container=listed) as (web, _):
        assert refresh("digests", web, data, DAY) == ([], ["25.03-tf2-py3 is a tag of NVIDIA's, and no release has it"])
    table = data / "ngc_tensorflow.toml"
    assert f'horizon = {{ day = "{DAY}"' not in table.read_text(encoding="utf-8")
    with recorded(tmp_path / "later") as (web, _):
        assert refresh("digests", web, data, DAY) == ([], [])
    assert f'horizon = {{ day = "{DAY}"' in table.read_text(encoding="utf-8")


def test_an_image_comes_to_its_end_of_life(tmp_path: Path, data: Path) -> None:
    text = (data / "cuda_images.toml").read_text(encoding="utf-8").split("\n")
    (place,) = (n for n, line in enumerate(text) if 'cuda = "12.6.2", ubuntu = "24.04"' in line)
    text[place] = text[place].replace("end_of_life = true, ", "")
    (data / "cuda_images.toml").write_text("\n".join(text), encoding="utf-8")
    with recorded(tmp_path) as (web, _):
        assert refresh("images", web, data, DAY) == ([], [])
    images = {(row["cuda"], row["ubuntu"]): row for row in rows(data, "cuda_images", "image")}
    assert images["12.6.2", "24.04"]["end_of_life"]


def test_a_candidate_gives_way_to_its_release(tmp_path: Path, data: Path) -> None:
    add_tensorflow(tmp_path / "index", "2.23.0rc1")
    with recorded(tmp_path) as (web, _):
        refresh("tensorflow", web, data, DAY)
        assert [row["tensorflow"] for row in rows(data, "tensorflow_builds", "build")][-1] == "2.23.0rc1"
        add_tensorflow(tmp_path / "index", "2.23.0", pythons=("cp311",))
        assert refresh("tensorflow", web, data, DAY)[0] == []
    for name in ("build", "and_cuda"):
        assert [row["tensorflow"] for row in rows(data, "tensorflow_builds", name)][-1] == "2.23.0"
        assert len([row for row in rows(data, "tensorflow_builds", name) if "2.23" in row["tensorflow"]]) == 1


def test_what_only_the_candidate_required_is_for_a_person(tmp_path: Path, data: Path) -> None:
    add_tensorflow(tmp_path / "index", "2.22.0", {"keras-nightly": "keras"})
    with recorded(tmp_path) as (web, _):
        wrong, decide = refresh("needs", web, data, DAY)
    assert wrong == []
    assert "TensorFlow 2.22.0 does not require keras-nightly, which its candidate did: take that row away" in decide
    needs = {
        row["package"]: row["takes"] for row in rows(data, "compatibility", "needs") if row["tensorflow"] == "2.22"
    }
    assert needs["keras"] == ">=3.12.0.dev"


def test_what_contradicts_a_row_stays_visible_and_the_row_stays(tmp_path: Path, data: Path) -> None:
    add_tensorflow(tmp_path / "index", "2.21.0", {"<8.0.0": "<9.0.0"})
    with recorded(tmp_path) as (web, _):
        wrong, _ = refresh("needs", web, data, DAY)
    assert len([each for each in wrong if 'takes "<8.0.0,>=6.31.1"' in each and "says takes" in each]) == 1
    assert find_lost(data) == []
    assert 'through = "2.21.0"' in (data / "compatibility.toml").read_text() or "2.22" in str(
        rows(data, "compatibility", "needs")
    )
    assert f'day = "{DAY}"' not in (data / "compatibility.toml").read_text(encoding="utf-8")


TROUBLES = ("500", "slow loris", "breaks off", "login page", "garbage")


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        *(
            (name, trouble)
            for name in ("tensorflow", "needs", "standalone", "code", "variables")
            for trouble in TROUBLES
        ),
        *((name, "wrong hash") for name in ("code", "ptx", "variables", "flags")),
        *((name, trouble) for name in ("tensorflow", "needs") for trouble in ("no ranges", "truncated range")),
        ("standalone", "wrong hash"),
    ],
)
def test_an_index_in_trouble_changes_nothing(tmp_path: Path, data: Path, name: str, trouble: str) -> None:
    add_tensorflow(tmp_path / "index", "2.23.0")
    add_versions(tmp_path / "index", (RECORDED / "download-metadata.json").read_text(encoding="utf-8"))
    before = {file.name: file.read_bytes() for file in data.iterdir() if file.is_file()}
    with recorded(tmp_path) as (web, index):
        index.troubles.add(trouble)
        wrong, decide = refresh(name, web, data, DAY)
    assert [each.endswith("; nothing was changed") for each in wrong] == [True]
    assert decide == []
    assert {file.name: file.read_bytes() for file in data.iterdir() if file.is_file()} == before


def add_versions(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    with tarfile.open(folder / "uv-0.13.9.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("uv-0.13.9/crates/uv-python-managed/download-metadata.json")
        member.size = len(text.encode())
        archive.addfile(member, io.BytesIO(text.encode()))


def test_the_builds_of_a_python_are_those_that_are_listed(tmp_path: Path, data: Path) -> None:
    """A build that is known is checked against the list, and no later build of it takes its place."""
    text = (RECORDED / "download-metadata.json").read_text(encoding="utf-8")
    add_versions(tmp_path / "index", text)
    with recorded(tmp_path) as (web, _):
        assert refresh("standalone", web, data, DAY)[0] == []
        assert {
            (row["python"], row["machine"], row.get("stripped")) for row in rows(data, "standalone_pythons", "build")
        } >= {("3.15.2", machine, True) for machine in ("x86_64", "aarch64")}
    assert find_lost(data) == []
    known = next(row for row in rows(data, "standalone_pythons", "build") if row["python"] == "3.14.9")
    add_versions(tmp_path / "index", text.replace(known["sha256"], "0" * 64))
    with recorded(tmp_path) as (web, _):
        (wrong,), _ = refresh("standalone", web, data, DAY)
    assert known["sha256"] in wrong
    assert f'says sha256 "{"0" * 64}"' in wrong


@pytest.mark.parametrize("text", ["{}", "[]", "[1]", '{"a": {"url": 3}}', "<html>"])
def test_another_list_of_pythons_changes_nothing(tmp_path: Path, data: Path, text: str) -> None:
    add_versions(tmp_path / "index", text)
    with recorded(tmp_path) as (web, _):
        (wrong,), _ = refresh("standalone", web, data, DAY)
    assert wrong.endswith("; nothing was changed")
    assert (data / "standalone_pythons.toml").read_bytes() == (DATA / "standalone_pythons.toml").read_bytes()


def test_what_is_no_row_changes_nothing(tmp_path: Path, data: Path) -> None:
    text = (RECORDED / "download-metadata.json").read_text(encoding="utf-8")
    file = data / "standalone_pythons.toml"
    lines = file.read_text(encoding="utf-8").split("\n")
    file.write_text("\n".join(line for line in lines if 'python = "3.15.' not in line), encoding="utf-8")
    before = file.read_bytes()
    add_versions(tmp_path / "index", text.replace('"sha256": "', '"sha256": "not a digest '))
    with recorded(tmp_path) as (web, _):
        wrong, _ = refresh("standalone", web, data, DAY)
    assert [("what no row can be (build." in each, each.endswith("; nothing was changed")) for each in wrong] == [
        (True, True)
    ]
    assert file.read_bytes() == before


def test_cards_are_found_by_what_the_driver_calls_them(tmp_path: Path, data: Path) -> None:
    listed, lines = (RECORDED / "pci.ids").read_text(encoding="utf-8"), []
    for line in (data / "cuda_images.toml").read_text(encoding="utf-8").splitlines():
        chip = re.search(r'chip = "(\w+)"', line)
        if chip is None or chip[1] in listed:
            lines.append(line if chip is None else re.sub(r"names = \[.*?\]", f'names = ["{chip[1]}"]', line))
    (data / "cuda_images.toml").write_text("\n".join([*lines, ""]), encoding="utf-8")
    with recorded(tmp_path) as (web, _):
        wrong, decide = refresh("cards", web, data, DAY)
        first = (data / "cuda_images.toml").read_bytes()
        refresh("cards", web, data, DAY)
    assert (wrong, (data / "cuda_images.toml").read_bytes()) == ([], first)
    chips = {
        row["chip"]: (row["compute_capability"], row["names"])
        for row in rows(data, "cuda_images", "card")
        if "chip" in row
    }
    assert chips["GA100"] == ("8.0", ["GA100", "NVIDIA A100-SXM4-40GB"])
    assert chips["GV100"] == ("7.0", ["GV100", "Tesla V100 SXM2 16GB"])  # too old for the driver's list
    assert chips["AD103"] == ("8.9", ["AD103", "NVIDIA GeForce RTX 4090 Laptop GPU"])
    assert chips["GB110"] == ("10.3", ["GB110", "NVIDIA GB300"])
    unknown = "an unlisted chip, whose compute capability has no source here"
    assert f"NVIDIA DGX Display (PCI ID 1FB0): {unknown}" in decide
    # What a list no longer has stays, and is reported.
    products = (RECORDED / "README.md").read_text(encoding="utf-8").split("\n")
    shorter = "\n".join(line for line in products if "A100" not in line).encode()
    devices = (RECORDED / "pci.ids").read_bytes().replace(b"GA100", b"XX000")
    with recorded(tmp_path / "later", README=shorter, pci=devices) as (web, _):
        wrong, _ = refresh("cards", web, data, DAY)
    assert wrong == ["card: 1 rows of this source are not in it any more: GA100"]
    assert (data / "cuda_images.toml").read_bytes() == first


@pytest.mark.parametrize("name", ["cards", "slim", "drivers", "digests", "systems", "images"])
@pytest.mark.parametrize(
    "reply",
    [
        answer(b"", "500 Internal Server Error"),
        answer(b"<html>"),
        answer(b"\xff\xfe"),
        answer(b"cut", Content_Length="9999"),
    ],
    ids=["500", "another page", "no text", "cut off"],
)
def test_a_list_in_trouble_changes_nothing(tmp_path: Path, data: Path, name: str, reply: bytes) -> None:
    before = {file.name: file.read_bytes() for file in data.iterdir() if file.is_file()}
    with recorded(tmp_path, dict.fromkeys(PLACES, always(reply))) as (web, _):
        (wrong,), decide = refresh(name, web, data, DAY)
    assert (wrong.endswith("; nothing was changed"), decide) == (True, [])
    assert {file.name: file.read_bytes() for file in data.iterdir() if file.is_file()} == before


def test_slim_images_grow_and_a_gap_is_for_a_person(tmp_path: Path, data: Path) -> None:
    text = (RECORDED / "python").read_text(encoding="utf-8")
    last = next(
        row["last"]
        for row in rows(data, "python_images", "slim")
        if (row["python"], row["suite"]) == ("3.13", "trixie")
    )
    text = text.replace("3.13.15-slim-trixie", f"3.13.{last + 1}-slim-trixie")
    text = text.replace("3.12.14-slim-trixie", "3.12.99-slim-trixie")
    with recorded(tmp_path, python=f"{text}\nTags: 3.14.9-slim-forky\n".encode()) as (web, _):
        wrong, decide = refresh("slim", web, data, DAY)
    assert wrong == []
    ends = {(row["python"], row["suite"]): row["last"] for row in rows(data, "python_images", "slim")}
    assert ends["3.13", "trixie"] == last + 1
    known = {(row["python"], row["suite"]) for row in rows(DATA, "python_images", "slim")}
    (gap,) = (each for each in decide if "is followed by" in each)
    assert gap.endswith(" is followed by 99; whether those between were built is not listed")
    assert "Debian's forky has no row of `system`: its Python, its C library and its compiler" in decide
    assert {(row["python"], row["suite"]) for row in rows(data, "python_images", "slim")} >= known


def test_a_run_that_was_stopped_goes_on_with_what_it_has(tmp_path: Path, data: Path) -> None:
    with recorded(tmp_path) as (web, _):
        assert refresh("slim", web, data, DAY)[0] == []
        for kept in (tmp_path / "kept").iterdir():
            kept.write_text(kept.read_text(encoding="utf-8").replace("3.10.21", "3.10.22"), encoding="utf-8")
        assert refresh("slim", web, data, DAY)[0] == []
    assert "3.10.22" in str([f"{row['python']}.{row['last']}" for row in rows(data, "python_images", "slim")])


def test_every_row_of_what_is_refreshed_reads_as_it_is_written() -> None:
    lists: dict[str, tuple[str, ...]] = {
        "tensorflow_builds": ("build", "and_cuda", "code"),
        "compatibility": ("needs", "ptx"),
        "cuda": ("ptx_isa",),
        "standalone_pythons": ("build",),
    }
    lists |= {"python_images": ("slim", "system"), "cuda_images": ("image", "card", "driver")}
    lists |= {"ngc_tensorflow": ("digest",), "environ": (), "determinism_variables": ()}
    for stem, names in lists.items():
        text = (DATA / f"{stem}.toml").read_text(encoding="utf-8")
        for name in names:
            lines = find_list(text, name)[2]
            assert [format_row(parse_row(line)) for line in lines] == lines != []
    assert {stem for stem, _, _ in MODULES.values()} == set(lists)


def test_the_age_of_a_table_is_red_past_a_limit(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newest = max(
        line for file in data.glob("*.toml") for line in file.read_text().splitlines() if line.startswith("horizon")
    )
    day = date.fromisoformat(newest.partition('day = "')[2][:10])
    assert check_ages(data, day) in (0, 1)
    assert check_ages(data, date.fromordinal(day.toordinal() + LIMIT + 1)) == 1
    assert f", more than {LIMIT}: " in capsys.readouterr().out
