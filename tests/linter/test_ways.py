"""A source is found however it is written: 40 ways times 10 sources."""

from __future__ import annotations

import pytest

from envlock.linter.files import parse
from envlock.linter.linter import Settings, check
from tests.linter.ways import SOURCES, WAYS, write_program


def is_found(way: str, source: str) -> bool:
    """Return whether the rule of a source finds it."""
    findings = check([parse("x.py", write_program(way, source))], Settings("2.21.0"))
    return SOURCES[source].rule in {finding.rule for finding in findings}


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_is_found_in_every_way(source: str) -> None:
    assert len(WAYS) == 40
    assert [way for way in WAYS if not is_found(way, source)] == []
