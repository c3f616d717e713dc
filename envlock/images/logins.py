"""User and password for a registry, from where `docker login` puts them."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from envlock.images.manifest import RegistryError
from envlock.images.reference import DOCKER_HUB
from envlock.runtime.report import clean

Login = tuple[str, str]
SIZE_LIMIT = 1024 * 1024
SECONDS = 15
"""For a credential helper, which may ask a keyring."""

_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HUB_KEY = "https://index.docker.io/v1/"
_NO_LOGIN = "credentials not found in native keychain"
"""What every helper says, by their protocol, when it has none."""


def config_path() -> Path:
    """Return where Docker's configuration is, whether or not it exists."""
    folder = os.environ.get("DOCKER_CONFIG")
    return Path(folder or Path.home() / ".docker") / "config.json"


def login(registry: str, path: Path | None = None) -> Login | None:
    """Return user and password for a registry; None where there are none.

    Args:
        registry: as references name it.
        path: of Docker's configuration; default: Docker's own.

    Raises:
        RegistryError: the configuration cannot be read, or its credential helper fails.
    """
    config = _read(path or config_path())
    helpers = config.get("credHelpers")
    helper = helpers.get(registry) if isinstance(helpers, dict) else None
    helper = helper or config.get("credsStore")
    if isinstance(helper, str) and helper:
        return _ask(helper, _HUB_KEY if registry == DOCKER_HUB else registry)
    auths = config.get("auths")
    for key, entry in (auths if isinstance(auths, dict) else {}).items():
        if _host(key) == registry and isinstance(entry, dict) and (found := _stored(entry)) is not None:
            return found
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise _unreadable(path, error.strerror or "it cannot be opened") from None
    if len(data) > SIZE_LIMIT:
        raise _unreadable(path, "it is larger than 1 MB")
    try:
        config = json.loads(data)
    except (ValueError, RecursionError):
        raise _unreadable(path, "it is not JSON") from None
    if not isinstance(config, dict):
        raise _unreadable(path, "it is not an object")
    return config


def _unreadable(path: Path, why: str) -> RegistryError:
    return RegistryError(
        f"cannot read the logins in {clean(str(path))}: {why}",
        hint="correct the file, or name another folder in DOCKER_CONFIG",
        ours=True,
    )


def _host(key: str) -> str:
    """Return the registry that a key of `auths` is for: `https://index.docker.io/v1/` is Docker's own."""
    host = re.sub(r"^https?://", "", key).partition("/")[0]
    return DOCKER_HUB if host in ("index.docker.io", "registry-1.docker.io") else host


def _stored(entry: dict[str, Any]) -> Login | None:
    if isinstance(entry.get("username"), str) and isinstance(entry.get("password"), str):
        return entry["username"], entry["password"]
    packed = entry.get("auth")
    try:
        text = base64.b64decode(packed, validate=True).decode("utf-8") if isinstance(packed, str) else ""
    except (binascii.Error, UnicodeDecodeError):
        return None
    user, colon, password = text.rstrip("\0").partition(":")
    return (user, password) if colon and user else None


def _ask(helper: str, server: str) -> Login | None:
    """Return what a credential helper of Docker's has for a server."""
    if _HELPER.fullmatch(helper) is None:
        raise _helper_failed(helper, "its name is none")
    program = f"docker-credential-{helper}"
    try:
        done = subprocess.run(
            [program, "get"], input=server.encode(), capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise _helper_failed(helper, f"it did not answer within {SECONDS} s") from None
    except OSError as error:
        raise _helper_failed(helper, error.strerror or "it cannot be run") from None
    if done.returncode != 0:
        if _NO_LOGIN in done.stdout.decode("utf-8", "replace"):
            return None
        raise _helper_failed(helper, f"it ended with {done.returncode}")
    try:
        answer = json.loads(done.stdout[:SIZE_LIMIT])
        user, password = answer["Username"], answer["Secret"]
    except (ValueError, RecursionError, KeyError, TypeError):
        raise _helper_failed(helper, "its answer cannot be read") from None
    told = isinstance(user, str) and isinstance(password, str) and user not in ("", "<token>")
    return (user, password) if told else None


def _helper_failed(helper: str, why: str) -> RegistryError:
    return RegistryError(
        f"the credential helper docker-credential-{clean(helper[:60])} gave no login: {why}",
        hint="repair it, or name a folder without it in DOCKER_CONFIG to go on without logins",
        ours=True,
    )
