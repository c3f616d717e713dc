"""The page: everything escaped, nothing fetched; and as a real browser shows it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from envlock.divergence.known_causes import Known
from envlock.reports.divergence_page import render_page
from envlock.runtime.finding_place import Where
from envlock.runtime.report import Finding
from tests.conftest import absent
from tests.divergence.reports import KNOWN, report

FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--virtual-time-budget=2000"),
]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "action", "srcset")]


def test_nothing_of_the_program_becomes_markup_and_nothing_is_fetched() -> None:
    text = render_page(report())
    parsed = _Tags()
    parsed.feed(text)
    assert parsed.tags & {"script", "b", "i", "img", "link", "iframe", "object"} == set()
    assert parsed.links == []
    assert "url(" not in text
    assert "\x1b" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "default-src 'none'" in text


def test_the_timeline_marks_the_cause_and_what_follows() -> None:
    rows = re.findall(r'<tr class="(\w+)"><td>(\d+)</td>', render_page(report()))
    assert rows == [("same", "22"), ("cause", "23"), ("carried", "24")]


def test_identical_runs_have_a_page_without_a_cause() -> None:
    text = render_page(report("identical", record=None, timeline=()))
    assert "<h2>Where</h2>" not in text
    assert 'class="ok"' in text


def test_identical_runs_name_a_pipeline_that_has_no_order() -> None:
    finding = Finding(
        "ENV503",
        "warning",
        Where(operation="map"),
        message="it has no order",
        why="Why.",
        fix="Leave it out.",
        source="",
    )
    text = render_page(report("identical", record=None, timeline=(), pipelines=(finding,)))
    assert "ENV503 it has no order; Leave it out." in text
    assert '<h1 class="ok">identical: ' in text


def test_pipelines_and_what_else_differs_have_their_lists() -> None:
    pipeline = Finding(
        "ENV501",
        "error",
        Where(operation="it", file="train.py", line=8),
        message="it has no seed",
        why="",
        fix="Seed.",
        source="",
    )
    text = render_page(report("data", pipelines=(pipeline,), notes=("<i>",)))
    assert "<h2>The pipeline</h2>\n<ul><li>ENV501 it has no seed (read at train.py:8); Seed.</li></ul>" in text
    other = "also an independent cause: Sum at train.py:30, step 1: 2 results"
    assert f"<h2>Other findings</h2>\n<ul><li>{other}</li></ul>" in text
    assert "<h2>Limits</h2>\n<ul><li>&lt;i&gt;</li></ul>" in text


@pytest.mark.parametrize("known", [KNOWN, None])
def test_why_remedy_and_limits_stand_before_all_evidence(known: Known | None) -> None:
    text = render_page(report("outside", known=known, notes=("it ran in one process",)))
    titles = ["Why", "Remedies", "Limits", "Where", "Comparisons", "Inputs", "Other findings", "Surrounding operations"]
    assert re.findall("<h2>(.*?)</h2>", text) == titles
    why = "it comes from Python or NumPy: an unseeded random generator, the time, files, or an order of names"
    assert f"<h2>Why</h2>\n<p>{why if known is None else known.why}</p>" in text


@pytest.fixture
def chromium() -> str:
    """Return a Chromium; CI's root has one installed for it."""
    found = shutil.which("chromium")
    if found is None and os.environ.get("CI") and os.geteuid() == 0:
        install = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]
        environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update"], env=environ, capture_output=True, timeout=300, check=False)
        subprocess.run(install, env=environ, capture_output=True, timeout=600, check=False)
        found = shutil.which("chromium")
    return found or absent("no chromium: apt-get install chromium")


@pytest.mark.slow
def test_a_real_browser_shows_it(chromium: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_page(report()), encoding="utf-8")
    command = [chromium, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,1000"]
    dump = subprocess.run([*command, "--dump-dom", file.as_uri()], capture_output=True, timeout=120, check=False)
    dom = _Tags()
    dom.feed(dump.stdout.decode("utf-8"))
    assert {"h1", "table", "pre"} <= dom.tags
    assert "script" not in dom.tags
    assert 'id="timeline"' in dump.stdout.decode("utf-8")
    picture = tmp_path / "report.png"
    subprocess.run([*command, f"--screenshot={picture}", file.as_uri()], capture_output=True, timeout=120, check=True)
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert picture.stat().st_size > 20_000  # a blank page of this size has 5 kB
