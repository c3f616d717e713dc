"""Every way in which asking NVML fails has a sentence and a code of its own; whole texts are compared."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from envlock.runtime.collectors import gpu
from envlock.runtime.facts import Unavailable
from envlock.runtime.gpu import child, hostfs, nvml_failures, probe
from envlock.runtime.host import Host
from tests.fakes.fake_nvml import Profile, profile, pynvml
from tests.fakes.replay import Machine

pytestmark = pytest.mark.processes

T4 = "t4__515__whole"

NO_LIBRARY = (
    "There are signs of an NVIDIA GPU, but libnvidia-ml.so.1 is missing; in a container, start it with the GPU "
    "option of the engine (docker run --gpus all), on a machine, install the NVIDIA driver."
)
UNLOADABLE = (
    "libnvidia-ml.so.1 cannot be loaded ({}); install the NVIDIA driver's library for this architecture again, or "
    "remove a wrong one from LD_LIBRARY_PATH."
)
NOT_LOADED = (
    "The NVIDIA driver library is installed, but the kernel module is not loaded; run `nvidia-smi` or `modprobe "
    "nvidia` "
    "as root on the machine (not in the container) and look at `dmesg` if that fails."
)
NO_NODE = (
    "The NVIDIA kernel module is loaded, but its device nodes do not exist here; start the container with the GPU "
    "option of the engine (docker run --gpus all), or run `nvidia-modprobe -u -c=0` once on the machine."
)
NO_PERMISSION = (
    "This user may not open the NVIDIA device nodes; give it read and write access to /dev/nvidiactl and /dev/nvidia0, "
    "/dev/nvidia1, ... (often by adding it to the group video), or start the container with the GPU option of the "
    "engine."
)
CGROUP = (
    "The device cgroup of this container denies /dev/nvidiactl although its file mode allows it, as after `systemctl "
    "daemon-reload` on the machine; restart the container, and give it the device nodes explicitly so that it does not "
    "happen again."
)
MISMATCH = (
    "The NVIDIA driver library is version 535.261.03 and the loaded kernel module is version 535.247.01, as after an "
    "update without a reboot; reboot the machine, or restart the container so that it gets the library of the running "
    "module."
)
LOST = "A GPU has fallen off the bus (Xid 79 in `dmesg`); reset it, or reboot the machine."
UNKNOWN = 'NVML gives no reason ("Unknown Error"); search `dmesg` for NVRM, and restart the container or the machine.'
BLOCKED = (
    "The operating system or a sandbox such as gVisor blocks access to the GPU; allow it there, or run without the "
    "sandbox."
)
NEW_CODE = (
    "NVML cannot be initialized: error 31 (see nvml.h); search `dmesg` for NVRM, and update nvidia-ml-py if the code "
    "is new."
)
HANG = (
    "NVML did not answer within 0.3 s; search `dmesg` for NVRM, try `nvidia-smi`, and turn on persistence mode if "
    "the GPU is slow to wake up."
)
STUCK = "NVML did not answer within 0.3 s, and its process is stuck in the driver; reboot the machine."
CRASH = (
    "The process that queries NVML ended with signal 6; update the NVIDIA driver and nvidia-ml-py, and search "
    "`dmesg` for NVRM."
)
NO_BINDING = (
    "NVML cannot be queried because the module pynvml is not installed; install nvidia-ml-py (not `pynvml`) by the "
    "command that `envlock doctor` prints."
)
FOREIGN = "The module pynvml is not NVIDIA's binding; remove it, and install nvidia-ml-py."

SECTIONS = ("driver_version", "nvml", "cuda_driver_version", "visible", "devices")


def reason(facts: Any) -> Unavailable:
    """Return the one reason that stands at every fact that only NVML knows."""
    reasons = {facts[section] for section in SECTIONS}
    assert len(reasons) == 1
    (found,) = reasons
    assert isinstance(found, Unavailable)
    return found


@pytest.fixture(autouse=True)
def _short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "compute_limit", lambda gpus: 0.3 if "hang" in os.environ.get("FAKE", "") else 20.0)


def test_no_library(tmp_path: Path) -> None:
    machine = Machine(tmp_path, None)
    machine.load_module("535.261.03")
    assert reason(gpu.collect(machine.host())) == Unavailable(NO_LIBRARY, "no-library")


@pytest.mark.parametrize(("data", "words"), [(b"\x7fELF", "file too short"), (b"#!/bin/sh" * 99, "invalid ELF header")])
def test_a_library_that_cannot_be_loaded(data: bytes, words: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile(T4))
    (tmp_path / "lib/libnvidia-ml.so.1").unlink()
    (tmp_path / "lib/libnvidia-ml.so.1").write_bytes(data)
    found = reason(gpu.collect(machine.host()))
    assert found == Unavailable(UNLOADABLE.format(words), "library-unloadable")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("/home/ada/lib/libnvidia-ml.so.1: wrong ELF class: ELFCLASS32", "wrong ELF class: ELFCLASS32"),
        (
            "/lib/libc.so.6: version `GLIBC_2.38' not found (required by /home/ada/libnvidia-ml.so.1)",
            "version `GLIBC_2.38' not found",
        ),
        ("/home/ada/x.so: odd words about: /home/ada", "the loader refuses it"),
    ],
)
def test_what_the_loader_says_is_told_without_paths(said: str, words: str) -> None:
    error = RuntimeError()
    error.__context__ = OSError(said)
    assert child._get_loader_message(error) == words


@pytest.mark.parametrize(
    ("name", "sentence", "code"),
    [
        ("driver-not-loaded", NO_NODE, "no-device-node"),
        ("no-permission", NO_PERMISSION, "no-permission"),
        ("mismatch", MISMATCH, "driver-library-mismatch"),
        ("lost", LOST, "gpu-lost"),
        ("unknown", UNKNOWN, "nvml-unknown"),
    ],
)
def test_init_fails(name: str, sentence: str, code: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile(f"none__535__{name}"))
    machine.load_module("535.247.01")
    facts = gpu.collect(machine.host())
    assert reason(facts) == Unavailable(sentence, code)
    assert isinstance(facts, dict)
    assert facts["kernel_module"] == {"version": "535.247.01", "flavour": "proprietary"}


def test_the_kernel_module_is_not_loaded(tmp_path: Path) -> None:
    loaded = {**profile("none__535__driver-not-loaded"), "kernel": None}
    machine = Machine(tmp_path, loaded)
    machine.write("/dev/nvidiactl", "")  # as an earlier nvmlInit of root leaves it
    assert reason(gpu.collect(machine.host())) == Unavailable(NOT_LOADED, "driver-not-loaded")


@pytest.mark.parametrize(
    ("nvml_code", "sentence", "code"), [(17, BLOCKED, "blocked-by-system"), (31, NEW_CODE, "nvml-31")]
)
def test_rarer_codes(nvml_code: int, sentence: str, code: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile(T4), faults=f"ret:nvmlInitWithFlags={nvml_code}")
    assert reason(gpu.collect(machine.host())) == Unavailable(sentence, code)


def test_a_device_cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, profile("none__535__unknown"))
    monkeypatch.setattr(hostfs, "get_control_node_errno", lambda host: errno.EPERM)
    assert reason(gpu.collect(machine.host())) == Unavailable(CGROUP, "device-cgroup")


def test_a_mismatch_is_told_without_a_version_in_the_file_name(tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile("none__535__mismatch"))
    file = tmp_path / "lib/libnvidia-ml.so.535.261.03"
    file.replace(tmp_path / "lib/libnvidia-ml.so.1")
    machine.load_module("535.247.01")
    facts = reason(gpu.collect(machine.host()))
    assert facts.reason == MISMATCH.replace("535.261.03", "unknown")  # the table has no version call before init
    answer = {"status": "init-failed", "code": 18, "library_version": None, "nvml_version": "12.535.261.03"}
    assert nvml_failures.explain_start_failure(answer, "535.247.01", None).reason == MISMATCH


def test_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE", "hang")
    machine = Machine(tmp_path, profile(T4), faults="hang:nvmlInitWithFlags=60")
    assert reason(gpu.collect(machine.host())) == Unavailable(HANG, "probe-timeout")


def test_stuck() -> None:
    answer = {"status": "probe-stuck", "seconds": 0.3}
    assert nvml_failures.explain_start_failure(answer, None, None) == Unavailable(STUCK, "probe-stuck")


def test_crash(tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile(T4), faults="crash:nvmlDeviceGetName")
    assert reason(gpu.collect(machine.host())) == Unavailable(CRASH, "probe-died")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            {"status": "probe-died", "exit": 3},
            "The process that queries NVML ended with exit code 3; update the NVIDIA driver and "
            "nvidia-ml-py, and search `dmesg` for NVRM.",
        ),
        (
            {"status": "probe-not-started", "errno": errno.EAGAIN},
            "The process that queries NVML could not be started (Resource temporarily unavailable); free memory or "
            "process IDs, or raise the limits of this user.",
        ),
        (
            {"status": "probe-garbled"},
            "The process that queries NVML gave an unreadable answer; run it again, and report it as a bug in "
            "envlock if it repeats.",
        ),
        (
            {"status": "no-interpreter"},
            "NVML is queried in a separate Python process, and this program is embedded or frozen; run the check "
            "from a plain `python`.",
        ),
    ],
)
def test_the_child_fails(answer: dict[str, Any], sentence: str) -> None:
    assert nvml_failures.explain_start_failure(answer, None, None) == Unavailable(sentence, answer["status"])


def test_the_binding_is_missing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile(T4))
    host = Host(str(machine.root), machine.environ, [])
    assert reason(gpu.collect(host)) == Unavailable(NO_BINDING, "no-binding")


@pytest.mark.parametrize("text", ["version = 1", "raise RuntimeError('other software')", "print 'Python 2'"])
def test_the_binding_is_something_else(text: str, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/pynvml.py").write_text(f"{text}\n", encoding="ascii")
    machine = Machine(tmp_path, profile(T4))
    host = Host(str(machine.root), machine.environ, [str(tmp_path / "site")])
    assert reason(gpu.collect(host)) == Unavailable(FOREIGN, "foreign-binding")


def put_binding(site: Path, *, package: bool, distributions: tuple[str, ...]) -> None:
    """Lay NVIDIA's binding out as one distribution or another does."""
    source = Path(str(pynvml.__file__))
    site.mkdir()
    if package:
        (site / "pynvml").mkdir()
        shutil.copy(source, site / "pynvml/nvml.py")
        (site / "pynvml/__init__.py").write_text("from pynvml.nvml import *\n", encoding="ascii")
    else:
        shutil.copy(source, site / "pynvml.py")
    for distribution in distributions:
        (site / f"{distribution}.dist-info").mkdir()


