"""What may be asked of apt, and what is made of its answers; they are apt's own, from Debian 12."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from envlock.image.debian import AptRequest, _parse_answers, check_locked, parse_apt_request
from envlock.lock.models import DebianPackage, DebianPackages
from envlock.runtime.errors import EnvlockError, OutsideError, UsageError
from tests.image.plans import BASES, DEBIAN
from tests.image.test_injection import HOSTILE

WHERE = "[tool.envlock.container]"
IMAGE = "docker.io/library/debian:12@sha256:00"
SAID = """\
Inst libogg0 (1.3.5-3 Debian:12.15/oldstable [amd64])
Inst media (1:2~3+b Debian:12.15/oldstable, Debian-Security:12/oldstable-security [all]) []
Conf libogg0 (1.3.5-3 Debian:12.15/oldstable [amd64])
'http://mirror.example/debian/pool/libogg0_1.3.5-3_amd64.deb' libogg0_1.3.5-3_amd64.deb 23412 SHA256:{0}
'http://mirror.example/debian/pool/m/media_1%253a2%7e3%2bb_all.deb' media_1%3a2~3+b_all.deb 9 SHA256:{0}
Have dpkg 1.21.22
""".format("ab" * 32)


def test_the_answers_of_apt_become_packages_with_their_files() -> None:
    found = _parse_answers(SAID.splitlines(), AptRequest(("media", "dpkg=1.21.22"), ()), IMAGE)
    assert [each.model_dump() for each in found.packages] == [
        {
            "name": "libogg0",
            "version": "1.3.5-3",
            "architecture": "amd64",
            "size": 23412,
            "sha256": "ab" * 32,
            "url": "http://mirror.example/debian/pool/libogg0_1.3.5-3_amd64.deb",
        },
        {
            "name": "media",
            "version": "1:2~3+b",
            "architecture": "all",
            "size": 9,
            "sha256": "ab" * 32,
            "url": "http://mirror.example/debian/pool/m/media_1%253a2%7e3%2bb_all.deb",
        },
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Inst libogg0 (", "Inst libogg0 [1.3.4-1] (", f"apt would replace or remove packages of {IMAGE}: libogg0"),
        ("Conf libogg0", "Remv tzdata", f"apt would replace or remove packages of {IMAGE}: tzdata"),
        ("1.21.22", "1.21.21", f"{IMAGE} has dpkg in another version than 1.21.22"),
        ("SHA256:", "MD5Sum:", "apt in {} names a file that cannot be locked: {}"),
        ("http://", "file:/", "apt in {} names a file that cannot be locked: {}"),
        ("//mirror", "//me:secret@mirror", "apt in {} names a file that cannot be locked: {}"),
        ("amd64", "i386", "apt in {} names a file that cannot be locked: {}"),
    ],
)
def test_what_an_image_cannot_have_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(OutsideError) as raised:
        _parse_answers(SAID.replace(old, new).splitlines(), AptRequest(("media", "dpkg=1.21.22"), ()), IMAGE)
    reason = "no SHA-256, no http, or credentials in its address"
    assert raised.value.message == message.format(IMAGE, reason)


def test_a_wish_is_held_against_the_lock() -> None:
    packages = DebianPackages.model_validate(DEBIAN)
    wanted = AptRequest(tuple(packages.wanted), tuple(packages.sources))
    locked = replace(BASES["wheels"], apt=packages)
    check_locked(locked, wanted)
    check_locked(BASES["wheels"], AptRequest())
    for base, other in ((locked, AptRequest()), (locked, AptRequest(wanted.packages)), (BASES["wheels"], wanted)):
        with pytest.raises(UsageError) as raised:
            check_locked(base, other)
        assert raised.value.hint == "run `envlock build --pin` to lock them"


@pytest.mark.parametrize("name", ["libgl1", "libstdc++6", "ffmpeg=7:5.1.6-0+deb12u1", "0ad=0.0.26-3~x"])
def test_names_and_versions_of_debian(name: str) -> None:
    assert parse_apt_request({"apt": [name, name]}, WHERE).packages == (name,)


@pytest.mark.parametrize("key", ["apt", "apt-sources"])
def test_nothing_hostile_is_asked_for(key: str) -> None:
    malformed = [
        *HOSTILE,
        "",
        "-o",
        "--reinstall",
        "a",
        "Libgl1",
        "libgl1:i386",
        "libgl1/bookworm",
        "x=",
        "x=-1",
        "./x.deb",
    ]
    malformed += [
        "http://m.example",
        "http://me@m.example/debian bookworm main",
        "file:/x ./",
        "[trusted=yes] http://m/ x",
    ]
    for text in malformed:
        with pytest.raises(UsageError) as raised:
            parse_apt_request({key: [text]}, WHERE)
        assert raised.value.message.startswith(f"{WHERE}: `{key}` has a malformed entry: ")
        assert raised.value.message.isprintable()


@given(st.text(max_size=40), st.sampled_from(["name", "version", "architecture", "sha256", "url"]))
def test_no_text_in_a_lock_is_an_option_or_a_path(text: str, key: str) -> None:
    packages: Any = DEBIAN["packages"]
    fields = {**packages[0], key: text}
    try:
        file = DebianPackage.model_validate(fields).file
    except (ValidationError, EnvlockError):
        return
    assert re.fullmatch(r"[a-z0-9][a-z0-9+.-]+_[A-Za-z0-9.+~%-]+_(amd64|arm64|all)\.deb", file, re.ASCII)
