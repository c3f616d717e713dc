"""The site: every page is on it, each link leads somewhere, and nothing comes from outside."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.exhaustive import exhaustive

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))
from site_pages import OUTSIDE, build_site, list_pages, move_links, run_zensical, split_codes, write_pages  # noqa: E402

from envlock.diagnosis.codes import list_codes  # noqa: E402

NAVIGATION = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
ASSET = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\bsrc=["']?(https?:[^"'\s>]+)|<link[^>]*href=["']?(https?:[^"'\s>]+)"""
)

SEARCHED = {
    "TensorFlow different results on another machine": "guides/quick-start",
    "TensorFlow resume training from checkpoint different results": "guides/determinism",
    "NVIDIA TensorFlow container no release after 25.02": "guides/ngc-ended",
    "RTX 50 TensorFlow CUDA_ERROR_INVALID_PTX": "guides/ngc-ended",
    "pip install TensorFlow offline without a network": "guides/installation",
}
"""What somebody types into a search engine who does not know envlock, and the page that answers."""

LINTERS = ("envlock lint", "envlock.lint_dataset")
PAGES = {each.code.lower() for each in list_codes().values() if each.command in LINTERS}
"""The codes that have a page; `envlock explain` prints the others."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the site, built strictly."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    done = build_site(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_navigation_once() -> None:
    pages = [place for place in list_pages(ROOT).values() if place.endswith(".md")]
    assert sorted(NAVIGATION) == sorted(pages)


def test_links_lead_to_the_pages_of_the_site() -> None:
    pages = {**OUTSIDE, "docs/a.md": "a.md", "docs/b/c.md": "b/c.md"}
    text = "[x](../a.md#y) [`z`](../../README.md) `[n](o.md)` [code](../../envlock/a.py#L1) [e](https://e.example/)\n"
    moved = "[x](../a.md#y) [`z`](../index.md) `[n](o.md)` {} [e](https://e.example/)\n"
    assert move_links(text, "docs/b/c.md", pages, "") == moved.format("code")
    address = "https://host.example/envlock"
    linked = moved.format(f"[code]({address}/blob/main/envlock/a.py#L1)")
    assert move_links(text, "docs/b/c.md", pages, address) == linked
    assert move_links("```\n[n](o.md)\n```\n[p](#q)\n", "docs/a.md", pages, "") == "```\n[n](o.md)\n```\n[p](#q)\n"


def test_each_code_has_a_page_with_its_reason_and_its_remedy(tmp_path: Path) -> None:
    write_pages(ROOT, tmp_path / "pages")
    folder = tmp_path / "pages/reference/codes"
    assert {path.stem for path in folder.iterdir()} == PAGES
    without_remedy = []
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8")
        if not re.search("^Fix: |each finding says it", text, re.MULTILINE):
            without_remedy.append(path.name)
    assert without_remedy == []


@pytest.mark.parametrize("heading", ["##", "###"])
def test_an_overview_of_codes_keeps_its_headings_and_links_to_the_pages(heading: str) -> None:
    example = "```python\n# a comment\n```\n\nFix: z.\n\n"
    before = f"# All\n\n{heading} a-b\n\nTitle.\n\n{example}{heading} d\n\nOther.\n\n## `verify`\n"
    overview, pages = split_codes(before, heading)
    assert overview == (
        f"# All\n\n{heading} a-b\n\nTitle. [Why, and what to do](codes/a-b.md)\n\n"
        f"{heading} d\n\nOther. [Why, and what to do](codes/d.md)\n\n## `verify`\n"
    )
    assert pages == {
        "a-b": f"# a-b\n\nTitle.\n\n{example}`envlock explain a-b` prints this page.\n",
        "d": "# d\n\nOther.\n\nWhy and fix depend on what is found: each finding says it.\n\n"
        "`envlock explain d` prints this page.\n",
    }


@pytest.mark.parametrize(("sentence", "page"), SEARCHED.items())
def test_what_is_searched_for_is_on_the_page_that_answers(sentence: str, page: str) -> None:
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8").lower()
    assert [word for word in sentence.lower().split() if word not in text] == []


@exhaustive
@pytest.mark.slow
@pytest.mark.processes
def test_every_page_is_built_with_a_search_and_nothing_from_outside(folder: Path) -> None:
    site = folder / ".site/html"
    built = {path.relative_to(site).with_suffix(".md").as_posix() for path in site.rglob("*.html")}
    codes = {f"reference/codes/{name}.md" for name in PAGES}
    assert {*NAVIGATION, *codes} == built - {"404.md"}
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert ASSET.findall(text) == [], page
        assert "slate" in text, f"{page} has no dark mode"
    assert "INVALID_PTX" in (site / "search.json").read_text(encoding="utf-8")


@exhaustive
@pytest.mark.slow
@pytest.mark.processes
def test_mkdocs_builds_the_same_pages(folder: Path, tmp_path: Path) -> None:
    """With a theme of its own: the one that is named is a package that only mkdocs would need."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--theme", "mkdocs", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "guides/lock.html").is_file()


@exhaustive
@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("link", ["nowhere.md", "policies.md#nowhere"])
def test_a_broken_link_is_found(folder: Path, link: str) -> None:
    page = folder / ".site/pages/guides/agents.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(f"{text}\n[x]({link})\n", encoding="utf-8")
    done = run_zensical(folder)
    page.write_text(text, encoding="utf-8")
    assert done.returncode == 1
    assert "does not exist" in done.stdout + done.stderr
