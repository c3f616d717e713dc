"""Build the site: `python tools/site_pages.py`.

A page of the repository links to files beside it, as GitHub follows them. A site has only pages, so each is written
into .site/pages with its links rewritten: to the page of the site, or to the file at the address of the repository, or,
where there is no address yet, to nothing. The codes of findings, which the repository has on two pages, have a page each
on the site: who searches for a code finds its page.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from build_metadata import ABSOLUTE, LINK, REPOSITORY

ROOT = Path(__file__).resolve().parents[1]

OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    ".github/CONTRIBUTING.md": "contributing/index.md",
}
"""The pages that are not in docs, and where they are on the site."""

CODE_OR_LINK = re.compile(
    rf"(?P<code>^ *```.*?^ *```$|`[^`\n]+`)|{LINK.pattern}", re.MULTILINE | re.DOTALL
)

CODES = {"docs/reference/lint.md": "##"}
"""The pages with a section for each code, and the heading of such a section."""

COMMENT = re.compile(r"^<!-- .* -->\n", re.MULTILINE)
"""What generates a page, and what its test runs: nothing that a reader of the site needs."""


def list_pages(root: Path) -> dict[str, str]:
    """Return every file of the site by its path in the repository, with its path on the site."""
    found = sorted([*root.glob("docs/**/*.md"), *root.glob("docs/**/*.svg")])
    inside = {path.relative_to(root).as_posix() for path in found}
    return {**OUTSIDE, **{path: path.removeprefix("docs/") for path in inside}}


def move_links(text: str, source: str, pages: dict[str, str], repository: str) -> str:
    """Return a page with links for its place on the site."""

    def replace(found: re.Match[str]) -> str:
        target = found["target"]
        if found["code"] or ABSOLUTE.match(target):
            return found[0]
        path, _, anchor = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(source), path))  # noqa: PTH118, PTH120 (no file is asked)
        text = f"{found['picture']}[{found['text']}]"
        if file in pages:
            place = os.path.relpath(pages[file], os.path.dirname(pages[source]) or ".")  # noqa: PTH120
            return f"{text}({place}{'#' + anchor if anchor else ''})"
        if repository:
            return f"{text}({repository}/blob/main/{file}{'#' + anchor if anchor else ''})"
        return found["text"]

    return CODE_OR_LINK.sub(replace, text)


def split_codes(text: str, heading: str) -> tuple[str, dict[str, str]]:
    """Return the overview of a page of codes, which keeps its headings for links, and the page of each code by its name."""
    section = re.compile(
        # Up to the next heading: a line that begins with one # can be a comment of an example.
        rf"^{heading} (?P<code>[A-Za-z][\w-]*)\n\n(?P<title>[^\n]+)\n(?P<rest>.*?)(?=^###? |\Z)",
        re.MULTILINE | re.DOTALL,
    )
    pages = {}
    for found in section.finditer(text):
        code, title, rest = found["code"], found["title"], found["rest"].rstrip()
        name = code.lower()
        rest = rest or "\nWhy and fix depend on what is found: each finding says it."
        pages[name] = f"# {code}\n\n{title}\n{rest}\n\n`envlock explain {code}` prints this page.\n"

    def shorten(found: re.Match[str]) -> str:
        code = found["code"]
        return f"{heading} {code}\n\n{found['title']} [Why, and what to do](codes/{code.lower()}.md)\n\n"

    return section.sub(shorten, text), pages


def write_pages(root: Path, target: Path, repository: str = REPOSITORY) -> None:
    """Write all pages of the site into a folder, which is emptied first."""
    shutil.rmtree(target, ignore_errors=True)
    pages = list_pages(root)
    for source, place in pages.items():
        file = target / place
        file.parent.mkdir(parents=True, exist_ok=True)
        if source.endswith(".md"):
            text = COMMENT.sub("", (root / source).read_text(encoding="utf-8"))
            text = move_links(text, source, pages, repository)
            if source in CODES:
                text, codes = split_codes(text, CODES[source])
                (file.parent / "codes").mkdir(exist_ok=True)
                for name, page in codes.items():
                    (file.parent / f"codes/{name}.md").write_text(page, encoding="utf-8")
            file.write_text(text, encoding="utf-8")
        else:
            shutil.copyfile(root / source, file)


def build_site(folder: Path) -> subprocess.CompletedProcess[str]:
    """Write the pages into a folder that has mkdocs.yml, and build them."""
    write_pages(ROOT, folder / ".site/pages")
    return run_zensical(folder)


def run_zensical(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the pages of a folder; what Zensical says of a wrong link or anchor makes its exit code 1."""
    zensical = Path(sys.executable).with_name("zensical")
    command = [str(zensical), "build", "--strict", "--clean", "--config-file", "mkdocs.yml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    done = build_site(ROOT)
    print(done.stdout, done.stderr, sep="", end="")
    sys.exit(done.returncode)
