"""Each command of envlock that a text of the package names can be typed: it exists, with these options, and is whole."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from tests.test_documentation import find_option_faults

ROOT = Path(__file__).resolve().parents[2]
QUOTED = re.compile(r"`envlock ([^`]+)`")
NAMED = 1
"""A command that is named by its name alone is named, not printed to be typed."""
NEEDED = {"ignore": 1, "upgrade": 1, "repeat": 0}
"""How many arguments a command has to have."""


def list_commands() -> Iterator[tuple[str, str]]:
    """Yield where a command is named, and its words."""
    for file in sorted((ROOT / "envlock").rglob("*.toml")):
        yield from _find(file, file.read_text(encoding="utf-8"))
    for file in sorted((ROOT / "envlock").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from _find(file, node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [each.value if isinstance(each, ast.Constant) else "VALUE" for each in node.values]
                yield from _find(file, "".join(map(str, parts)))


def _find(file: Path, text: str) -> Iterator[tuple[str, str]]:
    for match in QUOTED.finditer(text):
        yield file.relative_to(ROOT).as_posix(), " ".join(match[1].split())


def list_faults(words: list[str]) -> list[str]:
    """Return why words after `envlock` cannot be typed; nothing if they can."""
    faults = list(find_option_faults(list(words)))
    rest = [word for word in words if not word.startswith("-")]
    needed = NEEDED.get(words[0], 0)
    if len(words) > NAMED and not faults and len(rest) <= needed and not {"--", "--help"} & set(words):
        faults.append("an argument is missing")
    return faults


def test_every_command_that_is_named_can_be_typed() -> None:
    seen = set(list_commands())
    assert len(seen) > 150
    faults = {}
    for file, text in sorted(seen):
        # A piece of shell code is no single command.
        if "$" in text or "'" in text or text.startswith("VALUE"):
            continue
        found = list_faults(shlex.split(text.replace("...", "")))
        if found:
            faults[file, text] = found
    assert faults == {}


def test_what_cannot_be_typed_is_found() -> None:
    assert list_faults(["verify", "--nothing"]) == ["there is no option --nothing"]
    assert list_faults(["verfy"]) == ["there is no command verfy"]
    assert list_faults(["ignore", "--reason=x"]) == ["an argument is missing"]
    assert list_faults(["ignore", "six", "--reason=x"]) == []
