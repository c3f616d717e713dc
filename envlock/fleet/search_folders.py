"""Folders of LD_LIBRARY_PATH that cannot change which library is loaded.

Jobs often name a folder of their node, which exists on some nodes only and is empty on others. The
path differs from rank to rank then, and no bits do.
"""

from __future__ import annotations

import os

from envlock.runtime.collectors import Snapshot
from envlock.runtime.collectors.environment_variables import hash_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Mapping, Optional, Tuple

    Found = Tuple[Snapshot, Mapping[str, str]]

NAME = "LD_LIBRARY_PATH"
MOST = 10_000
"""Names of a folder; one with more is kept."""


def drop_folders_without_libraries(
    live: Snapshot, environ: Mapping[str, str], locked: Collection[object] = ()
) -> Found:
    """Return facts and variables without the folders of LD_LIBRARY_PATH that have no library.

    Args:
        live: the facts of this process.
        environ: its variables.
        locked: the values in its lockfile: one of them is not changed.
    """
    recorded = live.facts.get("environ", {}).get(NAME)
    text = _find_text(environ.get(NAME, ""), recorded)
    if text is None or recorded in locked:
        return live, environ
    entries = text.split(":")
    left = [entry for entry in entries if not _is_without_libraries(entry)]
    if left == entries:
        return live, environ
    shortened = ":".join(left)
    value = hash_value(shortened) if left else None
    facts = {**live.facts, "environ": {**live.facts["environ"], NAME: value}}
    return live.with_facts(facts), {**environ, NAME: shortened}


def _find_text(value: str, recorded: object) -> Optional[str]:
    """Return the text whose SHA-256 is recorded: the value, or its first entries where a container
    runtime has appended others.
    """
    entries = value.split(":")
    for number in range(len(entries), 0, -1):
        text = ":".join(entries[:number])
        if hash_value(text) == recorded:
            return text
    return None


def _is_without_libraries(entry: str) -> bool:
    """Return whether the loader finds nothing in a folder, nor below it.

    It also looks in subfolders, such as `glibc-hwcaps`. Source:
    https://man7.org/linux/man-pages/man8/ld.so.8.html
    """
    # Relative to the working directory, a list of its own, or a path that the loader completes.
    if not entry.startswith("/") or ";" in entry or "$" in entry:
        return False
    try:
        with os.scandir(entry) as names:
            for number, name in enumerate(names):
                if number == MOST or ".so" in name.name or name.is_dir():
                    return False
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return True
