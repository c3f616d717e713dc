"""User and password for an index, from the usual places; they are used, but never stored or shown."""

from __future__ import annotations

import netrc
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from envlock.packages.indexes.index_settings import Index
from envlock.web.client import Credentials

SECONDS = 10
"""The most seconds for the keyring: one that waits for input is abandoned."""


def find_credentials(
    indexes: Sequence[Index], environ: Mapping[str, str] | None = None
) -> Credentials:
    """Return a function from URL to credentials: those of the index URLs, of uv and of netrc.

    Those of an index are used for everything on its host; if several indexes are on one host, those
    of the nearest path.
    """
    if environ is None:
        environ = os.environ
    logins: list[tuple[Index, tuple[str, str]]] = []
    for index in indexes:
        login = _find_login(index, environ)
        if login is not None:
            logins.append((index, login))
    machines = _read_netrc(environ)
    index_hosts = {urlsplit(index.url).hostname for index in indexes}

    def look(url: str) -> tuple[str, str] | None:
        parts = urlsplit(url)
        best = None
        best_depth = -1
        for index, login in logins:
            index_parts = urlsplit(index.url)
            depth = _count_shared_folders(index_parts.path, parts.path)
            if _get_origin(index_parts) == _get_origin(parts) and depth > best_depth:
                best = login
                best_depth = depth
        if best is not None:
            return best
        host = parts.hostname or ""
        # The `default` login of netrc is used for the indexes only: pages name other hosts, which
        # must not receive it.
        if machines is None or not (host in machines.hosts or host in index_hosts):
            return None
        found = machines.authenticators(host)
        if found is None:
            return None
        return found[0], found[2] or ""

    return look


def use_keyring(indexes: Sequence[Index]) -> Credentials:
    """Return a function that asks the `keyring` command, once for each host.

    It is slow, so it is meant for a URL that was refused without credentials.
    """
    users = {_get_origin(urlsplit(index.url)): index.user for index in indexes if index.user}
    # Of several indexes on one host, the first one is used.
    addresses = {_get_origin(urlsplit(index.url)): index.url for index in reversed(indexes)}

    @cache
    def ask(origin: tuple[str, str, int | None]) -> tuple[str, str] | None:
        for service in (addresses.get(origin), origin[1]):
            if not service:
                continue
            login = _ask_keyring(service, users.get(origin))
            if login is not None:
                return login
        return None

    return lambda url: ask(_get_origin(urlsplit(url)))


def _get_origin(parts: SplitResult) -> tuple[str, str, int | None]:
    return parts.scheme, (parts.hostname or ""), parts.port


def _count_shared_folders(path: str, other: str) -> int:
    """Return how many folders two paths have in common, counted from the first."""
    count = 0
    for folder, other_folder in zip(path.split("/"), other.split("/"), strict=False):
        if folder != other_folder:
            break
        count += 1
    return count


def _find_login(index: Index, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return user and password from the index's URL, or else from uv's variables for its name."""
    if index.user is not None and (index.password is not None or index.name is None):
        return index.user, index.password or ""
    if index.name is None:
        return None
    prefix = f"UV_INDEX_{re.sub('[^A-Z0-9]', '_', index.name.upper())}"
    user = environ.get(f"{prefix}_USERNAME")
    password = environ.get(f"{prefix}_PASSWORD")
    if (user or password or index.user) is None:
        return None
    return user or index.user or "", password or ""


def _read_netrc(environ: Mapping[str, str]) -> netrc.netrc | None:
    home = Path(environ.get("HOME") or "/nowhere")
    paths = [home / ".netrc", home / "_netrc"]
    named = environ.get("NETRC")
    if named:
        paths = [Path(named)]
    for path in paths:
        # pip ignores a missing or damaged file, too.
        with suppress(OSError, ValueError, netrc.NetrcParseError):
            return netrc.netrc(str(path))
    return None


def _ask_keyring(service: str, user: str | None) -> tuple[str, str] | None:
    """Return user and password; None if there is no keyring, or it does not answer without input."""
    program = shutil.which("keyring")
    if program is None:
        return None
    command = [program, "--mode", "creds", "get", service]
    if user:
        command = [program, "get", service, user]
    try:
        process = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            start_new_session=True,  # no terminal, so that it cannot ask
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    lines = process.stdout.decode("utf-8", "replace").splitlines()
    if process.returncode != 0:
        return None
    if user and len(lines) == 1:
        return user, lines[0]
    if not user and len(lines) == 2:
        return lines[0], lines[1]
    return None
