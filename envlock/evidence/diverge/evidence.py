"""What the runs of a program showed, as values that the report is made from. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from envlock.evidence.diverge.comparison import Difference, Line, Origin
from envlock.evidence.diverge.known_causes import Known
from envlock.evidence.diverge.makers import Maker
from envlock.evidence.diverge.trace import Place, Record, render_place
from envlock.evidence.failure import Failure
from envlock.runtime.report import Evidence, Finding

Verdict = Literal[
    "identical",
    "operation",
    "data",
    "outside",
    "variable",
    "sequence",
    "graph",
    "call",
    "quantity",
    "race",
    "threads",
    "processes",
    "unseen",
]
Mode = Literal["as it is", "eager"]


@dataclass(frozen=True)
class Level:
    """What one way of running showed.

    Attributes:
        mode: `as it is` (the program's own), or `eager`.
        groups: of each run the number of its result at the first difference; all 0 without one.
        step, name: the first difference: in which step, and of what.
        entries: how many operations, calls and values each run was compared by.
        steps: how many steps that were.
    """

    mode: Mode
    groups: tuple[int, ...]
    step: int | None
    name: str | None
    entries: int
    steps: int

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {**asdict(self), "groups": list(self.groups)}


@dataclass(frozen=True)
class Suspect:
    """An operation of a graph that can give, or has given, another result."""

    type: str
    name: str
    place: Place | None
    known: Known | None

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "type": self.type,
            "name": self.name,
            "place": render_place(self.place),
            "known": _render_known(self.known),
        }


@dataclass(frozen=True)
class DivergeEvidence(Evidence):
    """What the search finds, and what `envlock diverge` attaches to its report.

    Attributes:
        verdict: `identical`; `operation`: equal inputs and another output; `data`: the pipeline
            gave other data; `outside`: a value came from Python; `sequence`: other operations ran;
            `graph`: only in graphs or under XLA; `variable`, `call`, `quantity`: the cause is not a
            traced operation; `race`: threads accessed a variable in different orders; `threads`: the cause
            can be in other threads, which were not traced whole; `processes`: it can come from
            another process of the same training; `unseen`: this TensorFlow shows no operations.
        target: what was run, and how often.
        level: the one that the verdict rests on; the others stand in `levels`.
        record: the first operation that differs, if any.
        index: the number of its entry from the start of the run.
        distinct: how many different results it gave.
        source: its lines in the user's file, from number `source_from` on.
        origins: where its inputs came from.
        differing: which of them differ.
        known: what the tables know about it.
        unexplained: why such a difference arises, where no row of the tables is known.
        because: sentences about what trying it otherwise showed.
        suspects: in graphs, what can be the cause.
        maker: the line of Python or NumPy that made the value.
        pipelines: what the dataset linter says of the pipelines that were read.
        others: later operations that differ by themselves.
        timeline: what happened around the first difference.
        threads: how many Python threads the program started, or how many of them race.
        blind: why a cause in other threads would not have been seen.
        notes: what limits the verdict.
        failures: runs that failed; all runs are compared until the first of these ended.
        stopped: the signal that ended the search before it was over, or Ctrl-C; None where nothing did.
        stopped_while: what was being tried then.
    """

    verdict: Verdict
    target: str
    runs: int
    tensorflow: str
    keras: str | None
    levels: tuple[Level, ...]
    record: Record | None = None
    index: int | None = None
    distinct: int = 1
    source: tuple[str, ...] = ()
    source_from: int = 0
    origins: tuple[Origin, ...] = ()
    differing: tuple[int, ...] = ()
    known: Known | None = None
    unexplained: str | None = None
    because: tuple[str, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    maker: Maker | None = None
    pipelines: tuple[Finding, ...] = ()
    others: tuple[Difference, ...] = ()
    timeline: tuple[Line, ...] = ()
    threads: int = 0
    blind: str | None = None
    notes: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    stopped: str | None = None
    stopped_while: str = ""

    @property
    def match(self) -> bool:
        """Whether all runs gave the same."""
        return self.verdict == "identical"

    @property
    def place(self) -> Place | None:
        """The line of the user's that the verdict names."""
        if self.record is not None and self.verdict != "graph":
            return self.record.operation.place
        if self.suspects:
            return self.suspects[0].place
        return None

    @property
    def culprit(self) -> str | None:
        """The type of the operation that the verdict names."""
        if self.suspects:
            return self.suspects[0].type
        if self.record is not None:
            return self.record.operation.type
        return None

    @property
    def first_name(self) -> str | None:
        """What differs first at the first level that shows something."""
        for level in self.levels:
            if level.name:
                return level.name
        return None

    def to_json(self) -> dict[str, object]:
        """Return JSON values; pipelines, other causes, threads and notes are findings or notes."""
        operation = self.record.to_json() if self.record is not None else None
        maker = self.maker.to_json() if self.maker is not None else None
        return {
            "verdict": self.verdict,
            "target": self.target,
            "runs": self.runs,
            "tensorflow": self.tensorflow,
            "keras": self.keras,
            "levels": [level.to_json() for level in self.levels],
            "culprit": self.culprit,
            "place": render_place(self.place),
            "operation": operation,
            "index": self.index,
            "distinct": self.distinct,
            "source": list(self.source),
            "source_from": self.source_from,
            "origins": [origin.to_json() for origin in self.origins],
            "differing": list(self.differing),
            "known": _render_known(self.known),
            "unexplained": self.unexplained,
            "because": list(self.because),
            "suspects": [suspect.to_json() for suspect in self.suspects],
            "maker": maker,
            "timeline": [line.to_json() for line in self.timeline],
            "failures": [failure.to_json() for failure in self.failures],
            "stopped": self.stopped,
        }


def _render_known(known: Known | None) -> dict[str, object] | None:
    if known is None:
        return None
    return known.to_json()
