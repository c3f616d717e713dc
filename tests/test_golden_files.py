"""A golden file that does not match: the failure names the row and where it begins to differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden_files import MOST, assert_as_golden, list_differences

TABLE = "2.20.0 gpu: cuda ubuntu22.04\n    As locked: Python 3.11.\n2.21.0 gpu: cuda ubuntu24.04\n    As locked: all.\n"
DOCUMENT = '{\n "components": [\n  {\n   "name": "six",\n   "version": "1.16"\n  }\n ]\n}\n'


@pytest.mark.parametrize(
    ("golden", "old", "new", "expected"),
    [
        (TABLE, "3.11", "3.12", ["row 2, 2.20.0 gpu: cuda ubuntu22.04: golden {}, found {}"]),
        (TABLE, "ubuntu24", "debian", ["row 3: golden {}, found {}"]),
        (TABLE, "    As locked: all.\n", "", ["row 4, 2.21.0 gpu: cuda ubuntu24.04: gone: 'As locked: all.'"]),
        (TABLE, "2.21.0 gpu", "2.20.1 cpu: none\n2.21.0 gpu", ["row 3: new: '2.20.1 cpu: none'"]),
        (DOCUMENT, "1.16", "1.17", ['row 5, "components": [: golden {}, found {}']),
        (TABLE, "\n", "\r\n", ["the line ends differ"]),
        (TABLE, "x", "y", []),
    ],
)
def test_a_difference_names_its_row(golden: str, old: str, new: str, expected: list[str]) -> None:
    found = list_differences(golden.replace(old, new), golden)
    assert len(found) == len(expected)
    for line, pattern in zip(found, expected, strict=True):
        start, _, rest = pattern.partition("{}")
        assert line.startswith(start)
        assert not rest or (old in line and new in line)


def test_a_long_row_is_shown_where_it_differs(tmp_path: Path) -> None:
    row = "word " * 100
    (line,) = list_differences(f"{row}new\n", f"{row}old\n")
    assert line == f"row 1: golden {(row[-30:] + 'old')!r}, found {(row[-30:] + 'new')!r}"


def test_a_failure_lists_the_first_rows_and_counts_the_others(tmp_path: Path) -> None:
    file = tmp_path / "table.txt"
    file.write_text("".join(f"{number} a\n" for number in range(MOST + 3)))
    assert_as_golden(file.read_text(), file)
    with pytest.raises(
        AssertionError, match=r"^table\.txt differs:\nrow 1: golden '0 a', found '0 b'\n[^$]*and 3 more"
    ):
        assert_as_golden(file.read_text().replace("a", "b"), file)
