"""Import what computes in this environment, and describe what the process has loaded then.

It is started with `-S`, and runs what Python runs before a program itself, to see which files that opens.

Argument: JSON with `mark` and `imports`, the modules to import in their order, and what facts already say of the
code at the start: its `known` files and its `modules`. The answer has the `facts` of the section `loaded`, the
`places` of its files on this machine, and `looked`: the files and folders that it rests on; or `failed`, a
sentence, and the `imports` that failed.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

from envlock.guest.startup_watch import find_unheld, run_site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

    from envlock.guest.startup_watch import Start


def main() -> None:
    """Answer with what the imports have loaded."""
    asked = json.loads(sys.argv[1])
    start = run_site()
    answer = _import_all(asked["imports"]) or _describe(asked, start)
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


def _describe(asked: Dict[str, Any], start: Start) -> Dict[str, object]:
    # Not at the top: the code at the start of Python comes before whatever else is imported.
    from envlock.runtime.host import Host
    from envlock.runtime.loaded.observation import observe
    from envlock.runtime.loaded.startup_files import STARTUP, describe_file, name_file

    host = Host()
    found = observe(host)
    opened = find_unheld(start, host, asked["known"], asked["modules"])
    entries = {path: describe_file(name_file(path), path) for path in opened}
    facts = {"imports": sorted(asked["imports"]), **found.facts}
    if entries:
        facts[STARTUP] = sorted(set(entries.values()))
    for path, entry in entries.items():
        found.places[entry] = f"{path}: {opened[path]} opens it at the start of Python"
    asked_about = {path for path, asker in start.asked.items() if asker not in asked["known"]}
    return {
        "facts": facts,
        "places": found.places,
        "looked": sorted({*found.list_looked(), *start.opened, *asked_about}),
    }
