"""The JSON reader: what it takes, `json` takes alike; what it refuses, it names."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.runtime import strict_json

ENVLOCK = str(Path(strict_json.__file__).parents[2])

SCALARS = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(SCALARS | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20)

REFUSED = {
    b"": "it is empty",
    b" \n\t\r ": "it is empty",
    b"\xef\xbb\xbf{}": "it starts with a byte order mark (BOM)",
    b'{"a": "\xff"}': "it is not UTF-8 (at byte 7)",
    b'"\xed\xa0\x80"': "it is not UTF-8 (at byte 1)",
    b'{"a": 1, "b": 2, "a": 1}': "the key 'a' stands twice in one object",
    b'[{"b": {"c": 1, "c": 2}}]': "the key 'c' stands twice in one object",
    b'{"\\u0061": 1, "a": 2}': "the key 'a' stands twice in one object",
    b"NaN": "NaN is not a JSON number",
    b"[Infinity]": "Infinity is not a JSON number",
    b'{"a": -Infinity}': "-Infinity is not a JSON number",
    b"1e999": "1e999 is too large for a number",
    b"[-1e999]": "-1e999 is too large for a number",
    b"1" * 41: "a number has 41 digits",
    b"[1, 2": "it is not JSON (line 1, column 6: Expecting ',' delimiter)",
    b"[1,": "it is not JSON (line 1, column 4: a value is missing)",
    b"[" * 101 + b"]" * 101: "it is nested too deeply",
    b'{"a":[' * 50 + b"{}" + b"]}" * 50: "it is nested too deeply",
    b'["\\\\",' * 100 + b"[]" + b"]" * 100: "it is nested too deeply",
    b"[" * 101: "it is nested too deeply",
    b"[" * 10_000 + b"]" * 10_000: "it is nested too deeply",
    b'{"a":' * 10_000 + b"1" + b"}" * 10_000: "it is nested too deeply",
    b"{}\n{}": "it is not JSON (line 2, column 1: extra data after the document)",
    b"{} x": "it is not JSON (line 1, column 4: extra data after the document)",
    b"\n\n  nope": "it is not JSON (line 3, column 3: a value is missing)",
    b'"\\ud83d"': "a string holds half a surrogate pair",
    b'{"\\uDC00": 1}': "a string holds half a surrogate pair",
    b'[[{"a": ["x\\udfff"]}]]': "a string holds half a surrogate pair",
}
TAKEN: dict[bytes, Any] = {
    b' {"a": [1, 1.0, true, null, "x"]} \n': {"a": [1, 1.0, True, None, "x"]},
    b'"\\ud83d\\ude00 \xf0\x9f\x98\x80"': "\U0001f600 \U0001f600",
    b"1" * 40: int("1" * 40),
    b"1e308": 1e308,
    b"[" * 100 + b"]" * 100: json.loads("[" * 100 + "]" * 100),
    b"[" + b"[{}]," * 200 + b"1]": [[{}]] * 200 + [1],
    b'["%s", "\\\\\\"%s", {"%s": "\\"%s\\\\"}]' % ((b"[{" * 200,) * 4): [
        "[{" * 200,
        '\\"' + "[{" * 200,
        {"[{" * 200: '"' + "[{" * 200 + "\\"},
    ],
}


def refusal(data: bytes) -> str:
    """Return what is said of data that is refused."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole message is compared)
        strict_json.parse(data)
    return str(caught.value)


def depth(value: Any) -> int:
    """Return how many lists and objects lie inside one another."""
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)


def test_what_is_refused_is_named() -> None:
    assert {data: refusal(data) for data in REFUSED} == REFUSED


def test_what_is_taken() -> None:
    assert {data: strict_json.parse(data) for data in TAKEN} == TAKEN


@given(VALUES)
def test_it_reads_what_json_writes(value: Any) -> None:
    assert repr(strict_json.parse(json.dumps(value).encode())) == repr(value)
    assert repr(strict_json.parse(json.dumps(value, ensure_ascii=False, indent=2).encode())) == repr(value)


@given(st.binary(max_size=60) | TEXTS.map(str.encode) | VALUES.map(lambda v: json.dumps(v).encode()[:-1]))
def test_any_bytes_are_read_or_refused_in_one_short_clause(data: bytes) -> None:
    try:
        strict_json.parse(data)
    except ValueError as error:
        message = str(error)
        assert (message.isprintable(), message[-1:] == ".", len(message) < 200) == (True, False, True)


def test_a_long_culprit_makes_no_long_message() -> None:
    culprits = [b'{"%s":1,"%s":1}' % (b"k" * 9999, b"k" * 9999), b"1" * 9999 + b".5e999"]
    assert max(len(refusal(data)) for data in culprits) < 120


