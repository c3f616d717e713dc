"""What a rank says of itself: at most 1 KB, by which ranks are compared; and the facts that it stands for. Pure."""

from __future__ import annotations

from envlock.runtime.assertion import MODES
from envlock.runtime.fleet.node_names import is_name
from envlock.runtime.fleet.texts import MOST as MOST_TEXTS
from envlock.runtime.fleet.texts import is_text
from envlock.runtime.policy import can_meet, matches
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

    from envlock.runtime.collectors import Snapshot
    from envlock.runtime.fleet.ranks import Rank

    Statement = Dict[str, Any]
    """rank, size, node, job; mode, what ENVLOCK_MODE says; root and sections, digests of the facts; lock, the digest of
    the lockfile; proven; and `problem`, a sentence, where a rank cannot say more."""

    Document = Dict[str, Any]
    """What a root stands for: facts, unavailable, tooling; `launch`, the traces of the launcher; and `texts`, the paths
    that facts hold as a SHA-256, where there are some."""

VERSION = 1
LIMIT = 1024  # bytes
SECTION = 32  # hexadecimal digits of the digest of a section: they only say where to look
PROBLEM_LIMIT = 300
DIGEST_LIMIT = 64  # hexadecimal digits of SHA-256; the name of a section is shorter
MOST = 1_000_000
"""Ranks of a job: who is missing is looked for among all of them, whatever a statement says of their number."""


def stated(
    rank: Rank,
    live: Snapshot,
    launch: Mapping[str, str],
    lock: str = "",
    rules: Optional[Mapping[str, str]] = None,
    *,
    proven: bool = False,
) -> Any:
    """Return the statement of a rank and the document that its root stands for.

    The root is of what can be judged; sections are of all facts, so that they tell where others differ.

    Args:
        rank: who says so.
        live: its facts.
        launch: the traces of its launcher, from `launchers.traces`.
        lock: the digest of its lockfile; empty where there is none.
        rules: the lockfile's own, by the patterns of their paths, where they count.
        proven: whether its machine is known to compute the lockfile's bits.
    """
    facts, unavailable = judged(live.facts, live.unavailable, rules or {})
    document = {
        "facts": facts,
        "unavailable": unavailable,
        "tooling": list(live.tooling),
        "launch": dict(launch),
    }
    sections = _digests(counted(live.facts), live.unavailable)
    statement = {
        **_head(rank),
        "root": root_of(document),
        "sections": {name: digest[:SECTION] for name, digest in sections.items()},
        "lock": lock,
        "proven": proven,
    }
    return statement, document


def failed(rank: Rank, problem: str) -> Statement:
    """Return the statement of a rank that could not look at its environment; without a problem, as it is not to."""
    return {
        **_head(rank),
        "root": "",
        "sections": {},
        "lock": "",
        "proven": False,
        "problem": problem[:PROBLEM_LIMIT],
    }


def _head(rank: Rank) -> Statement:
    who = {
        "rank": rank.rank,
        "size": rank.size,
        "node": rank.node,
        "job": rank.job,
        "mode": rank.mode,
    }
    return {"statement": VERSION, **who}


def is_statement(value: Any) -> bool:
    """Return whether a value that came from outside can be reduced."""
    if not isinstance(value, dict) or value.get("statement") != VERSION:
        return False
    kinds = {
        "rank": int,
        "node": str,
        "job": str,
        "root": str,
        "lock": str,
        "proven": bool,
        "sections": dict,
    }
    if (
        not all(type(value.get(key)) is kind for key, kind in kinds.items())
        or value.get("mode") not in MODES
    ):
        return False
    size, sections, problem = value.get("size"), value["sections"], value.get("problem", "")
    counted = 0 <= value["rank"] < MOST and (size is None or (type(size) is int and size <= MOST))
    named = is_name(value["node"]) and (not value["job"] or is_name(value["job"]))
    digests = [value["root"], value["lock"], *sections, *sections.values()]
    whole = all(isinstance(each, str) and len(each) <= DIGEST_LIMIT for each in digests)
    return (
        counted and named and whole and isinstance(problem, str) and len(problem) <= PROBLEM_LIMIT
    )


