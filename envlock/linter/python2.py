"""Python 2 translated to Python 3, line by line, as much of TensorFlow 1's code ran on Python 2.

Translated are statements of `print` and `exec`, `except A, e` and `raise A, b`, and indentation by
tabs. A file with other differences cannot be read.
https://docs.python.org/3/howto/pyporting.html
"""

from __future__ import annotations

import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO

OPEN, CLOSE = ("(", "[", "{"), (")", "]", "}")
ENDS = (tokenize.NEWLINE, tokenize.COMMENT, tokenize.ENDMARKER)
NO_STATEMENT = ("(", "=", ".", ",", ")")
"""What follows `print` and `exec` where they are names, or are called as Python 3 calls them."""


@dataclass(frozen=True)
class Edit:
    """New text in place of some columns of a line."""

    line: int
    start: int
    end: int
    text: str


def translate(text: str) -> str | None:
    """Return Python 2 as Python 3 with the same lines; None where it has no tokens."""
    lines = [_expand_tabs(line) for line in text.splitlines(keepends=True)]
    edits: list[Edit] = []
    try:
        for statement in _split_statements("".join(lines)):
            edits += _edit_statement(statement)
    except (tokenize.TokenError, SyntaxError):
        return None
    # From the end of each line, so that the columns before it stay right.
    for edit in sorted(edits, key=lambda each: (each.line, each.start), reverse=True):
        line = lines[edit.line - 1]
        lines[edit.line - 1] = line[: edit.start] + edit.text + line[edit.end :]
    return "".join(lines)


def _expand_tabs(line: str) -> str:
    """Return a line with the indentation as Python 2 counts it, a tab to every eighth column."""
    code = line.lstrip(" \t")
    return line[: len(line) - len(code)].expandtabs(8) + code


def _split_statements(text: str) -> Iterator[list[tokenize.TokenInfo]]:
    """Yield the tokens of each simple statement, and of each head of a compound one."""
    statement: list[tokenize.TokenInfo] = []
    depth = 0
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.string in OPEN:
            depth += 1
        elif token.string in CLOSE:
            depth -= 1
        at_end = token.type in ENDS or (depth == 0 and token.string in (";", ":"))
        if token.type in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            continue
        if at_end and depth == 0:
            if statement:
                yield [*statement, token]
            statement = []
        elif token.type != tokenize.COMMENT:
            statement.append(token)


def _edit_statement(tokens: list[tokenize.TokenInfo]) -> Iterator[Edit]:
    """Yield what changes in one statement; its last token is what ends it."""
    word, following = tokens[0], tokens[1]
    if len(tokens) < 3:
        return
    if word.string in ("print", "exec") and following.string not in NO_STATEMENT:
        if following.string == ">>":
            # `print >>stream, x`: the stream becomes the first argument.
            yield Edit(following.start[0], following.start[1], following.end[1], "")
        yield Edit(word.end[0], word.end[1], word.end[1] + (following.start[1] > word.end[1]), "(")
        last = tokens[-2]
        yield Edit(last.end[0], last.end[1], last.end[1], ")")
    elif word.string in ("except", "raise"):
        comma = _find_comma(tokens)
        if comma is None:
            return
        if word.string == "except":
            yield Edit(comma.start[0], comma.start[1], comma.end[1], " as")
        else:
            last = tokens[-2]
            yield Edit(comma.start[0], comma.start[1], comma.end[1], "(")
            yield Edit(last.end[0], last.end[1], last.end[1], ")")


def _find_comma(tokens: list[tokenize.TokenInfo]) -> tokenize.TokenInfo | None:
    """Return the first comma of a statement that stands in no brackets."""
    depth = 0
    for token in tokens:
        if token.string in OPEN:
            depth += 1
        elif token.string in CLOSE:
            depth -= 1
        elif token.string == "," and depth == 0:
            return token
    return None
