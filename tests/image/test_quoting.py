"""The one door into a Dockerfile: what it lets through holds nothing that means something to anybody."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.image.quoting import KINDS, add_quotes, format_exec, quote_text, safe
from envlock.runtime.errors import LockfileError
from tests.image.test_injection import HOSTILE

DANGEROUS = set('"\\$`\n\r\t\0\x0b\x0c\x1b\x85\u2028\u2029{}<>|&;') - {";"}
FITTING = {
    "reference": ["nvcr.io/nvidia/tensorflow:25.02-tf2-py3@sha256:" + "0" * 64, "[::1]:5000/a@sha256:" + "a" * 64],
    "tag": ["docker.io/library/python:3.11-slim-bookworm", "[::1]:5000/a:1"],
    "version": ["2.17.0+nv25.2", "1!2.0"],
    "name": ["TF_DETERMINISTIC_OPS", "io.github.tf-envlock.lock"],
    "number": ["315532800"],
    "user": ["1000:1000"],
    "path": ["/opt/venv/bin/python"],
    "variable": ["TEAM", "http_proxy"],
    "digest": ["a" * 64],
    "value": ["", "--xla_a=1 --xla_b", ":4096:8", "glibc.cpu.hwcaps=-AVX2"],
    "text": ['{"a": [1, "\u00fc"]}', "it's", "", "\u65e5\u672c <a&b|c>*?~!"],
    "word": ["/opt/nvidia/nvidia_entrypoint.sh", "-B", "A=b"],
    "sentence": ["NVIDIA's own build in the base is never replaced"],
    "debian": ["libgomp1 amd64 12.2.0-14+deb12u1", "tzdata all 1:2025b-0+deb12u2"],
    "file": ["a-1.0-py3-none-any.whl", "torch-2.4.0+cpu-cp311-cp311-linux_x86_64.whl"],
}


def test_what_fits_stands_as_it_is() -> None:
    assert FITTING.keys() == KINDS.keys()
    for kind, texts in FITTING.items():
        for text in texts:
            assert safe(text, kind, "x") == text


def refusal(value: object, kind: str) -> str | None:
    """Return why a value is refused; None: it is let through as it is."""
    try:
        assert safe(value, kind, "x") == value
    except LockfileError as error:
        return error.message
    return None


def test_nothing_may_follow() -> None:
    ends = ["\n", "\0", "\u2028", "\x85", '"', "\\", "$x", "`"]
    followed = [(kind, text + end) for kind, texts in FITTING.items() for text in texts for end in ends]
    # A value may have quotes of one kind; it is put between those of the other one.
    taken = [text for kind, text in followed if kind == "text" and text.endswith('"') and "'" not in text]
    assert [text for _, text in followed if text in taken and refusal(text, "text") is not None] == []
    assert [(kind, text) for kind, text in followed if refusal(text, kind) is None and text not in taken] == []


@given(st.text(max_size=20) | st.sampled_from(HOSTILE))
def test_whatever_is_let_through_is_harmless(text: str) -> None:
    for kind, pattern in KINDS.items():
        message = refusal(text, kind)
        if pattern.fullmatch(text) and text.isprintable():
            if kind == "text":
                dangerous = set(text) & set("\\$`\n\r\t\0\x0b\x0c\x1b\x85\u2028\u2029\u202e")
                assert (message, dangerous) == (None, set())
                assert not ('"' in text and "'" in text)
                continue
            assert (message, set(text) & DANGEROUS, text.isascii()) == (None, set(), True), kind
        else:
            assert message is not None, kind
            assert message.startswith("`x` cannot go into an image: "), kind
            assert message.isprintable(), kind


@pytest.mark.parametrize(("value", "quoted"), [("a b", '"a b"'), ('{"a": 1}', "'{\"a\": 1}'"), ("it's", '"it\'s"')])
def test_a_value_is_between_quotes_that_it_does_not_have(value: str, quoted: str) -> None:
    assert quote_text(value, "environ.A") == quoted


def test_only_text_is_text() -> None:
    values: list[object] = [None, 1, True, ["a"], b"a"]
    assert [value for value in values if refusal(value, "value") is None] == []


def test_a_message_names_path_and_kind_and_is_short() -> None:
    with pytest.raises(LockfileError) as raised:
        add_quotes("a\nRUN id " + "b" * 500, "facts.environ.XLA_FLAGS")
    assert raised.value.message == (
        f"`facts.environ.XLA_FLAGS` cannot go into an image: `a\\nRUN id {'b' * 67}...` is not a valid value"
    )
    assert raised.value.hint == "restore the lockfile from version control, or create it again with `envlock capture`"
    assert raised.value.exit_code == 3


def test_arguments_are_a_json_list() -> None:
    words = ["/bin/sh", "-c", "x=1"]
    assert json.loads(format_exec(words, "x")) == words
    assert format_exec([], "x") == "[]"
    with pytest.raises(LockfileError) as raised:
        format_exec(["a", "b c"], "image.command")
    assert raised.value.message == "`image.command` cannot go into an image: `b c` is not a valid word"


@pytest.mark.parametrize(("length", "shown"), [(80, "!" * 80), (81, "!" * 77 + "...")])
def test_a_message_repeats_eighty_characters(length: int, shown: str) -> None:
    with pytest.raises(LockfileError) as caught:
        safe("!" * length, "word", "x.y")
    assert caught.value.message == f"`x.y` cannot go into an image: `{shown}` is not a valid word"
