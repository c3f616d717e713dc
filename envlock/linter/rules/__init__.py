"""The rules: those that the text of one file decides, and those of what the programs of a project do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from envlock.linter.facts import Facts
from envlock.linter.findings import Found
from envlock.linter.module import Hit, Module
from envlock.linter.rules import orders, refused, seeds, threads, training, variables

Check = Callable[[Module, str], Iterator[Hit]]
"""From a module and the version of TensorFlow that it is judged for to what is found."""

UNREADABLE, BAD_IGNORE, UNUSED_IGNORE = "ENV001", "ENV002", "ENV003"
"""Rules that no function finds: reading the file and its comments does."""

UNSWITCHED, UNSEEDED = "ENV108", "ENV202"
"""A training without the switch, and one without a seed: without both it is one finding, of the
second rule.
"""

DIRECT: dict[str, Check] = {
    "ENV101": variables.find_uncalled,
    "ENV102": variables.find_assigned,
    "ENV103": variables.find_late,
    "ENV104": variables.find_hash_seeds,
    "ENV106": variables.find_unread,
    "ENV107": variables.find_other_recipes,
    "ENV109": refused.find_refused,
}
"""Rules that the text of one file decides."""

OF_SEEDS = (
    seeds.find_draws,
    seeds.find_entropy,
    seeds.find_chances,
    seeds.find_shuffles,
    seeds.find_environments,
    seeds.find_models,
)
OF_ORDERS = (
    orders.find_listings,
    orders.find_sets,
    orders.find_hashes,
    orders.find_clocks,
    threads.find_parallel,
    threads.find_given_up,
    threads.find_arrivals,
    threads.find_threads,
)
"""Rules of what the programs of a project do, by the events of their files."""


def find(facts: Facts, tensorflow: str, *, switched_on: bool) -> Iterator[Found]:
    """Yield what the rules find in a project."""
    project = facts.project
    switches = {each.file.index for each in facts.select("switch")}
    for file in project.files:
        is_switched = switched_on or not switches.isdisjoint(project.list_reach(file))
        for rule, check in DIRECT.items():
            for node, message, severity, fix, unless_switched in check(file.module, tensorflow):
                if is_switched and unless_switched:
                    continue
                line, part = getattr(node, "lineno", 1), project.find_part(file.find_scope(node))
                yield Found(rule, file, node, line, message, fix, part, severity)
    seeding = seeds.Seeding(facts, tensorflow)
    for find in OF_SEEDS:
        yield from find(facts, seeding)
    for look in OF_ORDERS:
        yield from look(facts)
    yield from threads.find_workers(facts, tensorflow)
    if not switched_on:
        yield from training.find_unswitched(facts, tensorflow)
