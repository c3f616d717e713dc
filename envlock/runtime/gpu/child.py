"""The program of the child process: import `pynvml`, ask NVML, print one JSON object, exit.

Started as `python -I -S child.py FOLDER...` by `probe`, with the import path of the asking process
as arguments. It exits with `os._exit`: the atexit handlers of a half-broken driver library could
hang.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    from envlock.runtime.gpu.nvml import Answer

LIBRARY = "libnvidia-ml.so"
_DISTRIBUTIONS = ("nvidia_ml_py", "pynvml", "nvidia_ml_py3")
"""Each of these installs a module called pynvml into site-packages."""


def main(folders: List[str]) -> None:
    """Print the answer to standard output and end the process."""
    out = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # output of the library must not mix with the answer
    _disable_core_dump()
    root = os.path.abspath(__file__)
    for _ in ("child.py", "gpu", "runtime", "envlock"):
        root = os.path.dirname(root)
    sys.path.extend([root, *folders])
    data = json.dumps(query_nvml(os.environ)).encode("ascii")
    while data:
        data = data[os.write(out, data) :]
    os._exit(0)


def _disable_core_dump() -> None:
    # A crash inside NVML must not write a core file to the user's folder.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def query_nvml(environ: Mapping[str, str]) -> Answer:
    """Return {status, binding, library_version, ...}.

    `status` is `ok`, `init-failed` or a word for the binding.
    """
    _replace_ctypes_util()
    try:
        pynvml = import_binding()
    except ImportError:
        return {"status": "no-binding"}
    except Exception:  # any error of a module with that name that is not NVIDIA's
        return {"status": "foreign-binding"}
    description = describe_binding(pynvml)
    if not hasattr(pynvml, "nvmlInit") or not hasattr(pynvml, "NVMLError"):
        return {"status": "foreign-binding", "binding": description}
    # Found only on the path that `main` has set up; the child is started by its file.
    from envlock.runtime.gpu import nvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        # Needs no initialisation since driver 535.
        version = nvml.ask(pynvml, "nvmlSystemGetNVMLVersion")
        return {
            "status": "init-failed",
            "binding": description,
            "code": getattr(error, "value", 999),
            "detail": _get_loader_message(error),
            "library_version": find_library_version(),
            "nvml_version": None if nvml.is_unavailable(version) else version,
        }
    captured = nvml.capture(pynvml, environ)
    return {
        "status": "ok",
        "binding": description,
        "library_version": find_library_version(),
        **captured,
    }


def import_binding() -> Any:
    """Return the module `pynvml`.

    Raises:
        ImportError: it is not installed.
        Exception: whatever a module of that name raises that is not NVIDIA's.
    """
    import pynvml  # type: ignore[import-untyped,unused-ignore]  # not always installed

    return pynvml


def _replace_ctypes_util() -> None:
    """Import `ctypes.util` only when it is used: pynvml needs it only on Windows, and it takes 10
    ms.
    """

    def find_library(name: str) -> Optional[str]:
        del sys.modules["ctypes.util"]
        # The module for which this one stands, which costs 10 ms.
        from ctypes.util import find_library as real

        return real(name)

    stand_in = ModuleType("ctypes.util")
    stand_in.find_library = find_library  # type: ignore[attr-defined]
    sys.modules["ctypes.util"] = stand_in


def _get_loader_message(error: BaseException) -> Optional[str]:
    """Return the loader's message about the library, without the paths in it."""
    cause = error.__context__
    if cause is None:
        return None
    message = str(cause).partition(": ")[2].partition(" (required by")[0]
    if "/" in message:
        return "the loader refuses it"
    return message


def describe_binding(module: ModuleType) -> Dict[str, Optional[str]]:
    """Return {distribution, version, problem} of a module called pynvml.

    `problem` is null, `shadowed` (an old `pynvml` distribution's package folder hides NVIDIA's
    module file), `deprecated` (the `pynvml` distribution is installed beside NVIDIA's) or
    `abandoned` (`nvidia-ml-py3`, of 2017).
    """
    path = getattr(module, "__file__", None) or ""
    is_package = hasattr(module, "__path__")
    if is_package:
        path = os.path.dirname(path)
    versions = _find_versions(os.path.dirname(path))
    if is_package:
        return {"distribution": "pynvml", "version": versions.get("pynvml"), "problem": "shadowed"}
    if "nvidia_ml_py" in versions:
        return {
            "distribution": "nvidia-ml-py",
            "version": versions["nvidia_ml_py"],
            "problem": "deprecated" if "pynvml" in versions else None,
        }
    if "nvidia_ml_py3" in versions:
        return {
            "distribution": "nvidia-ml-py3",
            "version": versions["nvidia_ml_py3"],
            "problem": "abandoned",
        }
    return {"distribution": None, "version": None, "problem": None}


def _find_versions(folder: str) -> Dict[str, str]:
    """Return the versions of the distributions in `folder` that contain a module called pynvml."""
    versions: Dict[str, str] = {}
    try:
        names = os.listdir(folder)
    except OSError:
        return versions
    for name in names:
        stem, ending = os.path.splitext(name)
        project, dash, version = stem.partition("-")
        if ending in (".dist-info", ".egg-info") and dash and project.lower() in _DISTRIBUTIONS:
            versions[project.lower()] = version.partition("-")[0]
    return versions


def find_library_version() -> Optional[str]:
    """Return the version in the file name of the loaded NVML library, or None.

    For example from libnvidia-ml.so.535.161.08.
    """
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            paths = [line[line.index("/") :].strip() for line in maps if LIBRARY in line]
    except (OSError, ValueError):
        return None
    for path in paths:
        name = os.path.basename(os.path.realpath(path))
        _, separator, version = name.partition(LIBRARY + ".")
        is_dotted = "." in version and all(part.isdigit() for part in version.split("."))
        if separator and is_dotted:
            return version
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
