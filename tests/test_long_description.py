"""What the page of a release shows: no link that leads nowhere, with an address of the repository and without one."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import tomllib

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))
from build_metadata import LINK, REPOSITORY, list_urls, read_version, render_description  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "https://example.org/team/envlock"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def list_targets(text: str) -> list[str]:
    return [link["target"] for link in LINK.finditer(text)]


def test_the_readme_has_relative_links_and_a_picture() -> None:
    relative = [target for target in list_targets(README) if not target.startswith(("https://", "#"))]
    assert "docs/picture.svg" in relative
    assert len(relative) > 40


@pytest.mark.parametrize("repository", ["", ADDRESS])
def test_no_link_of_the_page_is_relative(repository: str) -> None:
    text = render_description(README, repository, "1.2.3")
    assert [target for target in list_targets(text) if not target.startswith(("https://", "#"))] == []
    assert re.findall(r"\]\((?!https://|#)", text) == []


def test_links_lead_to_the_files_of_the_version() -> None:
    text = "![A](docs/a.svg)\n\n[B](docs/b.md#c), [D](https://d.example/), [E](#e)\n"
    assert render_description(text, ADDRESS, "1.2.3") == (
        f"![A]({ADDRESS}/raw/v1.2.3/docs/a.svg)\n\n"
        f"[B]({ADDRESS}/blob/v1.2.3/docs/b.md#c), [D](https://d.example/), [E](#e)\n"
    )
    assert render_description(text, "", "1.2.3") == "\n\nB, [D](https://d.example/), [E](#e)\n"


def test_the_links_of_the_project_are_made_of_one_address() -> None:
    assert list_urls("") == {}
    assert list_urls(ADDRESS) == {
        "Source": ADDRESS,
        "Documentation": f"{ADDRESS}/tree/main/docs",
        "Changelog": f"{ADDRESS}/blob/main/CHANGELOG.md",
        "Issues": f"{ADDRESS}/issues",
    }
    assert re.fullmatch(r"(https://[^/\s]+/\S+[^/\s])?", REPOSITORY)


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    from envlock import __version__

    assert read_version(ROOT) == __version__
    (tmp_path / "envlock/runtime").mkdir(parents=True)
    (tmp_path / "envlock/runtime/version.py").write_text("")
    with pytest.raises(ValueError, match=r"^envlock/runtime/version\.py has no line `__version__ = \.\.\.`$"):
        read_version(tmp_path)


def test_every_python_that_is_promised_has_a_classifier() -> None:
    versions = re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert versions == [f"3.{minor}" for minor in range(8, 15)]
    assert PROJECT["requires-python"] == ">=3.8"
