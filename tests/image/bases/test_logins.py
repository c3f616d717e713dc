"""Logins from where `docker login` puts them: the file, and credential helpers."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from envlock.image.bases import logins
from envlock.image.bases.logins import can_have_login, find_config, find_login
from envlock.image.bases.manifest import RegistryError

PACKED = base64.b64encode(b"me:pass:word").decode()
NO_COLON = base64.b64encode(b"no colon").decode()
HUB = "https://index.docker.io/v1/"
HELPER = """#!/bin/sh
[ "$1" = get ] || exit 9
read -r server
case "$server" in
  nvcr.io) echo '{"ServerURL": "nvcr.io", "Username": "$oauthtoken", "Secret": "key"}' ;;
  https://index.docker.io/v1/) echo '{"Username": "hub", "Secret": "s"}' ;;
  token.example) echo '{"Username": "<token>", "Secret": "s"}' ;;
  broken.example) echo 'no JSON' ;;
  slow.example) exec sleep 5 ;;
  tree.example) sleep 5 & exec sleep 5 ;;
  closed.example) exec >&-; sleep 5 ;;
  endless.example) exec cat /dev/zero ;;
  loud.example) exec cat /dev/zero >&2 ;;
  bytes.example) printf '{"Username": "\\377", "Secret": "s"}' ;;
  bad.example) echo 'a secret' >&2; exit 3 ;;
  *) echo 'credentials not found in native keychain'; exit 1 ;;
esac
"""


def write(folder: Path, config: Any) -> Path:
    path = folder / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    return path


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "docker-credential-mine"
    program.parent.mkdir()
    program.write_text(HELPER, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_where_docker_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", "/somewhere")
    assert find_config() == Path("/somewhere/config.json")
    monkeypatch.delenv("DOCKER_CONFIG")
    monkeypatch.setenv("HOME", "/home/me")
    assert find_config() == Path("/home/me/.docker/config.json")


def test_a_login_in_the_file(tmp_path: Path) -> None:
    mine = {"auth": PACKED}
    rows: list[tuple[dict[str, Any], str, tuple[str, str] | None]] = [
        ({"auths": {"nvcr.io": mine}}, "nvcr.io", ("me", "pass:word")),
        ({"auths": {"https://nvcr.io": mine}}, "nvcr.io", ("me", "pass:word")),
        ({"auths": {"https://index.docker.io/v1/": mine}}, "docker.io", ("me", "pass:word")),
        ({"auths": {"harbor.example/nvcr": mine}}, "harbor.example", ("me", "pass:word")),
        ({"auths": {"nvcr.io": mine}}, "nvcr.io.evil.example", None),
        ({"auths": {"nvcr.io.evil.example": mine}}, "nvcr.io", None),
        ({"auths": {"nvcr.io": {}}}, "nvcr.io", None),
        ({"auths": {"other.example": {"auth": "not base64!"}}}, "nvcr.io", None),
        ({"auths": {"nvcr.io": mine}, "credHelpers": {"gcr.io": "absent"}}, "nvcr.io", ("me", "pass:word")),
        ({"auths": {"nvcr.io": mine}, "credsStore": ""}, "nvcr.io", ("me", "pass:word")),
        ({"credHelpers": {"gcr.io": "../../bin/mine"}}, "nvcr.io", None),
        ({"auths": {}}, "nvcr.io", None),
        ({}, "nvcr.io", None),
    ]
    assert [(config, asked, find_login(asked, write(tmp_path, config))) for config, asked, _ in rows] == rows


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(RegistryError, match=r"config\.json: it is not a regular file"):
        find_login("nvcr.io", tmp_path / "config.json")


def test_no_file_is_no_login(tmp_path: Path) -> None:
    assert find_login("nvcr.io", tmp_path / "none" / "config.json") is None


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("{", "it is not JSON"),
        ("[" * 10_000, "it is not JSON"),
        ("[]", "it is not an object"),
        (" " * 2**20 + "{}", "it is larger than 1 MB"),
    ],
)
def test_a_file_that_is_none(config: str, why: str, tmp_path: Path) -> None:
    path = write(tmp_path, config)
    with pytest.raises(RegistryError) as caught:
        find_login("nvcr.io", path)
    assert str(caught.value) == (
        f"cannot read the logins in {path}: {why}\nhint: correct the file, or name another folder in DOCKER_CONFIG"
    )


@pytest.mark.processes
@pytest.mark.usefixtures("helper")
@pytest.mark.parametrize("config", [{"credsStore": "mine"}, {"credHelpers": dict.fromkeys(["nvcr.io", HUB], "mine")}])
def test_a_login_of_a_credential_helper(config: Any, tmp_path: Path) -> None:
    path = write(tmp_path, config)
    logins = {"nvcr.io": ("$oauthtoken", "key"), "docker.io": ("hub", "s"), "a.example": None, "token.example": None}
    assert {registry: find_login(registry, path) for registry in logins} == logins


def test_an_entry_that_docker_does_not_write(tmp_path: Path) -> None:
    entries: list[Any] = [{"auth": "not base64!"}, {"auth": NO_COLON}, {"auth": "\xff"}, {"auth": 1}, 1]
    for entry in entries:
        path = write(tmp_path, {"auths": {"nvcr.io": entry}})
        with pytest.raises(RegistryError) as caught:
            pytest.fail(f"{entry} is taken for {find_login('nvcr.io', path)}")
        assert caught.value.message in (
            "Docker's configuration gave no login: an entry is not one of `docker login`",
            "Docker's configuration gave no login: a credential helper is missing, or failed",
        )


@pytest.mark.processes
@pytest.mark.usefixtures("helper")
@pytest.mark.parametrize(
    ("name", "registry", "why"),
    [
        ("mine", "bad.example", "a credential helper is missing, or failed"),
        ("mine", "broken.example", "an entry is not one of `docker login`"),
        ("mine", "slow.example", "no answer within 0.1 s"),
        ("mine", "tree.example", "no answer within 0.1 s"),
        ("mine", "closed.example", "no answer within 0.1 s"),
        ("mine", "loud.example", "no answer within 0.1 s"),
        ("mine", "endless.example", "a credential helper is missing, or failed"),
        ("mine", "bytes.example", "an entry is not one of `docker login`"),
        ("absent", "nvcr.io", "a credential helper is missing, or failed"),
        ("../../bin/mine", "nvcr.io", "the name of a credential helper is not valid"),
    ],
)
def test_a_credential_helper_that_fails(
    name: str, registry: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logins, "SECONDS", 0.1 if why.endswith("0.1 s") else 15)
    with pytest.raises(RegistryError) as caught:
        find_login(registry, write(tmp_path, {"credsStore": name}))
    assert str(caught.value) == (
        f"Docker's configuration gave no login: {why}\n"
        "hint: correct it, or set DOCKER_CONFIG to an empty folder to continue without logins"
    )
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("registry", "host", "may"),
    [
        ("nvcr.io", "nvcr.io", True),
        ("nvcr.io", "nvcr.io.evil.example", False),
        ("docker.io", "auth.docker.io", True),
        ("docker.io", "gitlab.com", False),
        ("registry.gitlab.com", "gitlab.com", True),
        ("registry.example:5000", "registry.example", True),
        ("registry.example:5000", "tokens.example", True),
        ("registry.example", "tokens.example", False),
        ("registry.example", "", False),
    ],
)
def test_who_gets_a_login_to_make_a_token(registry: str, host: str, may: bool) -> None:
    named = {"ENVLOCK_TOKEN_SERVERS": "registry.example:5000=tokens.example nonsense ="}
    assert can_have_login(registry, host, named) == may
