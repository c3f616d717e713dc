"""Runs in the environment with TensorFlow: changes every leaf of a real lock in every way, and verifies each time.

Usage: every_leaf.py LOCK POLICY. Prints JSON: [[kind, path, exit code, paths of errors, paths of information], ...].
It is verified each time in this one process, as 1,000 interpreters would take minutes.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import envlock

OTHER_TYPE = {str: 12345, bool: 1, int: "2", float: "0.5", list: "text", type(None): False}


def other_value(value: Any) -> Any:
    """Return a value of the same type that is not this one; for null, a text."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, list):
        return [*value, "added"]
    return "changed" if value is None else value + "x"


def changes(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str, dict[str, Any], str, Any]]:
    """Yield (kind, path, parent, key, new value); a new value of `...` means that the key goes."""
    for key, value in node.items():
        path = prefix + key
        yield "removal", path, node, key, ...
        if isinstance(value, dict):
            yield from changes(value, path + ".")
            yield "addition", path + ".added", value, "added", "text"
        else:
            yield "value", path, node, key, other_value(value)
            yield "type", path, node, key, OTHER_TYPE[type(value)]


def verify(lock: Path, policy: str) -> tuple[int, list[str], list[str]]:
    """Return the exit code of `envlock verify` here, and the paths it names as errors and as information."""
    try:
        report = envlock.verify(lock, policy)
    except envlock.LockfileError as error:
        return error.exit_code, [], []
    by: dict[str, list[str]] = {"error": [], "info": [], "unknown": [], "warning": []}
    for finding in report.findings:
        by[finding.severity].append(str(finding.where))
    return report.exit_code, by["error"] + by["unknown"], by["info"]


def run(source: Path, policy: str) -> list[list[Any]]:
    """Return what `verify` says of each changed copy of the lock."""
    lock = json.loads(source.read_bytes())
    changed = source.with_name("changed.lock")
    results = []
    originals = copy.deepcopy(lock["facts"])
    for kind, path, parent, key, value in list(changes(lock["facts"])):
        before = dict(parent)
        if value is ...:
            del parent[key]
        else:
            parent[key] = value
        changed.write_text(json.dumps(lock), encoding="utf-8")
        results.append([kind, path, *verify(changed, policy)])
        parent.clear()
        parent.update(before)
    assert lock["facts"] == originals
    return results


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), sys.argv[2])))
