"""The determinism variables, by name from a table; other variables are never read."""

from __future__ import annotations

import sys

from envlock.runtime.distributions import find_distributions
from envlock.runtime.facts import TEXT_LIMIT, Unavailable
from envlock.runtime.own_variables import get_additions, settled
from envlock.runtime.startup import hash_bytes
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Mapping, Optional, Sequence, Union

    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host

# Characters. A longer number or list of words is recorded as a digest: it could hold something else.
_WORD_LIMIT = 64
_WORDS_LIMIT = 300
_SHOWN_LIMIT = 200
"""Characters of a value that a reason may quote."""


def collect(host: Host) -> Tree:
    """Return every variable of the table with the value that may be recorded; None if it is unset.

    The value of some variables (the loader's, glibc's) matters only at the start of the process.
    TensorFlow reads the others when it first needs them, and caches them; once it is imported, a
    variable that has changed since the start is `Unavailable`. A variable that envlock itself has
    set was unset before, and is recorded as unset.
    """
    at_start = host.start_environ()
    is_tensorflow_imported = host.has_imported("tensorflow")
    set_by_envlock = get_additions(host.environ)
    facts: Tree = {}
    installed = find_distributions(host)
    rows = [row for row in table("environ") if _is_read(row, installed)]
    in_c = host.list_c_variables(row["name"] for row in rows)
    for row in rows:
        name = row["name"]
        if name in set_by_envlock:
            facts[name] = None
        elif in_c is not None and _differs_in_c(row, in_c[name], host):
            facts[name] = Unavailable(
                "C code finds another value than `os.environ` has: something in this process has called setenv; "
                "set the variable before the process starts",
                "changed-in-c",
            )
        else:
            facts[name] = _collect_variable(row, host, at_start, is_tensorflow_imported)
    return facts


def _is_read(row: Tree, installed: Mapping[str, object]) -> bool:
    """Return whether TensorFlow, or a package that is installed, can read a variable."""
    return "packages" not in row or any(name in installed for name in row["packages"])


def _differs_in_c(row: Tree, in_c: Optional[str], host: Host) -> bool:
    """Return whether what is read at any time is read with another value by C code."""
    if row["read_at"] == "process-start":
        return False
    return make_recordable(in_c, row) != make_recordable(host.environ.get(row["name"]), row)


def _collect_variable(
    row: Tree, host: Host, environ_at_start: Mapping[str, str], is_tensorflow_imported: bool
) -> Union[str, Unavailable, None]:
    name = row["name"]
    at_start = environ_at_start.get(name)
    if row["read_by"] == "python" and sys.flags.ignore_environment:
        return None  # `python -E` and `-I` ignore it
    if row["read_at"] == "process-start":
        return make_recordable(at_start, row)
    now = host.environ.get(name)
    if is_tensorflow_imported and now != settled.get(name, at_start):
        old = _describe_value(make_recordable(at_start, row))
        new = _describe_value(make_recordable(now, row))
        return Unavailable(
            f"it was {old} when the process started and is {new} now; "
            "TensorFlow is imported and may have read either value: "
            "set it before the process starts, or call envlock before `import tensorflow`",
            "changed-after-start",
        )
    return make_recordable(now, row)


def _describe_value(recorded: Optional[str]) -> str:
    if recorded is None:
        return "unset"
    if len(recorded) > _SHOWN_LIMIT:
        return recorded[:_SHOWN_LIMIT] + "..."
    return recorded or "empty"


def make_recordable(value: Optional[str], row: Tree) -> Optional[str]:
    """Return a value as it may be recorded in a lockfile: itself if it is valid for its variable,
    else its SHA-256.

    So no secret that was put into one of these variables, by mistake or not, can enter a lockfile.
    If GPUs are listed by UUID, only the kind of UUID is recorded.

    Args:
        value: that of the variable; None if it is unset.
        row: the variable's row of the table `environ`.
    """
    if value is None or value in row.get("as_unset", ()):
        return None
    is_number = row["records"] == "integer" and value.isascii() and _is_number(value)
    if is_number and not row.get("as_written"):
        return str(int(value))  # 00 is 0
    kind, words = row["records"], row.get("words", ())
    if kind == "flags":
        flags = _split_flags(value)
        recorded = " ".join([make_flag_recordable(flag, words) for flag in flags])
        if len(recorded) > TEXT_LIMIT:
            return hash_value(" ".join(flags))
        return recorded
    if _is_recordable(value, kind, words):
        return value
    if kind == "devices":
        return _find_uuid_kind(value) or hash_value(value)
    return hash_value(value)


def _split_flags(value: str) -> List[str]:
    """Return the flags of a text; a quoted value may contain blanks. Source: `ParseArgvFromString` of XLA."""
    if "'" not in value and '"' not in value:
        return value.split()
    # Start-up time: quotes are rare.
    import re

    return re.findall(r"""(?a)[-\w]*=(?:'[^']*'?|"(?:\\.|[^"\\])*"?)|\S+""", value)


def _find_uuid_kind(value: str) -> Optional[str]:
    """Return the kind of UUID in a list of GPUs, or None; the digest of a UUID would identify a
    GPU, too.
    """
    if value == "mig-uuid":
        return None  # the word in a lockfile must not look like a value that `envlock run` can set again
    kinds = {part.strip()[:4].upper() for part in value.split(",")}
    if "MIG-" in kinds:
        return "mig-uuid"
    if "GPU-" in kinds:
        return "uuid"
    return None


def make_flag_recordable(flag: str, words: Sequence[str]) -> str:
    """Return a flag as it may be recorded in a lockfile: the name of an unknown flag may itself be
    a secret.
    """
    name, equals, value = flag.partition("=")
    if not name.startswith("--") or name[2:] not in table("flags"):
        return hash_value(flag)
    if not equals:
        return name
    if not _has_only_known_words(value, words):
        value = hash_value(value)
    return f"{name}={value}"


def _is_recordable(value: str, kind: str, words: Sequence[str]) -> bool:
    if value == "":
        return True
    if kind == "bool":
        return value.lower() in ("0", "1", "true", "false")
    if kind == "integer":
        return value.isascii() and value.lstrip("-").isdigit() and len(value) < 24
    if kind == "devices":
        return not value.strip("0123456789,- ") and len(value) <= _WORD_LIMIT
    if kind == "word":
        return _has_only_known_words(value, words)
    return False


def _has_only_known_words(value: str, words: Sequence[str]) -> bool:
    """Return whether a value consists of known words, among which `#` stands for any number."""
    if not value.isascii() or len(value) > _WORDS_LIMIT:
        return False
    for word in value.lower().translate(_PUNCTUATION).split(" "):
        is_known = word in words or ("#" in words and _is_number(word))
        if word and not is_known:
            return False
    return True


def _is_number(text: str) -> bool:
    return text.isdigit() and len(text) <= 12


_PUNCTUATION = {ord(char): " " for char in ".,:^+;=-()"}


def hash_value(text: str) -> str:
    """Return the SHA-256 of a value that must not be recorded itself."""
    return hash_bytes(text.encode("utf-8", "surrogateescape"))
