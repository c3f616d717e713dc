"""The matrices of repeated runs as CSV: a line for each pair of runs, quantity and compared step."""

from __future__ import annotations

import csv
from io import StringIO

from envlock.runtime.report import Report, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.numerics.outcome import RepeatEvidence

HEAD = ("step", "quantity", "run_a", "run_b", "same_bits", "sum", "max", "norm")
MEASURES = HEAD[5:]


def render_csv(report: Report[RepeatEvidence]) -> str:
    """Return the lines; a distance that does not exist is empty, an infinite one is `inf`."""
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(HEAD)
    evidence = report.evidence
    for equal in evidence.equal:
        for a, first in enumerate(evidence.labels):
            for second in evidence.labels[a + 1 :]:
                row = equal.step, clean(equal.quantity), first, second
                writer.writerow([*row, "yes", 0.0, 0.0, 0.0])
    for matrix in evidence.matrices:
        for a, first in enumerate(matrix.runs):
            for b in range(a + 1, len(matrix.runs)):
                same = "no"
                if matrix.results[a] == matrix.results[b]:
                    same = "yes"
                distances = [matrix.cells[measure][a][b] for measure in MEASURES]
                row = matrix.step, clean(matrix.quantity), first, matrix.runs[b]
                writer.writerow([*row, same, *distances])
    return stream.getvalue()
