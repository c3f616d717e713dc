"""Asked of the interpreter of an environment: its facts, its import path, and where its TensorFlow lies."""

from __future__ import annotations

import json
import sys

from envlock.runtime.collectors import snapshot
from envlock.runtime.distributions import import_path
from envlock.runtime.gpu import probe
from envlock.runtime.host import Host

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
    found = snapshot()
    return {"facts": found.facts, "unavailable": found.unavailable}


def _paths() -> dict[str, Any]:
    return {"prefix": sys.prefix, "folders": import_path(Host())}


def _tensorflow() -> dict[str, Any]:
    from importlib.util import find_spec

    spec = find_spec("tensorflow")
    return {"folders": list(spec.submodule_search_locations or []) if spec is not None else []}
