"""JSON as envlock accepts it: no duplicate keys, no NaN or Infinity, no lone surrogates, UTF-8 without a BOM.

`json` costs 8 ms to import (it brings `re` and `enum`), more than the whole assertion; its C scanner, `_json`,
costs none. It is private to CPython, so `json` stands in wherever it is missing or has another shape.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Tuple

_BLANK = " \t\n\r"
_SHOWN = 40
"""Characters of a culprit that a message repeats."""
DEPTH_LIMIT = 100
"""Objects and lists inside one another. How deep CPython can read differs from release to release (3.11: 1,000
less the calls under way; 3.13: more than 10,000), and a file is to be refused by all or by none."""
_OUTLINE = bytes.maketrans(b"{}", b"[]")
_NO_OUTLINE = bytes(each for each in range(256) if each not in b'[]{}"')


def parse(data: bytes) -> Any:
    """Return the value of a JSON document.

    Raises:
        ValueError: it is not JSON as described above; the message is a clause without a final stop.
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
        raise ValueError(
            f"it is not JSON ({_place(text, stop.value)}: a value is missing)"
        ) from None
    except ValueError as error:
        if not hasattr(error, "pos"):  # json.JSONDecodeError has one, our own hooks do not
            raise
        raise ValueError(f"it is not JSON ({_place(text, error.pos)}: {error.msg})") from None  # type: ignore[attr-defined]
    rest = text[end:].lstrip(_BLANK)
    if rest:
        raise ValueError(
            f"it is not JSON ({_place(text, len(text) - len(rest))}: extra data after the document)"
        )
    if "\\ud" in text or "\\uD" in text:  # only an escape can smuggle in half a character
        _refuse_surrogates(value)
    return value


def _is_too_deep(data: bytes) -> bool:
    """Return whether more than `DEPTH_LIMIT` objects and lists are open at once; brackets in strings do not count."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    outline = data.translate(_OUTLINE, _NO_OUTLINE)
    depth = 0
    for bracket in b"".join(outline.split(b'"')[::2]):
        depth += 1 if bracket == 0x5B else -1
        if depth > DEPTH_LIMIT:
            return True
    return False


def _scan(text: str, start: int) -> Tuple[Any, int]:
    try:
        return _scanner()(text, start)
    except SystemError:
        # CPython 3.10 and 3.11: the C scanner raises its error through `json.decoder`, which must be imported by then
        __import__("json.decoder")
        return _scanner()(text, start)


def _place(text: str, position: int) -> str:
    before = text[:position]
    return f"line {before.count(chr(10)) + 1}, column {position - before.rfind(chr(10))}"


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        shown = twice if len(twice) <= _SHOWN else twice[:_SHOWN] + "..."
        raise ValueError(f"the key {shown!r} stands twice in one object")
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if abs(number) == float("inf"):
        raise ValueError(
            f"{text if len(text) <= _SHOWN else text[:_SHOWN] + '...'} is too large for a number"
        )
    return number


def _short_int(text: str) -> int:
    if (
        len(text) > 40
    ):  # no fact comes near; int() of a huge literal takes quadratic time before Python 3.11
        raise ValueError(f"a number has {len(text)} digits")
    return int(text)


class _Context:
    """What the C scanner asks of a decoder (CPython, Modules/_json.c, scanner_new)."""

    strict = True
    object_hook = None
    object_pairs_hook = staticmethod(_unique)
    parse_float = staticmethod(_finite)
    parse_int = staticmethod(_short_int)
    parse_constant = staticmethod(_no_constant)
    memo: Dict[str, str] = {}  # noqa: RUF012 (the C scanner wants a plain attribute)


def _scanner() -> Callable[[str, int], Tuple[Any, int]]:
    try:
        from _json import make_scanner

        return make_scanner(_Context)  # type: ignore[arg-type]
    except (ImportError, AttributeError, TypeError):
        import json

        decoder = json.JSONDecoder(
            object_pairs_hook=_unique,
            parse_float=_finite,
            parse_int=_short_int,
            parse_constant=_no_constant,
        )
        return decoder.scan_once  # type: ignore[no-any-return, attr-defined]


def _refuse_surrogates(value: Any) -> None:
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
