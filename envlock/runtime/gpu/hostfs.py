"""What /sys, /proc and /dev show about NVIDIA GPUs, without asking the driver.

NVML itself has side effects: on a machine without the kernel module `nvmlInit` creates
`/dev/nvidiactl` as root, and runs the setuid `nvidia-modprobe` as another user (seen with
470.256.02, 525.147.05 and 535.261.03). So these files are read first, and NVML is used only if one
of them shows a GPU that CUDA could use.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional

    from envlock.runtime.host import Host

PCI = "/sys/bus/pci/devices"
NVIDIA_VENDOR = "0x10de"
DISPLAY_CLASS = "0x03"
"""PCI base class 03h, display controllers: 0300 VGA, 0302 3D (data-centre cards)."""
CONTROL_NODE = "/dev/nvidiactl"
WSL_NODE = "/dev/dxg"
GVISOR_BUILD = "#1 SMP Sun Jan 10 15:06:54 PST 2016"
"""The kernel build that gVisor reports (pkg/sentry/kernel/version.go)."""

_DRIVER_SIGNS = ("/sys/module/nvidia", "/proc/driver/nvidia", CONTROL_NODE)


def has_driver_sign(host: Host) -> bool:
    """Return whether the NVIDIA kernel driver is or was loaded, or a GPU could be driven by it."""
    return any(host.exists(path) for path in _DRIVER_SIGNS) or count_gpus(host) > 0


def has_gpu_hint(host: Host) -> bool:
    """Return whether there is any sign of an NVIDIA GPU; otherwise NVML must not be loaded."""
    return has_driver_sign(host) or host.exists(WSL_NODE)


def count_gpus(host: Host) -> int:
    """Return how many NVIDIA display devices on the PCI bus the nvidia driver uses or could use.

    CUDA cannot use a card that another driver uses (nouveau, vfio-pci).
    """
    return sum(_is_usable_gpu(host, f"{PCI}/{name}") for name in host.listdir(PCI))


def _is_usable_gpu(host: Host, folder: str) -> bool:
    if not _read_text(host, folder + "/vendor").startswith(NVIDIA_VENDOR):
        return False
    if not _read_text(host, folder + "/class").startswith(DISPLAY_CLASS):
        return False
    try:
        driver = os.path.basename(os.readlink(host.system(folder + "/driver")))
    except OSError:
        return True  # no driver uses it
    return driver == "nvidia"


def read_kernel_module(host: Host) -> Optional[Dict[str, Optional[str]]]:
    """Return {version, flavour} of the loaded NVIDIA kernel module, or None if it is not loaded.

    `flavour` is `open` or `proprietary`, or null if only `/sys` shows the module.
    """
    line = _read_text(host, "/proc/driver/nvidia/version").partition("\n")[0]
    version = _read_text(host, "/sys/module/nvidia/version").strip() or parse_module_version(line)
    if version is None:
        return None
    flavour = None
    if "Open Kernel" in line and "Module" in line:
        flavour = "open"
    elif "Module" in line:
        flavour = "proprietary"
    return {"version": version, "flavour": flavour}


def parse_module_version(line: str) -> Optional[str]:
    """Return the version in the first line of /proc/driver/nvidia/version, or None.

    It is the first dotted number after the word "Module". Four forms were seen: "NVIDIA UNIX x86_64
    Kernel Module 550.90.07 Fri May ...", "... Open Kernel Module for x86_64 565.57.01 Release Build
    ...", "... Open Kernel x86_64 Kernel Module 590.48.01 ...", and on Jetson "... for aarch64
    35.3.1 Release Build", where the number is that of the board support package.
    """
    _, separator, rest = line.rpartition("Module")
    if not separator:
        return None
    for word in rest.split():
        parts = word.split(".")
        if len(parts) > 1 and all(part.isdigit() for part in parts):
            return word
    return None


def detect_surroundings(host: Host) -> List[str]:
    """Return those of `wsl2`, `gvisor` and `cdi` for which there is evidence."""
    names: List[str] = []
    kernel = _read_text(host, "/proc/version")
    if host.exists(WSL_NODE) or "microsoft" in kernel.lower():
        names.append("wsl2")
    if GVISOR_BUILD in kernel:
        names.append("gvisor")
    # A specification of the Container Device Interface sets NVIDIA_VISIBLE_DEVICES=void although
    # the container has GPUs, and newer toolkits set NVIDIA_CTK_LIBCUDA_DIR; a container without
    # GPUs has "void" alone.
    is_void = host.environ.get("NVIDIA_VISIBLE_DEVICES") == "void"
    if (is_void and host.exists(CONTROL_NODE)) or "NVIDIA_CTK_LIBCUDA_DIR" in host.environ:
        names.append("cdi")
    return names


def get_control_node_errno(host: Host) -> Optional[int]:
    """Return the errno with which `/dev/nvidiactl` cannot be opened, 0 if it can, None if it was
    not tried.

    It is tried only while the kernel module is loaded: opening a node whose driver is missing makes
    the kernel load the module. EPERM in spite of a sufficient mode comes from a device cgroup.
    """
    if not host.exists("/sys/module/nvidia"):
        return None
    try:
        fd = os.open(host.system(CONTROL_NODE), os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        return error.errno
    os.close(fd)
    return 0


def _read_text(host: Host, path: str) -> str:
    """Return a file's text; "" if it does not exist or cannot be read (sysfs may be masked)."""
    try:
        return host.read(path, 4096) or ""
    except OSError:
        return ""
