"""Every way in which asking NVML fails has a code of its own, and its sentence the values that it is about."""

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

MISMATCH = (
    "The NVIDIA driver library is version 535.261.03 and the loaded kernel module is version 535.247.01, as after an "
    "update without a reboot; reboot the machine, or restart the container so that it gets the library of the running "
    "module."
)

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
    assert reason(gpu.collect(machine.host())).code == "no-library"


@pytest.mark.parametrize(("data", "words"), [(b"\x7fELF", "file too short"), (b"#!/bin/sh" * 99, "invalid ELF header")])
def test_a_library_that_cannot_be_loaded(data: bytes, words: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile(T4))
    (tmp_path / "lib/libnvidia-ml.so.1").unlink()
    (tmp_path / "lib/libnvidia-ml.so.1").write_bytes(data)
    found = reason(gpu.collect(machine.host()))
    assert found.code == "library-unloadable"
    assert found.reason.startswith(f"libnvidia-ml.so.1 cannot be loaded ({words}); ")


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
    ("name", "code"),
    [
        ("driver-not-loaded", "no-device-node"),
        ("no-permission", "no-permission"),
        ("mismatch", "driver-library-mismatch"),
        ("lost", "gpu-lost"),
        ("unknown", "nvml-unknown"),
    ],
)
def test_init_fails(name: str, code: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile(f"none__535__{name}"))
    machine.load_module("535.247.01")
    facts = gpu.collect(machine.host())
    assert reason(facts).code == code
    assert isinstance(facts, dict)
    assert facts["kernel_module"] == {"version": "535.247.01", "flavour": "proprietary"}


def test_the_kernel_module_is_not_loaded(tmp_path: Path) -> None:
    loaded = {**profile("none__535__driver-not-loaded"), "kernel": None}
    machine = Machine(tmp_path, loaded)
    machine.write("/dev/nvidiactl", "")  # as an earlier nvmlInit of root leaves it
    assert reason(gpu.collect(machine.host())).code == "driver-not-loaded"


@pytest.mark.parametrize(("nvml_code", "code"), [(17, "blocked-by-system"), (31, "nvml-31")])
def test_rarer_codes(nvml_code: int, code: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile(T4), faults=f"ret:nvmlInitWithFlags={nvml_code}")
    assert reason(gpu.collect(machine.host())).code == code


def test_a_device_cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, profile("none__535__unknown"))
    monkeypatch.setattr(hostfs, "get_control_node_errno", lambda host: errno.EPERM)
    assert reason(gpu.collect(machine.host())).code == "device-cgroup"


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
    found = reason(gpu.collect(machine.host()))
    assert (found.code, found.reason[:32]) == ("probe-timeout", "NVML did not answer within 0.3 s")


def test_crash(tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile(T4), faults="crash:nvmlDeviceGetName")
    found = reason(gpu.collect(machine.host()))
    assert (found.code, "ended with signal 6; " in found.reason) == ("probe-died", True)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"status": "probe-died", "exit": 3}, "ended with exit code 3; "),
        ({"status": "probe-not-started", "errno": errno.EAGAIN}, "(Resource temporarily unavailable); "),
        ({"status": "probe-stuck", "seconds": 0.3}, "within 0.3 s, "),
        ({"status": "probe-garbled"}, "an unreadable answer; "),
        ({"status": "no-interpreter"}, "embedded or frozen; "),
    ],
)
def test_the_child_fails(answer: dict[str, Any], words: str) -> None:
    found = nvml_failures.explain_start_failure(answer, None, None)
    assert (found.code, words in found.reason) == (answer["status"], True)


def test_the_binding_is_missing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile(T4))
    host = Host(str(machine.root), machine.environ, [])
    assert reason(gpu.collect(host)).code == "no-binding"


