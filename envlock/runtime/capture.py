"""Run the collectors: the live environment as facts."""

from __future__ import annotations

from envlock.runtime.collectors import COLLECTORS
from envlock.runtime.facts import Unavailable, split
from envlock.runtime.host import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional

    from envlock.runtime.collectors import Collector
    from envlock.runtime.facts import Tree


class Snapshot:
    """What the collectors found: `facts`, and by dotted path what was `unavailable`."""

    __slots__ = ("facts", "unavailable")

    def __init__(self, facts: Tree, unavailable: Dict[str, Dict[str, str]]) -> None:
        self.facts = facts
        self.unavailable = unavailable


def snapshot(host: Optional[Host] = None, collectors: Optional[Mapping[str, Collector]] = None) -> Snapshot:
    """Return the facts of this process and machine; nothing is changed, nothing of TensorFlow is imported."""
    machine = Host() if host is None else host
    table = COLLECTORS if collectors is None else collectors
    tree: Dict[str, Any] = {name: _ask(collect, machine) for name, collect in table.items()}
    return Snapshot(*split(tree))


def _ask(collect: Collector, host: Host) -> Any:
    try:
        return collect(host)
    except OSError as error:  # the file is there and cannot be read: its name may be private, its errno is not
        return Unavailable(f"a file it needs cannot be read: {error.strerror}", "unreadable")
