"""What the kernel's files say of NVIDIA, on folders that look like machines."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from envlock.runtime.gpu import hostfs
from envlock.runtime.host import Host
from tests.fakes.replay import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, None)


def pci(machine: Machine, address: str, vendor: str, device_class: str, driver: str | None = None) -> None:
    machine.write(f"/sys/bus/pci/devices/{address}/vendor", vendor + "\n")
    machine.write(f"/sys/bus/pci/devices/{address}/class", device_class + "\n")
    if driver:
        link = machine.root / f"sys/bus/pci/devices/{address}/driver"
        link.symlink_to(f"../../../bus/pci/drivers/{driver}")


LINES = [
    ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024", "550.90.07"),
    ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  565.57.01  Release Build  (dvs)", "565.57.01"),
    ("NVRM version: NVIDIA UNIX Open Kernel x86_64 Kernel Module  590.48.01  Release Build", "590.48.01"),
    ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  35.3.1  Release Build  (bugfix)", "35.3.1"),
    ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  595.80  Mon", "595.80"),
    ("NVRM version: NVIDIA UNIX x86_64 Kernel Module", None),
    ("GCC version:  gcc version 12.2.0", None),
    ("", None),
]


def test_the_shapes_of_the_version_line() -> None:
    assert [(line, hostfs.parse_module_version(line)) for line, _ in LINES] == LINES


def test_kernel_module(machine: Machine) -> None:
    assert hostfs.read_kernel_module(machine.host()) is None
    machine.load_module("565.57.01", "open")
    assert hostfs.read_kernel_module(machine.host()) == {"version": "565.57.01", "flavour": "open"}
    (machine.root / "sys/module/nvidia/version").unlink()
    assert hostfs.read_kernel_module(machine.host()) == {"version": "565.57.01", "flavour": "open"}
    machine.load_module("550.90.07")
    assert hostfs.read_kernel_module(machine.host()) == {"version": "550.90.07", "flavour": "proprietary"}
    (machine.root / "proc/driver/nvidia/version").unlink()
    assert hostfs.read_kernel_module(machine.host()) == {"version": "550.90.07", "flavour": None}


def test_signs(tmp_path: Path) -> None:
    for path in ("/sys/module/nvidia/version", "/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg"):
        folder = tmp_path / Path(path).name / Path(path).parts[1]
        folder.mkdir(parents=True)
        machine = Machine(folder, None)
        assert not hostfs.has_gpu_hint(machine.host())
        machine.write(path, "")
        assert hostfs.has_gpu_hint(machine.host()), path


DEVICES = [
    ("0x10de", "0x030200", "nvidia", 1),
    ("0x10de", "0x030000", None, 1),
    ("0x10de", "0x030000", "nouveau", 0),
    ("0x10de", "0x030000", "vfio-pci", 0),
    ("0x10de", "0x040300", "snd_hda_intel", 0),  # the sound device of a graphics card
    ("0x10de", "0x068000", None, 0),  # an NVSwitch
    ("0x1002", "0x030000", "amdgpu", 0),
]


def test_gpus_on_the_bus(tmp_path: Path) -> None:
    for vendor, device_class, driver, count in DEVICES:
        folder = tmp_path / f"{vendor}-{device_class}-{driver}"
        folder.mkdir()
        machine = Machine(folder, None)
        pci(machine, "0000:01:00.0", vendor, device_class, driver)
        pci(machine, "0000:00:00.0", "0x8086", "0x060000")
        found = (hostfs.count_gpus(machine.host()), hostfs.has_gpu_hint(machine.host()))
        assert found == (count, bool(count)), folder.name


def test_surroundings(machine: Machine) -> None:
    assert hostfs.detect_surroundings(machine.host()) == []
    machine.write("/proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x) #1 SMP\n")
    assert hostfs.detect_surroundings(machine.host()) == ["wsl2"]
    machine.write("/proc/version", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n")
    assert hostfs.detect_surroundings(machine.host()) == ["gvisor"]
    assert hostfs.detect_surroundings(machine.host(NVIDIA_VISIBLE_DEVICES="void")) == ["gvisor"]
    machine.write("/dev/nvidiactl", "")
    assert hostfs.detect_surroundings(machine.host(NVIDIA_VISIBLE_DEVICES="void")) == ["gvisor", "cdi"]
    assert hostfs.detect_surroundings(machine.host(NVIDIA_CTK_LIBCUDA_DIR="/usr/lib")) == ["gvisor", "cdi"]


def test_opening_the_control_node(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write("/dev/nvidiactl", "")
    opened: list[str] = []

    def refuse(path: str, flags: int) -> int:
        opened.append(path)
        raise OSError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert hostfs.get_control_node_errno(machine.host()) is None
    assert not opened, "without the module the kernel would load it"
    machine.load_module("550.90.07")
    assert hostfs.get_control_node_errno(machine.host()) == 0
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert hostfs.get_control_node_errno(machine.host()) == errno.EPERM
    (machine.root / "dev/nvidiactl").unlink()
    assert hostfs.get_control_node_errno(machine.host()) == errno.ENOENT
    assert not (machine.root / "dev/nvidiactl").exists()


def nodes() -> list[str]:
    return sorted(path.name for path in Path("/dev").glob("nvidia*"))


def test_nothing_is_made_on_this_very_machine() -> None:
    before = nodes()
    hostfs.has_gpu_hint(Host())
    hostfs.get_control_node_errno(Host())
    assert nodes() == before
