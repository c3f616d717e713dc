"""The search: each rule on fake machines, and the whole against the real ld.so of this machine."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envlock.runtime.host import Host
from envlock.runtime.loader.elf import read_elf
from envlock.runtime.loader.ld_cache import LdCache
from envlock.runtime.loader.search import Found, Loader, parse_mapped_files
from tests.fakes.elf_writer import AARCH64, write_elf

NAME = "libfoo.so.1"
V2 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
V3 = V2 + " avx avx2 bmi1 bmi2 f16c fma abm movbe"


class Machine(Host):
    """A fake x86-64 machine whose files lie in a folder."""

    def uname(self) -> tuple[str, str, str]:
        return "Linux", "6.1", "x86_64"


def machine(root: Path, *, flags: str = "", maps: tuple[str, ...] = (), **environ: str) -> Machine:
    """Return a machine with this CPU, these mapped files (paths of the machine) and start variables."""
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t:\n")
    (root / "proc/self/environ").write_text("".join(f"{key}={value}\0" for key, value in environ.items()))
    lines = [f"7f00-7f01 r-xp 00000000 08:01 {n}          {path}\n" for n, path in enumerate(maps)]
    (root / "proc/self/maps").write_text("".join(lines))
    return Machine(root=str(root), environ=environ, path=[])


def caller(root: Path, **fields: Any) -> Found:
    """Return a caller at /app/libcaller.so of the machine."""
    elf = read_elf(str(write_elf(root / "app/libcaller.so", **fields)))
    elf.path = "/app/libcaller.so"
    return Found("libcaller.so", "/app/libcaller.so", "", elf)


def answer(host: Machine, asker: Found, soname: str = NAME) -> tuple[str | None, str]:
    found = Loader(host).load(soname, asker)
    return found.file, found.resolved_by


def test_not_found(tmp_path: Path) -> None:
    assert answer(machine(tmp_path), caller(tmp_path)) == (None, "not found")


def test_the_order_of_the_places(tmp_path: Path) -> None:
    for folder in ("rpath", "llp", "runpath", "usr/lib"):
        write_elf(tmp_path / folder / NAME)
    host = machine(tmp_path, LD_LIBRARY_PATH="/nowhere:/llp")
    assert answer(host, caller(tmp_path, rpath="/rpath")) == (f"/rpath/{NAME}", "RPATH")
    assert answer(host, caller(tmp_path, rpath="/rpath", runpath="/runpath")) == (f"/llp/{NAME}", "LD_LIBRARY_PATH")
    plain = machine(tmp_path)
    assert answer(plain, caller(tmp_path, rpath="/rpath", runpath="/runpath")) == (f"/runpath/{NAME}", "RUNPATH")
    assert answer(plain, caller(tmp_path)) == (f"/usr/lib/{NAME}", "default")
    assert answer(plain, caller(tmp_path, flags_1=0x800)) == (None, "not found")


def test_rpath_of_who_loaded_the_caller_counts_but_not_past_a_runpath(tmp_path: Path) -> None:
    write_elf(tmp_path / "grand" / NAME)
    write_elf(tmp_path / "parent/libmid.so.1")
    write_elf(tmp_path / "parent/libmidrun.so.1", runpath="/elsewhere")
    loader = Loader(machine(tmp_path))
    top = caller(tmp_path, rpath="/parent:/grand")
    middle = loader.load("libmid.so.1", top)
    assert loader.load(NAME, middle).resolved_by == "RPATH"
    other = Loader(machine(tmp_path))
    assert other.load(NAME, other.load("libmidrun.so.1", top)).resolved_by == "not found"


def test_rpath_of_the_program_counts_as_conda_has_it(tmp_path: Path) -> None:
    """conda's python has an RPATH; for a caller without RUNPATH it comes before LD_LIBRARY_PATH."""
    write_elf(tmp_path / "conda/bin/python3", rpath="$ORIGIN/../lib")
    for folder in ("conda/lib", "llp"):
        write_elf(tmp_path / folder / NAME)
    host = machine(tmp_path, LD_LIBRARY_PATH="/llp")
    (tmp_path / "proc/self/exe").symlink_to("/conda/bin/python3")
    assert answer(host, caller(tmp_path)) == (f"/conda/bin/../lib/{NAME}", "RPATH")
    assert answer(host, caller(tmp_path, runpath="/x")) == (f"/llp/{NAME}", "LD_LIBRARY_PATH")


