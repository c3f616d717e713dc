"""docs/reference/remedies.md: what envlock prints that somebody should do, and what a test
has done.
"""

from __future__ import annotations

from collections import Counter

from tests.remedies.rows import (
    UNSAID,
    Remedy,
    list_hints,
    load_elsewhere,
    load_hints,
    load_remedies,
)

HEAD = """\
<!-- written by tools/generate.py from tests/remedies/remedies.toml -->
# Was the remedy right? Each line, obeyed

For each remedy that is obeyed, a test makes the state, reads the line below the verdict, does what it says (a command, a
variable with its value, or a sentence) and asks envlock again. The answer has to be green, or another finding than before.
What a verdict is worth is counted on [the page of the oracle](../concepts/oracle.md).

"""
TITLES = {
    "doctor": "Rules of `envlock doctor`",
    "fact": "Facts of a lockfile",
    "file": "Files, by `envlock verify --deep`",
    "diverge": "What makes runs differ, by `envlock diverge`",
    "repeat": "The next step, by `envlock repeat`",
}


def page() -> str:
    """Return the page: the count, what is for a person, and what cannot be changed here."""
    return f"{HEAD}{_count()}{_for_a_person()}{_hints()}{_elsewhere()}"


def _count() -> str:
    lines = [
        "| remedies | how many | obeyed | green | another finding | for a person |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for of, title in TITLES.items():
        lines.append(_count_row(title, [row for row in load_remedies() if row.of == of]))
    lines.append(_count_row("**all**", load_remedies()))
    return (
        "\n".join(lines) + "\n\n"
        "Another test parses each command of envlock in any text of the package.\n"
    )


def _count_row(title: str, rows: list[Remedy]) -> str:
    kinds, ends = Counter(row.kind for row in rows), Counter(row.outcome for row in rows)
    obeyed = ends["green"] + ends["another"]
    cells = [
        title,
        len(rows),
        obeyed,
        ends["green"],
        ends["another"],
        kinds["person"],
    ]
    return f"| {' | '.join(map(str, cells))} |"


def _for_a_person() -> str:
    rows = [f"| `{row.name}` | {row.reason} |\n" for row in load_remedies() if row.reason]
    return f"\n| for a person | why |\n|---|---|\n{''.join(rows)}"


def _hints() -> str:
    files, said = list_hints(), load_hints()
    groups = said.group(files)
    del groups[UNSAID]
    return (
        "\n## Hints of errors\n\n"
        f"{len(files)} files of the package raise errors with a hint, at {sum(map(len, files.values()))} places. Of "
        f"{len(said.obeyed)} files, `test_hints.py` makes at least one error and obeys its hint; the hints of "
        f"{sum(map(len, groups.values()))} are mostly for a person.\n"
    )


def _elsewhere() -> str:
    patterns: dict[str, list[str]] = {}
    for pattern, reason in load_elsewhere().items():
        patterns.setdefault(reason, []).append(f"`{pattern}`")
    rows = [f"| {reason} | {', '.join(group)} |\n" for reason, group in patterns.items()]
    return "\n## Facts that were not changed\n\n| needs | facts |\n|---|---|\n" + "".join(rows)
