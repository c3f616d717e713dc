"""What a policy makes of facts, for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from envlock.runtime.clear import PREFIX, in_clear
from envlock.runtime.report import clean, count, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.explanation import Allowed, Explained

SHOWN = 6  # paths of one reason


def facts(found: Iterable[Explained], environ: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Yield (style, line) for explained facts; what a variable of `environ` gives is shown in clear."""
    for each in found:
        rules = ", ".join(f"{name} {rule}" for name, rule in each.rules.items())
        own = "" if each.rule == each.rules[each.policy] else ", by an override"
        yield "title", clean(each.path)
        yield "plain", f"  locked: {show(each.locked)}"
        yield "plain", f"  live: {_live(each, environ)}"
        yield "plain", f"  rule in force: {each.rule} (policy {each.policy}{own})"
        yield "plain", f"  rules: {rules}"
        yield "note", f"  why: {clean(each.why)}"
        yield "note", f"  fix: {clean(each.fix)}"
        yield "note", f"  source: {clean(each.source)}"


def _live(fact: Explained, environ: Mapping[str, str]) -> str:
    is_text = fact.path.startswith(PREFIX) and isinstance(fact.live, str)
    shown = in_clear(fact.path[len(PREFIX) :], environ).get(fact.live) if is_text else None
    return show(fact.live) if shown is None else shown


def allowed(found: Iterable[Allowed]) -> Iterable[tuple[str, str]]:
    """Yield (style, line) for the facts that may differ."""
    groups = list(found)
    yield "title", f"{count(sum(len(each.paths) for each in groups), 'locked fact')} may differ"
    for each in groups:
        paths = _short(each.paths)
        more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
        own = " (override)" if each.by_override else ""
        yield "plain", f"  {each.rule}{own}: {', '.join(map(clean, paths[:SHOWN]))}{more}"
        yield "note", f"      why: {clean(each.why)}"


def _short(paths: list[str]) -> list[str]:
    """Return paths with one fact of many packages as a pattern, and several facts of one package as its node."""
    steps = [path.split(".") for path in paths]
    facts = {".".join(each[2:]) for each in steps if each[0] == "packages"}
    if len(facts) == 1 and len(paths) > SHOWN:
        return [f"packages.*.{facts.pop()}"]
    return list(
        dict.fromkeys(
            ".".join(each[:2]) if each[0] == "packages" else ".".join(each) for each in steps
        )
    )
