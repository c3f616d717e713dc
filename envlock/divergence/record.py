"""Record one run of a user's program in this environment, to be compared with one of another."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from envlock.divergence.comparison import CALL
from envlock.divergence.observe import Observed, Request, Say, need_finished, observe
from envlock.divergence.trace import CONDITIONS_LIMIT, Header, Scalar, Trace, Value, read
from envlock.guest.tracing.trace_writer import TEXT_LIMIT
from envlock.lock.drafts import draft_folder
from envlock.lock.writer import replacing
from envlock.numerics.target import Target
from envlock.runtime.facts import leaves

Effect = Literal["none", "changed", "unstable", "unknown"]
_LEFT_OUT = ("packages", "cuda")
"""Sections of the facts that are too long for a header; versions stand for what they decide."""


@dataclass(frozen=True)
class Recorded:
    """A trace that has been written.

    Attributes:
        effect: whether looking into graphs changed the result: `none`; `changed`; `unstable`: the program gives
            another result each time, so it cannot be told; `unknown`: it shows no result, or was not asked.
        steps, entries: how long the run was.
    """

    header: Header
    end: Mapping[str, Scalar]
    size: int
    entries: int
    steps: int
    effect: Effect


def record(
    target: Target,
    output: Path,
    *,
    python: Path | None,
    in_graph: bool,
    seed: int | None,
    steps: int | None,
    facts: Mapping[str, Any],
    say: Say,
) -> Recorded:
    """Run the program once under the tracer, and write its trace to `output`, whole or not at all.

    Raises:
        EnvlockError: it cannot be run, it fails, TensorFlow does not show its operations, or writing fails.
    """
    plain = Request(
        target,
        python,
        1,
        True,
        seed=seed,
        steps=steps,
        conditions=conditions(facts),
        serial=in_graph,
    )
    with draft_folder(None) as folder:
        mode: Literal["in-graph-all", "eager"] = "in-graph-all" if in_graph else "eager"
        say(
            "running it, with its graphs traced"
            if in_graph
            else "running it eagerly, operation by operation"
        )
        seen = need_finished(observe(replace(plain, mode=mode), folder / "traced"))
        effect: Effect = "unknown"
        if in_graph:
            say("running it untraced, to check whether tracing changed the result")
            effect = _effect(seen, plain, folder)
        with seen.traces[0].open("rb") as source, replacing(output, "trace") as file:
            shutil.copyfileobj(source, file)
        trace = read(output)
        entries = sum(1 for _ in trace)
        return Recorded(
            trace.header,
            trace.end or {},
            output.stat().st_size,
            entries,
            seen.comparison.steps,
            effect,
        )


def _effect(seen: Observed, plain: Request, folder: Path) -> Effect:
    """Return whether what the program computes in the end is what it computes when nobody looks into its graphs."""
    traced = results(read(seen.traces[0]))
    alone = results(read(need_finished(observe(plain, folder / "plain")).traces[0]))
    verdict = differ(traced, alone)
    if verdict is not True:
        return "unknown" if verdict is None else "none"
    again = results(read(need_finished(observe(plain, folder / "again")).traces[0]))
    return "unstable" if differ(alone, again) else "changed"


def results(trace: Trace) -> dict[str, tuple[int | None, ...]]:
    """Return what a run computed in the end: the last of each value, and of what each graph gave."""
    found: dict[str, tuple[int | None, ...]] = {}
    for each in trace:
        if isinstance(each, Value):
            found[each.name] = (each.fingerprint,)
        elif each.operation.type == CALL:
            found[f"{CALL} {each.operation.name}"] = each.outputs
    return found


def differ(
    a: Mapping[str, tuple[int | None, ...]], b: Mapping[str, tuple[int | None, ...]]
) -> bool | None:
    """Return whether two runs have other results; None where they have none in common."""
    both = [name for name in a if name in b and any(each is not None for each in a[name])]
    return any(a[name] != b[name] for name in both) if both else None


def conditions(facts: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the facts of an environment as a trace's header has them: each that exists, by its dotted path."""
    found: dict[str, Scalar] = {}
    for path, value in leaves(facts):
        if value in (None, {}) or path.startswith(_LEFT_OUT) or len(found) >= CONDITIONS_LIMIT:
            continue
        text = " ".join(map(str, value)) if isinstance(value, list) else value
        found[path[:TEXT_LIMIT]] = text[:TEXT_LIMIT] if isinstance(text, str) else text
    return found
