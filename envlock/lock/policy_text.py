"""How a policy judges facts, as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from envlock.runtime.clear_values import PREFIX, in_clear
from envlock.runtime.compare import show_fact
from envlock.runtime.comparison_rules import RULES
from envlock.runtime.facts import Unavailable
from envlock.runtime.machines import is_machine
from envlock.runtime.policies import is_protected
from envlock.runtime.report import clean, count, join_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.explanation import Allowed, Explained

SHOWN = 6
"""Paths that are shown for one reason."""


def render_facts(
    found: Iterable[Explained], environ: Mapping[str, str]
) -> Iterable[tuple[str, str]]:
    """Yield (style, line) for explained facts; values of variables in `environ` are shown in plain
    text.
    """
    for fact in found:
        rules = ", ".join(map(" ".join, fact.rules.items()))
        judge = f"policy {fact.policy}"
        if fact.rule != fact.rules[fact.policy]:
            judge += ", by an override"
        yield "title", clean(fact.path)
        yield "plain", f"  locked: {show_fact(fact.path, fact.locked)}"
        yield "plain", f"  live: {_show_live(fact, environ)}"
        yield "plain", f"  rule in force: {fact.rule} ({judge})"
        yield "plain", f"  rules: {rules}"
        yield "note", f"  why: {clean(fact.why)}"
        yield "note", f"  fix: {clean(fact.fix)}"
        yield "note", f"  source: {clean(fact.source)}"


def render_ways(path: str, found: Iterable[Explained]) -> Iterable[tuple[str, str]]:
    """Yield (style, line) for what can be done about explained facts that differ and must not."""
    differing = {
        fact.path: fact.live for fact in found if not RULES[fact.rule](fact.locked, fact.live)
    }
    if not differing:
        return
    name = shlex.quote(path)
    if not any(isinstance(live, Unavailable) for live in differing.values()):
        yield (
            "plain",
            f"to accept what differs: `envlock capture --only {name}`; with all else: `envlock capture`",
        )
    if any(map(is_machine, differing)):
        yield "plain", "to accept this machine, too: `envlock capture --add-machine`"
    # No rule of a project applies to what computes.
    if not all(map(is_protected, differing)):
        yield "plain", f"to let it differ: `envlock ignore {name} --reason TEXT`"


def _show_live(fact: Explained, environ: Mapping[str, str]) -> str:
    if fact.path.startswith(PREFIX) and isinstance(fact.live, str):
        values = in_clear(fact.path[len(PREFIX) :], environ)
        if values.get(fact.live) is not None:
            return values[fact.live]
    return show_fact(fact.path, fact.live)


def list_allowed(found: Iterable[Allowed]) -> Iterable[tuple[str, str]]:
    """Yield (style, line) for the facts that may differ."""
    groups = list(found)
    number = sum(len(group.paths) for group in groups)
    yield "title", f"{count(number, 'locked fact')} may differ"
    for group in groups:
        paths = _shorten_paths(group.paths)
        rule = group.rule
        if group.by_override:
            rule += " (override)"
        yield "plain", f"  {rule}: {join_first([clean(path) for path in paths], SHOWN)}"
        yield "note", f"      why: {clean(group.why)}"


def _shorten_paths(paths: list[str]) -> list[str]:
    """Return one fact of many packages as a pattern, and several facts of one package as its node."""
    short: dict[str, None] = {}
    facts_of_packages = set()
    for path in paths:
        section, *steps = path.split(".")
        if section == "packages":
            facts_of_packages.add(".".join(steps[1:]))
            path = ".".join([section, *steps[:1]])
        short[path] = None
    if len(facts_of_packages) == 1 and len(paths) > SHOWN:
        return [f"packages.*.{facts_of_packages.pop()}"]
    return list(short)
