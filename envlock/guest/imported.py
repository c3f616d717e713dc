"""Import what computes in this environment, and describe what the process has loaded then.

Argument: JSON with `mark` and `imports`, the modules to import in their order. The answer has the `facts` of the
section `loaded`, the `places` of its files on this machine, and `looked`: the files and folders that it rests on; or
`failed`, a sentence, and the `imports` that failed.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

from envlock.runtime.host import Host
from envlock.runtime.loaded.observation import observe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict


def main() -> None:
    """Answer with what the imports have loaded."""
    asked = json.loads(sys.argv[1])
    answer = _import_all(asked["imports"]) or _describe(asked["imports"])
    sys.stdout.flush()
    sys.stdout.buffer.write((asked["mark"] + json.dumps(answer) + "\n").encode("ascii"))
    sys.stdout.buffer.flush()
    # Without TensorFlow's threads and what it does at exit.
    os._exit(0)


def _import_all(names: list[str]) -> Dict[str, object]:
    for name in names:
        try:
            import_module(name)
        except Exception as error:  # whatever a broken installation raises
            reason = f"`import {name}` raised {type(error).__name__}"
            return {"failed": reason, "imports": [name]}
    return {}


def _describe(names: list[str]) -> Dict[str, object]:
    found = observe(Host())
    return {
        "facts": {"imports": sorted(names), **found.facts},
        "places": found.places,
        "looked": found.list_looked(),
    }
