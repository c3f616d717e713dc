"""Which variables make a team's machines compute the same bits? Propose them, and judge by their canaries."""

from __future__ import annotations

from collections.abc import Sequence

from envlock.data.portable_table import load_portable_table
from envlock.lock.models import Lockfile
from envlock.numerics.bisection import read_variables
from envlock.numerics.portability import (
    Member,
    PortableEvidence,
    choose_cap,
    judge_portability,
)
from envlock.runtime.errors import UsageError
from envlock.runtime.machines import describe_machine, list_profiles
from envlock.runtime.own_variables import THREADS
from envlock.runtime.report import Report
from envlock.workflows.locks import get_subject, load_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source

SOFTWARE = ("tensorflow", "numpy")


def portable(
    locks: Sequence[Source],
) -> Report[PortableEvidence]:
    """Return the variables under which the machines of these lockfiles choose the same kernels, and whether they are
    known to compute the same bits: by canaries that were computed under them.

    Args:
        locks: the lockfiles of all machines.

    Raises:
        LockfileError: a lockfile cannot be read.
        UsageError: there is no lockfile.
    """
    if not locks:
        raise UsageError("no lockfile is named", hint="name those of all machines")
    members = []
    for source in locks:
        members += list_members(load_lock(source), get_subject(source))
    cap = choose_cap(members, load_portable_table().cap)
    return judge_portability(members, cap)


def list_members(lock: Lockfile, name: str) -> list[Member]:
    """Return the machines of a lockfile; its canary is that of the first."""
    document = lock.to_document()
    facts = document["facts"]
    recorded = read_variables(facts)
    variables = {name: value for name, value in recorded.items() if value is not None}
    versions = {}
    for section in SOFTWARE:
        version = (facts.get(section) or {}).get("version")
        if isinstance(version, str):
            versions[section] = version
    members = []
    for number, profile in enumerate(list_profiles(document), 1):
        processor = profile["facts"].get("cpu") or {}
        title, numerics = name, lock.numerics
        if number > 1:
            title, numerics = f"{name}, machine {number}", None
        threads = {}
        for fact in THREADS.values():
            if isinstance(processor.get(fact), int):
                threads[fact] = processor[fact]
        members.append(
            Member(
                title,
                describe_machine(profile),
                frozenset(processor.get("flags") or ()),
                threads,
                variables,
                versions,
                numerics,
            )
        )
    return members
