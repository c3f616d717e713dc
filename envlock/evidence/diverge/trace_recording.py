"""Record one run of a user's program in this environment, to be compared with one of another."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envlock.evidence.diverge.observed_runs import Request, Say, need_finished, observe
from envlock.evidence.diverge.trace import CONDITIONS_LIMIT, Header, Scalar, read
from envlock.guest.tracing.trace_writer import TEXT_LIMIT
from envlock.lock.temporary import open_draft_folder
from envlock.lock.writer import replace_file
from envlock.runtime.facts import iter_leaves

_LEFT_OUT = ("packages", "cuda")
"""Sections of the facts that are too long for a header; versions stand for what they decide."""


@dataclass(frozen=True)
class Recorded:
    """A trace that has been written.

    Attributes:
        steps, entries: how long the run was.
    """

    header: Header
    end: Mapping[str, Scalar]
    size: int
    entries: int
    steps: int


def record(request: Request, output: Path, say: Say) -> Recorded:
    """Run the program once, eagerly, and write its trace to `output`, whole or not at all.

    Raises:
        EnvlockError: it cannot be run or fails, operations are not visible, or writing fails.
    """
    say("running it eagerly, operation by operation")
    with open_draft_folder(None) as folder:
        wanted = replace(request, runs=1, fresh=True, mode="eager")
        seen = need_finished(observe(wanted, folder / "traced"))
        with seen.traces[0].open("rb") as source, replace_file(output, "trace") as file:
            shutil.copyfileobj(source, file)
        trace = read(output)
        entries = sum(1 for _ in trace)
        size = output.stat().st_size
        return Recorded(trace.header, trace.end or {}, size, entries, seen.comparison.steps)


def collect_conditions(facts: Mapping[str, object]) -> dict[str, Scalar]:
    """Return the facts of an environment by their dotted paths, as the header of a trace has them."""
    found: dict[str, Scalar] = {}
    for path, value in iter_leaves(facts):
        if value in (None, {}) or path.startswith(_LEFT_OUT) or len(found) >= CONDITIONS_LIMIT:
            continue
        if isinstance(value, list):
            value = " ".join(map(str, value))
        if isinstance(value, str):
            value = value[:TEXT_LIMIT]
        found[path[:TEXT_LIMIT]] = value
    return found
