"""Let coverage measure what another environment of this Python runs: `python tools/measured.py VENV on` or `off`.

The environment gets no package, but a file that its interpreter obeys at every start; see `make coverage`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("COVERAGE_PROCESS_START", "COVERAGE_FILE")
START = """\
import os, sys; sys.path.append({packages!r}); os.environ.update(zip({names!r}, {values!r})); import coverage; \
coverage.process_startup(); [os.environ.pop(name) for name in {names!r}]; sys.path.pop()
"""


def main(venv: Path, what: str) -> None:
    """Write or remove the file."""
    (packages,) = venv.glob("lib/python3.*/site-packages")
    file = packages / "a1_coverage.pth"
    file.unlink(missing_ok=True)
    if what == "on":
        values = (str(ROOT / "pyproject.toml"), str(ROOT / ".coverage" / "data"))
        own = str(Path(coverage.__file__).parents[1])
        file.write_text(START.format(packages=own, names=NAMES, values=values), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
