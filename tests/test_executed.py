"""Blocks of the pages that somebody may copy: which test runs each, or what it needs that no lane of the pages has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.test_documentation import FENCE, ROOT
from tests.test_transcripts import FROM_INDEX, PAGES

LANGUAGES = ("bash", "console", "python", "sh")
"""Fences with these are programs. Other fences are files and what programs print."""

INDENTED = re.compile(r"(?:(?<=\n\n)|\A) {4}\S[^\n]*\n(?: {4}[^\n]*\n)*")
COMMAND = re.compile(r"(?:\$ )?(?:\w+=\S* )*(?P<program>[a-z][\w./-]*)(?: |$)", re.MULTILINE)

PROGRAMS = {
    "apptainer", "buildah", "cd", "cosign", "conda", "docker", "echo", "envlock", "eval", "git", "make", "mpirun", "pip",
    "pipx", "podman", "pytest", "python", "sbatch", "srun", "torchrun", "uv",
}  # fmt: skip
"""What the commands of an indented block begin with; others are text."""

ELSEWHERE = {
    "README.md": r"envlock capture|make demo",  # tests/test_picture.py, .ci/run
    "docs/guides/fleet/": r"",  # tests/fleet/test_pages.py
    "docs/guides/workers.md": r"^from dask",  # the same
    "docs/guides/integrations.md": r"^(?:import|from|\$) ",  # tests/integrations
    "docs/guides/signing.md": r"",  # tests/integrations/test_signing.py
    "docs/guides/vendor.md": r"envlock (?:capture|export)",  # tests/packages/test_vendor_guide.py
    "docs/guides/container.md": r"envlock build|docker run",  # tests/image/test_guides.py
    "docs/guides/extend.md": r"docker|envlock",  # tests/image/test_local_base.py
    "docs/guides/deploy.md": r"docker (?!run)|envlock",  # the same, and tests/image/test_push.py
    "docs/guides/ngc-ended.md": r"envlock (?:images|build)",  # tests/image/test_guides.py
    "docs/guides/base-image.md": r"envlock images",  # the same
}
"""Beginnings of pages, with what their blocks have that another test runs."""

NEEDS = {
    "conda": r"conda activate",
    "pipx": r"pipx install",
    "a repository of somebody else": r"git clone",
    "a registry": r"docker login|docker push|--push\b|nvcr\.io|ghcr\.io|export --format compose",
    "a container engine": r"docker run|docker load|apptainer|envlock build(?!.*--dry-run)",
    "a launcher of jobs": r"mpirun|srun|sbatch|torchrun",
    "minutes, and an environment of this checkout": r"^\s*(?:\$ )?make ",
    "the programs of the benchmarks": r"python benchmarks/",
}
"""What a block needs that no lane of the pages has, with the pattern of such a block."""

LISTED = (
    "README",
    *(f"docs/guides/{name}" for name in ("files", "share", "determinism", "operation", "repeat")),
    "docs/reference/repeat",
)
"""Pages whose blocks without output tests/test_listed_commands.py runs, as far as they need nothing of NEEDS."""


def list_blocks(page: Path) -> Iterator[str]:
    """Yield the blocks of a page that are programs or commands."""
    text = page.read_text(encoding="utf-8")
    for language, block in FENCE.findall(text):
        if language in LANGUAGES or re.search(r"^\s*\$ ", block, re.MULTILINE):
            yield block
    for block in INDENTED.findall(FENCE.sub("", text)):
        first = COMMAND.match(block.strip())
        if first is not None and first["program"] in PROGRAMS:
            yield block


def is_listed(block: str) -> bool:
    """Return whether a block is commands without their output, or a program that begins by importing envlock."""
    return INDENTED.fullmatch(block) is not None or block.startswith("import envlock\n")


def list_listed(name: str) -> list[str]:
    """Return the commands and programs of a page that tests/test_listed_commands.py runs."""
    page = ROOT / f"{name}.md"
    found = []
    for block in list_blocks(page):
        if name_runner(page, block) != "tests/test_listed_commands.py":
            continue
        if block.startswith("import envlock\n"):
            found.append(f"python - <<'END'\n{block}END")
        else:
            found += [line.strip() for line in block.splitlines() if line.strip()]
    return found


def name_runner(page: Path, block: str) -> str:
    """Return who runs a block, or what it needs; nothing if no test runs it."""
    path = page.relative_to(ROOT).as_posix()
    if page in PAGES or (page in FROM_INDEX and "$ " in block):
        return "tests/test_transcripts.py"
    if page.read_text(encoding="utf-8").startswith("<!-- written by tools/generate.py"):
        return "tools/generate.py --check"
    for beginning, pattern in ELSEWHERE.items():
        if path.startswith(beginning) and re.search(pattern, block, re.MULTILINE):
            return "another test"
    for what, pattern in NEEDS.items():
        if re.search(pattern, block, re.MULTILINE):
            return f"needs {what}"
    if path.removesuffix(".md") in LISTED and is_listed(block):
        return "tests/test_listed_commands.py"
    return ""


def test_each_page_that_is_listed_has_commands() -> None:
    assert [name for name in LISTED if not list_listed(name)] == []


def test_a_test_runs_each_block_of_a_page_or_a_row_says_what_it_needs() -> None:
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    found = [(page, block) for page in pages for block in list_blocks(page)]
    assert len(found) > 150
    left = [f"{page.relative_to(ROOT)}:\n{block}" for page, block in found if not name_runner(page, block)]
    assert left == []
