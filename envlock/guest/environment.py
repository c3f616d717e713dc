"""Answer questions about the environment of an interpreter: its facts, its import path, the folder
of its TensorFlow.

Argument: JSON with `mark`, `question` (`facts`, `paths`, `tensorflow` or `gpu-health`) and `binding`
(a folder with a module to bind NVML, or null).
"""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib.util import find_spec

from envlock.runtime.collectors import take_snapshot
from envlock.runtime.distributions import get_import_path
from envlock.runtime.gpu import probe
from envlock.runtime.host import Host
from envlock.runtime.tooling import find_required, find_tooling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict


def main() -> None:
    """Answer the question with what the runtime half finds in this interpreter."""
    asked = json.loads(sys.argv[1])
    probe.LAST_RESORT.clear()
    if asked["binding"]:
        probe.LAST_RESORT.append(asked["binding"])
    answers: Dict[str, Callable[[], Dict[str, object]]] = {
        "facts": _collect_facts,
        "paths": _collect_paths,
        "tensorflow": _find_tensorflow,
        "gpu-health": lambda: _collect_gpu_health(asked["binding"] or ""),
    }
    answer = answers[asked["question"]]()
    sys.stdout.buffer.write((asked["mark"] + json.dumps(answer) + "\n").encode("ascii"))


def _collect_facts() -> Dict[str, object]:
    host = Host()
    found = take_snapshot(host)
    return {
        "facts": found.facts,
        "unavailable": found.unavailable,
        "tooling": find_tooling(host),
        "required": find_required(host),
    }


def _collect_gpu_health(folder: str) -> Dict[str, object]:
    # Not at the top: an image carries this program and not that one, as no lockfile holds its answer.
    from envlock.guest.gpu_health import collect_health

    return collect_health(folder)


def _collect_paths() -> Dict[str, object]:
    return {"prefix": sys.prefix, "folders": get_import_path(Host()), "markers": collect_markers()}


def collect_markers() -> Dict[str, str]:
    """Return the values of the variables in environment markers.

    Source:
    https://packaging.python.org/en/latest/specifications/dependency-specifiers/#environment-markers
    """
    # A build between two releases has the version 3.13.0+, which is not valid.
    version = platform.python_version().rstrip("+")
    return {
        "implementation_name": sys.implementation.name,
        "implementation_version": _spell_implementation_version(),
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": version,
        "python_version": "{}.{}".format(*sys.version_info),
        "sys_platform": sys.platform,
    }


def _spell_implementation_version() -> str:
    version = sys.implementation.version
    text = f"{version.major}.{version.minor}.{version.micro}"
    if version.releaselevel != "final":
        text += f"{version.releaselevel[0]}{version.serial}"
    return text


def _find_tensorflow() -> Dict[str, object]:
    spec = find_spec("tensorflow")
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    return {"folders": folders}
