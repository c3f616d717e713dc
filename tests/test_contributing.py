"""The page for newcomers: its table of folders is the tree. Its paths and links are looked at in test_documentation."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))
from tour import LINK, number_links  # noqa: E402

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
    # Tables and excerpts, to be looked up.
    for page in ("tour.md", "attacks.md", "linter.md"):
        del pages[page]
    assert {name: lines for name, lines in pages.items() if lines >= 60} == {}


def test_the_tour_has_five_short_walks_of_lines_that_are_known() -> None:
    title, *walks = re.split(r"^## ", (PAGES / "tour.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert title.startswith("# Tour\n")
    assert len(walks) == 5
    assert {walk.splitlines()[0]: len(walk.splitlines()) for walk in walks if len(walk.splitlines()) > 40} == {}
    steps = [line for walk in walks for line in walk.splitlines() if re.match(r"\d+\. ", line)]
    assert [step for step in steps if LINK.search(step) is None] == []


def test_a_link_of_the_tour_follows_its_function(tmp_path: Path) -> None:
    (tmp_path / "envlock").mkdir()
    file = tmp_path / "envlock/a.py"
    page = "1. `run` [goes](../../envlock/a.py#L7), then `TABLE` [is](../../envlock/a.py#TABLE) read.\n"
    file.write_text("import os\n\nTABLE: int = 1\n\n\ndef run():\n    pass\n")
    numbered = "1. `run` [goes](../../envlock/a.py#L6), then `TABLE` [is](../../envlock/a.py#L3) read.\n"
    assert number_links(page, tmp_path) == numbered
    file.write_text("TABLE = 1\n")
    with pytest.raises(ValueError, match=r"^docs/contributing/tour\.md: envlock/a\.py defines no run$"):
        number_links(page, tmp_path)


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) < 80
