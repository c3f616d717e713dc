"""Ways to damage an input: any bytes, JSON, and lines. All chances come from a seeded generator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

Damage = Callable[[bytes, Random], bytes]

TOKENS: list[bytes | str] = [
    *(b"", b"\0", b"\xff", b"\x80\x80", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r\n", b"\n\n", b"\t", b" " * 400),
    *("\x1b[31m", "\x9b31m", "\u202e", "\u2028", "Straße"),
    *(b"-1", b"1e999", b"NaN", b"99999999999999999999", b"9" * 5000, b"null", b"true", b"{}", b"[]", b'""'),
    *(b"[" * 3000, b"{" * 300, b'{"a":' * 3000, b"<a " * 3000, b"<" * 3000, b"<!--", b"</", b"&#x110000;"),
    *(b"../../etc/passwd", b"/dev/zero", b"file:///etc/passwd", b"http://[", b"${HOME}", b"$(id)", b"`id`", b"%s%n"),
    *(b"\\u0000", b"\\ud800", b"\\", b'"', b"'", b"=", b":", b"#", b"sha256:", b"A" * 3000),
]
"""What is put into the middle of an input."""

VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 1e308, float("nan"), float("inf"), 2**63, -(2**63), 2**70, 10**50),
    *("", "x", "-1", "null", "\0", "\x1b[31m", "\x9b31m", "\u202e", "\ud800", "Straße", "../..", "a" * 5000, "\n"),
    *([], {}, [[]], [None], {"": None}, {"a": {"b": {}}}, [1, "1", None], [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]),
]
"""What takes the place of a value."""


def bytewise(data: bytes, draw: Random) -> bytes:
    """Return bytes with some flipped, cut out, repeated, moved, or with a token among them."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 3, 8))):
        at = draw.randrange(len(changed) + 1)
        length = draw.choice((1, 1, 2, 4, 8, 64, 1000))
        kind = draw.randrange(7)
        if kind == 0:
            changed[at : at + 1] = bytes([draw.randrange(256)])
        elif kind == 1 and changed:
            changed[at % len(changed)] ^= 1 << draw.randrange(8)
        elif kind == 2:
            del changed[at : at + length]
        elif kind == 3:
            changed[at:at] = changed[at : at + length] * draw.choice((1, 2, 20))
        elif kind == 4:
            changed[at : at + length] = draw.randbytes(length)
        elif kind == 5:
            changed[at:at] = _token(draw)
        elif draw.random() < 0.2:
            del changed[at:]
    return bytes(changed)


def numbers(data: bytes, draw: Random) -> bytes:
    """Return bytes with a binary number, of 1 to 8 bytes, replaced by one at a border."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        width = draw.choice((1, 2, 4, 8))
        border = draw.choice(
            (0, 1, 0x7F, 0xFF, 1 << (8 * width - 1), (1 << 8 * width) - 1, len(data), draw.getrandbits(16))
        )
        at = draw.randrange(max(1, len(changed)))
        changed[at : at + width] = (border % (1 << 8 * width)).to_bytes(width, "little")
    return bytes(changed[: max(len(data), 1)])


def linewise(data: bytes, draw: Random) -> bytes:
    """Return lines with some left out, repeated, swapped, joined, or with a part of one replaced by a token."""
    lines = data.split(b"\n")
    for _ in range(draw.choice((1, 1, 2, 4))):
        at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
        kind = draw.randrange(6)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines[at:at] = [lines[other]] * draw.choice((1, 1, 300))
        elif kind == 2:
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3:
            lines[at : at + 2] = [b"".join(lines[at : at + 2])]
        elif kind == 4:
            begin, mark, _ = lines[at].partition(draw.choice((b"=", b",", b":", b" ")))
            lines[at] = begin + mark + _token(draw)
        else:
            lines[at] = bytewise(lines[at], draw)
    return b"\n".join(lines)


def as_json(data: bytes, draw: Random) -> bytes:
    """Return a JSON document with values, names or whole branches replaced, left out, moved or repeated."""
    document = json.loads(data)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        document = _changed(document, draw)
    text = json.dumps(document, ensure_ascii=draw.random() < 0.5)
    if draw.random() < 0.05:  # a key that stands twice
        text = text.replace("{", '{"lock_version": 1, "facts": {}, ', 1)
    return text.encode("utf-8", "surrogatepass")


def as_json_lines(data: bytes, draw: Random) -> bytes:
    """Return lines of JSON, one of them changed as a document."""
    lines = data.splitlines(keepends=True)
    at = draw.randrange(len(lines))
    lines[at] = as_json(lines[at], draw) + b"\n"
    return b"".join(lines)


def _token(draw: Random) -> bytes:
    token = draw.choice(TOKENS)
    return token.encode() if isinstance(token, str) else token


def _changed(document: Any, draw: Random) -> Any:
    places = list(_places(document))
    if not places:
        return deepcopy(draw.choice(VALUES))
    node, key = draw.choice(places)
    kind = draw.randrange(8)
    if kind <= 2:
        node[key] = deepcopy(draw.choice(VALUES))
    elif kind == 3:
        del node[key]
    elif kind == 4:
        other, name = draw.choice(places)
        node[key] = deepcopy(other[name] if other is not node else node[key])
    elif kind == 5 and isinstance(node, dict):
        names = [each for each in VALUES if isinstance(each, str)]
        node[draw.choice((*names, f"{key}.x", "a.b", "*"))] = deepcopy(node[key])
    elif kind == 6 and isinstance(node[key], str):
        node[key] = bytewise(node[key].encode("utf-8", "surrogatepass"), draw).decode("utf-8", "replace")
    else:
        node[key] = draw.choice(([node[key]], {"x": node[key]}, [deepcopy(node[key])] * 9, str(node[key])[:99]))
    return document


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place of a value: what holds it, and under which name or number."""
    stack = [document]
    while stack:
        node = stack.pop()
        if isinstance(node, dict | list):
            for key in list(node) if isinstance(node, dict) else range(len(node)):
                yield node, key
                stack.append(node[key])
