"""Name the first operation that makes runs differ, in one environment or between two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envlock.divergence import two_traces
from envlock.divergence.debug import debug
from envlock.divergence.evidence import DivergeEvidence
from envlock.divergence.observed_runs import Request
from envlock.divergence.trace_recording import Recorded, collect_conditions
from envlock.divergence.trace_recording import record as write_trace
from envlock.guest.target import parse_target
from envlock.lock.live_facts import collect_live
from envlock.runtime.report import Report
from envlock.workflows.progress import SILENT, Progress
from envlock.workflows.repeat import need_folder_of


def diverge_script(
    script: str,
    args: Sequence[str] = (),
    *,
    module: bool = False,
    runs: int = 5,
    steps: int | None = None,
    fresh: bool = False,
    in_graph: bool = False,
    seed: int | None = None,
    python: Path | None = None,
    progress: Progress = SILENT,
) -> Report[DivergeEvidence]:
    """Run a script or a function several times, and return the first operation that differs, its
    line, and a remedy.

    The attachments are those of docs/reference/diverge.md.

    Args:
        script: `SCRIPT[:FUNCTION]`, or `PACKAGE.MODULE:FUNCTION`.
        args: for the script.
        module: `script` is the name of a module, also without a function.
        runs: how often it is run.
        steps: stop each run after this many steps.
        fresh: each run in a process of its own, as a script always is.
        in_graph: look into the graphs where the runs differ, instead of running eagerly.
        seed: set all seeds to this before each run.
        python: the interpreter; this one when not given.
        progress: shows what is being done.

    Raises:
        UsageError: there is no such script or interpreter, or it cannot be run in this way.
        FactError: TensorFlow does not show its operations, or a run fails.
    """
    wanted = parse_target(script, tuple(args), module=module)
    request = Request(
        wanted,
        python,
        runs,
        fresh=fresh or wanted.function is None,
        steps=steps,
        seed=seed,
        in_graph=in_graph,
    )
    return debug(request, progress.say)


def record_trace(
    script: str,
    output: Path,
    args: Sequence[str] = (),
    *,
    module: bool = False,
    in_graph: bool = False,
    steps: int | None = None,
    seed: int | None = None,
    python: Path | None = None,
    progress: Progress = SILENT,
) -> Recorded:
    """Record what every operation of one run computes, into a trace that can be compared with one
    from another environment.

    Args:
        script: `SCRIPT[:FUNCTION]`, or `PACKAGE.MODULE:FUNCTION`.
        output: the trace to write.
        args: for the script.
        module: `script` is the name of a module, also without a function.
        in_graph: run the program as it is and observe its graphs, then run it once more unobserved
            to see whether observing changed the result; else run it eagerly.
        steps: stop after this many steps.
        seed: set all seeds to this before the run.
        python: the interpreter; this one when not given.
        progress: shows what is being done.

    Raises:
        EnvlockError: it cannot be run, it fails, TensorFlow does not show its operations, or
            writing fails.
    """
    need_folder_of(output)
    conditions = collect_conditions(collect_live(python).facts)
    request = Request(
        parse_target(script, tuple(args), module=module),
        python,
        runs=1,
        fresh=True,
        steps=steps,
        seed=seed,
        in_graph=in_graph,
        conditions=conditions,
    )
    return write_trace(request, output, progress.say)


def compare_traces(a: str | Path, b: str | Path) -> Report[two_traces.TracesEvidence]:
    """Return the first operation whose bits differ between two traces.

    Raises:
        TraceError: a trace cannot be read, or is damaged.
        UsageError: they cannot be compared, for example because one run was eager.
    """
    return two_traces.report(str(a), str(b))
