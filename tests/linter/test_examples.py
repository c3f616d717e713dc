"""Every rule on examples: each file says in comments what is shown first where, and no more may be shown first.

`# expect: ENV203` stands on the line of the finding, `# expect-above:` below it, `# tf: 2.6.5` in the first line.
"""

from __future__ import annotations

import re
from pathlib import Path

from envlock.data.lint_tables import load_lint_rules
from envlock.linter.files import Unreadable, parse
from envlock.linter.linter import Settings, check

EXAMPLES = Path(__file__).parent / "examples"


def expected(file: Path) -> list[tuple[int, str]]:
    """Return what a file's comments announce."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        for above, rules in re.findall(r"# expect(-above)?: ([A-Z0-9, ]+)", line):
            found += [(number - bool(above), rule) for rule in rules.split(", ")]
    return sorted(found)


def found(file: Path) -> list[tuple[int | None, str]]:
    """Return what the linter shows first of a file, which lies in no folder of tests."""
    text = file.read_text(encoding="utf-8")
    version = re.match(r"# tf: (\S+)", text)
    try:
        module = parse(str(file.relative_to(EXAMPLES)), text)
    except Unreadable as error:
        return [(error.line, "ENV001")]
    findings = check([module], Settings(version[1] if version else "2.21.0"))
    return sorted((each.where.line, each.rule) for each in findings if not each.where.part)


def test_an_example_gives_what_it_says_and_nothing_else() -> None:
    files = sorted(EXAMPLES.rglob("*.py"))
    assert {str(file): found(file) for file in files} == {str(file): expected(file) for file in files}


def test_every_rule_has_examples_of_both_kinds_and_they_say_what_they_are() -> None:
    folders = sorted(folder.name for folder in EXAMPLES.iterdir())
    assert folders == list(load_lint_rules()), "each rule has a folder of examples: docs/contributing/rule.md"
    for folder in EXAMPLES.iterdir():
        kinds = {file: file.stem.partition("_")[0] for file in folder.iterdir()}
        assert set(kinds.values()) == {"bad", "good"}
        for file, kind in kinds.items():
            assert (folder.name in {rule for _, rule in expected(file)}) == (kind == "bad"), file
