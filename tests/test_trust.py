"""The page about trust: every limit that it promises is held by a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/concepts/trust.md").read_text(encoding="utf-8")
LIMITS, _, OPEN = PAGE.partition("## What envlock does not protect from")
CLAIMS = [
    " ".join(claim.split())
    for claim in re.split(r"^- ", re.sub(r"^#.*$", "\n", LIMITS, flags=re.MULTILINE), flags=re.MULTILINE)
]


@pytest.mark.parametrize("claim", CLAIMS[1:])
def test_a_promise_names_the_test_that_holds_it(claim: str) -> None:
    named = re.findall(r"`(tests/[a-z_/]+\.py)::(test_\w+)`", claim)
    assert named
    for file, test in named:
        assert f"\ndef {test}(" in (ROOT / file).read_text(encoding="utf-8")


def test_the_first_lines_about_security_say_whose_code_runs() -> None:
    first = (ROOT / "SECURITY.md").read_text(encoding="utf-8").split("\n\n")[1]
    assert first.startswith("**envlock runs `.venv/bin/python` of the folder that it is started in**")
    assert "belongs to another user is refused" in " ".join(first.split())


def test_each_clause_of_the_attacks_names_a_test_that_is_there() -> None:
    page = (ROOT / "docs/contributing/attacks.md").read_text(encoding="utf-8")
    table = page.partition("## Clause by clause")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| clause")]
    for row in rows:
        named = re.findall(r"`(tests/[a-z_/]+\.py)::(test_\w+)`", row)
        assert named, row
        for file, test in named:
            assert f"\ndef {test}(" in (ROOT / file).read_text(encoding="utf-8"), test
    assert len(rows) > 30


def test_there_are_promises_for_whoever_can_write_what_is_read() -> None:
    assert len(CLAIMS) > 30
    assert "::test_" not in OPEN