@pytest.mark.parametrize("separator", [":", ";"])
def test_tokens_and_empty_elements(tmp_path: Path, separator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_elf(tmp_path / "app/sub" / NAME)
    assert answer(machine(tmp_path), caller(tmp_path, runpath="/x:$ORIGIN/sub"))[0] == f"/app/sub/{NAME}"
    assert answer(machine(tmp_path), caller(tmp_path, runpath="${ORIGIN}/sub"))[1] == "RUNPATH"
    write_elf(tmp_path / "opt/lib/x86_64-linux-gnu" / NAME)
    assert answer(machine(tmp_path), caller(tmp_path, runpath="/opt/$LIB"))[1] == "RUNPATH"
    write_elf(tmp_path / "opt/x86_64" / NAME)
    assert answer(machine(tmp_path), caller(tmp_path, runpath="/opt/${PLATFORM}"))[1] == "RUNPATH"
    here = tmp_path / "here"
    write_elf(here / NAME)
    monkeypatch.chdir(here)
    host = machine(tmp_path, LD_LIBRARY_PATH=f"/nowhere{separator}")
    assert answer(host, caller(tmp_path)) == (f"{here}/{NAME}", "LD_LIBRARY_PATH")


def test_a_variable_changed_after_the_start_has_no_effect(tmp_path: Path) -> None:
    write_elf(tmp_path / "late" / NAME)
    host = machine(tmp_path)
    host.environ = {"LD_LIBRARY_PATH": "/late"}
    assert answer(host, caller(tmp_path)) == (None, "not found")


def test_glibc_hwcaps_of_this_cpu_only(tmp_path: Path) -> None:
    for sub in ("", "glibc-hwcaps/x86-64-v2", "glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v4"):
        write_elf(tmp_path / "llp" / sub / NAME)
    for flags, sub in ((V3, "glibc-hwcaps/x86-64-v3/"), (V2, "glibc-hwcaps/x86-64-v2/"), ("sse4_1", "")):
        assert (
            answer(machine(tmp_path, flags=flags, LD_LIBRARY_PATH="/llp"), caller(tmp_path))[0] == f"/llp/{sub}{NAME}"
        )


def test_another_machine_is_passed_over_and_damage_ends_the_search(tmp_path: Path) -> None:
    write_elf(tmp_path / "arm" / NAME, machine=AARCH64)
    write_elf(tmp_path / "good" / NAME)
    assert answer(machine(tmp_path, LD_LIBRARY_PATH="/arm:/good"), caller(tmp_path))[0] == f"/good/{NAME}"
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / NAME).write_bytes(b"not a library, and long enough to be looked at: " * 4)
    found = Loader(machine(tmp_path, LD_LIBRARY_PATH="/bad:/good")).load(NAME, caller(tmp_path))
    assert (found.file, found.problem) == (f"/bad/{NAME}", "invalid ELF header")
    (tmp_path / "folder" / NAME).mkdir(parents=True)
    found = Loader(machine(tmp_path, LD_LIBRARY_PATH="/folder:/good")).load(NAME, caller(tmp_path))
    assert found.problem == "cannot read file data: Is a directory"


