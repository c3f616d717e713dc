"""The one door into a Dockerfile: text that is not of its kind is refused, so nothing is escaped.

A template takes nothing but `Safe` text (envlock/containers/render.py holds it to that), and only
this file makes it. No kind has a quote, a backslash, a `$`, a backtick, or anything that ends a
line for anybody: the characters that mean something to a Dockerfile, a shell or JSON. (An
apostrophe may stand in a comment.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from envlock.runtime.errors import LockfileError
from envlock.runtime.report import clean

KINDS = {
    "reference": re.compile(
        r"[A-Za-z0-9\[][A-Za-z0-9._:/\[\]-]{0,400}@sha256:[0-9a-f]{64}", re.ASCII
    ),
    # A dry run has a base by its tag.
    "tag": re.compile(r"[A-Za-z0-9\[][A-Za-z0-9._:/\[\]-]{0,400}:[A-Za-z0-9_.-]{1,128}", re.ASCII),
    "version": re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,127}", re.ASCII),
    "name": re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}", re.ASCII),
    "variable": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII),
    # A path without a part `.` or `..`.
    "copied": re.compile(
        r"(?!.*(^|/)\.{1,2}(/|$))"
        r"[A-Za-z0-9_.][A-Za-z0-9_.,+=@%-]*(/[A-Za-z0-9_.][A-Za-z0-9_.,+=@%-]*)*",
        re.ASCII,
    ),
    "number": re.compile(r"[0-9]{1,12}", re.ASCII),
    "user": re.compile(r"[0-9]{1,10}:[0-9]{1,10}", re.ASCII),
    "path": re.compile(r"/[A-Za-z0-9_./-]{0,400}", re.ASCII),
    "digest": re.compile(r"[0-9a-f]{64}", re.ASCII),
    "value": re.compile(r"[A-Za-z0-9 _.,:;=+/@%^()-]{0,1000}", re.ASCII),
    "word": re.compile(r"[A-Za-z0-9_.,:=+/@%-]{1,1000}", re.ASCII),
    # Sentences stand in comments only.
    "sentence": re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.,:;=+/@%^()'*-]{0,499}", re.ASCII),
    "debian": re.compile(
        r"[a-z0-9][a-z0-9+.-]{1,127} (amd64|arm64|all) ([0-9]{1,9}:)?[0-9][A-Za-z0-9.+~-]{0,127}",
        re.ASCII,
    ),
    "file": re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+!-]{0,299}", re.ASCII),
}
"""What each kind of text consists of, from its first character to its last."""


class Safe(str):
    """Text that may stand in a Dockerfile as it is."""

    __slots__ = ()


def safe(text: object, kind: str, path: str) -> Safe:
    """Return a value that is of its kind, to stand in a Dockerfile unquoted.

    Args:
        text: the value, of whatever type a document holds there.
        kind: one of `KINDS`.
        path: where in the lock it comes from, for the message.

    Raises:
        LockfileError: it is not of its kind.
    """
    if not isinstance(text, str) or KINDS[kind].fullmatch(text) is None:
        raise LockfileError(
            f"`{path}` cannot go into an image: {_shorten(text)} is not a valid {kind}",
            hint="restore the lockfile from version control, "
            "or create it again with `envlock capture`",
        )
    return Safe(text)


def add_quotes(text: object, path: str) -> Safe:
    """Return a value for ENV or LABEL, in its quotes.

    Raises:
        LockfileError: it holds what would have to be escaped.
    """
    return Safe(f'"{safe(text, "value", path)}"')


def format_exec(words: Iterable[object], path: str) -> Safe:
    """Return arguments in the form of RUN, ENTRYPOINT and CMD that no shell reads.

    Raises:
        LockfileError: one of them is not a plain word.
    """
    words_quoted = [f'"{safe(word, "word", path)}"' for word in words]
    return Safe(f"[{', '.join(words_quoted)}]")


def _shorten(text: object) -> str:
    printable = clean(str(text))
    if len(printable) > 80:
        printable = printable[:77] + "..."
    return f"`{printable}`"
