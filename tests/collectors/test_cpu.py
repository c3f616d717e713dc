"""The processor collector: /proc/cpuinfo of two architectures, quotas of two cgroup versions, thread variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envlock.lock.creation import capture
from envlock.runtime.collectors import take_snapshot
from envlock.runtime.collectors.cpu import collect, read_quota
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from tests.machines import distribution, machine, write

AARCH64 = """\
processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes asimdhp sve bf16 i8mm cpuid
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd40
CPU revision\t: 1

processor\t: 1
Features\t: fp
"""


class FourOfEight(Host):
    """A machine on which this process may run on four CPUs."""

    def affinity(self) -> int | None:
        return 4


def facts(tmp_path: Path, cpuinfo: str | bytes | None = None, **environ: str) -> Any:
    machine(tmp_path, files={} if cpuinfo is None else {"proc/cpuinfo": cpuinfo})
    return collect(FourOfEight(str(tmp_path), environ, [], {}))


XEON = {
    "vendor": "GenuineIntel",
    "family": "6",
    "model": "143",
    "model_name": "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
    "flags": ["amx_tile", "avx", "avx2", "avx512_vnni", "avx512f", "f16c", "fma", "sse4_1", "sse4_2"],
    "affinity_count": 4,
    "quota": None,
    "intra_op_threads": 4,
    "inter_op_threads": 4,
}
ARM = {"vendor": "0x41", "family": "8", "model": "0xd40", "model_name": None}


def test_an_x86_64_processor(tmp_path: Path) -> None:
    assert facts(tmp_path) == XEON


def test_an_aarch64_processor(tmp_path: Path) -> None:
    assert facts(tmp_path, AARCH64) == {**XEON, **ARM, "flags": ["asimd", "asimdhp", "bf16", "i8mm", "sve"]}


@pytest.mark.parametrize("cpuinfo", ["", "garbage", "a: b: c\n:\n"])
def test_a_cpuinfo_that_says_nothing(cpuinfo: str, tmp_path: Path) -> None:
    nothing: dict[str, Any] = {"vendor": None, "family": None, "model": None, "model_name": None, "flags": []}
    assert facts(tmp_path, cpuinfo) == {**XEON, **nothing}


def test_without_cpuinfo_it_is_unavailable(tmp_path: Path) -> None:
    expected = Unavailable("/proc/cpuinfo does not exist; only Linux is supported", "not-linux")
    assert collect(Host(str(tmp_path), {}, [], {})) == expected


def test_an_undecodable_name_never_keeps_a_lock_from_being_made(tmp_path: Path) -> None:
    host = machine(tmp_path, files={"proc/cpuinfo": b"vendor_id : \xff\xfe\nflags : avx\n"})
    lock = capture(live=take_snapshot(host))
    assert lock.unavailable["cpu.vendor"].code == "malformed"


@pytest.mark.parametrize(
    ("value", "threads"),
    [
        ("1", 1),
        ("16", 16),
        (" 2 ", 2),
        ("007", 7),
        ("0", 4),
        ("", 4),
        ("-1", 4),
        ("two", 4),
        ("2.0", 4),
        ("\u00b2", 4),
        ("\u0663", 4),
        ("9" * 30, 4),
        ("\udcff", 4),
    ],
)
@pytest.mark.parametrize("kind", ["intra", "inter"])
def test_the_thread_variables(kind: str, value: str, threads: int, tmp_path: Path) -> None:
    found = facts(tmp_path, **{f"TF_NUM_{kind.upper()}OP_THREADS": value})
    assert found == {**XEON, f"{kind}_op_threads": threads}


@pytest.mark.parametrize(
    ("groups", "files", "cpus"),
    [
        ("0::/\n", {}, None),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b\n", {"a/b/cpu.max": "200000 100000\n", "cpu.max": "50000 100000"}, 2.0),
        ("0::/host/path\n", {"cpu.max": "50000 100000\n"}, 0.5),
        ("0::/../../x\n", {"cpu.max": "50000 100000\n"}, 0.5),
        ("0::/\n", {"cpu.max": "garbage\n"}, None),
        ("0::/\n", {"cpu.max": "1 2 3\n"}, None),
        ("0::/\n", {"cpu.max": "1 0\n"}, None),
        (
            "5:cpu,cpuacct:/d\n4:memory:/x\n",
            {"cpu/d/cpu.cfs_quota_us": "250000\n", "cpu/d/cpu.cfs_period_us": "100000\n"},
            2.5,
        ),
        ("5:cpu,cpuacct:/d\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ("5:cpu:/d\n", {"cpu/cpu.cfs_quota_us": "1000\n", "cpu/cpu.cfs_period_us": "0\n"}, None),
        ("5:cpuset:/\n0::/\n", {"cpu.max": "100000 100000\n"}, 1.0),
        ("garbage\n", {"cpu.max": "100000 100000\n"}, None),
        ("", {"cpu.max": "100000 100000\n"}, None),
    ],
)
def test_the_quota(groups: str, files: dict[str, str | bytes], cpus: float | None, tmp_path: Path) -> None:
    write(tmp_path / "sys/fs/cgroup", files)
    found = read_quota(machine(tmp_path, files={"proc/self/cgroup": groups}))
    assert (found, type(found)) == (cpus, type(cpus))


CORES = """\
processor\t: {number}
physical id\t: {socket}
core id\t\t: {core}
"""


def _count_for_joblib(
    folder: Path,
    *,
    sockets: int = 1,
    quota: str = "max 100000",
    lscpu: str | None = "usr/bin",
    package: str = "joblib",
    limit: str = "",
) -> Any:
    """Return what is recorded on a machine with two processors to each of two cores to each socket."""
    places = [(socket, core) for socket in range(sockets) for core in (0, 1) for _ in (1, 2)]
    texts = [CORES.format(number=number, socket=s, core=c) for number, (s, c) in enumerate(places)]
    files = {"proc/cpuinfo": "\n".join(texts), "sys/fs/cgroup/cpu.max": quota}
    machine(folder, files=files)
    if lscpu is not None:
        program = write(folder, {f"{lscpu}/lscpu": "#!/bin/sh"}) / lscpu / "lscpu"
        program.chmod(0o755)
    distribution(folder / "site", package, "1.0")
    environ = {"PATH": "/opt/bin:/usr/bin", "LOKY_MAX_CPU_COUNT": limit}
    host = FourOfEight(str(folder), environ, [str(folder / "site")], {})
    found = collect(host)
    assert isinstance(found, dict)
    return found.get("joblib_count", "not asked")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "processors: 4, cores: 2"),
        ({"sockets": 2}, "processors: 4, cores: 4"),  # of eight processors: what it may use
        ({"quota": "50000 100000"}, "processors: 1, cores: 1"),
        ({"quota": "250000 100000"}, "processors: 3, cores: 3"),
        ({"quota": "900000 100000"}, "processors: 4, cores: 2"),
        ({"lscpu": None}, "processors: 4, cores: 2"),
        ({"limit": "2"}, "processors: 2, cores: 2"),
        ({"limit": "64"}, "processors: 4, cores: 2"),
        ({"limit": "many"}, "processors: 4, cores: 2"),
        ({"package": "loky"}, "processors: 4, cores: 2"),
        ({"package": "six"}, "not asked"),
    ],
    ids=str,
)
def test_what_joblib_counts(tmp_path: Path, changed: dict[str, Any], expected: Any) -> None:
    assert _count_for_joblib(tmp_path, **changed) == expected


def test_another_program_than_the_systems_that_counts_cores_is_held_by_its_content(tmp_path: Path) -> None:
    assert _count_for_joblib(tmp_path, lscpu="opt/bin").startswith("processors: 4, cores: sha256:")
    without = _count_for_joblib(tmp_path, lscpu="opt/bin", quota="100000 100000")
    assert without == "processors: 1, cores: 1"  # nobody asks it
