"""The determinism variables, by name from a table: never the whole environment."""

from __future__ import annotations

import sys

from envlock.runtime.facts import TEXT_LIMIT, Unavailable
from envlock.runtime.own_variables import added, settled
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Optional, Sequence, Union

    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host

_WORD_LIMIT = 64
_WORDS_LIMIT = 300


def collect(host: Host) -> Tree:
    """Return every variable of the table: its value as it may be recorded, None where it is unset.

    Some count only as they were when the process started (the loader's, glibc's). The others TensorFlow reads when
    it first needs them and caches; so once it is imported, one that has changed since the start cannot be told.
    What envlock itself has added was unset before, and is so told.
    """
    start = host.start_environ()
    late = host.imported("tensorflow")
    own = added(host.environ)
    return {
        row["name"]: None if row["name"] in own else _value(row, host, start.get(row["name"]), late)
        for row in table("environ")
    }


def _value(
    row: Tree, host: Host, at_start: Optional[str], late: bool
) -> Union[str, Unavailable, None]:
    name = row["name"]
    if row["read_by"] == "python" and sys.flags.ignore_environment:
        return None  # `python -E` and `-I` do not look at it
    if row["read_at"] == "process-start":
        return record(_without_appended(at_start, row, host.start_environ()), row)
    now = host.environ.get(name)
    if late and now != settled.get(row["name"], at_start):
        was, is_now = (_told(record(value, row)) for value in (at_start, now))
        return Unavailable(
            f"it was {was} when the process started and is {is_now} now; TensorFlow is imported and may have read "
            "either value: set it before the process starts, or call envlock before `import tensorflow`",
            "changed-after-start",
        )
    return record(now, row)


def _without_appended(value: Optional[str], row: Tree, environ: Mapping[str, str]) -> Optional[str]:
    """Return a path list without the last entries, where the container runtime that appends them is at work.

    Nothing else can be told apart from them: without that runtime's own variable, or elsewhere in the list, they stay.
    """
    if value is None or not any(environ.get(name) for name in row.get("appended_under", ())):
        return value
    entries = value.split(":")
    while entries and entries[-1] in row["appended"]:
        entries.pop()
    return ":".join(entries) if entries else None


def _told(recorded: Optional[str]) -> str:
    if recorded is None:
        return "unset"
    return (recorded if len(recorded) <= 200 else recorded[:200] + "...") or "empty"


def record(value: Optional[str], row: Tree) -> Optional[str]:
    """Return a value as a lock may hold it: as it is when it is what its variable takes, else as a SHA-256.

    So nothing secret that was put into one of these variables, by mistake or not, can enter a lock. GPUs that are
    named by UUID leave a word.

    Args:
        value: the variable's; None where it is unset.
        row: the variable's row of the table `environ`.
    """
    if value is None or value in row.get("as_unset", ()):
        return None
    kind, words = row["records"], row.get("words", ())
    if kind == "flags":
        flags = value.split()
        recorded = " ".join([_flag(flag, words) for flag in flags])
        return recorded if len(recorded) <= TEXT_LIMIT else digest(" ".join(flags))
    if _fits(value, kind, words):
        return value
    return (_uuid(value) if kind == "devices" else None) or digest(value)


def _uuid(value: str) -> Optional[str]:
    """Return by which kind of UUID GPUs are named; None where by none. Its digest would identify a GPU as well."""
    if value == "mig-uuid":
        return (
            None  # what is recorded must not be taken for a value that `envlock run` can put back
        )
    kinds = {part.strip()[:4].upper() for part in value.split(",")}
    return "mig-uuid" if "MIG-" in kinds else "uuid" if "GPU-" in kinds else None


def _flag(flag: str, words: Sequence[str]) -> str:
    """Return a flag as a lock may hold it: one that no table names may be a secret itself."""
    name, equals, value = flag.partition("=")
    if not name.startswith("--") or name[2:] not in table("flags"):
        return digest(flag)
    return name if not equals else f"{name}={value if _known(value, words) else digest(value)}"


def _fits(value: str, kind: str, words: Sequence[str]) -> bool:
    if kind == "bool":
        return value.lower() in ("", "0", "1", "true", "false")
    if kind == "integer":
        return value.isascii() and value.lstrip("-").isdigit() and len(value) < 24
    if kind == "devices":
        return not value.strip("0123456789,- ") and len(value) <= _WORD_LIMIT
    if kind == "word":
        return _known(value, words)
    return value == ""


def _known(value: str, words: Sequence[str]) -> bool:
    """Return whether a value consists of known words; `#` among them stands for numbers."""
    if not value.isascii() or len(value) > _WORDS_LIMIT:
        return False
    parts = value.lower().translate(_PUNCTUATION).split(" ")
    return all(not part or part in words or ("#" in words and _is_number(part)) for part in parts)


def _is_number(text: str) -> bool:
    return text.isdigit() and len(text) <= 12


_PUNCTUATION = {ord(char): " " for char in ".,:^+;=-()"}


def digest(text: str) -> str:
    """Return the SHA-256 of a value that must not be recorded itself."""
    from hashlib import sha256

    return "sha256:" + sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
