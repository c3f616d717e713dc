"""Record one run of a user's program in this environment, to be compared with one of another."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Literal

from envlock.divergence.comparison import CALL
from envlock.divergence.observed_runs import Observed, Request, Say, need_finished, observe
from envlock.divergence.trace import CONDITIONS_LIMIT, Header, Scalar, Trace, Value, read
from envlock.guest.tracing.trace_writer import TEXT_LIMIT
from envlock.lock.temporary import open_draft_folder
from envlock.lock.writer import replace_file
from envlock.runtime.facts import iter_leaves

Effect = Literal["none", "changed", "unstable", "unknown"]
Prints = dict[str, tuple[int | None, ...]]
"""The fingerprints of results, by the name of the value or the graph."""
UNTRACED = "untraced"
"""The digest of what the program shows without the tracer, at the end of a trace."""
_LEFT_OUT = ("packages", "cuda")
"""Sections of the facts that are too long for a header; versions stand for what they decide."""


@dataclass(frozen=True)
class Recorded:
    """A trace that has been written.

    Attributes:
        effect: whether looking into graphs changed the result: `none`; `changed`; `unstable`: the
            program gives another result each time; `unknown`: it shows no result, or ran eagerly.
        steps, entries: how long the run was.
    """

    header: Header
    end: Mapping[str, Scalar]
    size: int
    entries: int
    steps: int
    effect: Effect


def record(request: Request, output: Path, say: Say) -> Recorded:
    """Run the program once under the tracer, and write its trace to `output`, whole or not at all.

    Args:
        request: what to run; with `in_graph`, as the program runs by itself, else eagerly.
        output: the trace to write.
        say: gets lines of progress.

    Raises:
        EnvlockError: it cannot be run or fails, operations are not visible, or writing fails.
    """
    plain = replace(request, runs=1, fresh=True, serial=request.in_graph, in_graph=False)
    with open_draft_folder(None) as folder:
        effect: Effect = "unknown"
        untraced: dict[str, Scalar] = {}
        if request.in_graph:
            say("running it, with its graphs traced")
            traced = replace(plain, mode="in-graph-all")
            seen = need_finished(observe(traced, folder / "traced"))
            say("running it untraced, to check whether tracing changed the result")
            effect, result = _find_effect(seen, plain, folder)
            if result is not None:
                untraced[UNTRACED] = result
        else:
            say("running it eagerly, operation by operation")
            seen = need_finished(observe(replace(plain, mode="eager"), folder / "traced"))
        with replace_file(output, "trace") as file:
            _copy_trace(seen.traces[0], file, {"tracing": effect, **untraced})
        trace = read(output)
        entries = sum(1 for _ in trace)
        size = output.stat().st_size
        return Recorded(trace.header, trace.end or {}, size, entries, seen.comparison.steps, effect)


def _copy_trace(source: Path, target: BinaryIO, known: Mapping[str, Scalar]) -> None:
    """Copy a trace whose end also says what is known only after the run."""
    with gzip.open(source, "rb") as lines, gzip.GzipFile("", "wb", 1, target, 0) as copy:
        last = b""
        for line in lines:
            copy.write(last)
            last = line
        word, number, end = json.loads(last)
        copy.write(json.dumps([word, number, {**end, **known}]).encode("ascii") + b"\n")


def _find_effect(seen: Observed, plain: Request, folder: Path) -> tuple[Effect, str | None]:
    """Return whether the program computes the same without fingerprints in its graphs; and the digest
    of what it shows without them, if it shows anything.
    """
    traced = collect_results(read(seen.traces[0]))
    untraced = _run_untraced(plain, folder / "plain")
    shown = digest_values(untraced)
    answer = compare_results(traced, untraced)
    if answer == "incomparable":
        return "unknown", shown
    if answer == "equal":
        return "none", shown
    # A program that gives another result each time differs from itself without any tracing.
    if compare_results(untraced, _run_untraced(plain, folder / "again")) == "different":
        return "unstable", None
    return "changed", shown


def digest_values(found: Prints) -> str | None:
    """Return a digest of the values that a run shows; None if it shows none."""
    values = {name: prints for name, prints in found.items() if not name.startswith(f"{CALL} ")}
    if not values:
        return None
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _run_untraced(plain: Request, folder: Path) -> Prints:
    return collect_results(read(need_finished(observe(plain, folder)).traces[0]))


def collect_results(trace: Trace) -> Prints:
    """Return the last result of each value and of each graph of a run."""
    found: Prints = {}
    for entry in trace:
        if isinstance(entry, Value):
            found[entry.name] = (entry.fingerprint,)
        elif entry.operation.type == CALL:
            found[f"{CALL} {entry.operation.name}"] = entry.outputs
    return found


def compare_results(a: Prints, b: Prints) -> Literal["equal", "different", "incomparable"]:
    """Return how the results of two runs compare: `incomparable` where they have none in common."""
    answer: Literal["equal", "different", "incomparable"] = "incomparable"
    for name, prints in a.items():
        if name not in b or set(prints) <= {None}:
            continue
        if prints != b[name]:
            return "different"
        answer = "equal"
    return answer


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
