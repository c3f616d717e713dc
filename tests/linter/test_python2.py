"""Python 2 is read as what it means, line by line."""

from __future__ import annotations

import ast

import pytest

from envlock.linter.python2 import translate


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('print "loss", 0.5\n', 'print( "loss", 0.5)\n'),
        ("print\n", "print\n"),
        ("print x,  # not at the end\n", "print( x,)  # not at the end\n"),
        ("print >>stream, x\n", "print( stream, x)\n"),
        ("if x: print x; print y\n", "if x: print( x); print( y)\n"),
        ("print 'a' % (\n    b,\n)\n", "print( 'a' % (\n    b,\n))\n"),
        ("print -x\n", "print( -x)\n"),
        ("exec 'x = 1'\n", "exec( 'x = 1')\n"),
        ("raise ValueError, 'no'\n", "raise ValueError( 'no')\n"),
        ("\x0c\nprint x\n\x0c\nprint y\n", "\x0c\nprint( x)\n\x0c\nprint( y)\n"),
        ("raise ValueError('a', 1)\n", "raise ValueError('a', 1)\n"),
        ("try:\n    x\nexcept (A, B), e:\n    y\n", "try:\n    x\nexcept (A, B) as e:\n    y\n"),
        ("try:\n    x\nexcept A:\n    y\n", "try:\n    x\nexcept A:\n    y\n"),
        ("if x:\n\ty = 1\n        z = 2\n", "if x:\n        y = 1\n        z = 2\n"),
        ("print('new')\nprint = log\nlog(print)\n", "print('new')\nprint = log\nlog(print)\n"),
    ],
)
def test_a_statement_becomes_that_of_python_3(old: str, new: str) -> None:
    assert translate(old) == new
    ast.parse(new)


@pytest.mark.parametrize("text", ["print (", "if x:\n    y\n  z\n"])
def test_what_has_no_tokens_is_not_translated(text: str) -> None:
    assert translate(text) is None


def test_two_classes_without_brackets_are_python_3_14() -> None:
    """Only `except A, e` is Python 2: https://peps.python.org/pep-0758/."""
    text = "try:\n    x\nexcept A, B:\n    y\n"
    assert translate(text) == text
