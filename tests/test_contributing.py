"""The page for newcomers: its table of folders is the tree. Its paths and links are looked at in test_documentation."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
PAGES = ROOT / "docs" / "contributing"


def test_the_table_of_folders_is_the_tree() -> None:
    named = re.findall(r"^\| `(envlock/[^`]+)` \| ([^|]+) \|$", PAGE, re.MULTILINE)
    folders = {f"{path.parent.relative_to(ROOT).as_posix()}/" for path in (ROOT / "envlock").rglob("*.py")}
    wanted = sorted(folder for folder in folders if folder.count("/") == 2)
    assert sorted(folder for folder, _ in named) == wanted
    assert [folder for folder, sentence in named if not sentence.endswith(".") or len(sentence) > 120] == []


def test_every_page_is_linked_and_short() -> None:
    pages = {page.name: len(page.read_text(encoding="utf-8").splitlines()) for page in PAGES.glob("*.md")}
    assert [name for name in pages if f"(../docs/contributing/{name})" not in PAGE] == []
    assert {name: lines for name, lines in pages.items() if lines >= 60} == {}


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) < 80
