"""Stand-ins for base images: a real Python on a small Debian, with what NVIDIA's TensorFlow images say of themselves.

Made from .debs in seconds, byte for byte the same each time from the same packages. NVIDIA's real images have 20 GB;
what matters here is their shape: environment, entrypoint, labels, a `tensorflow` distribution that must not be
replaced, and where its files lie.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.elf_writer import write_elf
from tests.fakes.tensorflow_tree import PARTS
from tests.image.bed.debian import call, fetch, unpack

PYTHON = """libc6 libgcc-s1 libstdc++6 zlib1g libssl3 libexpat1 libbz2-1.0 liblzma5 libffi8 libuuid1 libdb5.3
libncursesw6 libtinfo6 libreadline8 libsqlite3-0 libcrypt1 libnsl2 libtirpc3 libgssapi-krb5-2 libkrb5-3 libk5crypto3
libkrb5support0 libkeyutils1 libcom-err2 media-types tzdata libpython3.11-minimal python3.11-minimal
libpython3.11-stdlib python3.11 python3-minimal libpython3-stdlib python3 python3-distutils base-files dash
busybox-static python3-pip-whl netbase"""
PACKAGES = [f"{name}/bookworm" for name in PYTHON.split()]
DROPPED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian", "var/cache/ldconfig")
SITE = "usr/local/lib/python3.11/dist-packages"
PLAIN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

NGC = {
    **PLAIN,
    "CUDA_VERSION": "12.8.0.038",
    "CUDA_DRIVER_VERSION": "570.86.10",
    "CUDNN_VERSION": "9.7.1.26",
    "NCCL_VERSION": "2.25.1",
    "TENSORFLOW_VERSION": "2.17.0",
    "NVIDIA_TENSORFLOW_VERSION": "25.02-tf2",
    "NVIDIA_BUILD_ID": "143088766",
    "NVIDIA_PRODUCT_NAME": "TensorFlow",
    "NVIDIA_REQUIRE_CUDA": "cuda>=9.0",
    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility,video",
    "NVIDIA_VISIBLE_DEVICES": "all",
    "LD_LIBRARY_PATH": "/usr/local/cuda/compat/lib:/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
    "TF_ENABLE_ONEDNN_OPTS": "0",
}
ENTRYPOINT = """\
#!/bin/sh
# Like NVIDIA's: a banner when no command is given or on a terminal, then the command.
echo "== TensorFlow == NVIDIA Release ${NVIDIA_TENSORFLOW_VERSION} (build ${NVIDIA_BUILD_ID})" >&2
export NVIDIA_ENTRYPOINT_RAN=1
[ $# -gt 0 ] && exec "$@"
exec /bin/sh
"""
BUILD_INFO = """\
build_info = {"cpu_compiler": "/usr/bin/x86_64-linux-gnu-gcc-13", "cuda_compute_capabilities": ["sm_75", "sm_80", \
"sm_86", "sm_100", "sm_120", "compute_90"], "cuda_version": "12.8", "cudnn_version": "9", "is_cuda_build": True, \
"is_rocm_build": False, "is_tensorrt_build": False}
"""
CUDA_CONFIG = "".join(
    f'#define TF_{name}_VERSION "{number}"\n'
    for name, number in {
        "CUDART": "12",
        "CUPTI": "12",
        "CUBLAS": "12",
        "CUSOLVER": "11",
        "CURAND": "10",
        "CUFFT": "11",
        "CUSPARSE": "12",
        "CUDNN": "9",
    }.items()
)
VERSION_HEADER = "#define TF_MAJOR_VERSION 2\n#define TF_MINOR_VERSION 17\n#define TF_PATCH_VERSION 0\n"
STUB_TENSORFLOW = '''\
"""Not TensorFlow: a stand-in with its version, for tests of everything around it."""

__version__ = "2.17.0"


class config:
    @staticmethod
    def list_physical_devices(kind=None):
        return []
'''


@dataclass(frozen=True)
class Layer:
    """An uncompressed layer: its tar, and the digest of that."""

    file: Path
    digest: str


@dataclass(frozen=True)
class Image:
    """An image as a registry serves it, for one platform."""

    layers: tuple[Layer, ...]
    environ: Mapping[str, str] = field(default_factory=lambda: PLAIN)
    labels: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ("/bin/sh",)
    folder: str = "/"
    architecture: str = "amd64"

    def config(self) -> bytes:
        """Return its configuration, the digest of which is the image's ID."""
        settings: dict[str, Any] = {"Env": [f"{name}={value}" for name, value in self.environ.items()]}
        settings |= {"Cmd": list(self.command), "WorkingDir": self.folder, "Labels": dict(self.labels)}
        if self.entrypoint:
            settings["Entrypoint"] = list(self.entrypoint)
        document = {
            "architecture": self.architecture,
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": settings,
            "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in self.layers]},
            "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "stand-in"} for _ in self.layers],
        }
        return json.dumps(document, sort_keys=True).encode()


def python_layer(cache: Path) -> Layer:
    """Return Debian's Python 3.11 with pip on a root of its own, from `cache` when it is there."""
    return _cached(cache, "python", _python_root)


def ngc_layer(cache: Path) -> Layer:
    """Return what a stand-in of NVIDIA's TensorFlow 25.02 has on top of Python."""
    return _cached(cache, "ngc", _ngc_root)


def ngc(cache: Path, architecture: str = "amd64") -> Image:
    """Return a stand-in for nvcr.io/nvidia/tensorflow:25.02-tf2-py3."""
    labels = {"com.nvidia.tensorflow.version": "2.17.0+nv25.2", "com.nvidia.build.id": NGC["NVIDIA_BUILD_ID"]}
    return Image(
        layers=(python_layer(cache), ngc_layer(cache)),
        environ=NGC,
        labels=labels,
        entrypoint=("/opt/nvidia/nvidia_entrypoint.sh",),
        folder="/workspace",
        architecture=architecture,
    )


def python(cache: Path) -> Image:
    """Return a stand-in for docker.io/library/python:3.11-slim."""
    return Image((python_layer(cache),), {**PLAIN, "PYTHON_VERSION": "3.11.2", "LANG": "C.UTF-8"}, command=("python3",))


def cuda(cache: Path) -> Image:
    """Return a stand-in for nvidia/cuda:12.5.1-cudnn-runtime-ubuntu22.04."""
    environ = {**PLAIN, "CUDA_VERSION": "12.5.1", "NVIDIA_VISIBLE_DEVICES": "all"}
    return Image((python_layer(cache),), {**environ, "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"})


def _cached(cache: Path, name: str, fill: Any) -> Layer:
    """Return a layer, making it where this file or the packages are newer than what the cache holds."""
    key = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    file = cache / "layers" / f"{name}-{key}.tar"
    if not file.exists():
        root = cache / f"{name}-root"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        fill(root, cache)
        file.parent.mkdir(exist_ok=True)
        fresh = file.with_suffix(".part")
        call(["tar", "-c", "-f", str(fresh), "-C", str(root), "--sort=name", "--mtime=@0", "--format=gnu",
              "--numeric-owner", "--owner=0", "--group=0", "."])  # fmt: skip
        shutil.rmtree(root)
        fresh.replace(file)
    with file.open("rb") as stream:
        return Layer(file, f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}")


def _python_root(root: Path, cache: Path) -> None:
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    unpack(fetch(PACKAGES, cache / "debs"), root)
    _busybox(root)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\n")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    for name in ("tmp", "var/tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name).chmod(0o1777)
    site = root / SITE
    for wheel in (root / "usr/share/python-wheels").glob("pip-*.whl"):
        with zipfile.ZipFile(wheel) as content:
            content.extractall(site)
    (root / "usr/lib/python3.11/EXTERNALLY-MANAGED").unlink(missing_ok=True)
    (root / "usr/local/bin").mkdir(parents=True, exist_ok=True)
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    call(["ldconfig", "-r", str(root)])
    for name in DROPPED:
        shutil.rmtree(root / name, ignore_errors=True)


