"""Let coverage measure what another environment of this Python runs: `python tools/measured.py VENV on` or `off`.

The environment gets no package, but a file that its interpreter obeys at every start; see `make coverage`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.measured import line


def main(venv: Path, what: str) -> None:
    """Write or remove the file."""
    (packages,) = venv.glob("lib/python3.*/site-packages")
    file = packages / "a1_coverage.pth"
    file.unlink(missing_ok=True)
    if what == "on":
        file.write_text(line() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
