"""The facts `cuda.*` on fake installations: which file, why, and what identifies it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from envlock.runtime.collectors.cuda_build import collect
from envlock.runtime.cuda.section import find_google_release
from envlock.runtime.facts import Unavailable
from tests.fakes.elf_writer import write_elf
from tests.fakes.tensorflow_tree import BUILD_INFO, Installation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SITE = "{prefix}/lib/python3.11/site-packages"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """Return a whole fake `tensorflow[and-cuda]`."""
    found = Installation(tmp_path)
    found.everything()
    monkeypatch.setattr(sys, "prefix", str(found.prefix))
    monkeypatch.chdir(tmp_path)
    return found


def facts(installation: Installation, *modules: str, **environ: str) -> dict[str, Any]:
    tree = collect(installation.host(*modules, **environ))
    assert tree is not None
    return tree


def test_the_wheels_libraries_with_why_version_and_identity(installed: Installation) -> None:
    tree = facts(installed)
    assert tree["cudart"] == {
        "linkage": "dlopen",
        "soname": "libcudart.so.12",
        "file": f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12",
        "resolved_by": "RUNPATH",
        "version": "12.5",
        "wheel_version": "12.5.82",
        "build_id": "01" * 20,
    }
    cudnn = tree["cudnn"]
    assert (cudnn["version"], cudnn["wheel_version"], cudnn["resolved_by"]) == ("9.3.0", "9.3.0.75", "RUNPATH")
    assert len(cudnn["record_sha256"]) == 43
    assert tree["cudnn_engines_precompiled"]["version"] == "9.3.0"
    assert tree["cublasLt"]["resolved_by"] == "RPATH", "cuBLAS brings it along, by its own RPATH"
    assert (tree["nvjitlink"]["linkage"], tree["nvjitlink"]["version"]) == ("needed", "12.5")
    assert tree["curand"] == tree["tensorrt"] == {"linkage": "absent"}
    assert tree["cuda_driver"]["resolved_by"] == "not found"
    assert tree["cuda_driver"]["file"] is None
    assert tree["other_cuda"] == []
    assert "cudnn_ext" not in tree, "not part of cuDNN 9.3"


def test_a_second_cudnn_wins_by_the_start_variable_whole(installed: Installation) -> None:
    installed.cudnn(installed.machine / "opt/nvidia/cudnn", "9.1.2")
    tree = facts(installed, LD_LIBRARY_PATH="/opt/nvidia/cudnn/lib")
    for key in ("cudnn", "cudnn_graph", "cudnn_ops", "cudnn_heuristic"):
        assert tree[key]["resolved_by"] == "LD_LIBRARY_PATH", key
        assert tree[key]["file"] == f"/opt/nvidia/cudnn/lib/lib{key}.so.9"
        assert (tree[key]["version"], tree[key]["wheel_version"]) == ("9.1.2", None)
        assert tree[key]["size"] > 0
    assert tree["cublas"]["resolved_by"] == "RUNPATH"


def test_half_a_second_cudnn_is_seen_as_the_mixture_it_is(installed: Installation) -> None:
    write_elf(installed.machine / "opt/nvidia/half/libcudnn_ops.so.9.3.0", "libcudnn_ops.so.9")
    tree = facts(installed, LD_LIBRARY_PATH="/opt/nvidia/half")
    assert tree["cudnn"]["resolved_by"] == "RUNPATH"
    assert tree["cudnn_ops"]["file"] == "/opt/nvidia/half/libcudnn_ops.so.9.3.0", "the full version is asked for first"
    assert tree["cudnn_cnn"]["resolved_by"] == "RUNPATH"


def test_a_library_that_torch_loaded_first(installed: Installation) -> None:
    other = installed.machine / "opt/nvidia/torch"
    installed.cudnn(other, "9.1.0")
    installed.map("/opt/nvidia/torch/lib/libcudnn.so.9")
    tree = facts(installed, "torch", "numpy")
    assert (tree["cudnn"]["resolved_by"], tree["cudnn"]["file"]) == ("loaded", "/opt/nvidia/torch/lib/libcudnn.so.9")
    assert tree["cudnn_graph"]["file"] == "/opt/nvidia/torch/lib/libcudnn_graph.so.9", "the shim looks beside itself"
    assert tree["other_cuda"] == ["torch"]


def test_what_tensorflow_itself_has_loaded_keeps_its_reason(installed: Installation) -> None:
    installed.map(installed.site / "nvidia/cuda_runtime/lib/libcudart.so.12")
    assert facts(installed, "tensorflow")["cudart"]["resolved_by"] == "RUNPATH"


def test_preloaded(installed: Installation) -> None:
    write_elf(installed.machine / "opt/nvidia/libcudnn.so.9", runpath="$ORIGIN")
    tree = facts(installed, LD_PRELOAD="/opt/nvidia/libcudnn.so.9")
    assert (tree["cudnn"]["resolved_by"], tree["cudnn"]["file"]) == ("LD_PRELOAD", "/opt/nvidia/libcudnn.so.9")
    assert isinstance(tree["cudnn"]["version"], Unavailable), "no header beside it, and its name does not tell"
    assert tree["cudnn_graph"]["file"] is None


def test_wheels_that_overwrite_each_other(installed: Installation) -> None:
    path = installed.site / "nvidia/cudnn/lib/libcudnn.so.9"
    installed.wheel("nvidia-cudnn-cu11", "9.3.0.75", path)
    cudnn = facts(installed)["cudnn"]
    assert cudnn["claimed_by"] == ["nvidia-cudnn-cu11 9.3.0.75", "nvidia-cudnn-cu12 9.3.0.75"]
    assert isinstance(cudnn["wheel_version"], Unavailable)
    path.write_bytes(path.read_bytes() + b"more")
    cudnn = facts(installed)["cudnn"]
    assert cudnn["wheel_version"].code == "replaced"
    assert "record_sha256" not in cudnn
    assert cudnn["size"] == path.stat().st_size


def test_the_wheel_whose_record_fits_is_the_owner(installed: Installation) -> None:
    path = installed.site / "nvidia/cudnn/lib/libcudnn.so.9"
    path.write_bytes(path.read_bytes() + b"of another wheel")
    installed.wheel("nvidia-cudnn-cu13", "9.5.0.1", path)
    assert facts(installed)["cudnn"]["wheel_version"] == "9.5.0.1"


def test_static_nccl_has_tensorflows_version_whatever_wheel_is_installed(installed: Installation) -> None:
    assert facts(installed)["nccl"]["linkage"] == "dlopen"
    header = installed.site / "tensorflow/include/external/nccl_archive/src/nccl.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define NCCL_MAJOR 2\n#define NCCL_MINOR 21\n#define NCCL_PATCH 5\n")
    assert facts(installed)["nccl"] == {"linkage": "static", "version": "2.21.5"}


def test_a_library_that_cannot_load_says_what_it_lacks(installed: Installation) -> None:
    (installed.site / "nvidia/nvjitlink/lib/libnvJitLink.so.12").unlink()
    tree = facts(installed)
    assert tree["cusparse"]["problem"] == "libnvJitLink.so.12, which it needs: not found"
    assert "nvjitlink" in tree


def test_the_driver_in_the_system_with_its_compatibility_note(installed: Installation) -> None:
    note = b'{"format":1,"CUDA version":"12.9","driver":[535,550],"device":[1,2]}\0'
    write_elf(installed.machine / "usr/lib/x86_64-linux-gnu/libcuda.so.575.57.08", "libcuda.so.1", note=note)
    (installed.machine / "usr/lib/x86_64-linux-gnu/libcuda.so.1").symlink_to("libcuda.so.575.57.08")
    driver = facts(installed)["cuda_driver"]
    assert (driver["version"], driver["resolved_by"]) == ("575.57.08", "default")
    assert driver["file"] == "/usr/lib/x86_64-linux-gnu/libcuda.so.575.57.08"
    assert (driver["compat_cuda"], driver["compat_drivers"]) == ("12.9", [535, 550])


def test_numbers_of_a_compatibility_note_that_python_does_not_read(installed: Installation) -> None:
    note = '{"CUDA version":"12.9","driver":[535,\u00b2,%s, 550]}\0' % ("9" * 30)
    write_elf(installed.machine / "usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.1", note=note.encode())
    assert facts(installed)["cuda_driver"]["compat_drivers"] == [535, 550]


def test_without_cuda_config_the_names_are_unknown_and_not_guessed(tmp_path: Path) -> None:
    installation = Installation(tmp_path, config=False)
    installation.everything()
    tree = facts(installation)
    assert tree["cudnn"] == Unavailable("TensorFlow's cuda_config.h is not installed", "no-cuda-config")
    assert tree["cuda_driver"]["soname"] == "libcuda.so.1"


def test_no_tensorflow_a_cpu_build_and_a_broken_one(tmp_path: Path) -> None:
    cpu = Installation(
        tmp_path / "cpu", build_info=BUILD_INFO.replace("'is_cuda_build', True", "'is_cuda_build', False")
    )
    assert collect(cpu.host()) is None
    broken = Installation(tmp_path / "broken")
    (broken.site / "tensorflow/libtensorflow_framework.so.2").write_bytes(b"")
    assert facts(broken)["cudnn"].code == "no-framework"


def test_only_a_plain_version_is_googles_build(installed: Installation) -> None:
    package = str(installed.site / "tensorflow")
    assert find_google_release(installed.host(), package) == "2.21"
    (installed.site / "tensorflow-2.21.0.dist-info").rename(installed.site / "tensorflow-2.17.0+nv25.2.dist-info")
    assert find_google_release(installed.host(), package) is None


def test_the_wheel_that_owns_a_file_knows_its_version(installed: Installation) -> None:
    """As after an upgrade that was interrupted: the library is the wheel's, the header another version's."""
    before = facts(installed)["cudnn"]
    assert (before["version"], before["wheel_version"]) == ("9.3.0", "9.3.0.75")
    header = installed.site / "nvidia/cudnn/include/cudnn_version.h"
    header.write_text("#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 8\n#define CUDNN_PATCHLEVEL 0\n")
    after = facts(installed)["cudnn"]
    assert (after["version"], after["wheel_version"]) == ("9.3.0", "9.3.0.75")


def test_a_library_with_numbers_of_its_own_has_them_from_its_header(installed: Installation) -> None:
    """CUPTI 12.9.79 answers 28, the number of its interface."""
    folder = installed.site / "nvidia/cuda_cupti"
    library = write_elf(folder / "lib/libcupti.so.12")
    installed.wheel("nvidia-cuda-cupti-cu12", "12.9.79", library)
    assert isinstance(facts(installed)["cupti"]["version"], Unavailable)
    (folder / "include").mkdir()
    (folder / "include/cupti_version.h").write_text("#define CUPTI_API_VERSION 28\n")
    cupti = facts(installed)["cupti"]
    assert (cupti["version"], cupti["wheel_version"]) == ("28", "12.9.79")


def test_ptxas_in_xlas_order(installed: Installation) -> None:
    def program(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"#!/bin/sh\n")
        path.chmod(0o755)

    assert facts(installed)["ptxas"]["resolved_by"] == "not found"
    wheel = installed.site / "nvidia/cuda_nvcc/bin/ptxas"
    program(wheel)
    installed.wheel("nvidia-cuda-nvcc-cu12", "12.5.82", wheel)
    ptxas = facts(installed)["ptxas"]
    assert (ptxas["resolved_by"], ptxas["version"]) == ("wheel", "12.5.82")
    for folder, reason, environ in (
        ("usr/local/cuda/bin", "/usr/local/cuda", {}),
        ("opt/nvidia/home/bin", "CUDA_HOME", {"CUDA_HOME": "/opt/nvidia/home"}),
        ("opt/nvidia/path", "PATH", {"PATH": "/nowhere:/opt/nvidia/path"}),
        (
            "opt/nvidia/data/bin",
            "xla_gpu_cuda_data_dir",
            {"XLA_FLAGS": "--xla_x=1 --xla_gpu_cuda_data_dir=/opt/nvidia/data"},
        ),
    ):
        program(installed.machine / folder / "ptxas")
        found = facts(installed, **environ)["ptxas"]
        assert (found["resolved_by"], found["file"]) == (reason, f"/{folder}/ptxas")
        assert isinstance(found["version"], Unavailable)


@pytest.mark.processes
def test_nothing_costly_is_imported_on_the_way() -> None:
    code = "import sys; import envlock.runtime.collectors.cuda_build; print(*sys.modules)"
    words = [sys.executable, "-S", "-c", code]
    environ = {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=True)
    costly = {"re", "ast", "json", "typing", "ctypes", "subprocess", "dataclasses", "pathlib", "importlib.metadata"}
    costly |= {"struct", "envlock.runtime.cuda.section"}  # a CPU build does not pay for it
    assert not costly & set(done.stdout.split())


def test_no_fact_names_the_user(installed: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("home/alice/cudnn", "tmp/review/scratch/alice/cudnn"):
        installed.cudnn(installed.machine / folder, "9.1.2")
        cudnn = facts(installed, LD_LIBRARY_PATH=f"/{folder}/lib")["cudnn"]
        assert cudnn["file"] == "{elsewhere}/libcudnn.so.9"


def test_files_linked_from_an_installers_cache_keep_the_environments_path(installed: Installation) -> None:
    path = installed.site / "nvidia/cuda_runtime/lib/libcudart.so.12"
    cached = installed.prefix.parent / "cache/x7d/libcudart.so.12"
    cached.parent.mkdir(parents=True)
    path.rename(cached)
    path.symlink_to(cached)
    assert facts(installed)["cudart"]["file"] == f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12"