SHADOWED = (
    "The package folder of the distribution pynvml 11.5.3 hides the module of NVIDIA's nvidia-ml-py; remove pynvml by "
    "the command that `envlock doctor` prints."
)
DEPRECATED = (
    "The deprecated distribution pynvml is installed beside nvidia-ml-py, and its import always warns; remove it by "
    "the command that `envlock doctor` prints."
)
ABANDONED = (
    "The module pynvml comes from nvidia-ml-py3, a port from 2017 without MIG support; replace it by the command that "
    "`envlock doctor` prints."
)


@pytest.mark.parametrize(
    ("package", "distributions", "problem", "version", "sentence"),
    [
        (True, ("pynvml-11.5.3", "nvidia_ml_py-12.570.86"), "shadowed", "11.5.3", SHADOWED),
        (False, ("pynvml-13.0.1", "nvidia_ml_py-12.570.86"), "deprecated", "12.570.86", DEPRECATED),
        (False, ("nvidia_ml_py3-7.352.0",), "abandoned", "7.352.0", ABANDONED),
        (False, ("nvidia_ml_py-12.570.86",), None, "12.570.86", None),
        (False, (), None, None, None),
    ],
)
def test_a_binding_that_answers_and_should_be_replaced(
    package: bool, distributions: tuple[str, ...], problem: str | None, version: str, sentence: str, tmp_path: Path
) -> None:
    put_binding(tmp_path / "site", package=package, distributions=distributions)
    machine = Machine(tmp_path, profile(T4))
    facts = gpu.collect(Host(str(machine.root), machine.environ, [str(tmp_path / "site")]))
    assert isinstance(facts, dict)
    assert facts["devices"]["0"]["name"] == "Tesla T4"
    assert facts["binding"]["problem"] == problem
    assert facts["binding"]["version"] == version
    if problem is not None:
        assert nvml_failures.explain_binding(problem, version) == Unavailable(str(sentence), f"binding-{problem}")


