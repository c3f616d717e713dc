"""Name the first operation that makes runs differ, in one environment or between two."""

from __future__ import annotations

from pathlib import Path

from envlock.evidence.conditions import describe_conditions
from envlock.evidence.diverge import two_traces
from envlock.evidence.diverge.debug import debug
from envlock.evidence.diverge.evidence import DivergeEvidence
from envlock.evidence.diverge.observed_runs import Request
from envlock.evidence.diverge.trace_recording import Recorded, collect_conditions
from envlock.evidence.diverge.trace_recording import record as write_trace
from envlock.evidence.program import Program
from envlock.evidence.repeat.repeat import need_folder_of, refuse_one_source
from envlock.lock.live_facts import collect_live
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.report import Report


def diverge_script(
    program: Program | str,
    *,
    runs: int = 5,
    steps: int | None = None,
    fresh: bool = False,
    progress: Progress = SILENT,
) -> Report[DivergeEvidence]:
    """Run a script or a function several times, and return the first operation that differs, its
    line, and a remedy.

    The attachments are those of docs/reference/diverge.md.

    Args:
        program: what is run; a text is its script.
        runs: how often it is run.
        steps: stop each run after this many steps.
        fresh: each run in a process of its own, as a script always is.
        progress: shows what is being done.

    Raises:
        UsageError: there is no such script or interpreter, or it cannot be run in this way.
        FactError: TensorFlow does not show its operations, or a run fails.
    """
    program = Program.of(program)
    wanted = program.target
    request = Request(
        wanted,
        program.python,
        runs,
        fresh=fresh or wanted.function is None,
        steps=steps,
        seed=program.seed,
    )
    report = debug(request, progress.say)
    report.headline += describe_conditions(program.seed)
    return report


def record_trace(
    program: Program | str,
    output: Path,
    *,
    steps: int | None = None,
    progress: Progress = SILENT,
) -> Recorded:
    """Record what every operation of one run computes, eagerly, into a trace that can be compared with
    one from another environment.

    Args:
        program: what is run; a text is its script.
        output: the trace to write.
        steps: stop after this many steps.
        progress: shows what is being done.

    Raises:
        EnvlockError: it cannot be run, it fails, TensorFlow does not show its operations, or
            writing fails.
    """
    need_folder_of(output)
    program = Program.of(program)
    conditions = collect_conditions(collect_live(program.python).facts)
    request = Request(
        program.target,
        program.python,
        runs=1,
        fresh=True,
        steps=steps,
        seed=program.seed,
        conditions=conditions,
    )
    return write_trace(request, output, progress.say)


def compare_traces(a: str | Path, b: str | Path) -> Report[two_traces.TracesEvidence]:
    """Return the first operation whose bits differ between two traces.

    Raises:
        TraceError: a trace cannot be read, or is damaged.
        UsageError: they cannot be compared, as they were recorded in other ways; or both are one file.
    """
    refuse_one_source(Path(a), Path(b))
    return two_traces.report(str(a), str(b))