def test_what_is_mapped_wins_where_it_is_another_file(tmp_path: Path) -> None:
    write_elf(tmp_path / "torch/libfoo-renamed.so", NAME)
    write_elf(tmp_path / "runpath" / NAME)
    host = machine(tmp_path, maps=("/torch/libfoo-renamed.so",))
    assert answer(host, caller(tmp_path, runpath="/runpath")) == ("/torch/libfoo-renamed.so", "loaded")
    host = machine(tmp_path, maps=(f"/runpath/{NAME}",))
    assert answer(host, caller(tmp_path, runpath="/runpath")) == (f"/runpath/{NAME}", "RUNPATH")
    host = machine(tmp_path, maps=("/torch/libfoo-renamed.so",), LD_PRELOAD="/torch/libfoo-renamed.so")
    assert answer(host, caller(tmp_path, runpath="/runpath")) == ("/torch/libfoo-renamed.so", "LD_PRELOAD")


def test_preload_by_file_and_by_name(tmp_path: Path) -> None:
    write_elf(tmp_path / "mine/any.so", NAME)
    write_elf(tmp_path / "llp" / NAME)
    assert answer(machine(tmp_path, LD_PRELOAD="/mine/any.so"), caller(tmp_path))[1] == "LD_PRELOAD"
    host = machine(tmp_path, LD_PRELOAD=NAME, LD_LIBRARY_PATH="/llp")
    assert answer(host, caller(tmp_path)) == (f"/llp/{NAME}", "LD_PRELOAD")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ld.so.preload").write_text("# comment\n/mine/any.so\n")
    assert answer(machine(tmp_path), caller(tmp_path))[1] == "LD_PRELOAD"


def test_what_a_library_needs_is_loaded_with_it_or_it_fails(tmp_path: Path) -> None:
    write_elf(tmp_path / "run/libcua.so", needed=("libcub.so", "libc.so.6"), runpath="/deps")
    loader = Loader(machine(tmp_path))
    top = caller(tmp_path, runpath="/run:/other")
    broken = loader.open("libcua.so", top, ("libcu",))
    assert broken.problem == "libcub.so, which it needs: not found"
    write_elf(tmp_path / "deps/libcub.so")
    write_elf(tmp_path / "other/libcub.so")
    loader = Loader(machine(tmp_path))
    assert loader.open("libcua.so", top, ("libcu",)).problem is None
    assert loader.open("libcub.so", top, ("libcu",)).file == "/deps/libcub.so", "it came with libcua, from its folder"


def test_mapped_files_are_told_once_and_deleted_ones_too() -> None:
    text = (
        "7f00-7f01 r--p 00000000 08:01 5   /a/libx.so.1\n7f01-7f02 r-xp 00001000 08:01 5   /a/libx.so.1\n"
        "7f02-7f03 r-xp 00001000 08:01 6   /a b/liby.so (deleted)\n7f04-7f05 rw-p 00000000 00:00 0   [heap]\n"
    )
    assert parse_mapped_files(text) == ["/a/libx.so.1", "/a b/liby.so"]


def cache(entries: list[tuple[str, str, int, str | None]], old_table: bytes = b"") -> bytes:
    """Return a cache file: (soname, path, flags, hwcap) in the order in which they are looked at."""
    names = sorted({hwcap for *_, hwcap in entries if hwcap})
    strings = bytearray()
    at: dict[str, int] = {}
    table_end = 48 + 24 * len(entries)
    for text in [text for soname, path, *_ in entries for text in (soname, path)] + names:
        at[text] = table_end + len(strings)
        strings += text.encode() + b"\0"
    strings += bytes(-(table_end + len(strings)) % 4)
    rows = b"".join(
        struct.pack("<iIIIQ", flags, at[soname], at[path], 0, (1 << 62 | names.index(hwcap)) if hwcap else 0)
        for soname, path, flags, hwcap in entries
    )
    extension = table_end + len(strings)
    head = b"glibc-ld.so.cache1.1" + struct.pack("<IIB3xI12x", len(entries), len(strings), 2, extension)
    tail = struct.pack("<II", 0xEAA42174, 1) + struct.pack("<IIII", 1, 0, extension + 24, 4 * len(names))
    return old_table + head + rows + bytes(strings) + tail + b"".join(struct.pack("<I", at[name]) for name in names)