def test_whole_surrogate_pairs_are_taken_wherever_they_stand() -> None:
    text = b'"\\ud83d\\ude00"'
    found = strict_json.parse(b"{%s: [[%s], {}, 1, null]}" % (text, text))
    assert found == {"\U0001f600": [["\U0001f600"], {}, 1, None]}


def test_half_a_surrogate_at_any_depth_is_named() -> None:
    said = [refusal(b"[" * depth + b'"\\ud800"' + b"]" * depth) for depth in range(1, 200)]
    assert said == ["a string holds half a surrogate pair"] * 100 + ["it is nested too deeply"] * 99


@given(st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20))
def test_the_depth_is_that_of_lists_and_objects(value: Any) -> None:
    around = strict_json.DEPTH_LIMIT - depth(value)
    strict_json.parse(b"[" * around + json.dumps(value).encode() + b"]" * around)
    assert refusal(b"[" * (around + 1) + json.dumps(value).encode() + b"]" * (around + 1)) == "it is nested too deeply"


@pytest.mark.processes
def test_without_the_c_scanner_the_verdicts_are_the_same() -> None:
    """`_json` is private to CPython: where it is missing or changed, `json` stands in."""
    code = f"""
import sys
sys.path.append({ENVLOCK!r})
sys.modules["_json"] = None
from envlock.runtime import strict_json
for data, message in {REFUSED!r}.items():
    try:
        strict_json.parse(data)
        raise SystemExit("taken: %r" % data)
    except ValueError as error:
        # where it is wrong is the same, what is said of it is `json`'s own
        assert str(error).partition(":")[0] == message.partition(":")[0], (data[:40], str(error), message)
for data, value in {TAKEN!r}.items():
    assert strict_json.parse(data) == value, data
assert "json" in sys.modules
"""
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.processes
def test_a_truncated_document_is_refused_where_json_was_never_imported() -> None:
    """Up to CPython 3.11 the C scanner fails to raise its own error then; pytest and the CLI import json."""
    text = '{"lock_version": 1, "facts": {"cpu": {"flags": ["avx", "fma"], "quota": 1.5}}, "x": "y"}'
    code = f"""
import sys
from envlock.runtime import strict_json
for cut in (0, 1, 7, 20, 40, 60, 80):
    sys.modules.pop("json", None)
    sys.modules.pop("json.decoder", None)
    try:
        strict_json.parse({text!r}[:cut].encode())
    except ValueError:
        print("refused")
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert ("refused\n" * 7, "") == (done.stdout, done.stderr)


def test_json_is_imported_for_a_document_that_is_wrong_and_for_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("json", "json.decoder"):
        monkeypatch.delitem(sys.modules, name)
    assert (strict_json.parse(b'{"a": [1.5]}'), "json" in sys.modules) == ({"a": [1.5]}, False)
    assert refusal(b'\n{"a" 1}') == "it is not JSON (line 2, column 6: Expecting ':' delimiter)"


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (b'{"a": 1, "b": 2, "b": 3}', "the key 'b' stands twice in one object"),
        (b'{"%s": 1, "%s": 2}' % (b"k" * 40, b"k" * 40), f"the key {'k' * 40!r} stands twice in one object"),
        (b'{"%s": 1, "%s": 2}' % (b"k" * 41, b"k" * 41), f"the key {'k' * 40 + '...'!r} stands twice in one object"),
        (b"[" + b"9" * 34 + b"e99999]", f"{'9' * 34}e99999 is too large for a number"),
        (b"[" + b"9" * 35 + b"e99999]", f"{'9' * 35}e9999... is too large for a number"),
        (b"[-1e999]", "-1e999 is too large for a number"),
        (b"\n[1,\n 2 3]\n\n", "it is not JSON (line 3, column 4: Expecting ',' delimiter)"),
        (b"\n!", "it is not JSON (line 2, column 1: a value is missing)"),
        ("[1]\u00a0".encode(), "it is not JSON (line 1, column 4: extra data after the document)"),
        (b'["\\udc00"]', "a string holds half a surrogate pair"),
        (b'["a\x01b"]', "it is not JSON (line 1, column 4: Invalid control character at)"),
    ],
)
def test_what_is_wrong_is_said_to_the_character(document: bytes, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole sentence is compared)
        strict_json.parse(document)
    assert str(caught.value) == sentence


def test_without_the_c_scanner_the_words_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "make_scanner", None)
    test_what_is_refused_is_named()
    test_what_is_taken()


def test_a_python_without_the_c_scanner_loads_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "_json", None)
    found = runpy.run_path(strict_json.__file__)
    assert found["make_scanner"] is None
    assert found["parse"](b"[1, 2]") == [1, 2]
