"""How an interpreter without packages and variables is measured: one that a test starts, or that of an environment."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("COVERAGE_PROCESS_START", "COVERAGE_FILE")
LEFT = (*NAMES, "COVERAGE_PROCESS_CONFIG")
"""The last one is set by the start."""
START = """\
import os, sys; sys.path.append({packages!r}); os.environ.update(zip({names!r}, {values!r})); import coverage; \
os.register_at_fork(after_in_child=lambda own=coverage.process_startup(): own and setattr(own, "save", lambda: None)); \
[os.environ.pop(name, None) for name in {left!r}]; sys.path.pop(); """
"""A forked child that ends by `os._exit` would write the data of its parent, too, into the file of its parent."""


def line() -> str:
    """Return the statements that start measuring; they leave no variable and no folder to import from."""
    import coverage

    values = (str(ROOT / "pyproject.toml"), str(ROOT / ".coverage" / "data"))
    return START.format(packages=str(Path(coverage.__file__).parents[1]), names=NAMES, values=values, left=LEFT)


MEASURED = line() if "COVERAGE_PROCESS_CONFIG" in os.environ else ""
"""Stands before the first statement of code that a test runs; empty but under `make coverage`."""
