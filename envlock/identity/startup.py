"""What Python reads at every start: .pth files, `sitecustomize` and `usercustomize`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

CUSTOMIZE = ("sitecustomize", "usercustomize")
PTH_LIMIT = 1 << 20  # bytes of a .pth file that are read
SHOWN = 80  # characters of a line


class Pth(NamedTuple):
    """What the lines of a .pth file do: code that they run, folders that they add."""

    code: list[str]
    folders: list[str]

    @property
    def what(self) -> str:
        """What it does, for people; empty when it does nothing."""
        parts = []
        if self.code:
            parts.append(f"runs {_shown(self.code)}")
        if self.folders:
            parts.append(f"adds {_shown(self.folders)} to the import path")
        return " and ".join(parts)


def read_pth(text: str) -> Pth:
    """Return what `site` does with the lines of a .pth file.

    Source: https://docs.python.org/3/library/site.html (and `addpackage` in Lib/site.py)
    """
    lines = [line.rstrip() for line in text.split("\n")]
    active = [line for line in lines if line and not line.startswith("#")]
    code = [line for line in active if line.startswith(("import ", "import\t"))]
    return Pth(code, [line for line in active if line not in code])


def fits(pth: Pth, patterns: Sequence[str]) -> bool:
    """Return whether each line that does something is one that the known tool writes."""
    lines = [*pth.code, *pth.folders]
    return all(any(re.fullmatch(pattern, line) for pattern in patterns) for line in lines)


def customizes(name: str) -> bool:
    """Return whether `import sitecustomize` or `import usercustomize` would take a file or folder of this name."""
    stem, _, suffix = name.partition(".")
    return stem in CUSTOMIZE and (suffix in ("", "py", "pyc", "so") or suffix.endswith(".so"))


def _shown(lines: Iterable[str]) -> str:
    first, *more = lines
    cut = first if len(first) <= SHOWN else first[: SHOWN - 3] + "..."
    return f"`{cut}`" + (f" and {len(more)} more" if more else "")
