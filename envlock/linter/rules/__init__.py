"""RULES: those that the text of one file decides, each with the function that finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from envlock.linter.module import Hit, Module
from envlock.linter.rules import variables
from envlock.linter.rules.old_python import find_python2

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
    "ENV105": variables.find_bad_values,
    "ENV106": variables.find_unread,
    "ENV107": variables.find_other_recipes,
    "ENV109": variables.find_old_programs,
    "ENV110": variables.find_fusion,
    "ENV111": variables.find_gone,
    "ENV112": find_python2,
}
"""Rules that the text of one file decides."""

INTERPRETED = (
    *("ENV210", "ENV308", "ENV309"),
    *("ENV108", "ENV201", "ENV202", "ENV203", "ENV204", "ENV205", "ENV206", "ENV207", "ENV208"),
    *("ENV209", "ENV301", "ENV302", "ENV303", "ENV304", "ENV305", "ENV306", "ENV307"),
    *("ENV401", "ENV402", "ENV403", "ENV404"),
)
"""Rules of what the interpreter sees: sources, transfer rows and sinks in
`envlock/linter/interpreter`.
"""

RULES = (*DIRECT, *INTERPRETED)
