"""`envlock diverge`: run the program as it is, then eagerly, then otherwise, until the cause has a name."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from envlock.evidence.diverge.comparison import Difference, compare, find_origins
from envlock.evidence.diverge.divergence_report import report
from envlock.evidence.diverge.evidence import DivergeEvidence, Level, Verdict
from envlock.evidence.diverge.experiments import LEFT_ROW, Found, MakerSearch, drop_known_advice
from envlock.evidence.diverge.known_causes import Known, look_up, read_row
from envlock.evidence.diverge.line_slices import Made, find_made, parse_lines
from envlock.evidence.diverge.observed_runs import (
    AGAIN,
    AS_LONG,
    LEAST,
    Observed,
    Request,
    RunTimeoutError,
    Say,
    leave_out_first,
    observe,
    read_finished,
    read_statements,
    read_until_damage,
)
from envlock.evidence.diverge.readings import (
    add_text,
    check_pipelines,
    describe_branches,
    describe_idle,
    describe_other_workers,
    describe_passing,
    examine_threads,
    find_makers,
    find_pipeline_maker,
    find_thread_maker,
    is_inside_graph,
    list_shown,
    list_suspects,
    make_level,
    open_traces,
    read_lines,
    warn_of_pipelines,
)
from envlock.evidence.diverge.threads import ThreadEvidence, count_same_work
from envlock.evidence.diverge.trace import Record
from envlock.evidence.session import Session
from envlock.lock.temporary import open_draft_folder
from envlock.runtime.errors import FactError
from envlock.runtime.report import Finding, Report, clean

WATCHED = 3
"""How many runs are watched statement by statement."""
WATCHES = 3
"""How often, where they do not differ."""
WATCHING = "watching the statements that run before that"
KEEPING = "running it once more as `envlock repeat` does, without loading the module again"
KEPT = (
    "`envlock repeat` finds these runs different: it loads the module once for all of them, so that a generator, a counter "
    "or weights of the module go on from run to run, and here each run loads it again"
)
ONCE = (
    "this line runs when the module is loaded: `envlock repeat` loads it once for all runs, and finds the difference "
    "with `--fresh` only"
)
NOTHING = "nothing was compared: the program ran no TensorFlow operation in its own process, and recorded no value"
OTHER_WORK = "nothing was compared: all operations ran in threads that the program started, which did something else in each run"
SHOW = "name the function that trains, as SCRIPT:FUNCTION, or call envlock.record() in it"
BEYOND = 2
"""How many steps are traced after the one in which the runs first differed."""
LEFT = "repeated without any change, all runs are equal: the first run changed something that later runs read"
LEFT_AT_THE_END = (
    "repeated with each run ended after the first difference, all runs are equal: each run had read what the run before "
    "wrote at its end"
)
LEFT_THERE = (
    "repeated without any change, every run does there what only the later runs did before: the first run changed "
    "something that later runs read"
)
BY_PYTHON = ("outside", "sequence", "quantity", "variable", "call")
"""Verdicts that hold only if every operation was seen."""
MODULE = "<module>"
"""The function of a place that is in none."""
UNSEEDED = "seed=0 seed2=0"
"""What the trace holds as the name of a random operation to which neither seed was given."""

Observer = Callable[[Request, Path], Observed]


def debug(request: Request, say: Say, observer: Observer | None = None) -> Report[DivergeEvidence]:
    """Return what makes the runs differ.

    Args:
        request: what to run.
        say: gets lines of progress.
        observer: makes the runs; child processes when not given.

    Raises:
        EnvlockError: it cannot be run, its runs fail, or TensorFlow does not show its operations.
        KeyboardInterrupt: it was stopped before two runs had ended; later, the report says what is known by then.
    """
    session = Session()
    with open_draft_folder(None) as folder, closing(session):
        if observer is None:
            observer = partial(observe, say=say, session=session)
        request = replace(request, since=time.time())
        search = _Search(request, folder, say, observer)
        try:
            return report(search.find_evidence())
        except KeyboardInterrupt as stop:
            # At once, so that nothing computes on while this is put together.
            session.kill()
            found = search.describe_known(str(stop) or "Ctrl-C")
            if found is None:
                raise
            return report(found)


@dataclass
class _Search:
    """The levels that were tried, in `folder`, and what they gave."""

    request: Request
    folder: Path
    say: Say
    observer: Observer
    count: int = 0
    own: Observed | None = None
    """What the program's own mode showed."""
    doing: str = ""
    """What is being tried."""
    because: list[str] = field(default_factory=list)
    """What the runs with one thing changed have shown."""
    is_cured: bool = False
    """Whether runs with nothing changed, but ended after the first difference, were equal."""

    def find_evidence(self) -> DivergeEvidence:
        """Return what the levels and the experiments show."""
        own = self.own = self._try("running the program in its own mode", self.request)
        if not own.comparison.idle or own.failures:
            return self._search(own)
        # Nothing follows from what differs, so the runs count as equal, with a note.
        rest = replace(own.comparison, first=None, others=(), timeline=())
        found = self._search(replace(own, comparison=rest))
        return replace(found, notes=(describe_idle(own.comparison), *found.notes))

    def describe_known(self, stop: str) -> DivergeEvidence | None:
        """Return what is known by now, where something stops the search; None where two runs have not ended.

        `stop`: the signal that stopped it, such as SIGTERM.
        """
        seen = self.own
        if seen is None:
            seen = read_finished(self.request, self.folder / str(self.count))
        if seen is None:
            return None
        first = seen.comparison.first
        verdict: Verdict = "identical"
        if first is not None:
            # Whether the cause is in the graph, or only passes through, was still to be seen.
            verdict = "graph" if is_inside_graph(first) else first.kind
        found = self._make_evidence(verdict, seen, [make_level(seen)])
        return replace(found, because=tuple(self.because), stopped=stop, stopped_while=self.doing)

    def _search(self, own: Observed) -> DivergeEvidence:
        """Return what further levels and the experiments show after the program's own mode."""
        first = own.comparison.first
        if "callbacks" in own.answers:
            return self._compare_quantities(own)
        threads = examine_threads(own)
        elsewhere = describe_other_workers(own, threads)
        if elsewhere is not None:
            level = make_level(replace(own, comparison=threads.comparison or own.comparison))
            found = self._make_evidence("processes", own, [level])
            return replace(found, record=None, index=None, blind=elsewhere)
        if threads.comparison is not None or (first is not None and threads.race is not None):
            return self._explain_thread(own, threads)
        if first is None:
            return self._report_identical(own)
        if not is_inside_graph(first):
            return self._explain(own, first, [make_level(own)])
        eagerly = replace(self.request, mode="eager", steps=self._count_steps(first))
        try:
            return self._search_eagerly(own, first, eagerly)
        except RunTimeoutError as error:
            found = self._explain_graph(own, [make_level(own)])
            return replace(found, notes=(*found.notes, f"eagerly, {error.message}"))

    def _search_eagerly(
        self, own: Observed, first: Difference, eagerly: Request
    ) -> DivergeEvidence:
        """Return what eager runs show of a difference inside a graph.

        Raises:
            RunTimeoutError: one took too long.
        """
        eager = self._try("running it eagerly, operation by operation", eagerly)
        # A value that is drawn from a few can be the same in all runs by chance.
        if eager.comparison.first is None and not eager.failures and find_makers(own, first):
            what = "running it eagerly once more, as Python may have drawn the same"
            eager = self._try(what, eagerly)
        levels = [make_level(own), make_level(eager)]
        if eager.comparison.first is not None:
            return self._explain(eager, eager.comparison.first, levels)
        if eager.failures:  # what it would have shown is unknown
            return replace(self._explain_graph(own, levels[:1]), failures=tuple(eager.failures))
        return self._explain_graph(own, levels)

    def _report_identical(self, own: Observed) -> DivergeEvidence:
        """Return that the runs are equal.

        Raises:
            FactError: they showed nothing by which they could have been compared.
        """
        if not (own.comparison.entries or own.failures):
            own = self._compare_threads(own)
        found = self._make_evidence("identical", own, [make_level(own)])
        found = replace(found, pipelines=warn_of_pipelines(own))
        return replace(found, notes=(*found.notes, *self._compare_kept(own)))

    def _compare_threads(self, own: Observed) -> Observed:
        """Return the runs of a program that leaves everything to threads of its own, where these did the same.

        Raises:
            FactError: they did not, or there are none.
        """
        count = count_same_work(own.compared_ends, open_traces(own))
        if count is None:
            raise FactError(OTHER_WORK, hint=SHOW)
        if not count:
            raise FactError(NOTHING, hint=SHOW)
        return replace(own, comparison=replace(own.comparison, entries=count, steps=1))

    def _compare_kept(self, own: Observed) -> list[str]:
        """Return a note where runs differ as `envlock repeat` makes them, without loading the module again."""
        is_loaded_again = self.request.target.function is not None and not self.request.fresh
        if not is_loaded_again or own.failures or not own.comparison.shown:
            return []
        try:
            seen = self._try(KEEPING, replace(self.request, runs=2, keeps=True))
        except FactError:  # it can be run once only in a process
            return []
        shown = [list_shown(read_until_damage(path)) for path in seen.traces]
        for pair in zip(*shown, strict=False):
            if len(set(pair)) > 1:
                return [f"{KEPT}, first in {clean(pair[0][0])}"]
        return []

    def _count_steps(self, first: Difference) -> int:
        """Return how many steps show a difference, and whether it is gone."""
        steps = first.entry.step + 1 + BEYOND
        if self.request.steps is None:
            return steps
        return min(steps, self.request.steps)

    def _compare_quantities(self, own: Observed) -> DivergeEvidence:
        """Return what the quantities show, where TensorFlow does not show its operations.

        Raises:
            FactError: they show none.
        """
        why = f"this TensorFlow does not show its operations: {clean(own.answers['callbacks'])}"
        if not own.comparison.entries:
            values = "return named values from the function, or call envlock.record()"
            raise FactError(why, hint=f"{values}, to compare those")
        verdict: Verdict = "unseen" if own.comparison.first is not None else "identical"
        found = self._make_evidence(verdict, own, [make_level(own)])
        note = f"{why}; only returned and recorded values were compared"
        return replace(found, notes=(*found.notes, note))

    def _try(self, what: str, request: Request) -> Observed:
        self.count += 1
        self.doing = what
        self.say(f"{what}: {request.runs} runs")
        found = self.observer(request, self.folder / str(self.count))
        if request.fresh or found.failures:
            return found
        if not _is_first_alone(found.comparison.first, request.runs):
            return found
        # The first run initializes what the process keeps, so that it may run more operations than the
        # others. It is left out if that explains everything, and if the first run of another process does
        # the same.
        later = leave_out_first(found)
        if later.comparison.first is not None and later.comparison.first.kind == "sequence":
            return found
        if not self._has_other_first(request):
            return found
        return later

    def _has_other_first(self, request: Request) -> bool:
        """Return whether the first run of another process is different, too.

        Where it is not, what the first process left is not in memory, but in files.
        """
        return self._repeat(replace(request, runs=2)).comparison.first is not None

    def _repeat(self, request: Request) -> Observed:
        """Make runs once more, in a new process."""
        self.count += 1
        self.say(f"running it once more, with nothing changed: {request.runs} runs")
        return self.observer(request, self.folder / f"{self.count}{AGAIN}")

    def _explain(self, seen: Observed, first: Difference, levels: list[Level]) -> DivergeEvidence:
        """Return the report on a difference between operations."""
        threads = examine_threads(seen)
        if threads.comparison is not None or threads.race is not None:
            return self._explain_thread(seen, threads, levels[:-1])
        # A value that came from outside can be the work of another thread, through a variable.
        made = find_thread_maker(seen, first)
        if made is not None and made.race is not None:
            return self._explain_thread(seen, ThreadEvidence(race=made.race), levels[:-1])
        verdict: Verdict = first.kind
        found = Found()
        if first.kind in ("outside", "sequence", "quantity", "data"):
            found = self._try_makers(seen, first)
            if made is not None:
                self.because.append(made.sentence)
        elif isinstance(first.entry, Record):
            found = Found(self._look_up(seen, first.entry))
        known = drop_known_advice(found.known, seen)
        is_named = known is not None or (found.maker is not None and found.maker.is_shown)
        if threads.blind is not None and not is_named and verdict in BY_PYTHON:
            verdict = "threads"
        pipelines: tuple[Finding, ...] = check_pipelines(seen) if first.kind == "data" else ()
        evidence = self._make_evidence(verdict, seen, levels)
        is_loaded = found.maker is not None and found.maker.place.function == MODULE
        if is_loaded and self.request.target.function is not None and not self.request.fresh:
            evidence = replace(evidence, notes=(*evidence.notes, ONCE))
        return replace(
            evidence,
            known=known,
            because=tuple(self.because),
            pipelines=pipelines,
            maker=found.maker,
            blind=threads.blind,
        )

    def _explain_thread(
        self, seen: Observed, threads: ThreadEvidence, levels: Sequence[Level] = ()
    ) -> DivergeEvidence:
        """Return the report on a difference whose cause stands in another thread."""
        if threads.race is not None:
            race = threads.race
            found = self._make_evidence("race", seen, [*levels, make_level(seen)])
            source, start = read_lines(seen, race.record.operation.place)
            distinct = len(set(race.groups))
            cause = replace(
                found, record=race.record, index=None, origins=(), differing=(), distinct=distinct
            )
            return replace(cause, source=source, source_from=start, threads=race.threads)
        inside = replace(seen, comparison=threads.comparison or seen.comparison)
        first = inside.comparison.first
        verdict: Verdict = first.kind if first is not None else "threads"
        found = self._make_evidence(
            verdict, inside, [*levels, make_level(inside)], f"{seen.traces[0]}.{threads.thread}"
        )
        record = found.record
        known = (
            drop_known_advice(self._look_up(seen, record), seen)
            if record is not None and verdict != "outside"
            else None
        )
        note = f"the operation ran in thread {threads.thread} of those that the program started"
        return replace(found, known=known, notes=(*found.notes, note))

    def _look_up(self, seen: Observed, record: Record) -> Known | None:
        holds: frozenset[str] = (
            frozenset({"unseeded"}) if record.operation.name == UNSEEDED else frozenset()
        )
        determinism = seen.answers.get("determinism")
        return look_up(
            record.operation.type, holds, seen.header.tensorflow, determinism=determinism
        )

    def _try_makers(self, seen: Observed, first: Difference) -> Found:
        """Return what is known of the value that differs, and the line that made it."""
        left = self._find_left(seen, first)
        if left is not None:
            self.because.append(left)
            return self._describe_left(seen, first)
        limit = max(seen.longest * AS_LONG, LEAST)
        base = replace(
            seen.request,
            steps=self._count_steps(first),
            now=(time.time(), time.monotonic()),
            timeout=min(limit, seen.request.timeout),
        )
        made = self._watch_lines(base, first)
        if self.is_cured and self._differs_in_each_run(first):
            self.because.append(LEFT_AT_THE_END)
            return self._describe_left(seen, first)
        search = MakerSearch(seen, base, first, self._observe_held, self.because, made)
        found = search.find()
        if first.kind == "data" and (found.maker is None or not found.maker.is_shown):
            found = replace(found, maker=find_pipeline_maker(seen, first) or found.maker)
        if found.maker is None:
            return found
        return replace(found, maker=add_text(seen, found.maker))

    def _watch_lines(self, base: Request, first: Difference) -> Made | None:
        """Return the statement of the program that made the value; None where that does not show."""
        if first.kind == "data":
            return None
        watched = replace(base, runs=min(WATCHED, base.runs), lines=first.index)
        try:
            seen = self._try(WATCHING, watched)
            # What threads do in another order can agree for once.
            for _ in range(WATCHES - 1):
                if seen.comparison.first is None and not base.fresh:
                    seen = self._try(WATCHING, watched)
        except RunTimeoutError:
            return None
        # Runs that end before the difference could show are no evidence.
        is_there = seen.comparison.entries > first.index and not seen.failures
        self.is_cured = is_there and seen.comparison.first is None
        lines = []
        for number in seen.compared_runs:
            run = parse_lines(read_statements(seen.folder / f"{number}.trace"))
            if run is None:
                return None
            lines.append(run)
        made = find_made(lines)
        # The line that is named in any case says no more.
        if made is not None and isinstance(first.entry, Record) and made.place == first.entry.place:
            return None
        return made

    def _differs_in_each_run(self, first: Difference) -> bool:
        """Return whether each process had read another value from outside, and so again by no accident."""
        is_each = first.distinct == len(first.groups) > 2
        return self.request.fresh and first.kind == "outside" and is_each

    def _observe_held(self, what: str, request: Request) -> Observed | None:
        """Return what the runs with something held show; None where one did not come to its end."""
        try:
            return self._try(f"trying {what}", request)
        except RunTimeoutError:
            return None

    def _describe_left(self, seen: Observed, first: Difference) -> Found:
        """Return what is known of what an earlier run has left, and the line that reads it, if that was seen."""
        known = read_row(LEFT_ROW, seen.header.tensorflow)
        for maker in find_makers(seen, first):
            if maker.hold == "left":
                return Found(known, add_text(seen, replace(maker, is_shown=False)))
        return Found(known)

    def _find_left(self, seen: Observed, first: Difference) -> str | None:
        """Return the sentence that says how it shows that the first run left what the others found; None where
        it does not: the first run alone must have been different, and none be so when all are repeated.
        """
        if len(set(first.groups[1:])) > 1 or first.kind == "data":
            return None
        # Whole, where Python decided: what a clock ends, it ends at another step each time.
        request = self.request
        if first.kind != "sequence":
            request = replace(request, steps=self._count_steps(first))
        again = self._repeat(request)
        # Runs that fail, or end before they come there, are no evidence.
        compared = again.comparison.entries
        if again.failures or not compared or compared < first.index:
            return None
        if again.comparison.first is None:
            return LEFT
        # What each run leaves for the next, such as weights, makes a difference of its own: further on, or
        # in the values of the operation that the first run has not.
        later = compare(
            [read_until_damage(path) for path in (*seen.traces[1:], *again.traces)]
        ).first
        if later is None or later.index < first.index:
            return None
        if later.index == first.index and (first.kind != "sequence" or later.kind == "sequence"):
            return None
        return LEFT_THERE

    def _explain_graph(self, own: Observed, levels: list[Level]) -> DivergeEvidence:
        """Return the report on runs that differ in graphs only."""
        alone = replace(self.request, serial=True)
        tried = self._try("trying one operation of a graph at a time", alone)
        racing = tried.comparison.first is None
        outcome = "the runs are identical" if racing else "the runs still differ"
        self.because.append(f"with one inter-op thread, {outcome}")
        suspects = list_suspects(own, racing=racing)
        found = self._make_evidence("graph", own, levels)
        found = replace(found, because=tuple(self.because), source=(), source_from=0)
        if not suspects:
            return found
        likeliest = suspects[0]
        source, start = read_lines(own, likeliest.place)
        listed = tuple(dict.fromkeys(suspects))
        return replace(
            found, suspects=listed, known=likeliest.known, source=source, source_from=start
        )

    def _make_evidence(
        self, verdict: Verdict, seen: Observed, levels: Sequence[Level], trace: str | None = None
    ) -> DivergeEvidence:
        """Return how the first difference is reported; `trace`: that of the thread it is in."""
        comparison = seen.comparison
        ends = seen.answers["ends"].values()
        found = DivergeEvidence(
            verdict=verdict,
            target=self.request.target.title,
            runs=comparison.runs,
            tensorflow=seen.header.tensorflow,
            keras=seen.answers.get("environment", {}).get("keras") or seen.header.keras,
            levels=tuple(levels),
            others=tuple(comparison.others),
            timeline=comparison.timeline,
            threads=max([0, *(end.get("begun", 0) for end in ends)]),
            notes=tuple(self._list_notes(seen)),
            failures=tuple(seen.failures),
        )
        first = comparison.first
        if first is None:
            return found
        found = replace(found, index=first.index, distinct=first.distinct, differing=first.inputs)
        if not isinstance(first.entry, Record):
            return found
        source, start = read_lines(seen, first.entry.operation.place)
        made = find_origins(read_until_damage(Path(trace or seen.traces[0])), first)
        return replace(found, record=first.entry, source=source, source_from=start, origins=made)

    def _list_notes(self, seen: Observed) -> list[str]:
        notes = []
        if seen.comparison.runs < self.request.runs and not seen.failures:
            notes.append(
                "the first run ran other operations, as it initialized the process, and is left out"
            )
        notes += filter(None, [describe_branches(seen), describe_passing(seen.comparison)])
        if any(end.get("elsewhere") for end in seen.answers.get("ends", {}).values()):
            notes.append("operations of further threads were not compared")
        if seen.comparison.first is None and examine_threads(seen).race is not None:
            notes.append(
                "threads changed one variable in another order in each run; this time the results are equal"
            )
        if seen.comparison.first is None and not self.request.fresh:
            notes.append(
                "all runs were in one process; `--fresh` also finds differences between processes"
            )
        return notes


def _is_first_alone(first: Difference | None, runs: int) -> bool:
    """Return whether other operations ran in the first run only."""
    if first is None or first.kind != "sequence":
        return False
    return first.groups[1:].count(1) == runs - 1
