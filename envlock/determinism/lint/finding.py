"""What the linter says: a finding, and the rule it belongs to."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Hit:
    """What a rule found at a node; severity, fix and source are the rule's own where they are None.

    It counts where the programs that the file is part of do all of `needs` and nothing of `unless` (words of
    `program.py`, such as `switch`): only when every file was read is that known.
    """

    node: ast.AST
    message: str
    severity: Severity | None = None
    fix: str | None = None
    source: str | None = None
    needs: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()


@dataclass(frozen=True, order=True)
class Finding:
    """One place in the code.

    Attributes:
        path, line, column: where, as editors count (the first line and column are 1); `end_column` is behind it.
        rule: such as ENV101.
        message: one sentence: what is there and what it does.
        fix: one sentence: what to do about it.
        source: where that is known from.
        text: the line of the code.
    """

    path: str
    line: int
    column: int
    rule: str
    severity: Severity
    message: str
    fix: str
    source: str
    text: str = ""
    end_line: int = 0
    end_column: int = 0
