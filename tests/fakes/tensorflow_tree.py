"""A fake installation of TensorFlow with NVIDIA's wheels: the files that the loader and our collector look at."""

from __future__ import annotations

import base64
import hashlib

from envlock.runtime.host import Host
from tests.fakes.elf_writer import write_elf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

BUILD_INFO = (
    '"""Auto-generated module providing information about the build."""\nimport collections\n\n'
    "build_info = collections.OrderedDict([('cpu_compiler', '/usr/lib/llvm-18/bin/clang'), "
    "('cuda_compute_capabilities', ['sm_60', 'sm_70', 'sm_80', 'sm_89', 'compute_90']), ('cuda_version', '12.5.1'), "
    "('cudnn_version', '9'), ('is_cuda_build', True), ('is_rocm_build', False), ('is_tensorrt_build', False)])\n"
)
NUMBERS = {"CUDART": "12", "CUPTI": "12", "CUBLAS": "12", "CUSOLVER": "11", "CURAND": "10", "CUFFT": "11"}
NUMBERS.update(CUSPARSE="12", CUDNN="9")
NCCL_SYMBOL = "_ZN3tsl8internal9DsoLoader16GetNcclDsoHandleEv"
WHEELS = (
    *("cublas", "cuda_cupti", "cuda_nvrtc", "cuda_runtime", "cudnn"),
    *("cufft", "cusolver", "cusparse", "nccl", "nvjitlink"),
)
PARTS = ("graph", "ops", "cnn", "adv", "heuristic", "engines_precompiled", "engines_runtime_compiled")


class FakeHost(Host):
    """An x86-64 machine below a folder."""

    def __init__(self, root: Path, site: Path, modules: tuple[str, ...] = (), **environ: str) -> None:
        super().__init__(root=str(root), environ={"HOME": "/home/alice", "PATH": "", **environ}, path=[str(site)])
        self._modules = modules

    def uname(self) -> tuple[str, str, str]:
        return "Linux", "6.1", "x86_64"

    def has_imported(self, module: str) -> bool:
        return module in self._modules


class Installation:
    """`tensorflow[and-cuda]` in a folder, as PyPI's 2.21 lays it out; methods add and change wheels."""

    def __init__(self, folder: Path, *, config: bool = True, build_info: str = BUILD_INFO) -> None:
        self.machine = folder / "machine"
        self.prefix = folder / "env"
        self.site = self.prefix / "lib/python3.11/site-packages"
        (self.machine / "proc/self").mkdir(parents=True)
        (self.machine / "proc/self/maps").write_text("")
        package = self.site / "tensorflow"
        (package / "python/platform").mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "python/platform/build_info.py").write_text(build_info)
        info = self.site / "tensorflow-2.21.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: tensorflow\nVersion: 2.21.0\n")
        gpus = package / "include/third_party/gpus/cuda"
        gpus.mkdir(parents=True)
        if config:
            lines = [f'#define TF_{name}_VERSION "{number}"' for name, number in NUMBERS.items()]
            (gpus / "cuda_config.h").write_text("\n".join([*lines, '#define TF_CUDA_TOOLKIT_PATH ""', ""]))
        runpath = ":".join(f"$ORIGIN/../nvidia/{wheel}/lib" for wheel in WHEELS)
        framework = package / "libtensorflow_framework.so.2"
        write_elf(framework, runpath=runpath, symbols=(NCCL_SYMBOL, "cudnnGetVersion"))
        write_elf(package / "libtensorflow_cc.so.2", runpath="$ORIGIN/", needed=(framework.name,))

    def host(self, *modules: str, **environ: str) -> FakeHost:
        """Return the machine with these imported modules and start variables."""
        (self.machine / "proc/self/environ").write_text("".join(f"{k}={v}\0" for k, v in environ.items()))
        return FakeHost(self.machine, self.site, modules, **environ)

    def map(self, *paths: Path | str) -> None:
        """Make the process have these files mapped."""
        lines = [f"7f00-7f01 r-xp 00000000 08:01 {n}    {path}\n" for n, path in enumerate(paths)]
        (self.machine / "proc/self/maps").write_text("".join(lines))

    def wheel(self, project: str, version: str, *files: Path) -> None:
        """Write a dist-info whose RECORD claims these files as they are now."""
        info = self.site / f"{project.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = [f"{path.relative_to(self.site)},sha256={_digest(path)},{path.stat().st_size}\n" for path in files]
        (info / "RECORD").write_text("".join([*lines, f"{info.name}/RECORD,,\n"]))

    def everything(self) -> None:
        """Install every library, as the wheels of CUDA 12.5 with cuDNN 9.3.0 do."""
        lib = self.site / "nvidia"
        at = {
            "cublas": ("libcublas.so.12", {"needed": ("libcublasLt.so.12",), "rpath": "$ORIGIN"}),
            "cuda_runtime": ("libcudart.so.12", {}),
            "cufft": ("libcufft.so.11", {}),
            "cusolver": (
                "libcusolver.so.11",
                {"needed": ("libcusparse.so.12",), "runpath": "$ORIGIN/../../cusparse/lib"},
            ),
            "cusparse": (
                "libcusparse.so.12",
                {"needed": ("libnvJitLink.so.12",), "runpath": "$ORIGIN/../../nvjitlink/lib"},
            ),
            "nvjitlink": ("libnvJitLink.so.12", {}),
            "nccl": ("libnccl.so.2", {}),
            "cuda_nvrtc": ("libnvrtc.so.12", {}),
        }
        for number, (folder, (name, fields)) in enumerate(at.items()):
            path = write_elf(lib / folder / "lib" / name, build_id=bytes([number] * 20), **fields)  # type: ignore[arg-type]
            self.wheel(f"nvidia-{folder.replace('_', '-')}-cu12", "12.5.82", path)
        write_elf(lib / "cublas/lib/libcublasLt.so.12", build_id=b"lt")
        self.wheel("nvidia-cudnn-cu12", "9.3.0.75", *self.cudnn(lib / "cudnn", "9.3.0"))
        (lib / "cuda_runtime/include").mkdir()
        (lib / "cuda_runtime/include/cuda_runtime_api.h").write_text("#define CUDART_VERSION  12050\n")

    def cudnn(self, folder: Path, version: str) -> list[Path]:
        """Write a cuDNN 9 of this version with its header and return its libraries; they have no build-id."""
        major, minor, patch = version.split(".")
        (folder / "include").mkdir(parents=True)
        names = (("MAJOR", major), ("MINOR", minor), ("PATCHLEVEL", patch))
        text = "".join(f"#define CUDNN_{name} {number}\n" for name, number in names)
        (folder / "include/cudnn_version.h").write_text(text)
        found = [write_elf(folder / "lib/libcudnn.so.9", runpath="$ORIGIN", size=4096 + int(minor))]
        for part in PARTS:
            needed = () if part == "graph" else ("libcudnn_graph.so.9",)
            found.append(write_elf(folder / f"lib/libcudnn_{part}.so.9", needed=needed, runpath="$ORIGIN"))
        return found


def _digest(path: Path) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
