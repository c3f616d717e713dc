"""Which variables make a team's machines compute the same bits? Propose them, and judge by their canaries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from envlock.data.portable_table import Cap, load_portable_table
from envlock.lock.models import Lockfile
from envlock.numerics.bisection import read_variables
from envlock.numerics.canary.canary_comparison import compare
from envlock.numerics.canary.canary_run import Settings, compute
from envlock.numerics.canary.emulation import Emulation, open_emulation
from envlock.numerics.portability import (
    Estimate,
    Member,
    PortableEvidence,
    choose_cap,
    judge_portability,
    make_variables,
)
from envlock.runtime.errors import UsageError
from envlock.runtime.machines import describe_machine, list_profiles
from envlock.runtime.own_variables import THREADS
from envlock.runtime.report import Report
from envlock.workflows.locks import get_subject, load_lock
from envlock.workflows.progress import SILENT, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source

SOFTWARE = ("tensorflow", "numpy")


def portable(
    locks: Sequence[Source],
    *,
    estimate: bool = False,
    python: Path | None = None,
    progress: Progress = SILENT,
) -> Report[PortableEvidence]:
    """Return the variables under which the machines of these lockfiles choose the same kernels, and whether they are
    known to compute the same bits: by canaries that were computed under them.

    Args:
        locks: the lockfiles of all machines.
        estimate: also compute the canary here under these variables, and on an emulated processor that has no more
            than all machines have; takes minutes.
        python: the interpreter of the environment for the estimate; this one when not given.
        progress: shows what is being done.

    Raises:
        LockfileError: a lockfile cannot be read.
        UsageError: there is no lockfile, an estimate is not possible, or there is no such interpreter.
        FactError: the canary cannot be computed.
    """
    if not locks:
        raise UsageError("no lockfile is named", hint="name those of all machines")
    members = []
    for source in locks:
        members += list_members(load_lock(source), get_subject(source))
    cap = choose_cap(members, load_portable_table().cap)
    found = None
    if estimate and cap is not None:
        variables = make_variables(cap, members)
        found = estimate_cap(cap, variables, python, progress)
    return judge_portability(members, cap, found)


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


def estimate_cap(
    cap: Cap, variables: Mapping[str, str], python: Path | None, progress: Progress
) -> Estimate:
    """Return which results of the canary are the same here and on an emulated processor, both under a cap.

    Raises:
        UsageError: no processor of this cap can be emulated.
        FactError: the canary cannot be computed.
    """
    if cap.emulated is None:
        raise UsageError(
            f"no processor can be emulated that has no more than {cap.name}",
            hint="leave out `--estimate`, and compute the canary on each machine",
        )
    settings = Settings()
    progress.say(f"computing the canary here under the cap {cap.name}")
    environ = {**os.environ, **variables}
    # An emulation of nothing: this machine's processor, with the variables of the cap.
    here = compute(python, settings, emulation=Emulation(None, (), environ))
    wanted = {**settings.variables, **variables}
    with open_emulation(cap.emulated, python, wanted) as emulation:
        progress.say(f"computing it on an emulated {emulation.model} (takes minutes)")
        there = compute(python, settings, emulation=emulation)
    found = compare(there.numerics, here.numerics)
    different = [difference.path for difference in found.differences]
    different += [part.path for part in found.incomparable]
    return Estimate(cap.emulated, _shorten(found.equal), _shorten(different))


def _shorten(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(path.removeprefix("numerics.") for path in paths)