def facts_of(loaded: Profile, folder: Path, **environ: str) -> dict[str, Any]:
    facts = gpu.collect(Machine(folder, loaded).host(**environ))
    assert isinstance(facts, dict)
    return facts


def test_one_gpu_of_two_is_lost(tmp_path: Path) -> None:
    facts = facts_of(profile("h100-80gb-hbm3__535__lost-1-of-2"), tmp_path)
    assert facts["visible"]["count"] == 2
    assert facts["devices"]["0"]["sm_count"] == 132
    assert facts["devices"]["1"] == Unavailable(
        "This GPU has fallen off the bus, so its facts cannot be read; reset it or reboot the machine.", "gpu-lost"
    )


def test_a_gpu_is_lost_in_the_middle(tmp_path: Path) -> None:
    facts = gpu.collect(Machine(tmp_path, profile(T4), faults="lost@5").host())
    assert isinstance(facts, dict)
    assert facts["devices"]["0"].code == "gpu-lost"


@pytest.mark.parametrize("said", ["", "535.1 (beta)", "535.1\n", "-1"])
def test_a_driver_version_that_no_lock_could_hold(said: str, tmp_path: Path) -> None:
    machine = profile(T4)
    machine["system"] = {**machine["system"], "driver_version": said}
    assert facts_of(machine, tmp_path)["driver_version"].code == "undecodable"


