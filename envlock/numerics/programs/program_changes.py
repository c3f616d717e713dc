"""What has changed between two programs that were seen: the instructions, and the lines that they come from. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from envlock.numerics.programs.hlo_text import Instruction
from envlock.numerics.programs.parts import Part
from envlock.runtime.report import count

SHOWN = 4
INSTALLED = "-packages/"
"""A part of the path of a library's file."""
_NUMBER = re.compile(r"[%@]\d+")
_XLA = re.compile(r"= (?:\(.*?\)|\S+) ([a-z][a-z0-9-]*)\(")
_GRAPH = re.compile(r"^% = (\S+)")
_EAGER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Changed:
    """How a part of a program differs from what it was.

    Attributes:
        name: of the part.
        gone, new: how often each instruction is only in the first and only in the second.
        lines: `file:line` of those, as far as XLA says it; the operation instead, where the line is one of a library.
    """

    name: str
    gone: tuple[tuple[str, int], ...]
    new: tuple[tuple[str, int], ...]
    lines: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as a phrase."""
        sides = []
        for word, side in (("gone", self.gone), ("new", self.new)):
            if side:
                sides.append(f"{word} {_join([f'{number} {kind}' for kind, number in side])}")
        text = f"{self.name}: {'; '.join(sides)}"
        if not sides:
            text = f"{self.name}: the same instructions, connected otherwise or in another order"
        if self.lines:
            text += f", from {_join(self.lines)}"
        return text


def find_changes(a: Part, b: Part) -> Changed:
    """Return how a part differs; names of values are not compared, because one instruction moves all after it."""
    before, after = Counter(_strip_lines(a)), Counter(_strip_lines(b))
    gone, new = before - after, after - before
    lines: dict[str, None] = {}
    for part, texts in ((a, gone), (b, new)):
        for module in part.modules:
            for instruction in module.instructions:
                origin = _find_origin(instruction)
                if origin is not None and _strip(instruction.text) in texts:
                    lines[origin] = None
    return Changed(a.name, _count_kinds(gone), _count_kinds(new), tuple(lines))


def _find_origin(instruction: Instruction) -> str | None:
    """Return where an instruction comes from: a line of the user's code, or an operation of TensorFlow."""
    if instruction.file is not None and INSTALLED not in instruction.file:
        return f"{instruction.file}:{instruction.line}"
    return instruction.operation


def _strip_lines(part: Part) -> Iterable[str]:
    for text in part.lines:
        yield from map(_strip, text.split("\n"))


def _strip(text: str) -> str:
    return _NUMBER.sub("%", text)


def _count_kinds(lines: Counter[str]) -> tuple[tuple[str, int], ...]:
    kinds: Counter[str] = Counter()
    for line, number in lines.items():
        kinds[_name_kind(line)] += number
    return tuple(sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0])))


def _name_kind(line: str) -> str:
    """Return the kind of an instruction, a node or an operation; `other` for the frame around them."""
    for pattern in (_XLA, _GRAPH):
        found = pattern.search(line)
        if found is not None:
            return found[1]
    if line.startswith("["):
        found = _EAGER.search(line)
        if found is not None:
            return found[0]
    return "other"


def _join(texts: Iterable[str]) -> str:
    """Return the first of these, and the number of the others."""
    listed = list(texts)
    shown = ", ".join(listed[:SHOWN])
    if len(listed) > SHOWN:
        shown += f" and {count(len(listed) - SHOWN, 'other')}"
    return shown
