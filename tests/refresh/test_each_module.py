"""Each module of the refresh by the same table: asked twice, and sources that lie, are cut off, fail or are slow."""

from __future__ import annotations

import gzip
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from refresh.__main__ import DATA, MODULES, refresh
from refresh.web import Web

from tests.packages.web.hostile import Reply, Request, always, answer
from tests.refresh.test_refresh import (
    DAY,
    DEVICES,
    DIGESTS,
    DRIVERS,
    IMAGES,
    NAMES,
    PLACES,
    PRODUCTS,
    RECORDED,
    RELEASES,
    TREE,
    add_isa,
    add_tensorflow,
    add_versions,
    find_lost,
    make_library,
    recorded,
    rows,
)

pytestmark = pytest.mark.network

ASKED = {"tensorflow": "index", "needs": "index", "standalone": "index", "slim": IMAGES, "cards": PRODUCTS}
ASKED |= {"drivers": DRIVERS, "digests": DIGESTS, "systems": RELEASES, "images": TREE}
ASKED |= dict.fromkeys(("code", "ptx", "isa", "variables", "flags"), "index")
"""Whom each module asks: the package index, or a list."""
VERSIONS = (RECORDED / "download-metadata.json").read_text(encoding="utf-8")
ISA = (RECORDED / "_ptx_utils.txt").read_text(encoding="utf-8")
KNOWN = next(row for row in rows(DATA, "standalone_pythons", "build") if row["python"] == "3.14.9")


def copy_with_less(folder: Path) -> Path:
    """Return a copy of the tables without some rows, so that each source has something new."""
    copy = Path(shutil.copytree(DATA, folder))
    for name, left_out in (
        ("standalone_pythons", 'python = "3.15.'),
        ("cuda_images", 'cuda = "13.4.1", driver'),
        ("cuda", 'isa = "9.5"'),
        ("ngc_tensorflow", '"23.09-tf2-py3", digest'),
        ("python_images", '{ name = "ubuntu26.04"'),
        ("cuda_images", 'cuda = "13.0.0", ubuntu = "24.04"'),
    ):
        lines = (copy / f"{name}.toml").read_text(encoding="utf-8").splitlines()
        kept = "".join(f"{line}\n" for line in lines if left_out not in line)
        kept = kept.replace('"NVIDIA A100-SXM4-40GB", ', "")
        (copy / f"{name}.toml").write_text(kept, encoding="utf-8")
    return copy


def read(data: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in data.iterdir() if file.is_file()}


@contextmanager
def sources(
    folder: Path, name: str, trouble: str = "", lie: Callable[[Path], dict[str, bytes]] | None = None
) -> Iterator[Web]:
    """Serve news for each module; one source is in trouble, or lies."""
    (folder / "index").mkdir(parents=True)
    add_tensorflow(folder / "index", "2.22.0rc0")
    add_tensorflow(folder / "index", "2.23.0")
    add_versions(folder / "index", VERSIONS)
    add_isa(folder / "index", ISA)
    changed = {"python": (RECORDED / "python").read_bytes() + b"\nTags: 3.14.0-slim-trixie\n"}
    changed |= lie(folder / "index") if lie else {}
    odd: dict[str, Reply] = {}
    if trouble and ASKED[name] != "index":
        odd[ASKED[name]] = TROUBLES[trouble]
    with recorded(folder, odd, **changed) as (web, index):
        if trouble and ASKED[name] == "index":
            index.troubles.add(trouble)
        yield web


def drip(_: Request, sock: socket.socket) -> None:
    """Send a byte now and then."""
    sock.sendall(answer(b"", Content_Length="9999"))
    for _second in range(40):
        time.sleep(0.2)
        sock.sendall(b"x")


TROUBLES: dict[str, Reply] = {
    "500": always(answer(b"", "500 Internal Server Error")),
    "breaks off": always(answer(b"cut", Content_Length="9999")),
    "login page": always(answer(b"<html>Password")),
    "slow loris": drip,
}
"""What a list does where the index of tests/packages/server.py has a trouble of that name."""


def test_every_module_is_in_the_table() -> None:
    assert set(ASKED) == set(MODULES) == set(LIES)
    assert {IMAGES, PRODUCTS, DEVICES, DRIVERS, DIGESTS, RELEASES, TREE} <= set(PLACES)


@pytest.mark.parametrize("name", MODULES)
def test_asked_twice_it_writes_the_same_bytes(tmp_path: Path, name: str) -> None:
    written = []
    for turn in ("first", "second"):
        data = copy_with_less(tmp_path / f"data-{turn}")
        before = read(data)
        with sources(tmp_path / turn, name) as web:
            refresh(name, web, data, DAY)
        assert len(read(data).items() - before.items()) == 1
        written.append(read(data))
    assert written[0] == written[1]


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("name", MODULES)
def test_a_source_in_trouble_loses_nothing_and_is_one_sentence(tmp_path: Path, name: str, trouble: str) -> None:
    data = copy_with_less(tmp_path / "data")
    before = read(data)
    with sources(tmp_path, name, trouble) as web:
        (sentence,), decide = refresh(name, web, data, DAY)
    assert (sentence.endswith("; nothing was changed"), "\n" in sentence, decide) == (True, False, [])
    assert read(data) == before
    # What it says once it is well again is not lost either.
    with sources(tmp_path / "later", name) as web:
        refresh(name, web, data, DAY)
    assert read(data) != before