def test_a_container_without_libcuda(tmp_path: Path) -> None:
    facts = facts_of(profile("t4__515__utility-only"), tmp_path)
    assert facts["driver_version"] == "515.105.01"
    assert facts["cuda_driver_version"] == Unavailable(
        "The NVIDIA driver is installed without libcuda.so.1, so CUDA cannot start; start the container with "
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility, or install the CUDA part of the driver.",
        "no-libcuda",
    )


def test_wsl2(tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile("rtx-3090__550__wsl2"))
    machine.write("/dev/dxg", "")
    facts = gpu.collect(machine.host())
    assert isinstance(facts, dict)
    assert facts["kernel_module"] is None
    assert facts["surroundings"] == ["wsl2"]
    assert facts["devices"]["0"]["sm_count"] == 82
    assert facts["devices"]["0"]["ecc"] == Unavailable(
        "NVML under WSL2 does not report whether ECC memory is on; use a Linux machine if the policy needs it.",
        "wsl2-unsupported",
    )


def test_gvisor(tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile("t4__550__gvisor"))
    machine.write("/dev/nvidiactl", "")
    facts = gpu.collect(machine.host())
    assert isinstance(facts, dict)
    assert facts["devices"]["0"]["ecc"] == Unavailable(
        "The operating system or a sandbox such as gVisor blocks the query for whether ECC memory is on; run without "
        "the sandbox.",
        "blocked-by-system",
    )


def test_an_old_driver(tmp_path: Path) -> None:
    device = facts_of(profile("v100s-pcie-32gb__460__whole"), tmp_path)["devices"]["0"]
    old = "The installed driver is too old to report the number of CUDA cores; update the NVIDIA driver."
    assert device["cores"] == device["sm_count"] == Unavailable(old, "nvml-13")
    assert device["ecc"] is True


def test_different_gpus_picked_by_number(tmp_path: Path) -> None:
    loaded = profile(T4)
    loaded["devices"].append(profile("rtx-3090__525__whole")["devices"][0])
    facts = facts_of(loaded, tmp_path, CUDA_VISIBLE_DEVICES="0")
    expected = Unavailable(
        "CUDA_VISIBLE_DEVICES selects different GPUs by number, and the one that CUDA takes for the fastest is "
        "unknown; set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name the GPUs by UUID.",
        "device-order-unknown",
    )
    assert facts["devices"] == facts["visible"]["count"] == expected


@pytest.mark.parametrize("code", [*nvml_failures.WORDS, *nvml_failures.UNDECIDED, 10, 31])
def test_every_question_has_a_whole_sentence(code: Any) -> None:
    found = nvml_failures.explain_missing_answer(code, "the memory size")
    assert found.reason.endswith(".")
    assert "{" not in found.reason
    assert ";" in found.reason, "the fix follows the fact"
    assert found.code


def test_signal_numbers_are_those_of_this_system() -> None:
    assert (probe._SIGINT, probe._SIGTERM, probe._SIGKILL, probe._SIGPIPE) == (
        signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE,
    )  # fmt: skip
    assert sys.platform == "linux"
