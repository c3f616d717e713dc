"""The page for newcomers: its table of folders is the tree. Its paths and links are looked at in test_documentation."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
PAGES = ROOT / "docs" / "contributing"
LINK = re.compile(r"`(?P<name>\w+)` \[\w+\]\([./]+(?P<path>envlock/[\w/]+\.py)\)")
"""A name in backquotes, and a word that links to its file."""


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


def test_the_tour_has_five_short_walks_along_names_that_exist() -> None:
    title, *walks = re.split(r"^## ", (PAGES / "tour.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert title.startswith("# Tour\n")
    assert len(walks) == 5
    assert {walk.splitlines()[0]: len(walk.splitlines()) for walk in walks if len(walk.splitlines()) > 40} == {}
    steps = [line for walk in walks for line in walk.splitlines() if re.match(r"\d+\. ", line)]
    links = [LINK.search(step) for step in steps]
    assert [step for step, link in zip(steps, links, strict=True) if link is None] == []
    assert [link[0] for link in links if link is not None and not defines(ROOT / link["path"], link["name"])] == []


def defines(file: Path, name: str) -> bool:
    """Return whether a module has a function, a class or a value of that name at its top."""
    return re.search(rf"^((async )?def |class )?{name}\b", file.read_text(encoding="utf-8"), re.MULTILINE) is not None


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) < 80