def _busybox(root: Path) -> None:
    """Link busybox's commands where no package brought one of that name."""
    for line in subprocess.check_output([root / "bin/busybox", "--list-full"], text=True).split():
        if not (root / line).exists() and not (root / line).is_symlink():
            (root / line).parent.mkdir(parents=True, exist_ok=True)
            (root / line).symlink_to("/bin/busybox")


def _ngc_root(root: Path, cache: Path) -> None:
    entrypoint = root / "opt/nvidia/nvidia_entrypoint.sh"
    entrypoint.parent.mkdir(parents=True)
    entrypoint.write_text(ENTRYPOINT)
    entrypoint.chmod(0o755)
    (root / "workspace").mkdir()
    site = root / SITE
    package = site / "tensorflow"
    files = {
        "__init__.py": STUB_TENSORFLOW,
        "python/platform/build_info.py": BUILD_INFO,
        "include/tensorflow/core/public/version.h": VERSION_HEADER,
        "include/third_party/gpus/cuda/cuda_config.h": CUDA_CONFIG,
    }
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    write_elf(package / "libtensorflow_framework.so.2", symbols=("cudnnGetVersion",))
    write_elf(package / "libtensorflow_cc.so.2", runpath="$ORIGIN/", needed=("libtensorflow_framework.so.2",))
    install(site, "tensorflow", "2.17.0+nv25.2", package)
    for name, version in (("numpy", "1.26.4"), ("keras", "3.3.2"), ("tf_keras", "2.17.0")):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(f'__version__ = "{version}"\n')
        install(site, name, version, site / name)
    (site / "keras/__init__.py").write_text('__version__ = "3.3.2"\n# patched\n')  # as NVIDIA does: RECORDs stay
    (site / "patches").mkdir()
    (site / "patches/quick.py").write_text("fast = True\n")
    _cuda(root)
    below = cache / "below"  # what the loader's cache must list lies in both layers
    shutil.rmtree(below, ignore_errors=True)
    below.mkdir()
    call(["tar", "-x", "-f", str(python_layer(cache).file), "-C", str(below)])
    call(["cp", "-a", f"{root}/.", str(below)])
    call(["ldconfig", "-r", str(below)])
    shutil.copy2(below / "etc/ld.so.cache", root / "etc/ld.so.cache")
    shutil.rmtree(below)


