"""Environments to break for real: a virtual environment over one with TensorFlow, which itself stays as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import absent
from tests.fakes.elf_writer import write_elf
from tests.fakes.fake_nvml import Profile, profile
from tests.fakes.replay import KERNEL_TEXT, Machine

ROOT = Path(__file__).parents[2]
PIP = '#!/bin/sh\nexec "$(dirname "$0")/python" -m pip "$@"\n'
KEPT = ("PATH", "HOME", "LANG", "PIP_", "SSL_", "REQUESTS_")


class Layer:
    """What pip installs lies over the packages of another environment, and comes before them.

    Attributes:
        folder: the environment's own.
        site: where its packages go.
    """

    def __init__(self, folder: Path, below: Path) -> None:
        self.folder = folder
        subprocess.run([str(below), "-m", "venv", "--without-pip", str(folder)], check=True)
        (self.site,) = (folder / "lib").glob("python3*/site-packages")
        (packages,) = (below.parent.parent / "lib").glob("python3*/site-packages")
        (self.site / "below.pth").write_text(f"import site; site.addsitedir({str(packages)!r})\n", encoding="utf-8")
        pip = folder / "bin" / "pip"
        pip.write_text(PIP, encoding="utf-8")
        pip.chmod(0o755)
        self.environ = {"PYTHONHASHSEED": "0", "KERAS_HOME": str(folder / "keras-home")}
        (folder / "keras-home").mkdir()

    def shell(self, *lines: str, around: tuple[str, ...] = (), **environ: str) -> subprocess.CompletedProcess[str]:
        """Run lines in a shell whose python and pip are this environment's, and whose envlock is this checkout's."""
        plain = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        plain["PATH"] = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        doctor = f'envlock() {{ "{sys.executable}" -m envlock "$@" --python "{self.folder}/bin/python"; }}'
        script = "\n".join(["set -e", f"cd '{self.folder}'", doctor, *lines])
        return subprocess.run(
            [*around, "/bin/sh", "-c", script],
            env={**plain, "PYTHONPATH": "", "TF_CPP_MIN_LOG_LEVEL": "1", **self.environ, **environ},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )


def driver(folder: Path, given: str | Profile, module: str | None = None) -> tuple[tuple[str, ...], str]:
    """Return what to put before a command so that it runs where this driver is, and where its libraries lie.

    `given` is a profile or its name, and `module` the version of the kernel module where that is another than the
    library's.

    The kernel's files are mounted for that one process, and NVML is the compiled stand-in: the outermost door. All
    that looks through it is real.
    """
    if isinstance(given, str):
        given = profile(given)
    folder.mkdir()
    machine = Machine(folder, given)
    sys_module, proc_driver = folder / "sys", folder / "proc"
    library = given["system"]["driver_version"]
    version = module or library
    write_elf(folder / "lib" / f"libcuda.so.{library}", "libcuda.so.1")
    (folder / "lib/libcuda.so.1").symlink_to(f"libcuda.so.{library}")
    for place, text in (
        (sys_module / "nvidia/version", version + "\n"),
        (proc_driver / "nvidia/version", KERNEL_TEXT["open"].format(version=version)),
    ):
        place.parent.mkdir(parents=True)
        place.write_text(text, encoding="utf-8")
    mounts = f"mount --bind {sys_module} /sys/module && mount --bind {proc_driver} /proc/driver"
    words: tuple[str, ...] = ("unshare", "--mount", "/bin/sh", "-c", f'{mounts} && exec "$@"', "sh")
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        absent("the kernel's files cannot be mounted for one process: unshare --mount needs root")
    words = (*words, "env", f"FAKE_NVML_TABLE={machine.environ['FAKE_NVML_TABLE']}", "FAKE_NVML_FAULT=")
    return words, machine.environ["LD_LIBRARY_PATH"]
