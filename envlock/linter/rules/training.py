"""Training code that turns op determinism on nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from envlock.linter.events import Event
from envlock.linter.facts import Facts
from envlock.linter.findings import Found, describe_more
from envlock.linter.project import File
from envlock.linter.rules.variables import describe_recipe

SWITCHES = ("TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC")
"""Variables that a program may set or read in its own way, for instance by a shell or a table."""


def find_unswitched(facts: Facts, tensorflow: str) -> Iterator[Found]:
    """ENV108: one finding of each program that trains and has no switch, as one line is the remedy."""
    project = facts.project
    switched = {event.file.index for event in facts.select("switch")}
    for file in project.files:
        if any(word in file.module.text for word in SWITCHES):
            switched.add(file.index)
    by_program: dict[File, list[Event]] = {}
    for event in facts.select("train", "step", "noisy"):
        for program in project.list_programs(event.scope):
            if switched.isdisjoint(project.list_reach(program)):
                by_program.setdefault(program, []).append(event)
    told: set[Event] = set()
    # The program with most to list first: what it lists, the others need not list.
    for program, events in sorted(by_program.items(), key=lambda each: -len(each[1])):
        if not any(each.kind == "train" for each in events):
            continue
        fresh = [each for each in events if each not in told]
        told.update(fresh)
        trained = [each for each in fresh if each.kind == "train"]
        if not trained:
            continue
        parts = {each: project.find_part(each.scope) for each in trained}
        first = min(
            trained, key=lambda each: (parts[each] != "", each.file is not program, each.line)
        )
        others, more = describe_more(first, fresh)
        message = f"a model is trained here{more}, and nothing turns op determinism on"
        fix = describe_recipe(tensorflow)
        part = parts[first]
        yield Found("ENV108", first.file, first.node, first.line, message, fix, part, others=others)