def lie_about_cuda(index: Path) -> dict[str, bytes]:
    add_tensorflow(index, "2.21.0", {">=9.10.2.21": ">=1.0"})
    return {}


def lie_about_protobuf(index: Path) -> dict[str, bytes]:
    add_tensorflow(index, "2.21.0", {"<8.0.0": "<9.0.0"})
    return {}


def lie_about_digest(index: Path) -> dict[str, bytes]:
    add_versions(index, VERSIONS.replace(KNOWN["sha256"], "0" * 64))
    return {}


def lie_about_suite(index: Path) -> dict[str, bytes]:
    return {"python": (RECORDED / "python").read_bytes() + b"\nTags: 3.13.99-slim-trixie\n"}


def lie_about_chip(index: Path) -> dict[str, bytes]:
    return {"pci": (RECORDED / "pci.ids").read_bytes().replace(b"GA100 [A100", b"GH100 [A100")}


def lie_about_driver(index: Path) -> dict[str, bytes]:
    return {"compatibility": (RECORDED / "compatibility.md").read_bytes().replace(b"595.58.03", b"595.01")}


def lie_about_image(index: Path) -> dict[str, bytes]:
    return {"container": (RECORDED / "container.yaml").read_bytes().replace(b"sha256:947e", b"sha256:0000")}


def lie_about_library(version: str, **inside: Any) -> Callable[[Path], dict[str, bytes]]:
    """Return what leaves one TensorFlow in the index, with another library."""

    def lie(index: Path) -> dict[str, bytes]:
        for wheel in index.glob("tensorflow-*.whl"):
            wheel.unlink()
        add_tensorflow(index, "2.22.0rc0")
        for wheel in index.glob("tensorflow-*.whl") if version < "2.22" else ():
            wheel.unlink()
        add_tensorflow(index, version, library=make_library(**inside))
        return {}

    return lie


def lie_about_libc(index: Path) -> dict[str, bytes]:
    return {"trixie": (RECORDED / "trixie.md").read_bytes().replace(b"libc6:amd64=2.41-", b"libc6:amd64=2.99-")}


def lie_about_cudnn(index: Path) -> dict[str, bytes]:
    tree = gzip.decompress((RECORDED / "cuda-master.tar.gz").read_bytes())
    return {"cuda-master": gzip.compress(tree.replace(b"=9.10.2.21-1", b"=9.99.2.21-1"))}


def lie_about_isa(index: Path) -> dict[str, bytes]:
    add_isa(index, ISA.replace('"8.3": (12, 3)', '"8.3": (12, 9)'))
    return {}


LIES = {
    "isa": (lie_about_isa, "but ptx-utils: cuda_bindings-13.5.0"),
    "code": (lie_about_library("2.21.0", targets=(35, 90)), 'says targets ["sm_35", "compute_90"]'),
    "ptx": (lie_about_library("2.21.0", isa=(8, 0)), 'says cuda "12.0"'),
    "variables": (
        lie_about_library("2.23.0", names=[name for name in NAMES if name != b"TF_DETERMINISTIC_OPS"]),
        "TF_DETERMINISTIC_OPS is not in tensorflow-2.23.0-cp311-cp311-manylinux_2_27_x86_64.whl, but its row says",
    ),
    "flags": (
        lie_about_library("2.23.0", names=[*NAMES, b"xla_gpu_deterministic_reductions"]),
        "xla_gpu_deterministic_reductions is in tensorflow-2.23.0-cp311-cp311-manylinux_2_27_x86_64.whl, but its row",
    ),
    "systems": (lie_about_libc, 'libc "2.99"'),
    "images": (lie_about_cudnn, 'cudnn "9.99.2.21"'),
    "tensorflow": (lie_about_cuda, 'cudnn "1.0"'),
    "needs": (lie_about_protobuf, "<9.0.0"),
    "standalone": (lie_about_digest, "0" * 64),
    "slim": (lie_about_suite, "is followed by 99; whether those between were built is not listed"),
    "drivers": (lie_about_driver, 'driver "595.58.03" (table-3), but triton-matrix: 26.05, asked on 2027-01-02 says'),
    "digests": (lie_about_image, 'says digest "sha256:000032a2'),
    "cards": (lie_about_chip, "card NVIDIA A100-SXM4-40GB: 8.0 by its rows, but 9.0 (GH100) by the lists"),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_source_that_lies_about_a_row_is_told_and_the_row_stays(tmp_path: Path, name: str) -> None:
    lie, said = LIES[name]
    data = Path(shutil.copytree(DATA, tmp_path / "data"))
    with sources(tmp_path, name, lie=lie) as web:
        wrong, decide = refresh(name, web, data, DAY)
    assert len([each for each in [*wrong, *decide] if said in each]) == 1
    lost = [line for line in find_lost(data) if 'chip = "' not in line]  # a chip's row may grow
    assert lost == []
    assert [line for line in (data / f"{MODULES[name][0]}.toml").read_text().splitlines() if said in line] == []
    names = {row["compute_capability"]: row["names"] for row in rows(data, "cuda_images", "card") if "chip" in row}
    assert "NVIDIA A100-SXM4-40GB" not in names["9.0"]
