"""JSON as envlock accepts it: no duplicate keys, no NaN or Infinity, no lone surrogates, UTF-8
without a BOM.

Importing `json` takes 8 ms (it imports `re` and `enum`), more than the whole assertion; its C
scanner, `_json`, takes no time. `_json` is private to CPython, so `json` is used if it is missing
or different.
"""

from __future__ import annotations

try:
    from _json import make_scanner
except ImportError:
    make_scanner = None  # type: ignore[assignment, misc]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, NoReturn, Tuple

_BLANK = " \t\n\r"
_SHOWN = 40
"""Characters of the offending text that a message repeats."""
DEPTH_LIMIT = 100
"""Objects and lists inside one another. The depth that CPython can read differs between releases
(3.11: 1,000 minus the active calls; 3.13: more than 10,000), and a file should be refused by all of
them or by none.
"""
_OUTLINE = bytes.maketrans(b"{}", b"[]")
_NO_OUTLINE = bytes(each for each in range(256) if each not in b'[]{}"')


def parse(data: bytes) -> Any:
    """Return the value of a JSON document.

    Raises:
        ValueError: it is not JSON as described above; the message is a clause without a full stop.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        raise ValueError("it starts with a byte order mark (BOM)")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 (at byte {error.start})") from None
    start = len(text) - len(text.lstrip(_BLANK))
    if start == len(text):
        raise ValueError("it is empty")
    if _is_too_deep(data):
        raise ValueError("it is nested too deeply")
    try:
        value, end = _scan(text, start)
    except StopIteration as stop:
        raise _invalid(text, stop.value, "a value is missing") from None
    except ValueError as error:
        # json.JSONDecodeError has a position; the errors of our own hooks have none.
        position = getattr(error, "pos", None)
        if position is None:
            raise
        raise _invalid(text, position, getattr(error, "msg", "")) from None
    rest = text[end:].lstrip(_BLANK)
    if rest:
        raise _invalid(text, len(text) - len(rest), "extra data after the document")
    # Only an escape can produce half of a surrogate pair.
    if "\\ud" in text or "\\uD" in text:
        _refuse_surrogates(value)
    return value


def _is_too_deep(data: bytes) -> bool:
    """Return whether more than `DEPTH_LIMIT` objects and lists are open at once; brackets in strings do not count."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    outline = data.translate(_OUTLINE, _NO_OUTLINE)
    depth = 0
    # Every second part is inside a string.
    for bracket in b"".join(outline.split(b'"')[::2]):
        if bracket == ord("["):
            depth += 1
        else:
            depth -= 1
        if depth > DEPTH_LIMIT:
            return True
    return False


def _scan(text: str, start: int) -> Tuple[object, int]:
    try:
        return _make_scanner()(text, start)
    except SystemError:
        # CPython 3.10 and 3.11: the C scanner raises its error through `json.decoder`, which must
        # be imported before.
        __import__("json.decoder")
        return _make_scanner()(text, start)


def _invalid(text: str, position: int, problem: str) -> ValueError:
    before = text[:position]
    line = before.count("\n") + 1
    column = position - before.rfind("\n")
    return ValueError(f"it is not JSON (line {line}, column {column}: {problem})")


def _shorten(text: str) -> str:
    if len(text) <= _SHOWN:
        return text
    return text[:_SHOWN] + "..."


def _make_object(pairs: List[Tuple[str, object]]) -> Dict[str, object]:
    """Return an object; raise ValueError if two of its keys are equal."""
    keys: Dict[str, object] = {}
    for key, value in pairs:
        if key in keys:
            raise ValueError(f"the key {_shorten(key)!r} stands twice in one object")
        keys[key] = value
    return keys


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _parse_float(text: str) -> float:
    number = float(text)
    if abs(number) == float("inf"):
        raise ValueError(f"{_shorten(text)} is too large for a number")
    return number


def _parse_int(text: str) -> int:
    # No fact is that long; int() of a huge literal takes quadratic time before Python 3.11.
    if len(text) > 40:
        raise ValueError(f"a number has {len(text)} digits")
    return int(text)


class _Context:
    """The attributes that the C scanner reads from a decoder (CPython, Modules/_json.c,
    scanner_new).
    """

    strict = True
    object_hook = None
    object_pairs_hook = staticmethod(_make_object)
    parse_float = staticmethod(_parse_float)
    parse_int = staticmethod(_parse_int)
    parse_constant = staticmethod(_refuse_constant)
    memo: Dict[str, str] = {}  # noqa: RUF012 (the C scanner wants a plain attribute)


def _make_scanner() -> Callable[[str, int], Tuple[object, int]]:
    try:
        return make_scanner(_Context)  # type: ignore[arg-type]
    except (AttributeError, TypeError):
        # Not at the top: it takes 8 ms, more than the whole assertion.
        import json

        decoder = json.JSONDecoder(
            object_pairs_hook=_make_object,
            parse_float=_parse_float,
            parse_int=_parse_int,
            parse_constant=_refuse_constant,
        )
        return decoder.scan_once  # type: ignore[no-any-return, attr-defined]


def _refuse_surrogates(value: object) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("a string holds half a surrogate pair") from None
    elif isinstance(value, dict):
        for key, inner in value.items():
            _refuse_surrogates(key)
            _refuse_surrogates(inner)
    elif isinstance(value, list):
        for inner in value:
            _refuse_surrogates(inner)
