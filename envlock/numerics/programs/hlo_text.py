"""The text of a module that XLA has compiled, without what does not belong to the program. Pure.

Source of the syntax: https://openxla.org/xla/operation_semantics and `HloModule::ToString` in openxla/xla.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
"""Sections that only say where an instruction comes from, each up to an empty line."""
_DROPPED = ("metadata", "frontend_attributes")
_CONFIG = "backend_config"
_NAME = re.compile(r"%[A-Za-z_][A-Za-z0-9_.\-]*")
_COMMENT = re.compile(r"/\*.*?\*/")
_HEAD = re.compile(r"^(ENTRY )?(%[^\s(]+) \(.*\) -> (.*) \{(.*)$")
_LINES = re.compile(r'source_file="([^"]*)"[^}]*?source_line=(\d+)')
_OPERATION = re.compile(r'op_name="([^"]*)"')


@dataclass(frozen=True)
class Instruction:
    """An instruction of a module: its canonical text, and where it comes from, if XLA says so."""

    text: str
    operation: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Module:
    """A compiled module: its canonical lines, and its instructions in their order."""

    lines: tuple[str, ...]
    instructions: tuple[Instruction, ...]

    @property
    def text(self) -> str:
        """The canonical text."""
        return "\n".join(self.lines)


def parse_module(text: str) -> Module:
    """Return a module without its name, metadata and comments, with names of its own for all instructions.

    XLA derives names from those of TensorFlow's operations, and prints the settings of a fusion in any order: neither
    changes what is computed.
    """
    numbers: dict[str, int] = {}
    lines: list[str] = []
    instructions: list[Instruction] = []
    in_table = False
    for raw in text.splitlines():
        stripped = raw.strip()
        if stripped in TABLES:
            in_table = True
        if not stripped:
            in_table = False
            continue
        if in_table:
            continue
        line = _clean_line(stripped)
        head = _HEAD.match(line)
        if line.startswith("HloModule "):
            _, comma, rest = line.partition(", ")
            line = f"HloModule{comma}{rest}"
        elif head is not None:
            # Its parameters are instructions of its body, too, with their types.
            line = f"{head[1] or ''}{head[2]} -> {head[3]} {{{head[4]}"
        line = _NAME.sub(lambda found: _number_name(found[0], numbers), line)
        lines.append(line)
        if " = " in line:
            instructions.append(_make_instruction(line, stripped))
    return Module(tuple(lines), tuple(instructions))


def _number_name(name: str, numbers: dict[str, int]) -> str:
    return f"%{numbers.setdefault(name, len(numbers))}"


def _make_instruction(line: str, raw: str) -> Instruction:
    place = _LINES.search(raw)
    operation = _OPERATION.search(raw)
    name = operation[1] if operation is not None else None
    if place is None:
        return Instruction(line, name)
    return Instruction(line, name, place[1], int(place[2]))


def _clean_line(line: str) -> str:
    """Return a line without comments and metadata, and with the settings of the backend in one order."""
    line = _COMMENT.sub("", line)
    for name in _DROPPED:
        line = _replace_value(line, name, None)
    return _replace_value(line, _CONFIG, _sort_config)


def _replace_value(line: str, name: str, change: object) -> str:
    """Return a line without the attribute `, name={...}`, or with its value changed."""
    start = line.find(f", {name}=")
    if start < 0:
        return line
    begin = start + len(f", {name}=")
    end = _find_end(line, begin)
    if not callable(change):
        return line[:start] + line[end:]
    return line[:begin] + str(change(line[begin:end])) + line[end:]


def _find_end(line: str, begin: int) -> int:
    """Return where a value ends that is in braces or in quotation marks."""
    depth = 0
    in_text = False
    at = begin
    while at < len(line):
        char = line[at]
        if in_text:
            if char == "\\":
                at += 1
            elif char == '"':
                in_text = False
                if depth == 0:
                    return at + 1
        elif char == '"':
            in_text = True
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return len(line)


def _sort_config(value: str) -> str:
    """Return settings in one order; a value that is not JSON stays as it is."""
    try:
        found = json.loads(value)
        if isinstance(found, str):  # older printers quote it
            found = json.loads(found)
    except ValueError:
        return value
    return json.dumps(found, sort_keys=True)
