"""The programs of docs/guides/integrations.md, which the tests of each host run."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "integrations.md"


def program(heading: str) -> str:
    """Return the one Python block below a heading."""
    (section,) = re.findall(
        rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    (block,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return str(block)


def headings() -> list[str]:
    """Return every heading with a Python block."""
    return re.findall(r"^## (.*)\n(?:(?!^## )[^\n]*\n)*?```python$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
