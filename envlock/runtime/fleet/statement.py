"""What a rank says of itself: at most 1 KB, by which ranks are compared; and the facts that it stands for. Pure."""

from __future__ import annotations

from envlock.runtime.policy import matches
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Tuple

    from envlock.runtime.collectors import Snapshot
    from envlock.runtime.fleet.ranks import Rank

    Statement = Dict[str, Any]
    """rank, size, node, job, launcher; root and sections, digests of the facts; lock, the digest of the lockfile;
    proven; and `problem`, a sentence, where a rank cannot say more."""

    Document = Dict[str, Any]
    """What a root stands for: facts, unavailable, tooling; and `launch`, the traces of the launcher."""

VERSION = 1
LIMIT = 1024  # bytes
SECTION = 32  # hexadecimal digits of the digest of a section: they only say where to look
PROBLEM_LIMIT = 300


def stated(rank: Rank, live: Snapshot, launch: Mapping[str, str], lock: str = "", *, proven: bool = False) -> Any:
    """Return the statement of a rank and the document that its root stands for.

    Args:
        rank: who says so.
        live: its facts.
        launch: the traces of its launcher, from `launchers.traces`.
        lock: the digest of its lockfile; empty where there is none.
        proven: whether its machine is known to compute the lockfile's bits.
    """
    facts = normalised(live.facts)
    sections = _digests(facts, live.unavailable)
    root = _sha256("\n".join([f"{name}:{digest}" for name, digest in sorted(sections.items())]))
    statement = {
        **_head(rank),
        "root": root,
        "sections": {name: digest[:SECTION] for name, digest in sections.items()},
        "lock": lock,
        "proven": proven,
    }
    document = {"facts": facts, "unavailable": live.unavailable, "tooling": list(live.tooling), "launch": dict(launch)}
    return statement, document


def failed(rank: Rank, problem: str) -> Statement:
    """Return the statement of a rank that could not look at its environment."""
    return {**_head(rank), "root": "", "sections": {}, "lock": "", "proven": False, "problem": problem[:PROBLEM_LIMIT]}


def _head(rank: Rank) -> Statement:
    head = {"rank": rank.rank, "size": rank.size, "node": rank.node, "job": rank.job, "launcher": rank.launcher}
    return {"statement": VERSION, **head}


def is_statement(value: Any) -> bool:
    """Return whether a value that came from outside can be reduced."""
    if not isinstance(value, dict) or value.get("statement") != VERSION:
        return False
    kinds = {"rank": int, "node": str, "job": str, "root": str, "lock": str, "proven": bool, "sections": dict}
    whole = all(type(value.get(key)) is kind for key, kind in kinds.items())
    return whole and value["rank"] >= 0 and (value.get("size") is None or type(value["size"]) is int)


def is_document(value: Any) -> bool:
    """Return whether a value that came from outside can be compared."""
    kinds = {"facts": dict, "unavailable": dict, "tooling": list, "launch": dict}
    if not isinstance(value, dict) or not all(type(value.get(key)) is kind for key, kind in kinds.items()):
        return False
    entries = value["unavailable"].values()
    return all(isinstance(each, dict) and {"reason", "code"} <= set(each) for each in entries)


def root_of(document: Document) -> str:
    """Return the root that a document has: one that came from outside can be another than its name says."""
    sections = _digests(document["facts"], document["unavailable"])
    return _sha256("\n".join([f"{name}:{digest}" for name, digest in sorted(sections.items())]))


def normalised(facts: Mapping[str, Any]) -> Dict[str, Any]:
    """Return facts without what differs from rank to rank by nature, as the table `by_rank` says."""
    found = dict(facts)
    for row in table("by_rank"):
        steps = row["path"].split(".")
        section = found.get(steps[0])
        if isinstance(section, dict):
            found[steps[0]] = _changed(section, steps[1:], row["as"])
    return found


def _changed(node: Dict[str, Any], steps: List[str], how: str) -> Dict[str, Any]:
    """Return a node in which the leaves that a path names are dropped, or counted."""
    changed = dict(node)
    for name in [each for each in node if matches(steps[0], each)]:
        value = node[name]
        if len(steps) > 1:
            changed[name] = _changed(value, steps[1:], how) if isinstance(value, dict) else value
        elif how == "drop":
            del changed[name]
        else:
            changed[name] = _counted(value)
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
