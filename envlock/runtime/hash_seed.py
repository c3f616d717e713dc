"""Whether sets of strings have one order: Python takes its hash seed once, when it starts."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.runtime.host import Host

NAME = "PYTHONHASHSEED"


def is_fixed(host: Host) -> bool:
    """Return whether this process was started with a fixed hash seed; what was set in it since does not count."""
    if not sys.flags.hash_randomization:
        return True
    return not sys.flags.ignore_environment and is_number(host.start_environ().get(NAME, ""))


def is_number(value: str) -> bool:
    """Return whether a value fixes the hash seed: `random` and nothing do not."""
    return value.isascii() and value.isdigit()
