"""The doctor on real `tensorflow[and-cuda]` 2.21 that is broken: other libraries before its own, other drivers.

Needs no GPU. The libraries are real ones, those that break it compiled here; of a driver only the outermost door is a
stand-in: the kernel's files, mounted for one process, and libnvidia-ml.so.1 and libcuda.so.1.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import absent
from tests.fakes.elf_writer import write_elf
from tests.fakes.replay import compiler
from tests.fakes.tensorflow_tree import PARTS
from tests.real.broken import Layer, driver

pytestmark = pytest.mark.cuda_wheels

CUSOLVER = (
    "export LD_LIBRARY_PATH=\"$(python -c 'import nvidia.cusolver as m; print(m.__path__[0])')/lib"
    '${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"'
)
NEW, OLD, GEFORCE, MISMATCH = (
    "h100-80gb-hbm3__590__whole",
    "t4__515__whole",
    "rtx-4090__570__whole",
    "none__535__mismatch",
)
TOLD = """python -c '
import ctypes, os, tensorflow
library = ctypes.CDLL(os.path.dirname(tensorflow.__file__) + "/libtensorflow_framework.so.2")
library.cudnnGetVersion.restype = ctypes.c_size_t
print("TensorFlow gets cuDNN", library.cudnnGetVersion(), flush=True)
os._exit(0)'"""


@pytest.fixture
def layer(tmp_path: Path) -> Layer:
    """Return an environment over the one with tensorflow[and-cuda] 2.21."""
    named = [Path(name) for name in os.environ.get("ENVLOCK_TEST_CUDA_PYTHONS", "").split(os.pathsep)]
    found = [python for python in named if python.parent.parent.name == "cuda-2.21.0" and python.exists()]
    if not found:
        absent("no tensorflow[and-cuda] 2.21.0: `make testcuda` makes one and names it in ENVLOCK_TEST_CUDA_PYTHONS")
    return Layer(tmp_path / "env", found[0])


def findings(text: str) -> list[tuple[str, str]]:
    """Return line and remedy of each finding."""
    lines = text.splitlines()[1:]
    return [(line, fix.removeprefix("      fix: ")) for line, _, fix in zip(*[iter(lines)] * 3, strict=True)]


def test_cusolver_that_2_21_does_not_find_and_the_fix(layer: Layer) -> None:
    told = layer.shell("envlock doctor")
    assert findings(told.stdout) == [
        (
            "  i libcusolver.so.11 is not found by TensorFlow's loader, and no GPU is visible [library-missing]",
            "not needed on a CPU; for a GPU: " + CUSOLVER.replace("python", f"{layer.folder}/bin/python"),
        )
    ]
    after = layer.shell(CUSOLVER, "envlock doctor")
    assert (after.returncode, after.stdout) == (0, "")


def test_an_old_cudnn_on_the_path(layer: Layer, tmp_path: Path) -> None:
    words = compiler()
    if words is None:
        absent("no C compiler")
    old = tmp_path / "old"
    (old / "include").mkdir(parents=True)
    (old / "include/cudnn_version.h").write_text(
        "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n"
    )
    for part in PARTS:
        write_elf(old / f"lib/libcudnn_{part}.so.9")
    (tmp_path / "cudnn.c").write_text("unsigned long cudnnGetVersion(void) { return 90100; }\n")
    built = ["-shared", "-fPIC", "-Wl,-soname,libcudnn.so.9", "-o", str(old / "lib/libcudnn.so.9")]
    subprocess.run([*words, *built, str(tmp_path / "cudnn.c")], check=True)
    breaks = f'export LD_LIBRARY_PATH="{old}/lib:$LD_LIBRARY_PATH"'
    told = layer.shell(CUSOLVER, breaks, TOLD, "envlock doctor || test $? = 1")
    first, _, rest = told.stdout.partition("\n")
    assert first == "TensorFlow gets cuDNN 90100"  # it is not only our reading: that is what TensorFlow's loader takes
    assert findings(rest) == [
        (
            "  x cuDNN 9.1.0 is loaded (by LD_LIBRARY_PATH), and TensorFlow was compiled against 9.3.0 [cudnn-version]",
            "remove that cuDNN from LD_LIBRARY_PATH",
        )
    ]
    taken = f'export LD_LIBRARY_PATH="${{LD_LIBRARY_PATH#{old}/lib:}}"'
    after = layer.shell(CUSOLVER, breaks, taken, "envlock doctor")
    assert (after.returncode, after.stdout) == (0, "")


@pytest.mark.parametrize(
    ("profile", "module", "line", "fix"),
    [
        pytest.param(
            OLD,
            None,
            "  x the driver is 515.105.01, and CUDA 12.9 needs 525.60.13 or newer [driver-version]",
            "install driver 575.51.03 or newer, or a TensorFlow for an older CUDA",
            id="too old",
        ),
        pytest.param(
            MISMATCH,
            "535.247.01",
            "  x gpu.driver_version and 4 more could not be collected: The NVIDIA driver library is version "
            "535.261.03 and the loaded kernel module is version 535.247.01, as after an update without a reboot "
            "[fact-unknown]",
            "reboot the machine, or restart the container so that it gets the library of the running module",
            id="library and module of two versions",
        ),
    ],
)
def test_a_driver(profile: str, module: str | None, line: str, fix: str, layer: Layer, tmp_path: Path) -> None:
    around, folder = driver(tmp_path / "driver", profile, module)
    told = layer.shell(CUSOLVER, "envlock doctor || test $? = 1", around=around, LD_LIBRARY_PATH=folder)
    assert findings(told.stdout) == [(line, fix)]
    around, folder = driver(tmp_path / "newer", NEW)
    after = layer.shell(CUSOLVER, "envlock doctor", around=around, LD_LIBRARY_PATH=folder)
    assert (after.returncode, after.stdout) == (0, ""), after.stdout + after.stderr


def test_a_forward_compatible_libcuda_on_a_geforce(layer: Layer, tmp_path: Path) -> None:
    around, folder = driver(tmp_path / "driver", GEFORCE)
    note = b'{"format":1,"CUDA version":"12.9","driver":[535,550,570],"device":[1,2]}\0'
    compat = tmp_path / "compat"
    write_elf(compat / "libcuda.so.575.57.08", "libcuda.so.1", note=note)
    (compat / "libcuda.so.1").symlink_to("libcuda.so.575.57.08")
    told = layer.shell(CUSOLVER, "envlock doctor || test $? = 1", around=around, LD_LIBRARY_PATH=f"{compat}:{folder}")
    assert findings(told.stdout) == [
        (
            "  x the loader finds a forward-compatible libcuda of CUDA 12.9, and the GPU is GeForce RTX 4090 "
            "[forward-compatibility]",
            "remove the compat folder from LD_LIBRARY_PATH, or install a driver of that CUDA",
        )
    ]
    after = layer.shell(CUSOLVER, "envlock doctor", around=around, LD_LIBRARY_PATH=folder)
    assert after.returncode == 0
    assert "forward" not in after.stdout
