"""The determinism variables, by name from a table: never the whole environment."""

from __future__ import annotations

from envlock.runtime.facts import TEXT_LIMIT, Unavailable
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Union

    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host

_WORD_LIMIT = 64
_FLAG_LIMIT = 24


def collect(host: Host) -> Tree:
    """Return every variable of the table: its value as it may be recorded, None where it is unset.

    Some count only as they were when the process started (the loader's, glibc's). The others TensorFlow reads when
    it first needs them and caches; so once it is imported, one that has changed since the start cannot be told.
    """
    start = host.start_environ()
    late = host.imported("tensorflow")
    return {row["name"]: _value(row, host, start.get(row["name"]), late) for row in table("environ")}


def _value(row: Tree, host: Host, at_start: Optional[str], late: bool) -> Union[str, Unavailable, None]:
    name, kind = row["name"], row["records"]
    if row["read_at"] == "process-start":
        return record(at_start, kind)
    now = host.environ.get(name)
    if late and now != at_start:
        was, is_now = (_told(record(value, kind)) for value in (at_start, now))
        return Unavailable(
            f"it was {was} when the process started and is {is_now} now; TensorFlow is imported and may have cached "
            "either: set it before the process starts, or call envlock before `import tensorflow`",
            "changed-after-start",
        )
    return record(now, kind)


def _told(recorded: Optional[str]) -> str:
    if recorded is None:
        return "unset"
    return (recorded if len(recorded) <= 200 else recorded[:200] + "...") or "empty"


def record(value: Optional[str], kind: str) -> Optional[str]:
    """Return a value as a lock may hold it: as it is when it looks like its kind, else as a SHA-256, UUIDs by a word.

    So nothing secret that was put into one of these variables, by mistake or not, can enter a lock.
    """
    if value is None:
        return None
    if kind == "flags":
        flags = value.split()
        recorded = " ".join(map(_flag, flags))
        return recorded if len(recorded) <= TEXT_LIMIT else digest(" ".join(flags))
    if _fits(value, kind):
        return value
    return (_uuid(value) if kind == "devices" else None) or digest(value)


def _uuid(value: str) -> Optional[str]:
    """Return by which kind of UUID GPUs are named; None where by none. Its digest would identify a GPU as well."""
    if value == "mig-uuid":
        return None  # what is recorded must not be taken for a value that `envlock run` can put back
    kinds = {part.strip()[:4].upper() for part in value.split(",")}
    return "mig-uuid" if "MIG-" in kinds else "uuid" if "GPU-" in kinds else None


def _flag(flag: str) -> str:
    name, equals, value = flag.partition("=")
    known = name.startswith("--") and name.isascii() and name[2:].replace("_", "").isalnum()
    plain = len(value) <= _FLAG_LIMIT and value.isascii() and value.replace("_", "").replace(".", "").isalnum()
    if not known:
        return digest(flag)
    return name if not equals else f"{name}={value if plain else digest(value)}"


def _fits(value: str, kind: str) -> bool:
    if kind == "bool":
        return value.lower() in ("", "0", "1", "true", "false")
    if kind == "integer":
        return value.isascii() and value.lstrip("-").isdigit() and len(value) < 24
    if kind == "devices":
        return not value.strip("0123456789,- ") and len(value) <= _WORD_LIMIT
    if kind == "word":
        plain = value.isascii() and value.translate(_PUNCTUATION).isalnum()
        return value == "" or (plain and len(value) <= _WORD_LIMIT)
    return value == ""


_PUNCTUATION = {ord(char): None for char in "_.,:^+;=-"}


def digest(text: str) -> str:
    """Return the SHA-256 of a value that must not be recorded itself."""
    from hashlib import sha256

    return "sha256:" + sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
