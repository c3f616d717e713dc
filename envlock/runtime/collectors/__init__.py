"""The collectors, one file a subject and one line in `COLLECTORS`; together, the live environment as facts.

A collector is a module with `collect(host)`. It returns a tree of facts, None for "looked, there is none", or
`Unavailable`. It reads through the host, imports nothing of what it describes, and leaves no trace.
"""

from __future__ import annotations

from envlock.runtime.collectors import (
    cpu,
    cuda,
    environ,
    gpu,
    keras,
    numpy,
    packages,
    python,
    system,
    tensorflow,
)
from envlock.runtime.facts import Unavailable, split
from envlock.runtime.host import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Union

    from envlock.runtime.facts import Tree

    Collector = Callable[[Host], Optional[Union[Tree, Unavailable]]]

COLLECTORS: Dict[str, Collector] = {
    "python": python.collect,
    "packages": packages.collect,
    "tensorflow": tensorflow.collect,
    "cuda": cuda.collect,
    "gpu": gpu.collect,
    "keras": keras.collect,
    "numpy": numpy.collect,
    "cpu": cpu.collect,
    "system": system.collect,
    "environ": environ.collect,
}


class Snapshot:
    """What the collectors found: `facts`, and by dotted path what was `unavailable`.

    `tooling` are packages that only envlock requires, where that was asked (envlock/runtime/tooling.py).
    """

    __slots__ = ("facts", "tooling", "unavailable")

    def __init__(
        self, facts: Tree, unavailable: Dict[str, Dict[str, str]], tooling: Sequence[str] = ()
    ) -> None:
        self.facts = facts
        self.unavailable = unavailable
        self.tooling = tooling


def snapshot(
    host: Optional[Host] = None, collectors: Optional[Mapping[str, Collector]] = None
) -> Snapshot:
    """Return the facts of this process and machine; nothing is changed, nothing of TensorFlow is imported."""
    machine = Host() if host is None else host
    table = COLLECTORS if collectors is None else collectors
    tree: Dict[str, Any] = {name: _ask(collect, machine) for name, collect in table.items()}
    return Snapshot(*split(tree))


def _ask(collect: Collector, host: Host) -> Any:
    try:
        return collect(host)
    except (
        OSError
    ) as error:  # the file is there and cannot be read: its name may be private, its errno is not
        return Unavailable(f"cannot read a file: {error.strerror}", "unreadable")
