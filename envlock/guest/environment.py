"""Asked of the interpreter of an environment: its facts, its import path, and where its TensorFlow lies."""

from __future__ import annotations

import json
import sys

from envlock.runtime.collectors import snapshot
from envlock.runtime.distributions import import_path
from envlock.runtime.gpu import probe
from envlock.runtime.host import Host
from envlock.runtime.tooling import tooling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Answer the question, with what the runtime half sees over there."""
    asked = json.loads(sys.argv[1])
    probe.LAST_RESORT[:] = [asked["binding"]] if asked["binding"] else []
    answer = {"facts": _facts, "paths": _paths, "tensorflow": _tensorflow}[asked["question"]]()
    sys.stdout.buffer.write((asked["mark"] + json.dumps(answer) + "\n").encode("ascii"))


def _facts() -> dict[str, Any]:
    host = Host()
    found = snapshot(host)
    return {"facts": found.facts, "unavailable": found.unavailable, "tooling": tooling(host)}


def _paths() -> dict[str, Any]:
    return {"prefix": sys.prefix, "folders": import_path(Host()), "markers": markers()}


def markers() -> dict[str, str]:
    """Return what environment markers are evaluated with.

    Source: https://packaging.python.org/en/latest/specifications/dependency-specifiers/#environment-markers
    """
    import os
    import platform

    version = platform.python_version()
    return {
        "implementation_name": sys.implementation.name,
        "implementation_version": _implementation_version(),
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": version.rstrip(
            "+"
        ),  # a build between two releases says 3.13.0+, which is no version
        "python_version": "{}.{}".format(*sys.version_info),
        "sys_platform": sys.platform,
    }


def _implementation_version() -> str:
    found = sys.implementation.version
    level = "" if found.releaselevel == "final" else f"{found.releaselevel[0]}{found.serial}"
    return "{}.{}.{}".format(*found) + level


def _tensorflow() -> dict[str, Any]:
    from importlib.util import find_spec

    spec = find_spec("tensorflow")
    return {"folders": list(spec.submodule_search_locations or []) if spec is not None else []}
