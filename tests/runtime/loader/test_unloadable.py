"""Modules that cannot be imported: a real one, and a copy that asks for a library that is nowhere."""

from __future__ import annotations

from pathlib import Path

from pydantic_core import _pydantic_core

from envlock.runtime.host import Host
from envlock.runtime.loader.unloadable import find_unloadable
from tests.fakes.elf_writer import write_elf

MODULE = Path(_pydantic_core.__file__)
NEEDED, ABSENT = b"libgcc_s.so.1", b"libgcc_z.so.1"


def site(tmp_path: Path, needed: bytes) -> Path:
    """Return a folder of packages with a package whose module needs a library."""
    folder = tmp_path / "site-packages"
    (folder / "drawn").mkdir(parents=True)
    code = MODULE.read_bytes()
    assert code.count(NEEDED) == 1
    (folder / "drawn" / MODULE.name).write_bytes(code.replace(NEEDED, needed))
    return folder


def test_a_library_that_is_nowhere_is_named(tmp_path: Path) -> None:
    assert find_unloadable(Host(path=[str(site(tmp_path, ABSENT))])) == {"drawn": [ABSENT.decode()]}


def test_a_library_of_the_system_is_found(tmp_path: Path) -> None:
    assert find_unloadable(Host(path=[str(site(tmp_path, NEEDED))])) == {}


def test_what_another_package_brings_is_found_and_what_that_needs_is_asked(tmp_path: Path) -> None:
    folder = site(tmp_path, ABSENT)
    brought = folder / "drawn.libs" / ABSENT.decode()
    write_elf(brought, needed=["libcuda.so.1"])  # the driver's
    assert find_unloadable(Host(path=[str(folder)])) == {}
    write_elf(brought, needed=["libnone.so.1"])
    assert find_unloadable(Host(path=[str(folder)])) == {"drawn": ["libnone.so.1"]}


def test_a_library_that_is_no_module_and_a_damaged_one_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    write_elf(folder / "plugin.so", needed=["libnone.so.1"])
    (folder / "damaged.so").write_bytes(b"\x7fELF")
    assert find_unloadable(Host(path=[str(folder)])) == {}
