"""Compare this environment with a one-line digest of another; no lockfile is needed."""

from __future__ import annotations

from pathlib import Path

from envlock.runtime.collectors import Snapshot
from envlock.runtime.environment_line import compare_line, parse_line
from envlock.runtime.extent import Extent
from envlock.runtime.facts import iter_leaves
from envlock.runtime.judgement import judge
from envlock.runtime.report import UNKNOWN, Report, count
from envlock.workflows.capture import capture_live_lock

STRICT = "strict"


def verify_line(line: str, *, python: Path | None = None) -> Report:
    """Return whether the live environment has the digest that `envlock show --line` printed for
    another one.

    A line has no policy: every fact counts. A fact that policy `strict` needs and that could be
    collected neither here nor there is unknown, as in `verify`.

    Args:
        line: `envlock:1:sha256:` and 64 hexadecimal digits.
        python: the interpreter of the environment; this one when not given.

    Raises:
        UsageError: the text is not such a line, or has another version; or there is no such
            interpreter.
        FactError: the interpreter did not answer.
    """
    wanted = parse_line(line)
    live = capture_live_lock(python).to_document()
    # A digest of all facts is compared.
    extent = Extent(facts=sum(1 for _ in iter_leaves(live["facts"])))
    other = compare_line(wanted, live)
    if other is not None:
        headline = "does not match the line: at least one fact differs"
        return Report([other], headline=headline, extent=extent)
    # The line is the same, too, if a needed fact could be collected neither here nor there.
    report = judge(live, Snapshot(live["facts"], live["unavailable"]), STRICT)
    headline = "matches the line"
    if not report.match:
        missing = count(len(report.of(UNKNOWN)), "needed fact")
        headline = f"cannot decide: {missing} unknown"
    return Report(report.findings, headline=headline, extent=report.extent)
