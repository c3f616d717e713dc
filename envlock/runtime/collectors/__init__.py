"""The collectors, one file for each subject and one line in `COLLECTORS`.

Together they describe the live environment as facts.

A collector is a module with `collect(host)`. It returns a tree of facts, None if its subject does
not exist, or `Unavailable`. It reads through the host, imports nothing that it describes, and
leaves no trace.
"""

from __future__ import annotations

from envlock.runtime.collectors import (
    cpu,
    cuda_build,
    environment_variables,
    frameworks,
    gpu,
    keras_settings,
    named_files,
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
    from typing import Callable, Dict, Mapping, Optional, Sequence, Union

    from envlock.runtime.facts import Tree

    Collector = Callable[[Host], Optional[Union[Tree, Unavailable]]]

COLLECTORS: Dict[str, Collector] = {
    "python": python.collect,
    "packages": packages.collect,
    "tensorflow": tensorflow.collect,
    "cuda": cuda_build.collect,
    "gpu": gpu.collect,
    "keras": keras_settings.collect,
    "jax": frameworks.collect_jax,
    "torch": frameworks.collect_torch,
    "numpy": numpy.collect,
    "cpu": cpu.collect,
    "system": system.collect,
    "environ": environment_variables.collect,
    "named": named_files.collect,
}


class Snapshot:
    """What the collectors found: `facts`, and by dotted path what was `unavailable`.

    `tooling` has the packages that only envlock requires, and `required` those that what computes
    requires, if they were searched for (envlock/runtime/tooling.py).
    """

    __slots__ = ("facts", "required", "tooling", "unavailable")

    def __init__(
        self,
        facts: Tree,
        unavailable: Dict[str, Dict[str, str]],
        tooling: Sequence[str] = (),
        required: Sequence[str] = (),
    ) -> None:
        self.facts = facts
        self.unavailable = unavailable
        self.tooling = tooling
        self.required = required

    def with_facts(
        self, facts: Tree, unavailable: Optional[Dict[str, Dict[str, str]]] = None
    ) -> Snapshot:
        """Return this snapshot with other facts; what was unavailable stays when not given."""
        if unavailable is None:
            unavailable = self.unavailable
        return Snapshot(facts, unavailable, self.tooling, self.required)


def take_snapshot(
    host: Optional[Host] = None, collectors: Optional[Mapping[str, Collector]] = None
) -> Snapshot:
    """Return the facts of this process and machine.

    Nothing is changed, and no part of TensorFlow is imported.
    """
    if host is None:
        host = Host()
    if collectors is None:
        collectors = COLLECTORS
    tree: Tree = {name: _ask(collect, host) for name, collect in collectors.items()}
    return Snapshot(*split(tree))


def _ask(collect: Collector, host: Host) -> Optional[Union[Tree, Unavailable]]:
    try:
        return collect(host)
    except OSError as error:
        # The file exists and cannot be read. Its name may be private, so only the text of the errno
        # is recorded.
        return Unavailable(f"cannot read a file: {error.strerror}", "unreadable")
