"""The ELF reader: what it takes from sound files, and that nothing else than ValueError or OSError comes of others."""

from __future__ import annotations

import contextlib
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from envlock.runtime.loader.elf import AARCH64, X86_64, OtherMachineError, find_exports, read_elf
from tests.fakes.elf_writer import elf, write_elf

NOTE = b'{"format":1,"CUDA version":"12.9","driver":[535,550],"device":[1,2]}'
SOUND = elf(
    "libx.so.1",
    needed=("liby.so.2", "libz.so"),
    runpath="$ORIGIN:/opt/x",
    build_id=bytes(range(20)),
    note=NOTE,
    symbols=("one", "two", "three"),
)


def test_everything_the_loader_reads_is_told(tmp_path: Path) -> None:
    path = tmp_path / "libx.so.1"
    path.write_bytes(SOUND)
    found = read_elf(str(path))
    assert (found.soname, found.needed) == ("libx.so.1", ["liby.so.2", "libz.so"])
    assert (found.runpath, found.has_runpath, found.rpath) == ("$ORIGIN:/opt/x", True, "")
    assert found.build_id == bytes(range(20)).hex()
    assert found.compat == NOTE.decode()
    assert (found.machine, found.size, found.nodeflib) == (X86_64, len(SOUND), False)


def test_every_dependency_of_many_is_told(tmp_path: Path) -> None:
    names = [f"lib{number}.so" for number in range(300)]
    assert read_elf(str(write_elf(tmp_path / "a.so", needed=names))).needed == names


def test_rpath_counts_only_without_runpath(tmp_path: Path) -> None:
    assert read_elf(str(write_elf(tmp_path / "a.so", rpath="/a"))).rpath == "/a"
    both = read_elf(str(write_elf(tmp_path / "b.so", rpath="/a", runpath="")))
    assert (both.rpath, both.runpath, both.has_runpath) == ("", "", True)


def test_nodefaultlib_is_told(tmp_path: Path) -> None:
    assert read_elf(str(write_elf(tmp_path / "a.so", flags_1=0x800))).nodeflib


def test_a_library_of_another_machine_is_passed_over_and_not_damaged(tmp_path: Path) -> None:
    arm = str(write_elf(tmp_path / "arm.so", machine=AARCH64))
    assert read_elf(arm).machine == AARCH64
    with pytest.raises(OtherMachineError):
        read_elf(arm, X86_64)
    narrow = tmp_path / "narrow.so"
    narrow.write_bytes(SOUND[:4] + b"\x01" + SOUND[5:])
    with pytest.raises(OtherMachineError):
        read_elf(str(narrow))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "file too short"),
        (b"garbage" * 20, "invalid ELF header"),
        (SOUND[:5] + b"\x02" + SOUND[6:], "little-endian"),
        (SOUND[:7] + b"\x09" + SOUND[8:], "OS ABI"),
        (SOUND[:9] + b"\x01" + SOUND[10:], "padding"),
        (SOUND[:16] + b"\x01" + SOUND[17:], "ET_DYN"),
        (SOUND[:100], "cannot read file data"),
        (SOUND[:400], "no end"),
        (elf("libx.so.1", needed=("y" * 5000,)), "no end"),  # of 4,096 such names, each read would be kept
    ],
)
def test_damage_is_named(tmp_path: Path, data: bytes, sentence: str) -> None:
    path = tmp_path / "damaged.so"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=sentence):
        read_elf(str(path))


def test_a_pipe_of_that_name_does_not_block(tmp_path: Path) -> None:
    path = tmp_path / "libpipe.so"
    os.mkfifo(path)
    with pytest.raises((ValueError, OSError)):
        read_elf(str(path))


def test_exported_symbols_are_found_by_hash(tmp_path: Path) -> None:
    path = tmp_path / "libx.so.1"
    path.write_bytes(SOUND)
    assert find_exports(str(path), ["one", "three", "four", ""]) == {"one", "three"}


@settings(max_examples=300)
@given(seed=st.integers(0, 2**32), cut=st.integers(0, len(SOUND)), changes=st.integers(0, 40))
def test_no_damage_gives_another_error_or_takes_long(seed: int, cut: int, changes: int) -> None:
    chance = random.Random(seed)
    data = bytearray(SOUND)
    for _ in range(changes):
        data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"envlock-fuzz-{os.getpid()}.so"
    path.write_bytes(bytes(data[: cut or None]))
    begin = time.process_time()
    for ask in (lambda: read_elf(str(path)), lambda: find_exports(str(path), ["one", "four"])):
        with contextlib.suppress(ValueError, OSError):
            ask()
    path.unlink()
    assert time.process_time() - begin < 0.5


def test_the_same_as_pyelftools_on_the_libraries_of_this_machine() -> None:
    multiarch = [folder for folder in Path("/usr/lib").glob("*-linux-gnu") if folder.is_dir()]
    libraries = sorted({path.resolve() for folder in multiarch for path in folder.glob("lib*.so.*")})[:25]
    assert libraries or not multiarch
    for path in libraries:
        found = read_elf(str(path))
        with path.open("rb") as stream:
            told = ELFFile(stream)
            dynamic: Any = told.get_section_by_name(".dynamic")
            sections: Any = told.iter_sections("SHT_NOTE")
            assert found.needed == [tag.needed for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"]
            assert found.soname == next(
                (tag.soname for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_SONAME"), None
            )
            notes = [note for section in sections for note in section.iter_notes()]
            assert found.build_id == next((n["n_desc"] for n in notes if n["n_type"] == "NT_GNU_BUILD_ID"), None)
