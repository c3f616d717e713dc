"""Write what installs a release with its command line, every file by its hash, beside the wheel.

    python tools/wheel_requirements.py dist/NAME.whl

Users install it by `pip install --require-hashes -r NAME.requirements.txt`. requirements/cli.txt has the packages that the
command line needs; the release itself, whose hash is only known once it is built, comes first. Standard library only.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def render_requirements(wheel: Path, packages: str) -> str:
    """Return the lines for pip: the wheel by its version and hash, then the packages."""
    name, version = wheel.name.split("-")[:2]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    release = f"{name.replace('_', '-')}[cli]=={version} \\\n    --hash=sha256:{digest}\n"
    return f"{release}{packages}"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        path = Path(argument)
        release = "-".join(path.name.split("-")[:2])
        text = (ROOT / "requirements/cli.txt").read_text(encoding="utf-8")
        path.with_name(f"{release}.requirements.txt").write_text(
            render_requirements(path, text), encoding="utf-8"
        )
