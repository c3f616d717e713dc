"""Experiments that find the line of Python or NumPy that made a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from envlock.evidence.diverge.comparison import Difference
from envlock.evidence.diverge.known_causes import Known, read_row
from envlock.evidence.diverge.line_slices import Made
from envlock.evidence.diverge.makers import SEEDING, Maker, find_candidates, list_sources
from envlock.evidence.diverge.observed_runs import Observed, Request
from envlock.evidence.diverge.readings import get_label, has_keras_seed
from envlock.evidence.diverge.trace import Place, Record

LINES = 3
"""How many lines of Python or NumPy are tried by themselves as the maker of a value; all others together."""
TRIES = 3
"""How many runs an experiment takes that shows whether a cause is gone."""
SEED_FIRST = (
    "the program calls `set_random_seed`, and draws before that call or in threads that share a "
    "generator: call it first, and give each thread its own generator"
)
BY_TENSORFLOW = ("operation", "data", "call")
"""Kinds of differences that no value of Python's or NumPy's makes."""
DRAWN, DRAWN_BY_KERAS = "unseeded-random-ops", "keras-seeds-from-python-random"
"""The rows on generators that nothing seeds."""

LEFT = "left"
"""How the table holds what reads a file that an earlier run wrote: it cannot be held."""
LEFT_ROW = "left-by-an-earlier-run"
"""The row on what an earlier run has left."""

FILE_READERS = ("ReadFile", "Restore", "RestoreSlice", "RestoreV2")
"""Operations that read a file whose name Python gives them."""

Attempt = Callable[[str, Request], Observed | None]
"""Makes runs with something held, whose name it gets; None where one did not come to its end."""


@dataclass(frozen=True)
class Found:
    """What is known of the value that differs, and the line that made it."""

    known: Known | None = None
    maker: Maker | None = None


@dataclass
class MakerSearch:
    """Holds what may have made a value, one thing at a time, until the difference is gone.

    Attributes:
        seen: the runs that differ.
        base: how a run is repeated.
        first: where they differ.
        attempt: makes the runs.
        because: takes a sentence on each experiment.
        made: the statement that made the value, by what it read and left; None where that does not show.
    """

    seen: Observed
    base: Request
    first: Difference
    attempt: Attempt
    because: list[str]
    made: Made | None = None
    tried: set[str] = field(default_factory=set)

    def find(self) -> Found:
        """Return what the experiments show, the most telling first."""
        tensorflow = self.seen.header.tensorflow
        makers = find_candidates(self.seen.compared_ends, self.first.index, self.first.groups)
        maker = self._find_on_line(makers)
        # Runs in one process share their hash seed, so that the order of a set cannot differ between them.
        if (maker is None or maker.row is None) and self._depends_on_hashes():
            return Found(read_row("python-hash-randomization", tensorflow), maker)
        if maker is None:
            maker = self._find_line([each for each in makers if each.can_be_held])
        if maker is not None:
            return Found(self._explain_draw(maker), maker)
        # Seeds change nothing for lines that draw from no generator (a clock, a file).
        if self.first.kind != "data" and (not makers or any(each.source for each in makers)):
            seeded = replace(self.base, generators=1)
            if self._removes("seeds for Python's and NumPy's generators", seeded):
                return Found(read_row(self._name_row(), tensorflow))
        possible = self._name_possible(makers)
        known = None
        if (possible is None and self._reads_file()) or (
            possible is not None and possible.hold == LEFT
        ):
            known = read_row(LEFT_ROW, tensorflow)
        return Found(known, possible)

    def _reads_file(self) -> bool:
        """Return whether an operation of TensorFlow reads a file where runs differ first."""
        entry = self.first.entry
        return isinstance(entry, Record) and entry.operation.type in FILE_READERS

    def _depends_on_hashes(self) -> bool:
        """Return whether the difference is gone with one hash seed; only between processes can it matter."""
        if not self.base.fresh or self.first.kind == "data":
            return False
        hashing = replace(self.base, environ={**self.base.environ, "PYTHONHASHSEED": "0"})
        return self._removes("PYTHONHASHSEED=0", hashing)

    def _find_on_line(self, makers: Sequence[Maker]) -> Maker | None:
        """Return the function that made the value in the statement that is known to have; else the statement."""
        made = self.made
        if made is None:
            return None
        where = f"{made.place.file}:{made.place.line}"
        self.because.append(
            f"of all statements before it, {where} read the same in all runs and left something else"
        )
        for maker in makers:
            on_line = maker.place[:2] == made.place[:2]
            if on_line and maker.can_be_held and self._removes_held([maker]):
                return self._find_source(maker, makers)
            if on_line and not maker.can_be_held:
                return maker
        if any(maker.place[:2] == made.place[:2] for maker in makers):
            # Another line decides together with this one.
            return None
        # What it calls may say nothing, and be a default of a class that stands in another line.
        if not made.fix:
            found = self._find_line([maker for maker in makers if maker.can_be_held])
            if found is not None:
                return found
            # What it reads was opened in another line.
            opened = [maker for maker in makers if maker.hold == LEFT]
            if opened:
                return opened[0]
        return Maker(made.name, made.place, None, fix=made.fix)

    def _find_line(self, makers: Sequence[Maker]) -> Maker | None:
        """Return the line that gives the same in all runs when the difference is gone; None if no
        single line does.
        """
        for maker in [each for each in makers if not each.is_importing][:LINES]:
            if maker.title not in self.tried and self._removes_held([maker]):
                return self._find_source(maker, makers)
        # All at once: none of many is looked at alone where they do nothing together.
        left = list(makers)
        if len(left) < 2 or not self._removes_held(left):
            return None
        while len(left) > 1:
            half = left[: len(left) // 2]
            if not self._removes_held(half):
                half = left[len(half) :]
            left = half
        if left[0].title in self.tried or not self._removes_held(left):
            # Two are needed together, such as both ends of a duration: the last of them is named.
            return makers[0]
        return self._find_source(left[0], makers)

    def _find_source(self, maker: Maker, makers: Sequence[Maker]) -> Maker:
        """Return the line that made the number that a line seeds a generator with, or that line."""
        if maker.hold != SEEDING:
            return maker
        for source in list_sources(maker, makers)[:LINES]:
            if source.hold != SEEDING and source.can_be_held and self._removes_held([source]):
                return source
        return maker

    def _removes_held(self, makers: Sequence[Maker]) -> bool:
        """Return whether the difference is gone with equal values from these lines in every run."""
        if len(makers) == 1:
            self.tried.add(makers[0].title)
        if len(makers) > LINES:
            what = f"equal values from {len(makers)} other lines in every run"
        else:
            what = f"equal values from {' and '.join(maker.title for maker in makers)} in every run"
        return self._removes(what, replace(self.base, held=tuple(maker.held for maker in makers)))

    def _removes(self, what: str, request: Request) -> bool:
        """Return whether the difference is gone with something held, and is so again."""
        trials = [min(TRIES, request.runs)]
        # Threads can come in the same order for once. Between processes, where a run costs most, that is rare.
        if not request.fresh or self.first.distinct < len(self.first.groups):
            trials.append(request.runs)
        for runs in trials:
            shown = self.attempt(what, replace(request, runs=runs))
            if shown is None:
                limit = f"{request.timeout:.0f} s"
                self.because.append(f"with {what}, a run took more than {limit} and was ended")
                return False
            left = shown.comparison.first
            if left is not None and not is_later(left, self.first):
                self.because.append(f"with {what}, the difference remains")
                return False
        self.because.append(f"with {what}, the difference is gone")
        return True

    def _explain_draw(self, maker: Maker) -> Known | None:
        """Return the row of a line that draws from a generator that nothing seeds."""
        if maker.source is None:
            return None
        if maker.hold == LEFT:
            return read_row(LEFT_ROW, self.seen.header.tensorflow)
        return read_row(self._name_row(), self.seen.header.tensorflow)

    def _name_row(self) -> str:
        if has_keras_seed(self.seen):
            return DRAWN_BY_KERAS
        return DRAWN

    def _name_possible(self, makers: Sequence[Maker]) -> Maker | None:
        """Return the first line that could not be tried, as nothing can hold its value; None for none."""
        own = [maker for maker in makers if not maker.is_importing]
        if own:
            titles = ", ".join(maker.title for maker in own[:LINES])
            self.because.append(f"not the same in every run before that: {titles}")
        for maker in own[:LINES]:
            if maker.hold == LEFT:
                where = f"{maker.place.file}:{maker.place.line}"
                self.because.append(f"{where} reads a file that an earlier one of these runs wrote")
            if not maker.can_be_held:
                return replace(maker, is_shown=False)
        return None


def is_later(found: Difference, here: Difference) -> bool:
    """Return whether a difference is gone, and another one left.

    The same line in a later turn is the same cause. Only what TensorFlow gave for equal inputs is another
    one even on the same line: `Model.fit` is one line.
    """
    if found.index <= here.index or get_label(found) == get_label(here):
        return False
    return _get_line(found) != _get_line(here) or found.kind in BY_TENSORFLOW


def _get_line(difference: Difference) -> Place | None:
    if not isinstance(difference.entry, Record):
        return None
    return difference.entry.operation.place


def drop_known_advice(known: Known | None, seen: Observed) -> Known | None:
    """Return what is known without the advice to set all seeds, where the program does."""
    if known is None or not any(end.get("seeded") for end in seen.answers["ends"].values()):
        return known
    # A dictionary for a set: two fixes can become one.
    fixes: dict[str, None] = {}
    for fix in known.fixes:
        if "set_random_seed" in fix:
            fix = SEED_FIRST
        fixes[fix] = None
    return replace(known, fixes=tuple(fixes))
