"""The digest of the contents of a data path: computed from the files, or from envlock's own note of
an earlier reading.

What others say about the files counts for nothing: a `.dvc` file, a key of git-annex, a pointer of
git-lfs or the name of a blob in a cache says what should be there, not what is.

A digest has its algorithm in front. `sha256:` is envlock's own, of all names and the SHA-256 of
each file. `md5:` is DVC's, which earlier lockfiles have: of a file, the MD5 of its bytes; of a
folder, with `.dir` at its end, the MD5 of DVC's list of its files.
"""

from __future__ import annotations

import hashlib
import os

from envlock.runtime.data_files import DataFile, Survey, make_error, survey
from envlock.runtime.files.hashers import create_hasher
from envlock.runtime.user_cache import read_own_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, List, Mapping, Optional

    Advance = Callable[[int], None]
    """Called with the number of bytes that were read."""

OWN, DVC = "sha256", "md5"
FOLDER = ".dir"
"""The end of DVC's digest of a folder."""
NOTES = "data"
"""The part of the user's cache that holds notes of digests."""
CHUNK = 1 << 20
SETTLED = 2_000_000_000
"""Nanoseconds: a file that has changed within this time can change again and keep its times, on a
file system with coarse ones.
"""


def ignore_progress(size: int) -> None:
    """Do nothing with the number of bytes that were read."""


def read_contents(
    path: str, found: Survey, algorithm: str = OWN, advance: Advance = ignore_progress
) -> str:
    """Return the digest of the contents after reading every file.

    Raises:
        FactError: a file cannot be read, or the files have changed in the meantime.
    """
    digests = {}
    for file in found.files:
        digests[file.name] = _hash_file(file, algorithm, advance)
    again = survey(path)
    if again is None or again.state != found.state:
        raise make_error(path, "it was changed while it was read")
    return _combine(found, digests, algorithm)


def _hash_file(file: DataFile, algorithm: str, advance: Advance) -> str:
    """Return the digest of one file, as hexadecimal digits."""
    digest = create_hasher(algorithm)
    try:
        with open(file.path, "rb", buffering=0) as stream:
            while True:
                data = stream.read(CHUNK)
                if not data:
                    return digest.hexdigest()
                digest.update(data)
                advance(len(data))
    except OSError as error:
        raise make_error(file.path, error.strerror) from None


def _combine(found: Survey, digests: Mapping[bytes, str], algorithm: str) -> str:
    """Return the digest of a data path, from those of its files."""
    if algorithm == DVC:
        return f"{DVC}:{_combine_as_dvc(digests)}"
    combined = hashlib.sha256()
    for file in found.files:
        combined.update(b"%s\0%s\n" % (file.name, digests[file.name].encode("ascii")))
    return f"{OWN}:{combined.hexdigest()}"


def _combine_as_dvc(digests: Mapping[bytes, str]) -> str:
    """Return what DVC calls a file or folder.

    Source: https://github.com/iterative/dvc-data, src/dvc_data/hashfile/tree.py
    """
    if list(digests) == [b""]:
        return digests[b""]
    tree: List[Dict[str, str]] = []
    for name, digest in digests.items():
        # DVC sorts the keys, and so they stand here.
        tree.append({"md5": digest, "relpath": os.fsdecode(name)})
    tree.sort(key=_get_relative_path)
    whole = create_hasher(DVC)
    # Not at the top: only DVC's digest needs it, and an editable install's start takes this module.
    import json

    whole.update(json.dumps(tree).encode("ascii"))
    return whole.hexdigest() + FOLDER


def _get_relative_path(entry: Dict[str, str]) -> str:
    return entry["relpath"]


def name_note(path: str) -> str:
    """Return the name of the file in the user's cache that notes the digest of what is at a path."""
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()


def render_note(state: str, content: str) -> bytes:
    """Return what a note says: which state of the files has which digest."""
    return f"envlock data 1\n{state}\n{content}\n".encode("ascii")


def read_note(environ: Mapping[str, str], path: str, found: Survey) -> Optional[str]:
    """Return the digest of the contents, if they were read before and have not changed since."""
    lines = (read_own_file(environ, NOTES, name_note(path)) or b"").split(b"\n")
    if len(lines) != 4 or not lines[2].isascii():
        return None
    content = lines[2].decode("ascii")
    # The whole file is compared: a note on another state, or in another format, does not count.
    if b"\n".join(lines) != render_note(found.state, content):
        return None
    return content


def is_settled(found: Survey, now: int) -> bool:
    """Return whether a further change of a file would show in its times; `now` is in nanoseconds."""
    return all(file.changed + SETTLED < now for file in found.files)
