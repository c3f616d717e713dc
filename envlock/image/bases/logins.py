"""User and password for a registry, as `docker login` stores them, read with Docker's own library."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from threading import Timer
from time import monotonic
from typing import IO, cast
from urllib.parse import urlsplit

from envlock.data.image_tables import load_image_defaults
from envlock.guest import launch
from envlock.image.bases.manifest import RegistryError
from envlock.image.bases.reference import DOCKER_HUB
from envlock.runtime.errors import UsageError

Login = tuple[str, str]
# Bytes of config.json, and of what a helper answers: both come from outside.
SIZE_LIMIT = 1024 * 1024
SECONDS = 15
"""Seconds for a credential helper, which may ask a keyring."""
TOKEN_SERVERS = "ENVLOCK_TOKEN_SERVERS"  # noqa: S105 (a name)
"""The variable with words `REGISTRY=HOST`: additional hosts that the login of a registry may be
sent to.
"""
_NO_USER = "<token>"
"""The user name with which a credential helper marks a token instead of a password."""
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def find_config() -> Path:
    """Return the path of Docker's configuration, whether or not it exists."""
    folder = os.environ.get("DOCKER_CONFIG")
    return Path(folder or Path.home() / ".docker") / "config.json"


def find_login(registry: str, path: Path | None = None) -> Login | None:
    """Return user and password for a registry; None if there is no login.

    Args:
        registry: its name in references.
        path: that of Docker's configuration; Docker's default when not given.

    Raises:
        RegistryError: the configuration cannot be read, or its credential helper fails or takes too
            long.
    """
    entry = _resolve(_read(path or find_config()), registry)
    # The answer of a credential helper has keys with capitals, an entry of the file does not.
    user = entry.get("Username", entry.get("username"))
    password = entry.get("Password", entry.get("password"))
    if isinstance(user, str) and isinstance(password, str) and user:
        return user, password
    return None


def can_have_login(registry: str, host: str, environ: Mapping[str, str] | None = None) -> bool:
    """Return whether a login may be sent to a host that issues tokens for a registry.

    It may be sent to the registry itself, its known token server, or a host that `TOKEN_SERVERS`
    names.

    Args:
        registry: its name in references.
        host: without a port.
        environ: the variables; `os.environ` when not given.
    """
    if environ is None:
        environ = os.environ
    if host == urlsplit(f"//{registry}").hostname:
        return True
    for row in load_image_defaults().token_server:
        if (row.registry, row.host) == (registry, host):
            return True
    return f"{registry}={host}" in environ.get(TOKEN_SERVERS, "").split()


def _resolve(config: dict[str, object], registry: str) -> Mapping[str, object]:
    """Return the entry for a registry, from Docker's library or a credential helper, or an empty
    one.
    """
    # Importing Docker's SDK takes a tenth of a second, and most registries are used without a
    # login.
    from docker import auth, errors

    server = registry
    address = registry
    if registry == DOCKER_HUB:
        server, address = auth.INDEX_NAME, auth.INDEX_URL
    # The messages of the library and of the helper are not passed on: they can contain a secret.
    try:
        entries = cast("Mapping[str, object]", config.get("auths") or {})
        # Only the entries of this registry are parsed: one of another may be malformed.
        auths = {
            key: value for key, value in entries.items() if auth.resolve_index_name(key) == server
        }
        helper = auth.load_config(config_dict={**config, "auths": {}}).get_credential_store(server)
        if helper is not None:
            entry = _ask_helper(helper, address)
            if entry:
                return entry
        return dict(auth.load_config(config_dict={"auths": auths}).resolve_authconfig(server) or {})
    except errors.DockerException:
        raise _make_login_error("a credential helper is missing, or failed") from None
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError):
        raise _make_login_error("an entry is not one of `docker login`") from None


def _ask_helper(helper: str, server: str) -> dict[str, str] | None:
    """Return the login that a credential helper has; None if it has none.

    Source: https://github.com/docker/docker-credential-helpers, "Development"
    """
    # Not with Docker's own library, which reads an answer of any length.
    if not _HELPER.fullmatch(helper):
        raise _make_login_error("the name of a credential helper is not valid")
    program = shutil.which(f"docker-credential-{helper}")
    if program is None:
        raise _make_login_error("a credential helper is missing, or failed")
    try:
        child = launch.start(["get"], Path(program), output=PIPE, errors=DEVNULL, stdin=PIPE)
    except UsageError:
        raise _make_login_error("a credential helper is missing, or failed") from None
    # To read the answer has no time limit of its own: it ends when the helper is killed.
    started = monotonic()
    timer = Timer(SECONDS, launch.kill, [child])
    timer.start()
    code = None
    try:
        stdin, stdout = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
        with suppress(BrokenPipeError), stdin:
            stdin.write(server.encode())
        output = stdout.read(SIZE_LIMIT + 1)
        if len(output) <= SIZE_LIMIT:
            code = child.wait()
    finally:
        timer.cancel()
        launch.kill(child)
    if monotonic() - started > SECONDS:
        raise _make_login_error(f"no answer within {SECONDS:g} s")
    if code == 0:
        return _parse_answer(output)
    # The words of all helpers:
    # https://github.com/docker/docker-credential-helpers/blob/master/credentials/error.go
    if code is not None and b"credentials not found in native keychain" in output:
        return None
    raise _make_login_error("a credential helper is missing, or failed")


def _parse_answer(output: bytes) -> dict[str, str] | None:
    answer = json.loads(output)
    user, secret = answer["Username"], answer["Secret"]
    if (user, secret) == ("", "") or user == _NO_USER:
        return None
    return {"Username": user, "Password": secret}


def _read(path: Path) -> dict[str, object]:
    if path.is_fifo():  # opening one would block until another process writes to it
        raise _unreadable(path, "it is not a regular file")
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


def _unreadable(path: Path, reason: str) -> RegistryError:
    return RegistryError(
        f"cannot read the logins in {path}: {reason}",
        hint="correct the file, or name another folder in DOCKER_CONFIG",
    )


def _make_login_error(reason: str) -> RegistryError:
    return RegistryError(
        f"Docker's configuration gave no login: {reason}",
        hint="correct it, or set DOCKER_CONFIG to an empty folder to continue without logins",
    )
