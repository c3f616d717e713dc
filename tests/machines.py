"""Machines made of files: a folder that looks like `/`, and one that looks like `site-packages`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from envlock.runtime.host import Host

CPUINFO = """\
processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 143
model name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
stepping\t: 8
flags\t\t: fpu vme sse4_1 sse4_2 avx avx2 fma f16c avx512f avx512_vnni amx_tile hypervisor

processor\t: 1
vendor_id\t: SomeoneElse
flags\t\t: fpu
"""
OS_RELEASE = 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n'

BUILD_INFO_CPU_2_12 = """\
import collections
build_info = collections.OrderedDict([('is_cuda_build', False), ('is_rocm_build', False), ('is_tensorrt_build', False)])
"""
BUILD_INFO_CPU_2_21 = "build_info = {'is_cuda_build': False, 'is_rocm_build': False, 'is_tensorrt_build': False}\n"
BUILD_INFO_CUDA_2_12 = """\
import collections
build_info = collections.OrderedDict([('cpu_compiler', '/dt9/usr/bin/gcc'), ('cuda_compute_capabilities', ['sm_35', \
'sm_80', 'compute_80']), ('cuda_version', '11.8'), ('cudnn_version', '8'), ('is_cuda_build', True), ('is_rocm_build', \
False), ('is_tensorrt_build', True)])
"""
BUILD_INFO_CUDA_2_21 = """\
build_info = {"cpu_compiler": "/usr/lib/llvm-18/bin/clang", "cuda_compute_capabilities": ["sm_60", "compute_90"], \
"cuda_version": "12.5.1", "cudnn_version": "9", "is_cuda_build": True, "is_rocm_build": False}
"""
CUDNN_HEADER = "#ifndef X\n#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 3\n#define CUDNN_PATCHLEVEL 0\n#endif\n"
CUDNN_HEADER_PATH = "include/third_party/gpus/cudnn/include/cudnn_version.h"
VERSION_HEADER = "#define TF_MAJOR_VERSION 2\n#define TF_MINOR_VERSION 12\n#define TF_PATCH_VERSION 1\n"
VERSION_HEADER_PATH = "include/tensorflow/core/public/version.h"


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below `folder`, whose names may hold folders; return `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return folder


def distribution(site: Path, name: str, version: str, files: Mapping[str, str | bytes] | None = None) -> Path:
    """Install a distribution without content; return its metadata folder."""
    metadata = {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nText.\n"}
    return write(site / f"{name}-{version}.dist-info", {**metadata, **(files or {})})


def machine(
    root: Path,
    *,
    files: Mapping[str, str | bytes] | None = None,
    environ: Mapping[str, str] | None = None,
    started_with: Mapping[str, str] | None = None,
    site: Path | None = None,
) -> Host:
    """Return a machine whose `/` is `root`: a two-CPU Xeon with Debian, and the given files over that."""
    system = {"proc/cpuinfo": CPUINFO, "etc/os-release": OS_RELEASE, "proc/self/cgroup": "0::/\n"}
    write(root, {**system, **(files or {})})
    variables = {"KERAS_HOME": str(root / "no-keras-home"), **(environ or {})}
    start = variables if started_with is None else started_with
    return Host(str(root), variables, [] if site is None else [str(site)], start)


def complete(folder: Path, environ: Mapping[str, str] | None = None) -> Host:
    """Return a machine on which every collector finds something."""
    site = folder / "site-packages"
    wheel = {"WHEEL": "Wheel-Version: 1.0\nTag: cp311-cp311-manylinux_2_17_x86_64\n", "INSTALLER": "pip\n"}
    distribution(site, "tensorflow", "2.17.0+nv25.2", wheel)
    distribution(site, "keras", "3.5.0", wheel)
    distribution(site, "tf_keras", "2.17.0", wheel)
    distribution(site, "numpy", "1.26.4", wheel)
    origin = '{"url": "https://example.org/mine.git", "vcs_info": {"vcs": "git", "commit_id": "%s"}}' % ("0a" * 20)
    distribution(site, "mine", "1.0", {**wheel, "direct_url.json": origin})
    write(
        site / "tensorflow",
        {
            "__init__.py": "",
            "python/platform/build_info.py": BUILD_INFO_CPU_2_21,
            CUDNN_HEADER_PATH: CUDNN_HEADER,
        },
    )
    config = '"blas": {"name": "openblas64", "version": "0.3.23", "openblas configuration": r"USE_64BITINT=1 HASWELL"}'
    write(site / "numpy", {"__init__.py": "", "__config__.py": "CONFIG = {" + config + "}\n"})
    write(site, {"a_hook.pth": "import a_hook\n", "sitecustomize.py": "import a_hook\n"})
    write(site / "numpy.libs", {"libopenblas64_p-r0-0cf96a72.3.23.dev.so": ""})
    keras_json = '{"backend": "tensorflow", "floatx": "float32", "epsilon": 1e-07}'
    write(folder / "keras-home", {"keras.json": keras_json})
    variables = {"TF_ENABLE_ONEDNN_OPTS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    variables.update({"OMP_NUM_THREADS": "2", "KERAS_HOME": str(folder / "keras-home"), **(environ or {})})
    return machine(folder / "root", environ=variables, site=site)
