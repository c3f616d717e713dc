"""RULES: every rule with the function that finds it, in a file for each subject.

A new rule is a row of lint.toml, a function, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from envlock.linter.module import Hit, Module
from envlock.linter.rules import chances, operations, orders, pipelines, seeds, sums, variables

Check = Callable[[Module, str], Iterator[Hit]]
"""From a module and the version of TensorFlow that it is judged for to what is found."""

UNREADABLE, BAD_IGNORE, UNUSED_IGNORE = "ENV001", "ENV002", "ENV003"
"""Rules that no function finds: reading the file and its comments does."""

RULES: dict[str, Check] = {
    "ENV101": variables.not_called,
    "ENV102": variables.assigned,
    "ENV103": variables.too_late,
    "ENV104": variables.hash_seed,
    "ENV105": variables.value,
    "ENV106": variables.unread,
    "ENV107": variables.of_another_version,
    "ENV108": variables.no_switch,
    "ENV109": variables.of_tensorflow_1,
    "ENV201": seeds.partial,
    "ENV202": seeds.model_without_seed,
    "ENV203": seeds.dataset,
    "ENV204": seeds.operation,
    "ENV205": seeds.numpy,
    "ENV206": seeds.python,
    "ENV207": chances.by_chance,
    "ENV208": seeds.own_entropy,
    "ENV209": seeds.environment,
    "ENV301": pipelines.stateful_map,
    "ENV302": pipelines.any_order,
    "ENV303": orders.files,
    "ENV304": orders.sets,
    "ENV305": orders.salted_hash,
    "ENV306": pipelines.workers,
    "ENV307": orders.arrivals,
    "ENV401": operations.noisy,
    "ENV402": sums.add_n,
    "ENV403": operations.random_in_loop,
    "ENV404": operations.random_under_xla,
}