def _cuda(root: Path) -> None:
    """Write libraries with the names and the look of CUDA 12.8's, where NVIDIA's images have them."""
    cuda, system = root / "usr/local/cuda/lib64", root / "usr/lib/x86_64-linux-gnu"
    toolkit = ("cudart.so.12", "cublas.so.12", "cublasLt.so.12", "cufft.so.11", "cusolver.so.11", "cusparse.so.12",
               "nvJitLink.so.12", "nvrtc.so.12", "cupti.so.12")  # fmt: skip
    cudnn = [f"cudnn{part}.so.9" for part in ("", *(f"_{part}" for part in PARTS))]
    places = [(cuda, name) for name in toolkit] + [(system, name) for name in (*cudnn, "nccl.so.2")]
    for number, (folder, name) in enumerate(places):
        write_elf(folder / f"lib{name}", build_id=bytes([number] * 20))
    loader = root / "etc/ld.so.conf.d/000_cuda.conf"
    loader.parent.mkdir(parents=True)
    loader.write_text("/usr/local/cuda/lib64\n")


def install(site: Path, name: str, version: str, package: Path) -> None:
    """Write the metadata of an installed wheel: RECORD tells every file of `package` and its hash."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n")
    (info / "INSTALLER").write_text("pip\n")
    files = sorted(path for folder in (package, info) for path in folder.rglob("*") if path.is_file())
    lines = [f"{path.relative_to(site)},sha256={_hash(path)},{path.stat().st_size}\n" for path in files]
    (info / "RECORD").write_text("".join([*lines, f"{info.name}/RECORD,,\n"]))


def _hash(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
