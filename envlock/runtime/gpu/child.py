"""What runs in the child process: import `pynvml`, ask NVML, print one JSON object, leave.

Started as `python -I -S child.py FOLDER...` by `probe`, with the import path of the asking process as arguments.
It exits with `os._exit`: the atexit work of a half-broken driver library is one more chance to hang.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Dict, List, Optional

LIBRARY = "libnvidia-ml.so"
_DISTRIBUTIONS = (
    "nvidia_ml_py",
    "pynvml",
    "nvidia_ml_py3",
)  # each puts a module called pynvml into site-packages


def main(folders: List[str]) -> None:
    """Print the answer to standard output and end the process."""
    out = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # whatever the library prints must not mix with the answer
    _leave_no_core()
    here = os.path.abspath(__file__)
    for _ in ("child.py", "gpu", "runtime", "envlock"):
        here = os.path.dirname(here)
    sys.path.extend([here, *folders])
    data = json.dumps(answer(os.environ)).encode("ascii")
    while data:
        data = data[os.write(out, data) :]
    os._exit(0)


def _leave_no_core() -> None:
    import resource

    resource.setrlimit(
        resource.RLIMIT_CORE, (0, 0)
    )  # a crash inside NVML must not drop a file where the user works


def answer(environ: Any) -> Dict[str, Any]:
    """Return {status, binding, library_version, ...}: `status` is `ok`, `init-failed` or a word for the binding."""
    _put_off_ctypes_util()
    try:
        import pynvml  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return {"status": "no-binding"}
    except Exception:  # whatever a module of that name does when it is not NVIDIA's
        return {"status": "foreign-binding"}
    described = binding(pynvml)
    if not hasattr(pynvml, "nvmlInit") or not hasattr(pynvml, "NVMLError"):
        return {"status": "foreign-binding", "binding": described}
    from envlock.runtime.gpu import nvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        code = getattr(error, "value", 999)
        version = nvml.ask(
            pynvml, "nvmlSystemGetNVMLVersion"
        )  # answers without init from driver 535 on
        return {
            "status": "init-failed",
            "binding": described,
            "code": code,
            "detail": _loader_words(error),
            "library_version": library_version(),
            "nvml_version": None if nvml.failed(version) else version,
        }
    captured = nvml.capture(pynvml, environ)
    return {"status": "ok", "binding": described, "library_version": library_version(), **captured}


def _put_off_ctypes_util() -> None:
    """Let `ctypes.util` be imported when it is used: pynvml asks it for a name on Windows only, and it costs 10 ms."""
    from types import ModuleType

    def find_library(name: str) -> Optional[str]:
        del sys.modules["ctypes.util"]
        from ctypes.util import find_library as real

        return real(name)

    later = ModuleType("ctypes.util")
    later.find_library = find_library  # type: ignore[attr-defined]
    sys.modules["ctypes.util"] = later


def _loader_words(error: BaseException) -> Optional[str]:
    """Return what the loader said of the library, without the paths that it names."""
    cause = error.__context__
    if cause is None:
        return None
    words = str(cause).partition(": ")[2].partition(" (required by")[0]
    return words if "/" not in words else "the loader refuses it"


def binding(module: ModuleType) -> Dict[str, Any]:
    """Return {distribution, version, problem} of a module called pynvml.

    `problem` is null, `shadowed` (an old `pynvml` distribution's package folder hides NVIDIA's module file),
    `deprecated` (the `pynvml` distribution is there beside NVIDIA's) or `abandoned` (`nvidia-ml-py3`, of 2017).
    """
    file = getattr(module, "__file__", None) or ""
    package = hasattr(module, "__path__")
    folder = os.path.dirname(os.path.dirname(file) if package else file)
    found = _installed(folder)
    if package:
        return {"distribution": "pynvml", "version": found.get("pynvml"), "problem": "shadowed"}
    if "nvidia_ml_py" in found:
        problem = "deprecated" if "pynvml" in found else None
        return {
            "distribution": "nvidia-ml-py",
            "version": found["nvidia_ml_py"],
            "problem": problem,
        }
    if "nvidia_ml_py3" in found:
        return {
            "distribution": "nvidia-ml-py3",
            "version": found["nvidia_ml_py3"],
            "problem": "abandoned",
        }
    return {"distribution": None, "version": None, "problem": None}


def _installed(folder: str) -> Dict[str, str]:
    """Return the versions of the distributions in `folder` that bring a module called pynvml."""
    found: Dict[str, str] = {}
    try:
        names = os.listdir(folder)
    except OSError:
        return found
    for name in names:
        stem, ending = os.path.splitext(name)
        project, dash, version = stem.partition("-")
        if ending in (".dist-info", ".egg-info") and dash and project.lower() in _DISTRIBUTIONS:
            found[project.lower()] = version.partition("-")[0]
    return found


def library_version() -> Optional[str]:
    """Return the version in the file name of the NVML library that is loaded (libnvidia-ml.so.535.161.08), or None."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            paths = [line[line.index("/") :].strip() for line in maps if LIBRARY in line]
    except (OSError, ValueError):
        return None
    for path in paths:
        _, found, version = os.path.basename(os.path.realpath(path)).partition(LIBRARY + ".")
        if found and "." in version and all(part.isdigit() for part in version.split(".")):
            return version
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
