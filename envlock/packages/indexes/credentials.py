"""User and password for an index, from the usual places; they are used, never stored and never shown."""

from __future__ import annotations

import netrc
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import takewhile
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from envlock.packages.indexes.index_settings import Index
from envlock.web.client import Credentials

SECONDS = 10
"""How long the keyring may take; one that asks somebody is given up."""


def known(indexes: Sequence[Index], environ: Mapping[str, str] | None = None) -> Credentials:
    """Return what knows the credentials for a URL, from the URLs of the indexes, uv's variables and netrc.

    Those of an index count for everything on its host; of several there, for what its path is nearest to. The `default`
    login of netrc is for the indexes: pages name other hosts, which must not receive it.
    """
    environ = os.environ if environ is None else environ
    logins = [(index, login) for index in indexes if (login := _login(index, environ)) is not None]
    machines = _netrc(environ)
    own = {urlsplit(index.url).hostname for index in indexes}

    def look(url: str) -> tuple[str, str] | None:
        parts = urlsplit(url)
        here = [
            (index, login)
            for index, login in logins
            if _origin(urlsplit(index.url)) == _origin(parts)
        ]
        if here:
            return max(here, key=lambda one: _shared(urlsplit(one[0].url).path, parts.path))[1]
        host = parts.hostname or ""
        if machines is None or not (host in machines.hosts or host in own):
            return None
        found = machines.authenticators(host)
        return None if found is None else (found[0], found[2] or "")

    return look


def keyring(indexes: Sequence[Index]) -> Credentials:
    """Return what asks the `keyring` command, once for each host; it is slow, so it is for whoever was refused."""
    users = {_origin(urlsplit(index.url)): index.user for index in indexes if index.user}
    addresses = {_origin(urlsplit(index.url)): index.url for index in reversed(indexes)}

    @cache
    def ask(origin: tuple[str, str, int | None]) -> tuple[str, str] | None:
        services = [each for each in (addresses.get(origin), origin[1]) if each]
        return next(
            filter(None, (_keyring(service, users.get(origin)) for service in services)), None
        )

    return lambda url: ask(_origin(urlsplit(url)))


def _origin(parts: SplitResult) -> tuple[str, str, int | None]:
    return parts.scheme, (parts.hostname or ""), parts.port


def _shared(one: str, other: str) -> int:
    """Return how many folders two paths have in common, from the first one on."""
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _login(index: Index, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return what stands in the index's URL, or else in uv's variables for its name."""
    if index.user is not None and (index.password is not None or index.name is None):
        return index.user, index.password or ""
    prefix = f"UV_INDEX_{re.sub('[^A-Z0-9]', '_', (index.name or '').upper())}"
    user, password = environ.get(f"{prefix}_USERNAME"), environ.get(f"{prefix}_PASSWORD")
    if index.name is None or (user or password or index.user) is None:
        return None
    return user or index.user or "", password or ""


def _netrc(environ: Mapping[str, str]) -> netrc.netrc | None:
    named = environ.get("NETRC")
    home = Path(environ.get("HOME") or "/nowhere")
    for file in [Path(named)] if named else [home / ".netrc", home / "_netrc"]:
        with suppress(
            OSError, ValueError, netrc.NetrcParseError
        ):  # not there or not one: pip passes over it too
            return netrc.netrc(str(file))
    return None


def _keyring(service: str, user: str | None) -> tuple[str, str] | None:
    """Return what the keyring holds; nothing where there is none, or it does not answer by itself."""
    program = shutil.which("keyring")
    if program is None:
        return None
    argv = [program, "get", service, user] if user else [program, "--mode", "creds", "get", service]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            start_new_session=True,  # no terminal that it could ask on
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    if done.returncode != 0 or len(lines) != (1 if user else 2):
        return None
    return (user, lines[0]) if user else (lines[0], lines[1])
