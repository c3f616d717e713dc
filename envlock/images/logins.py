"""User and password for a registry, from where `docker login` puts them, by Docker's own library."""

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
from typing import IO, Any, cast
from urllib.parse import urlsplit

from envlock.data.images import image_table
from envlock.guest import launch
from envlock.images.manifest import RegistryError
from envlock.images.reference import DOCKER_HUB
from envlock.runtime.errors import UsageError

Login = tuple[str, str]
SIZE_LIMIT = 1024 * 1024
SECONDS = 15
"""For a credential helper, which may ask a keyring."""
TOKEN_SERVERS = "ENVLOCK_TOKEN_SERVERS"  # noqa: S105 (a name)
"""Words `REGISTRY=HOST`: further hosts that may be shown a registry's login."""
_NO_USER = "<token>"
"""What a credential helper calls the user of a token that makes tokens."""
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


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
        RegistryError: the configuration cannot be read, or its credential helper fails or takes too long.
    """
    found = _resolve(_read(path or config_path()), registry)
    user, password = (
        found.get("Username", found.get("username")),
        found.get("Password", found.get("password")),
    )
    return (
        (user, password) if isinstance(user, str) and isinstance(password, str) and user else None
    )


def may_have_login(registry: str, host: str, environ: Mapping[str, str] | None = None) -> bool:
    """Return whether a host that is to make a registry's tokens gets its login: itself, its known one, or a named one.

    Args:
        registry: as references name it.
        host: without a port.
        environ: the variables; `os.environ` when not given.
    """
    named = (os.environ if environ is None else environ).get(TOKEN_SERVERS, "")
    known = [(row.registry, row.host) for row in image_table().token_server]
    known += [(name, other) for name, _, other in (word.partition("=") for word in named.split())]
    own = urlsplit(f"//{registry}").hostname
    return host == own or (registry, host) in known


def _resolve(config: dict[str, Any], registry: str) -> dict[str, Any]:
    """Return what Docker's library finds in the configuration, or what a credential helper answers.

    Neither's words are passed on: they can hold a secret.
    """
    from docker.auth import (
        INDEX_NAME,
        INDEX_URL,
        load_config,
        resolve_index_name,
    )  # a tenth of a second
    from docker.errors import DockerException

    server = INDEX_NAME if registry == DOCKER_HUB else registry
    try:
        auths = {
            key: each
            for key, each in (config.get("auths") or {}).items()
            if resolve_index_name(key) == server
        }
        helper = load_config(config_dict={**config, "auths": {}}).get_credential_store(server)
        helped = (
            None
            if helper is None
            else _helped(helper, INDEX_URL if server == INDEX_NAME else server)
        )
        return dict(
            helped or load_config(config_dict={"auths": auths}).resolve_authconfig(server) or {}
        )
    except DockerException:
        raise _failed("a credential helper is missing, or failed") from None
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError):
        raise _failed("an entry is not one of `docker login`") from None


def _helped(helper: str, server: str) -> dict[str, str] | None:
    """Return what a credential helper has; not Docker's own library asks, which takes an answer of any length.

    Source: https://github.com/docker/docker-credential-helpers, "Development"
    """
    if not _HELPER.fullmatch(helper):
        raise _failed("the name of a credential helper is not valid")
    program = shutil.which(f"docker-credential-{helper}")
    if program is None:
        raise _failed("a credential helper is missing, or failed")
    try:
        child = launch.start(["get"], Path(program), output=PIPE, errors=DEVNULL, stdin=PIPE)
    except UsageError:
        raise _failed("a credential helper is missing, or failed") from None
    begin, late = monotonic(), Timer(SECONDS, launch.end, [child])
    late.start()
    try:
        stdin, stdout = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
        with suppress(BrokenPipeError), stdin:
            stdin.write(server.encode())
        said = stdout.read(SIZE_LIMIT + 1)
        code = child.wait() if len(said) <= SIZE_LIMIT else None
    finally:
        late.cancel()
        launch.end(child)
    if monotonic() - begin > SECONDS:
        raise _failed(f"no answer within {SECONDS:g} s")
    if code == 0:
        answer = json.loads(said)
        has_login = (answer["Username"], answer["Secret"]) != ("", "") and answer[
            "Username"
        ] != _NO_USER
        return {"Username": answer["Username"], "Password": answer["Secret"]} if has_login else None
    if code is None or b"credentials not found in native keychain" not in said:
        raise _failed("a credential helper is missing, or failed")
    return None


def _read(path: Path) -> dict[str, Any]:
    if path.is_fifo():
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


def _unreadable(path: Path, why: str) -> RegistryError:
    return RegistryError(
        f"cannot read the logins in {path}: {why}",
        hint="correct the file, or name another folder in DOCKER_CONFIG",
        ours=True,
    )


def _failed(why: str) -> RegistryError:
    return RegistryError(
        f"Docker's configuration gave no login: {why}",
        hint="correct it, or set DOCKER_CONFIG to an empty folder to continue without logins",
        ours=True,
    )