def test_the_cache_gives_the_first_entry_of_this_machine_and_the_best_hwcap() -> None:
    data = cache(
        [
            (NAME, "/v3/libfoo.so.1", 0x303, "x86-64-v3"),
            (NAME, "/v2/libfoo.so.1", 0x303, "x86-64-v2"),
            (NAME, "/arm/libfoo.so.1", 0xA03, None),
            (NAME, "/first/libfoo.so.1", 0x303, None),
            (NAME, "/second/libfoo.so.1", 0x303, None),
        ]
    )
    for hwcaps, path in (((), "/first"), (("x86-64-v2",), "/v2"), (("x86-64-v3", "x86-64-v2"), "/v3")):
        assert LdCache(data, 62, hwcaps).lookup(NAME) == f"{path}/{NAME}"
    assert LdCache(data, 183, ()).lookup(NAME) == f"/arm/{NAME}"
    assert LdCache(b"ld.so-1.7.0" + bytes(53) + data, 62, ()).lookup(NAME) == f"/first/{NAME}"
    assert LdCache(data, 62, ()).lookup("libbar.so") is None


def test_a_damaged_cache_holds_nothing() -> None:
    data = cache([(NAME, "/first/libfoo.so.1", 0x303, "x86-64-v3")])
    for cut in range(len(data)):
        LdCache(data[:cut], 62, ("x86-64-v3",)).lookup(NAME)
        LdCache(data[:cut] + b"\xff" * (len(data) - cut), 62, ("x86-64-v3",)).lookup(NAME)


@pytest.mark.processes
@pytest.mark.skipif(shutil.which("ldconfig") is None and not Path("/sbin/ldconfig").exists(), reason="no ldconfig")
def test_the_cache_of_this_machine_reads_as_ldconfig_prints_it() -> None:
    data = Path("/etc/ld.so.cache").read_bytes()
    printed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    wanted: dict[str, str] = {}
    kind = {"x86_64": "libc6,x86-64", "aarch64": "libc6,AArch64"}[os.uname().machine]
    for line in printed.splitlines():
        name, _, rest = line.strip().partition(" (")
        if rest.startswith(kind + ")"):
            wanted.setdefault(name, rest.partition("=> ")[2])
    told = LdCache(data, 62 if os.uname().machine == "x86_64" else 183, ())
    assert wanted
    assert {name: told.lookup(name) for name in wanted} == wanted


# --- against the real loader -------------------------------------------------------------------------------------

CHILD = """
import ctypes, json, os, sys
from envlock.runtime.loader.elf import read_elf
from envlock.runtime.host import Host
from envlock.runtime.loader.search import Found, Loader, parse_mapped_files
caller, name, *before = sys.argv[1:]
for path in before:
    ctypes.CDLL(path)
mapped = parse_mapped_files(open("/proc/self/maps").read())
found = Loader(Host()).load(name, Found("caller", caller, "", read_elf(caller)))
gained = [path for path in parse_mapped_files(open("/proc/self/maps").read()) if path not in mapped]
try:
    ctypes.CDLL(caller)
    real = [path for path in parse_mapped_files(open("/proc/self/maps").read()) if os.path.basename(path) == name]
    error = None
except OSError as failure:
    real, error = [], str(failure)
told = os.path.realpath(found.file) if found.file else None
print(json.dumps([told, found.resolved_by, found.problem, real, error, gained]))
"""

real_loader = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="the libraries of this test are x86-64"
)