@pytest.mark.parametrize("text", ["version = 1", "raise RuntimeError('other software')", "print 'Python 2'"])
def test_the_binding_is_something_else(text: str, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/pynvml.py").write_text(f"{text}\n", encoding="ascii")
    machine = Machine(tmp_path, profile(T4))
    host = Host(str(machine.root), machine.environ, [str(tmp_path / "site")])
    assert reason(gpu.collect(host)).code == "foreign-binding"


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


@pytest.mark.parametrize(
    ("package", "distributions", "problem", "version"),
    [
        (True, ("pynvml-11.5.3", "nvidia_ml_py-12.570.86"), "shadowed", "11.5.3"),
        (False, ("pynvml-13.0.1", "nvidia_ml_py-12.570.86"), "deprecated", "12.570.86"),
        (False, ("nvidia_ml_py3-7.352.0",), "abandoned", "7.352.0"),
        (False, ("nvidia_ml_py-12.570.86",), None, "12.570.86"),
        (False, (), None, None),
    ],
)
def test_a_binding_that_answers_and_should_be_replaced(
    package: bool, distributions: tuple[str, ...], problem: str | None, version: str, tmp_path: Path
) -> None:
    put_binding(tmp_path / "site", package=package, distributions=distributions)
    machine = Machine(tmp_path, profile(T4))
    facts = gpu.collect(Host(str(machine.root), machine.environ, [str(tmp_path / "site")]))
    assert isinstance(facts, dict)
    assert facts["devices"]["0"]["name"] == "Tesla T4"
    assert facts["binding"]["problem"] == problem
    assert facts["binding"]["version"] == version
    if problem is not None:
        found = nvml_failures.explain_binding(problem, version)
        assert (found.code, version in found.reason) == (f"binding-{problem}", problem == "shadowed")


def facts_of(loaded: Profile, folder: Path, **environ: str) -> dict[str, Any]:
    facts = gpu.collect(Machine(folder, loaded).host(**environ))
    assert isinstance(facts, dict)
    return facts


def test_one_gpu_of_two_is_lost(tmp_path: Path) -> None:
    facts = facts_of(profile("h100-80gb-hbm3__535__lost-1-of-2"), tmp_path)
    assert facts["visible"]["count"] == 2
    assert facts["devices"]["0"]["sm_count"] == 132
    assert facts["devices"]["1"].code == "gpu-lost"


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
    assert facts["cuda_driver_version"].code == "no-libcuda"


def test_wsl2(tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile("rtx-3090__550__wsl2"))
    machine.write("/dev/dxg", "")
    facts = gpu.collect(machine.host())
    assert isinstance(facts, dict)
    assert facts["kernel_module"] is None
    assert facts["surroundings"] == ["wsl2"]
    assert facts["devices"]["0"]["sm_count"] == 82
    assert facts["devices"]["0"]["ecc"].code == "wsl2-unsupported"


def test_gvisor(tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile("t4__550__gvisor"))
    machine.write("/dev/nvidiactl", "")
    facts = gpu.collect(machine.host())
    assert isinstance(facts, dict)
    ecc = facts["devices"]["0"]["ecc"]
    assert (ecc.code, " the query for whether ECC memory is on; " in ecc.reason) == ("blocked-by-system", True)


def test_an_old_driver(tmp_path: Path) -> None:
    device = facts_of(profile("v100s-pcie-32gb__460__whole"), tmp_path)["devices"]["0"]
    assert device["cores"] == device["sm_count"]
    assert (device["cores"].code, " report the number of CUDA cores; " in device["cores"].reason) == ("nvml-13", True)
    assert device["ecc"] is True


def test_different_gpus_picked_by_number(tmp_path: Path) -> None:
    loaded = profile(T4)
    loaded["devices"].append(profile("rtx-3090__525__whole")["devices"][0])
    facts = facts_of(loaded, tmp_path, CUDA_VISIBLE_DEVICES="0")
    assert facts["devices"] == facts["visible"]["count"]
    assert facts["devices"].code == "device-order-unknown"


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
