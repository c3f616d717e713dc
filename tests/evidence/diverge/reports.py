"""What `envlock diverge` saw, and its report, for the tests of what is shown; the words in it try to break out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from envlock.evidence.diverge.comparison import Difference, Line, Origin
from envlock.evidence.diverge.divergence_report import report as report_on
from envlock.evidence.diverge.evidence import DivergeEvidence, Level, Verdict
from envlock.evidence.diverge.known_causes import Known
from envlock.evidence.diverge.trace import Operation, Place, Record, Value
from envlock.runtime.report import Report

PLACE = Place("train.py", 12, "step")
MADE = Record(
    0, 22, Operation("Reshape", None, Place("train.py", 11, "step"), ("float32[8]",), ("int32[8]",)), (1,), (2,)
)
CULPRIT = Record(
    0,
    23,
    Operation("ResourceScatterSub", "<b>table</b>\x1b[31m", PLACE, ("resource[]", "int32[8]"), ("float32[4,2]",)),
    (None, 2),
    (3,),
)
SUM = Record(1, 3, Operation("Sum", None, Place("train.py", 30, "step"), ("float32[8]",), ("float32[]",)), (4,), (5,))
KNOWN = Known(
    "resource-scatter-add-cpu",
    "scatter updates on the CPU",
    "Threads add in no order.",
    "cpu",
    ("call tf.config.experimental.enable_op_determinism() at the start", "set TF_NUM_INTRAOP_THREADS=1"),
    "measured",
)


def report(verdict: Verdict = "operation", **changes: Any) -> Report[DivergeEvidence]:
    """Return the report on five runs with three results; fields of the evidence can be changed."""
    return report_on(replace(evidence(verdict), **changes))


def evidence(verdict: Verdict = "operation") -> DivergeEvidence:
    """Return what five runs with three results showed."""
    return DivergeEvidence(
        verdict=verdict,
        target="train.py:step",
        runs=5,
        tensorflow="2.21.0",
        keras="3.15.1",
        levels=(
            Level("as it is", (0, 1, 0, 2, 0), 0, "variable table after step", 40, 3),
            Level("eager", (0, 1, 0, 2, 0), 0, "ResourceScatterSub", 74, 3),
        ),
        record=CULPRIT,
        index=23,
        distinct=3,
        source=("g = tape.gradient(loss, table)", "table.scatter_sub(g)  # <script>alert(1)</script>", "yield loss"),
        source_from=11,
        origins=(Origin(0, "resource[]", None), Origin(1, "int32[8]", MADE)),
        known=KNOWN,
        others=(Difference("operation", 90, (SUM, SUM), (0, 1)),),
        timeline=(
            Line(22, "same", MADE, 1),
            Line(23, "cause", CULPRIT, 3),
            Line(24, "carried", Value(0, "loss & <i>", 5, "float32[]"), 3),
        ),
    )
