"""All text in a Dockerfile passes through here: text that is not of the expected kind is refused,
so nothing has to be escaped.

A template accepts only `Safe` text (envlock/image/render.py enforces that), and only this file
creates it. No kind allows a backslash, a `$`, a backtick, or anything that some reader treats as a
line end: the characters with a meaning in a Dockerfile, a shell or JSON. Quotes are in comments (an
apostrophe) and in `text`, which may have one of the two kinds and is put into the other one.
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
    # In a dry run, the base may have only a tag.
    "tag": re.compile(r"[A-Za-z0-9\[][A-Za-z0-9._:/\[\]-]{0,400}:[A-Za-z0-9_.-]{1,128}", re.ASCII),
    "version": re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,127}", re.ASCII),
    "name": re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}", re.ASCII),
    "variable": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII),
    "number": re.compile(r"[0-9]{1,12}", re.ASCII),
    "user": re.compile(r"[0-9]{1,10}:[0-9]{1,10}", re.ASCII),
    "path": re.compile(r"/[A-Za-z0-9_./-]{0,400}", re.ASCII),
    "digest": re.compile(r"[0-9a-f]{64}", re.ASCII),
    "value": re.compile(r"[A-Za-z0-9 _.,:;=+/@%^()-]{0,1000}", re.ASCII),
    # The project's own values: any language, and JSON.
    "text": re.compile(
        r"""(?!.*".*')(?!.*'.*")[ -#%-\[\]^_a-~\u00a1-\ud7ff\uf900-\U0001ffff]{0,1000}"""
    ),
    "word": re.compile(r"[A-Za-z0-9_.,:=+/@%-]{1,1000}", re.ASCII),
    # Sentences occur in comments only.
    "sentence": re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.,:;=+/@%^()'*-]{0,499}", re.ASCII),
    "debian": re.compile(
        r"[a-z0-9][a-z0-9+.-]{1,127} (amd64|arm64|all) ([0-9]{1,9}:)?[0-9][A-Za-z0-9.+~-]{0,127}",
        re.ASCII,
    ),
    "file": re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+!-]{0,299}", re.ASCII),
}
"""The pattern of each kind of text, from its first character to its last."""


class Safe(str):
    """Text that can be written into a Dockerfile without quoting."""

    __slots__ = ()


def safe(text: object, kind: str, path: str) -> Safe:
    """Return a value after checking its kind, for a Dockerfile without quotes.

    Args:
        text: the value, of any type that a document can have there.
        kind: one of `KINDS`.
        path: where it comes from in the lockfile, for the message.

    Raises:
        LockfileError: it is not of this kind.
    """
    fault = describe_fault(text, kind)
    if fault is not None:
        raise LockfileError(
            f"`{path}` cannot go into an image: {fault}",
            hint="restore the lockfile from version control, "
            "or create it again with `envlock capture`",
        )
    return Safe(text)


def describe_fault(text: object, kind: str) -> str | None:
    """Return why a value is not of a kind; None if it is."""
    # Beyond ASCII, some letters end a line, turn its direction or cannot be seen.
    if isinstance(text, str) and KINDS[kind].fullmatch(text) and text.isprintable():
        return None
    return f"{_shorten(text)} is not a valid {kind}"


def add_quotes(text: object, path: str) -> Safe:
    """Return a value for ENV or LABEL, in quotes.

    Raises:
        LockfileError: it has characters that would have to be escaped.
    """
    return Safe(f'"{safe(text, "value", path)}"')


def quote_text(text: object, path: str) -> Safe:
    """Return a value of the project's own for ENV or LABEL, in quotes that it does not have itself.

    Between these, neither a builder nor a shell replaces anything that a `text` can have.

    Raises:
        LockfileError: it has characters that would have to be escaped.
    """
    value = safe(text, "text", path)
    mark = "'" if '"' in value else '"'
    return Safe(f"{mark}{value}{mark}")


def format_exec(words: Iterable[object], path: str) -> Safe:
    """Return arguments for RUN, ENTRYPOINT and CMD in the form that no shell reads.

    Raises:
        LockfileError: an argument is not a plain word.
    """
    words_quoted = [f'"{safe(word, "word", path)}"' for word in words]
    return Safe(f"[{', '.join(words_quoted)}]")


def _shorten(text: object) -> str:
    printable = clean(str(text))
    if len(printable) > 80:
        printable = printable[:77] + "..."
    return f"`{printable}`"
