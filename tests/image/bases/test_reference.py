"""Names of images: the grammar of the OCI, Docker's defaults, mirrors and platforms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from envlock.image.bases.reference import (
    LONGEST,
    Mirror,
    Reference,
    apply_mirrors,
    parse,
    parse_mirror,
    parse_platform,
)
from envlock.lock.models import ImageDigest, ImageName, ImageTag
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean

DIGEST = "sha256:" + "0a" * 32
NVIDIAS = parse("nvcr.io/nvidia/tensorflow:25.02-tf2-py3")

HOSTS = st.from_regex(r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,8}[a-zA-Z0-9])?(\.[a-z0-9]{1,8}){1,3}(:[0-9]{1,5})?", fullmatch=True)
PATHS = st.from_regex(r"[a-z0-9]{1,6}((\.|_|__|-{1,3})[a-z0-9]{1,6}){0,2}(/[a-z0-9]{1,6}){0,3}", fullmatch=True)
TAGS = st.none() | st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", fullmatch=True)
DIGESTS = st.none() | st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True)
REFERENCES = st.builds(Reference, HOSTS, PATHS, TAGS, DIGESTS).filter(lambda one: one.registry.lower() != "docker.io")


FULL = {
    "python": "docker.io/library/python",
    "python:3.12": "docker.io/library/python:3.12",
    "nvidia/cuda:12.8.1-base-ubuntu24.04": "docker.io/nvidia/cuda:12.8.1-base-ubuntu24.04",
    f"python@{DIGEST}": f"docker.io/library/python@{DIGEST}",
    "docker.io/python:3": "docker.io/library/python:3",
    "index.docker.io/nvidia/cuda": "docker.io/nvidia/cuda",
    "docker.io/library/python": "docker.io/library/python",
    f"nvcr.io/nvidia/tensorflow:25.02-tf2-py3@{DIGEST}": f"nvcr.io/nvidia/tensorflow:25.02-tf2-py3@{DIGEST}",
    "localhost/a": "localhost/a",
    "localhost:5000/a/b:1": "localhost:5000/a/b:1",
    "registry:5000/a": "registry:5000/a",
    "Registry/a": "Registry/a",
    "[::1]:5000/a": "[::1]:5000/a",
    "a.b": "docker.io/library/a.b",
    "a/b/c": "docker.io/a/b/c",
    "a__b/c---d": "docker.io/a__b/c---d",
}
NO_NAMES = [
    *("", " ", "/", "a/", "/a", "a//b", "A", "a:", "a:-1", "a:b:c", "a@", "a@sha256:00", "a@md5:" + "0" * 32),
    *(f"a@{DIGEST.upper()}", f"a@{DIGEST}x", f"{DIGEST}@a", "a b", "a\n", "a:1\n", "\ta", "a\0"),
    *("a;b", "a$(b)", "a`b`", "a:" + "x" * 129, "ä", "a:ä", "a/b_-c", "a/_b", "a/b.", "-a/b", "a.b:x/c"),
    *("https://nvcr.io/a", "nvcr.io/A", "a" * 256, "x.y/" + "a/" * 130 + "a", "a" * 10_000),
    *("\uff11/a", "a:\u0661", "user@host.org/a", "user:pw@host.org/a"),
]


def test_names_with_dockers_defaults() -> None:
    assert {text: str(parse(text)) for text in FULL} == FULL
    assert {full: parse(full) for full in FULL.values()} == {full: parse(text) for text, full in FULL.items()}


def test_what_is_no_name_is_refused() -> None:
    assert {text: _refusal(text) for text in NO_NAMES} == {
        text: f"invalid image name `{clean(text[:120])}`" for text in NO_NAMES
    }
    assert [text for text in NO_NAMES if not _refusal(text).isprintable() or len(_refusal(text)) >= 530] == []


def _refusal(text: str) -> str:
    try:
        return f"taken for {parse(text)}"
    except UsageError as error:
        return error.message


@given(REFERENCES)
def test_a_name_that_is_written_is_read_again(reference: Reference) -> None:
    assert parse(str(reference)) == reference
    assert TypeAdapter(ImageName).validate_python(reference.name) == reference.name


@given(st.text(max_size=60) | st.from_regex(r"[a-zA-Z0-9._:/@\[\]-]{0,60}", fullmatch=True))
def test_any_text_is_a_name_for_lock_and_registry_or_for_neither(text: str) -> None:
    try:
        reference = parse(text)
    except UsageError:
        return
    assert parse(str(reference)) == reference
    assert str(reference).isascii()
    assert not set(str(reference)) & set(" \t\r\n\0'\"\\$`;&|<>(){}*?!#~^%")
    assert len(reference.name) <= LONGEST
    TypeAdapter(ImageName).validate_python(reference.name)
    TypeAdapter(ImageTag | None).validate_python(reference.tag)
    TypeAdapter(ImageDigest | None).validate_python(reference.digest)


def test_a_mirror_replaces_whole_parts_of_a_name() -> None:
    places = {
        "nvcr.io=harbor.example/nvcr": "harbor.example/nvcr/nvidia/tensorflow:25.02-tf2-py3",
        "nvcr.io=harbor.example": "harbor.example/nvidia/tensorflow:25.02-tf2-py3",
        "nvcr.io/nvidia=harbor.example:8443/a/b": "harbor.example:8443/a/b/tensorflow:25.02-tf2-py3",
        "nvcr.io/nvidia/tensorflow=harbor.example/tf": "harbor.example/tf:25.02-tf2-py3",
        "nvcr.io/nv=harbor.example": "nvcr.io/nvidia/tensorflow:25.02-tf2-py3",
        "docker.io=harbor.example": "nvcr.io/nvidia/tensorflow:25.02-tf2-py3",
    }
    assert {mirror: str(apply_mirrors(NVIDIAS, [parse_mirror(mirror)])) for mirror in places} == places


def test_of_several_mirrors_the_longest_counts() -> None:
    mirrors = [Mirror("nvcr.io", "a.example"), Mirror("nvcr.io/nvidia", "b.example"), Mirror("nvcr.io", "c.example")]
    assert apply_mirrors(NVIDIAS.at(DIGEST), mirrors) == Reference("b.example", "tensorflow", "25.02-tf2-py3", DIGEST)


def test_what_is_no_mirror_is_refused() -> None:
    for text in ("", "=", "nvcr.io", "nvcr.io=", "=a.example", "a b=c", "nvcr.io=https://a.example", "a=b=c"):
        with pytest.raises(UsageError) as caught:
            pytest.fail(f"{text} is taken for {parse_mirror(text)}")
        assert str(caught.value) == (
            f"invalid mirror `{text}`\nhint: use REGISTRY=MIRROR, such as nvcr.io=harbor.example/nvcr"
        )


def test_a_mirror_that_makes_no_name_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        apply_mirrors(NVIDIAS, [parse_mirror("nvcr.io/nvidia/tensorflow=harbor.example")])
    assert str(caught.value) == (
        "the mirror nvcr.io/nvidia/tensorflow=harbor.example gives no valid image name for nvcr.io/nvidia/tensorflow\n"
        "hint: name a registry and a repository in it"
    )


def test_a_platform_however_it_is_spelt() -> None:
    arm64 = {text: parse_platform(text) for text in ("linux/arm64", "arm64", "aarch64", "linux/arm64/v8")}
    assert arm64 == dict.fromkeys(arm64, "linux/arm64")
    assert parse_platform("x86_64") == "linux/amd64"


def test_a_platform_that_tensorflow_has_no_images_for() -> None:
    with pytest.raises(UsageError) as caught:
        parse_platform("windows/amd64")
    assert str(caught.value) == (
        "unknown platform `windows/amd64` for TensorFlow images\nhint: choose from: linux/amd64, linux/arm64"
    )
