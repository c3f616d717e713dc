"""The compiled stand-in for libnvidia-ml.so.1, and machines that seem to have an NVIDIA driver."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from envlock.runtime.gpu import nvml
from envlock.runtime.host import Host
from tests.fakes.call_table import Recorder
from tests.fakes.fake_nvml import FakeNvml, Profile, install, pynvml, symbols

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOURCE = Path(__file__).with_name("nvml_replay.c")
SONAME = "libnvidia-ml.so.1"

KERNEL_TEXT = {
    "open": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  (dvs-builder)\n",
    "proprietary": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue Mar 5 22:42:15 UTC 2024\n",
}


def compiler() -> list[str] | None:
    """Return the command of a C compiler: the system's, or the one that `make` brings where there is none."""
    system = shutil.which("cc")
    if system is not None:
        return [system]
    return [sys.executable, "-m", "ziglang", "cc"] if importlib.util.find_spec("ziglang") else None


@functools.cache
def library(generation: str) -> Path:
    """Return the folder with the stand-in that exports a driver generation's names; compiled once a session."""
    words = compiler()
    if words is None:
        reason = "no C compiler (cc, or `pip install ziglang`): the stand-in for libnvidia-ml.so.1 cannot be built"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="envlock-nvml-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    names = sorted(symbols(generation) - {"nvmlErrorString"})
    (folder / "nvml_symbols.inc").write_text("".join(f"X({name})\n" for name in names), encoding="ascii")
    flags = ["-std=gnu11", "-Wall", "-Werror", "-O0", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"]
    command = [*words, *flags, f"-I{folder}", f"-Wl,-soname,{SONAME}", "-o", str(folder / SONAME), str(SOURCE)]
    subprocess.run(command, check=True)
    return folder


@contextlib.contextmanager
def installed(binding: Any, fake: Any) -> Iterator[None]:
    """Make pynvml talk to `fake` for a while, initialised; afterwards it has no library again."""
    install(binding, fake)
    try:
        binding.nvmlInit()
        yield
    finally:
        install(binding, None)


def capture(profile: Profile, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what `nvml.capture` answers for a profile, in this process."""
    with installed(pynvml, FakeNvml(profile)):
        return nvml.capture(pynvml, environ or {})


def table(profile: Profile, library_object: Any = None) -> str:
    """Return the table with every call that a capture of this profile can make, whatever CUDA is told to show."""
    recorder = Recorder(library_object or FakeNvml(profile))
    code = profile.get("errors", {}).get("nvmlInitWithFlags")
    if code is not None:
        return f"call nvmlInitWithFlags i 0 {code}\n"
    with installed(pynvml, recorder):
        for environ in _environments(profile):
            nvml.capture(pynvml, environ)
    return "".join(f"{line}\n" for line in recorder.lines)


def _environments(profile: Profile) -> Iterator[dict[str, str]]:
    yield {}
    for index, device in enumerate(profile["devices"]):
        yield {"CUDA_VISIBLE_DEVICES": str(index), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        for one in (device, *device.get("mig_devices", ())):
            if one is not None:
                yield {"CUDA_VISIBLE_DEVICES": one["uuid"]}


def _install_library(built: Path, folder: Path, profile: Profile) -> None:
    """Lay the library out as a driver's package does: a file with the version in its name, and a link to it."""
    folder.mkdir()
    file = folder / f"libnvidia-ml.so.{profile['system']['driver_version']}"
    shutil.copy(built / SONAME, file)
    (folder / SONAME).symlink_to(file.name)


class Machine:
    """A folder that looks like a machine with an NVIDIA driver, and the stand-in library with a profile.

    `environ` holds what a process on it is started with; `host()` is the door to it.
    """

    def __init__(self, folder: Path, profile: Profile | None, faults: str = "", generation: str | None = None) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        self.environ = {"PATH": os.defpath, "LD_LIBRARY_PATH": str(folder / "no-library")}
        if profile is not None:
            path = folder / "calls.txt"
            path.write_text(table(profile), encoding="ascii")
            self.environ["LD_LIBRARY_PATH"] = str(folder / "lib")
            _install_library(library(generation or profile["symbols"]), folder / "lib", profile)
            self.environ["FAKE_NVML_TABLE"] = str(path)
            self.environ["FAKE_NVML_FAULT"] = faults
            kernel = profile.get("kernel")
            if kernel:
                self.load_module(profile["system"]["driver_version"], kernel)

    def write(self, path: str, text: str) -> None:
        """Put a file of the machine."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    def load_module(self, version: str, flavour: str = "proprietary") -> None:
        """Make the kernel module seem loaded."""
        self.write("/sys/module/nvidia/version", version + "\n")
        self.write("/proc/driver/nvidia/version", KERNEL_TEXT[flavour].format(version=version))

    def host(self, **environ: str) -> Host:
        """Return the door to this machine, for a process with these variables too."""
        return Host(root=str(self.root), environ={**self.environ, **environ}, path=sys.path)
