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
    # Not `splitlines`: a form feed, which old code has between functions, ends no line of Python.
    lines = [_expand_tabs(line) for line in StringIO(text)]
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
            yield _replace(following, "")
        yield Edit(word.end[0], word.end[1], word.end[1], "(")
        yield _close_after(tokens[-2])
        return
    comma = _find_comma(tokens)
    if comma is None:
        return
    if word.string == "raise":
        yield _replace(tokens[comma], "(")
        yield _close_after(tokens[-2])
    # Python 3.14 catches two classes without brackets (PEP 758); what is bound is in small letters.
    elif word.string == "except" and not tokens[comma + 1].string[0].isupper():
        yield _replace(tokens[comma], " as")


def _replace(token: tokenize.TokenInfo, text: str) -> Edit:
    return Edit(token.start[0], token.start[1], token.end[1], text)


def _close_after(token: tokenize.TokenInfo) -> Edit:
    return Edit(token.end[0], token.end[1], token.end[1], ")")


def _find_comma(tokens: list[tokenize.TokenInfo]) -> int | None:
    """Return the position of the first comma of a statement that stands in no brackets."""
    depth = 0
    for position, token in enumerate(tokens):
        if token.string in OPEN:
            depth += 1
        elif token.string in CLOSE:
            depth -= 1
        elif token.string == "," and depth == 0:
            return position
    return None
