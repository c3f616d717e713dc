"""Compare a text with its golden file; with ENVLOCK_TEST_WRITE_GOLDEN set, write the file: read what changed in it."""

from __future__ import annotations

import os
from difflib import unified_diff
from pathlib import Path

MOST = 24
"""Rows of the difference that a failure shows."""


def assert_as_golden(found: str, file: Path) -> None:
    """Fail with the rows in which a text differs from its golden file, with those around them."""
    if os.environ.get("ENVLOCK_TEST_WRITE_GOLDEN"):
        file.write_text(found, encoding="utf-8")
    golden = file.read_text(encoding="utf-8")
    rows = [*unified_diff(golden.splitlines(True), found.splitlines(True), "golden", "found", n=1)]
    shown = "".join(f"{row!r}\n" for row in rows[:MOST])
    assert found == golden, f"{file.name} differs in {len(rows)} rows:\n{shown}"
