"""What variables lead to: the files that they name, and what is found through them.

The text of such a variable is a fact too (`environ`), and only says why: where both sides have looked at
what it leads to, that decides.
"""

from __future__ import annotations

from envlock.runtime.own_variables import get_additions
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Union

    from envlock.runtime.facts import Tree, Unavailable
    from envlock.runtime.host import Host

PRELOAD = "LD_PRELOAD"
SYSTEM_PRELOAD = "/etc/ld.so.preload"
"""Its libraries are loaded after those of LD_PRELOAD: https://man7.org/linux/man-pages/man8/ld.so.8.html"""


def collect(host: Host) -> Tree:
    """Return what each variable of the table that names something leads to; None for nothing."""
    at_start = host.start_environ()
    set_by_envlock = get_additions(host.environ)
    facts: Tree = {}
    for row in table("environ"):
        if "names" not in row:
            continue
        name = row["name"]
        environ = at_start if row["read_at"] == "process-start" else host.environ
        value = "" if name in set_by_envlock else environ.get(name, "")
        facts[name] = _look(row, value, host)
    return facts


def _look(row: Tree, value: str, host: Host) -> Optional[Union[List[str], Unavailable]]:
    if row["name"] == PRELOAD:
        value = f"{value} {read_preload(host)}".strip()
    if not value:
        return None
    # Not at the top: most processes have none of these variables.
    from envlock.runtime.named_content import describe

    return describe(row, value, host) or None


def read_preload(host: Host) -> str:
    """Return the libraries that the system preloads into every program."""
    try:
        text = host.read(SYSTEM_PRELOAD)
    except OSError:  # the loader works without it, too
        return ""
    if not text:
        return ""
    return " ".join(line.partition("#")[0] for line in text.splitlines()).strip()