def ask_both(caller_path: Path, *before: Path, wrap: tuple[str, ...] = (), **environ: str) -> tuple[str | None, str]:
    """Return the resolver's (file, reason) after checking it against what ld.so loaded in the same process."""
    root = str(Path(__file__).parents[2])
    words = [*wrap, sys.executable, "-c", CHILD, str(caller_path), NAME, *map(str, before)]
    base = {"PYTHONPATH": root, "PATH": os.environ["PATH"]}
    done = subprocess.run(words, env={**base, **environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told, reason, problem, real, error, gained = json.loads(done.stdout)
    assert not gained, "the resolver loaded a library"
    if problem is not None:
        assert error is not None
        assert problem in error
    elif told is None:
        assert error is not None
        assert "cannot open shared object file" in error
    else:
        assert (error, told in real) == (None, True), (told, real)
    return told, reason


@pytest.mark.processes
@real_loader
def test_the_real_loader_agrees_on_every_place(tmp_path: Path) -> None:
    paths = {folder: write_elf(tmp_path / folder / NAME) for folder in ("rp", "llp", "run", "pre")}
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / NAME).write_bytes(b"garbage " * 20)
    (tmp_path / "dir" / NAME).mkdir(parents=True)
    write_elf(tmp_path / "arm" / NAME, machine=AARCH64)
    write_elf(tmp_path / "llp2/glibc-hwcaps/x86-64-v2" / NAME)
    rpath = write_elf(tmp_path / "app/libr.so", needed=(NAME,), rpath=str(tmp_path / "rp"))
    runpath = write_elf(tmp_path / "app/libn.so", needed=(NAME,), runpath="/nowhere:$ORIGIN/../run", rpath="/x")
    nothing = write_elf(tmp_path / "app/lib0.so", needed=(NAME,))
    llp = str(tmp_path / "llp")
    assert ask_both(rpath, LD_LIBRARY_PATH=llp) == (str(paths["rp"]), "RPATH")
    assert ask_both(runpath, LD_LIBRARY_PATH=llp) == (str(paths["llp"]), "LD_LIBRARY_PATH")
    assert ask_both(runpath) == (str(paths["run"]), "RUNPATH")
    assert ask_both(nothing) == (None, "not found")
    assert ask_both(nothing, LD_LIBRARY_PATH=f"{tmp_path}/arm;{llp}") == (str(paths["llp"]), "LD_LIBRARY_PATH")
    for damaged in ("bad", "dir"):
        assert ask_both(nothing, LD_LIBRARY_PATH=f"{tmp_path}/{damaged}:{llp}")[1] == "LD_LIBRARY_PATH"
    assert "x86-64-v2" in str(ask_both(nothing, LD_LIBRARY_PATH=str(tmp_path / "llp2"))[0])
    assert ask_both(runpath, paths["pre"]) == (str(paths["pre"]), "loaded")
    assert ask_both(runpath, LD_PRELOAD=str(paths["pre"])) == (str(paths["pre"]), "LD_PRELOAD")
    link = tmp_path / "linked/libn.so"  # $ORIGIN is the folder of the name it was opened by, not of the file
    link.parent.mkdir()
    link.symlink_to(runpath)
    assert ask_both(link) == (str(paths["run"]), "RUNPATH")


@pytest.mark.processes
@real_loader
def test_the_real_loader_agrees_on_the_cache(tmp_path: Path) -> None:
    """A cache that lists our folder, bound over the machine's in a mount namespace of its own."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs root and a mount namespace")
    path = write_elf(tmp_path / "cached" / NAME)
    (tmp_path / "conf").write_text(f"include /etc/ld.so.conf\n{path.parent}\n")
    made = tmp_path / "cache"
    subprocess.run(["/sbin/ldconfig", "-C", made, "-f", tmp_path / "conf", "-X"], check=True, capture_output=True)
    script = f'mount --bind {made} /etc/ld.so.cache && exec "$@"'
    wrap = ("unshare", "-m", "sh", "-c", script, "sh")
    nothing = write_elf(tmp_path / "app/lib0.so", needed=(NAME,))
    assert ask_both(nothing, wrap=wrap) == (str(path), "ld.so.cache")
    llp = write_elf(tmp_path / "llp" / NAME)
    assert ask_both(nothing, wrap=wrap, LD_LIBRARY_PATH=str(llp.parent)) == (str(llp), "LD_LIBRARY_PATH")
