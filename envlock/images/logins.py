"""User and password for a registry, from where `docker login` puts them, by Docker's own library."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from envlock.data.images import image_table
from envlock.images.manifest import RegistryError
from envlock.images.reference import DOCKER_HUB

Login = tuple[str, str]
SIZE_LIMIT = 1024 * 1024
SECONDS = 15
"""For a credential helper, which may ask a keyring."""
TOKEN_SERVERS = "ENVLOCK_TOKEN_SERVERS"  # noqa: S105 (a name)
"""Words `REGISTRY=HOST`: further hosts that may be shown a registry's login."""
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
    config = _read(path or config_path())
    answers: list[dict[str, Any] | RegistryError] = []
    thread = Thread(target=lambda: answers.append(_resolve(config, registry)), daemon=True)
    thread.start()
    thread.join(SECONDS)
    if not answers:
        raise _failed(f"no answer within {SECONDS:g} s")
    found = answers[0]
    if isinstance(found, RegistryError):
        raise found
    user, password = found.get("Username", found.get("username")), found.get("Password", found.get("password"))
    return (user, password) if isinstance(user, str) and isinstance(password, str) and user else None


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


def _resolve(config: dict[str, Any], registry: str) -> dict[str, Any] | RegistryError:
    """Return what Docker's library finds in the configuration, or gets from a credential helper.

    Its own error texts hold what a helper has printed, which can be a secret: they are not passed on.
    """
    from docker.auth import load_config, resolve_authconfig, resolve_index_name  # a tenth of a second
    from docker.credentials.errors import StoreError
    from docker.errors import DockerException

    server = "docker.io" if registry == DOCKER_HUB else registry
    try:
        auths = {key: each for key, each in (config.get("auths") or {}).items() if resolve_index_name(key) == server}
        known = load_config(config_dict={**config, "auths": auths})
        helper = known.get_credential_store(server)  # the one that would be asked; others need not be there
        if helper is not None and not _HELPER.fullmatch(helper):
            return _failed("the name of a credential helper is not valid")
        if helper is not None and not shutil.which(f"docker-credential-{helper}"):
            return _failed("a credential helper is missing, or failed")
        return dict(resolve_authconfig(known, server) or {})
    except (DockerException, StoreError):
        return _failed("a credential helper is missing, or failed")
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError):
        return _failed("an entry is not one of `docker login`")


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
