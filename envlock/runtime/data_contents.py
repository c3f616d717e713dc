"""The digest of the contents of a data path: computed from the files, or taken from what is known.

A digest has its algorithm in front. `sha256:` is envlock's own, of all names and the SHA-256 of
each file. `md5:` is DVC's: of a file, the MD5 of its bytes; of a folder, with `.dir` at its end, the
MD5 of DVC's list of its files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re

from envlock.runtime.data_files import make_error, survey
from envlock.runtime.files.read_file import create_hasher
from envlock.runtime.host import read_bytes
from envlock.runtime.machine_proof import folder as find_proofs
from envlock.runtime.machine_proof import is_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, List, Mapping, Optional

    from envlock.runtime.data_files import DataFile, Survey

    Advance = Callable[[int], None]
    """Called with the number of bytes that were read."""

OWN, DVC = "sha256", "md5"
FOLDER = ".dir"
"""The end of DVC's digest of a folder."""
CHUNK = 1 << 20
SETTLED = 2_000_000_000
"""Nanoseconds: a file that has changed within this time can change again and keep its times, on a
file system with coarse ones.
"""
DVC_LIMIT = 100_000
"""Bytes of a `.dvc` file; one for a folder of any size has some hundred."""

ANNEX = re.compile(r"/annex/objects/.*/SHA256E?-s(\d+)--([0-9a-f]{64})(\.[^/]*)?$")
"""Where a link of git-annex leads: size and SHA-256 of the content are in the name of its key.

Source: https://git-annex.branchable.com/internals/key_format/
"""
FIELD = re.compile(r"(?:- |  )(md5|size|nfiles|hash|path): (.+)")
"""A field of the one output in a `.dvc` file, as DVC 3 writes it.

Source: https://dvc.org/doc/user-guide/project-structure/dvc-files
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
    whole.update(json.dumps(tree).encode("ascii"))
    return whole.hexdigest() + FOLDER


def _get_relative_path(entry: Dict[str, str]) -> str:
    return entry["relpath"]


def find_known(path: str, found: Survey, environ: Mapping[str, str]) -> List[str]:
    """Return the digests of the contents that are known without reading them, the surest first."""
    known = [read_note(environ, path, found), _read_annex(found), _read_dvc(path, found)]
    return [digest for digest in known if digest is not None]


def _read_annex(found: Survey) -> Optional[str]:
    """Return the digest by the keys of git-annex; None unless it has each file."""
    digests = {}
    for file in found.files:
        try:
            key = ANNEX.search("/" + os.readlink(file.path))
        except OSError:  # no link
            return None
        if key is None or int(key.group(1)) != file.size:
            return None
        digests[file.name] = key.group(2)
    if not digests:
        return None
    return _combine(found, digests, OWN)


def _read_dvc(path: str, found: Survey) -> Optional[str]:
    """Return the digest in the `.dvc` file beside a data path; None without one, or if the number of
    files or their size is another: then it is not about them.
    """
    try:
        data = read_bytes(f"{path}.dvc", DVC_LIMIT)
    except OSError:
        return None
    fields = {}
    for line in (data or b"").decode("utf-8", "replace").splitlines():
        field = FIELD.fullmatch(line)
        if field is not None:
            fields[field.group(1)] = field.group(2).strip("'\"")
    about = {
        "path": os.path.basename(path),
        "size": str(found.size),
        "nfiles": str(len(found.files)),
        # DVC 2 wrote the file without it: its MD5 is that of a text with other ends of lines.
        "hash": "md5",
    }
    fields.setdefault("nfiles", "1")
    digest = fields.pop("md5", "")
    if fields != about or not re.fullmatch(r"[0-9a-f]{32}(\.dir)?", digest):
        return None
    return f"{DVC}:{digest}"


def find_note(environ: Mapping[str, str], path: str) -> Optional[str]:
    """Return the file in the user's cache that notes the digest of what is at a path; None if the
    process has no home folder.
    """
    proofs = find_proofs(environ)
    if proofs is None:
        return None
    key = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()
    return os.path.join(os.path.dirname(proofs), "data", key)


def render_note(state: str, content: str) -> bytes:
    """Return what a note says: which state of the files has which digest."""
    return f"envlock data 1\n{state}\n{content}\n".encode("ascii")


def read_note(environ: Mapping[str, str], path: str, found: Survey) -> Optional[str]:
    """Return the digest of the contents, if they were read before and have not changed since."""
    file = find_note(environ, path)
    if file is None:
        return None
    folder = os.path.dirname(file)
    if not all(map(is_own, (file, folder, os.path.dirname(folder)))):
        return None
    lines = (read_bytes(file, 1000) or b"").split(b"\n")
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
