"""The user's cache. What is in it decides or runs later, so only what this user wrote counts.

Everything in envlock that reads or writes there asks this module for the folder. What another user
can have written is refused or left unread, as ssh does with keys.
"""

from __future__ import annotations

import os
import stat

from envlock.runtime.errors import UsageError
from envlock.runtime.host import read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Optional

HINT = "set XDG_CACHE_HOME to a folder of your own"


def find_cache(environ: Mapping[str, str]) -> Optional[str]:
    """Return the folder of envlock's cache; None if this user has no home folder.

    It need not exist, and its content may be believed only after `read_own_file` or `make_cache`
    has looked at the owner.

    Source: https://specifications.freedesktop.org/basedir-spec/latest/ (which says to ignore a
    relative XDG_CACHE_HOME)
    """
    cache, home = environ.get("XDG_CACHE_HOME", ""), environ.get("HOME", "")
    if not os.path.isabs(cache):
        if not os.path.isabs(home):
            return None
        cache = os.path.join(home, ".cache")
    return os.path.join(cache, "envlock")


def make_cache(environ: Mapping[str, str], part: str = "") -> str:
    """Return the folder of envlock's cache or of one part, after creating it for this user alone.

    Raises:
        UsageError: it cannot be created, or belongs to another user.
    """
    folder = require_cache(environ, part)
    make_own_folder(os.path.dirname(folder) if part else folder, part)
    return folder


def require_cache(environ: Mapping[str, str], part: str = "") -> str:
    """Return the folder of envlock's cache or of one part, which need not exist.

    Raises:
        UsageError: it belongs to another user, or this user has no home folder.
    """
    if not environ.get("HOME"):  # a service has none, but its user may
        environ = {**environ, "HOME": os.path.expanduser("~")}
    top = find_cache(environ)
    if top is None:
        raise UsageError("this process has no home folder, so it has no cache", hint=HINT)
    folder = os.path.join(top, part) if part else top
    for path in (top, folder):
        if os.path.lexists(path) and not _belongs_to_user(path):
            raise _refuse(path, "it is not this user's folder")
    return folder


def make_own_folder(top: str, below: str = "") -> None:
    """Create a folder and those below it, and let no other user write to them.

    Raises:
        UsageError: one cannot be created, or belongs to another user.
    """
    names = list(filter(None, below.split("/")))
    for number in range(len(names) + 1):
        path = os.path.join(top, *names[:number])
        try:
            try:
                os.makedirs(path, 0o700)
            except FileExistsError:
                # The umask may let others write to it; a folder of another user is left alone.
                if _belongs_to_user(path) and not is_own(path, link=True):
                    os.chmod(path, 0o700)
        except OSError as error:
            raise _refuse(path, str(error.strerror)) from None
        if not is_own(path, link=True):
            raise _refuse(path, "it is not this user's folder")


def _refuse(path: str, reason: str) -> UsageError:
    return UsageError(f"cannot use {path} as a cache: {reason}", hint=HINT)


def read_own_file(
    environ: Mapping[str, str], part: str, name: str, limit: int = 1000
) -> Optional[bytes]:
    """Return the content of a file in a part of the cache, up to a limit; None if it is missing or
    another user can have written it.
    """
    top = find_cache(environ)
    if top is None:
        return None
    folder = os.path.join(top, part)
    file = os.path.join(folder, name)
    if not (is_own(file) and is_own(folder, link=True) and is_own(top, link=True)):
        return None
    try:
        return read_bytes(file, limit)
    except OSError:
        return None


def write_own_file(environ: Mapping[str, str], part: str, name: str, data: bytes) -> None:
    """Write a file into a part of the cache for this user alone; nothing happens without a cache."""
    # Not at the top: line 1 of a script only reads.
    from envlock.runtime.drafts import replace_atomically

    try:
        path = os.path.join(make_cache(environ, part), name)
        with replace_atomically(path, 0o600, is_lasting=False) as stream:
            stream.write(data)
    except (UsageError, OSError):
        return


def _belongs_to_user(path: str) -> bool:
    """Return whether a file or folder belongs to this user; of a link, also what it leads to."""
    try:
        return os.lstat(path).st_uid == os.stat(path).st_uid == os.geteuid()
    except OSError:
        return False


def is_own(path: str, *, link: bool = False) -> bool:
    """Return whether a file or folder belongs to this user and cannot be written by others.

    With `link`, it may be a link of this user to one: caches are moved to larger disks so.
    """
    if not _belongs_to_user(path) or (os.path.islink(path) and not link):
        return False
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return False
    return not mode & (stat.S_IWGRP | stat.S_IWOTH)
