"""The events of a project: a flat list, made once, which the rules ask."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from envlock.linter.events import TENSORFLOW, Event
from envlock.linter.module import get_last_word, list_words
from envlock.linter.project import Project
from envlock.linter.reader import read_events

UNSAID = frozenset({"self", "_"})


class Facts:
    """The events of a project, by their kinds."""

    def __init__(self, project: Project) -> None:
        self.project = project
        events: list[Event] = []
        for file in project.files:
            events += read_events(project, file)
        events += list(_list_steps(events, project))
        self._by_kind: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            self._by_kind[event.kind].append(event)

    def select(self, *kinds: str) -> list[Event]:
        """Return the events of some kinds, by kind, file and line."""
        return [each for kind in kinds for each in self._by_kind[kind]]


def _list_steps(events: list[Event], project: Project) -> Iterator[Event]:
    """Yield where sessions run what `minimize` or `apply_gradients` gave, by the names it has."""
    words: set[str] = set()
    for event in events:
        if event.kind == "train" and event.of == TENSORFLOW:
            statement = event.file.module.find_statement(event.node)
            if isinstance(statement, ast.Assign):
                words |= list_words(statement.targets) - UNSAID
    if not words:
        return
    for file in project.files:
        for assign in file.module.list_nodes(ast.Assign):
            # `fetches = [loss, train_op]`, and `train_op = tf.group(step, averages)`.
            value = assign.value
            kept = isinstance(value, ast.List | ast.Tuple | ast.Dict) or (
                isinstance(value, ast.Call) and get_last_word(value.func) == "group"
            )
            if kept and words & list_words([value]):
                words |= list_words(assign.targets) - UNSAID
        for call in file.module.find_methods(("run",)):
            if words & list_words([call.func, *call.args[:1]]):
                yield Event("step", TENSORFLOW, "run", call, file.find_scope(call))