def is_document(value: Any) -> bool:
    """Return whether a value that came from outside can be compared."""
    from envlock.runtime.lockfile import are_facts

    kinds = {"facts": dict, "unavailable": dict, "tooling": list, "launch": dict}
    if not isinstance(value, dict) or not all(
        type(value.get(key)) is kind for key, kind in kinds.items()
    ):
        return False
    texts = value.get("texts", {})
    if (
        not isinstance(texts, dict)
        or len(texts) > MOST_TEXTS
        or not all(is_text(*each) for each in texts.items())
    ):
        return False
    words = [*value["tooling"], *value["launch"].values()]
    return all(isinstance(each, str) for each in words) and are_facts(
        value["facts"], value["unavailable"]
    )


def root_of(document: Document) -> str:
    """Return the digest of what a document has: one that came from outside can be another than its name says."""
    sections = _digests(document["facts"], document["unavailable"])
    return _sha256("\n".join([f"{name}:{digest}" for name, digest in sorted(sections.items())]))


def counted(facts: Mapping[str, Any]) -> Dict[str, Any]:
    """Return facts without what differs from rank to rank by nature: how many devices there are, and not which."""
    from functools import partial

    found = dict(facts)
    for path in table("by_rank")["count"]:
        found = _changed(found, path.split("."), _counted)
    for path, starts in table("by_rank")["flags"].items():
        found = _changed(found, path.split("."), partial(_without, starts=tuple(starts)))
    return found


def _without(value: Any, starts: Tuple[str, ...]) -> Any:
    """Return flags without those that begin so; None, as if it was unset, where none is left."""
    if not isinstance(value, str) or not any(flag.startswith(starts) for flag in value.split()):
        return value
    return " ".join([flag for flag in value.split() if not flag.startswith(starts)]) or None


def judged(
    facts: Mapping[str, Any], unavailable: Mapping[str, Any], rules: Mapping[str, str]
) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Return facts, devices counted, and what is unavailable, without what no policy judges.

    A path that a rule of the lockfile can judge stays; one that such rules let differ goes, too.
    """
    kept = [pattern for pattern, rule in rules.items() if rule != "ignore"]
    ignored = [pattern for pattern in rules if pattern not in kept]
    found, left = counted(facts), dict(unavailable)
    for pattern in [*table("by_rank")["drop"], *ignored]:
        path = pattern[: -len(".**")] if pattern.endswith(".**") else pattern
        if not any(can_meet(each, path) or can_meet(path, each) for each in kept):
            found = _changed(found, path.split("."), None)
            left = {each: entry for each, entry in left.items() if not matches(f"{path}.**", each)}
    return found, left


def _changed(
    node: Dict[str, Any], steps: List[str], change: Optional[Callable[[Any], Any]]
) -> Dict[str, Any]:
    """Return a node in which the nodes that a path names are changed, or dropped."""
    step, *rest = steps
    changed = dict(node)
    for name in list(node) if step == "*" else [step]:
        if name not in node:
            continue
        if rest:
            changed[name] = (
                _changed(node[name], rest, change) if isinstance(node[name], dict) else node[name]
            )
        elif change is None:
            del changed[name]
        else:
            changed[name] = change(node[name])
    return changed


def _counted(value: Any) -> Any:
    """Return how many devices a list such as `2,3` names; what names none by index stays."""
    parts = value.split(",") if isinstance(value, str) else []
    if not parts or not all(part.strip().isdigit() for part in parts):
        return value
    return "1 device" if len(parts) == 1 else f"{len(parts)} devices"


def _digests(facts: Mapping[str, Any], unavailable: Mapping[str, Any]) -> Dict[str, str]:
    """Return the digest of each section: its facts, and the codes of what could not be told; reasons are free text."""
    codes: Dict[str, List[Tuple[str, str]]] = {}
    for path, entry in sorted(unavailable.items()):
        codes.setdefault(path.partition(".")[0], []).append((path, entry["code"]))
    names = [*facts, *(name for name in codes if name not in facts)]
    return {name: _sha256(canonical([facts.get(name), codes.get(name, [])])) for name in names}


def canonical(value: Any) -> str:
    """Return JSON that is the same text for the same value."""
    import json

    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _sha256(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode("utf-8")).hexdigest()
