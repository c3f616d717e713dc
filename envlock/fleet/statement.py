"""The statement of a rank, and the facts that it stands for. Pure.

A statement has at most 1 KB; ranks are compared by it.
"""

from __future__ import annotations

import json
from functools import partial
from hashlib import sha256

from envlock.fleet.node_names import is_name
from envlock.fleet.texts import MOST as MOST_TEXTS
from envlock.fleet.texts import is_text
from envlock.runtime.assertion import MODES
from envlock.runtime.facts import matches
from envlock.runtime.lockfile import are_facts
from envlock.runtime.policies import can_meet, names
from envlock.runtime.report import ERROR, UNKNOWN, WARNING, Finding, clean, count
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:  # novermin (`TypeGuard` is newer, and never imported)
    from typing import (
        Any,
        Callable,
        Dict,
        Iterable,
        List,
        Mapping,
        Optional,
        Sequence,
        Tuple,
        TypeGuard,
    )

    from envlock.fleet.ranks import Rank
    from envlock.runtime.collectors import Snapshot
    from envlock.runtime.facts import Tree

    Statement = Dict[str, Any]
    """rank, size, node, job; mode, the value of ENVLOCK_MODE; root and sections, digests of the
    facts; lock, the digest of the lockfile; policy, the one asked for, and overrides, whether the
    lockfile's own rules apply; proven; `files`, what it has found in files that only it can read;
    and `problem`, a sentence, if a rank has no facts, with the error in `misused` if all ranks must
    raise it, because a setting does not exist.
    """

    Document = Dict[str, Any]
    """The facts that a root stands for: facts, unavailable, tooling; `launch`, the variables of the
    launcher; and `texts`, the paths whose SHA-256 is in the facts, if any.
    """

    Stated = Tuple[Statement, Optional[Document]]
    """The statement of a rank, and its document; None if it has not collected its facts."""

    Reasons = Mapping[str, Mapping[str, str]]
    """Why paths are unavailable: `reason` and `code`."""

    Change = Callable[[object], object]

VERSION = 2
LIMIT = 1024
"""Bytes of a statement."""
SECTION = 32
"""Hexadecimal digits of the digest of a section: enough to show which section differs."""
PROBLEM_LIMIT = 300  # characters: a sentence; rank 0 reads that of each rank
DIGEST_LIMIT = 64
"""Hexadecimal digits of SHA-256; the name of a section is shorter."""
FILES_LIMIT = 200  # characters for each severity
MOST = 1_000_000
"""The most ranks that a job can have: missing ranks are searched for among all of them, whatever
number a statement gives.
"""


def make_statement(
    rank: Rank,
    live: Snapshot,
    launch: Mapping[str, str],
    lock: str = "",
    rules: Optional[Mapping[str, str]] = None,
    *,
    policy: str = "",
    overrides: bool = True,
    proven: bool = False,
    files: Sequence[Finding] = (),
) -> Tuple[Statement, Document]:
    """Return the statement of a rank and the document that its root stands for.

    The root covers the facts that a policy can compare; the sections cover all facts, so that they
    show where others differ.

    Args:
        rank: the rank that makes the statement.
        live: its facts.
        launch: the traces of its launcher, from `launchers.collect_traces`.
        lock: the digest of its lockfile; empty without one.
        rules: the lockfile's own, by the patterns of their paths, if they apply.
        policy: the one that it asks for; empty if it leaves that to who compares.
        overrides: whether the lockfile's own rules apply.
        proven: whether its machine is proven to compute the lockfile's bits.
        files: what it has found in installed files and in data.
    """
    facts, unavailable = drop_unjudged(live.facts, live.unavailable, rules or {})
    document = {
        "facts": facts,
        "unavailable": unavailable,
        "tooling": list(live.tooling),
        "launch": dict(launch),
    }
    if live.required:
        document["required"] = list(live.required)
    sections = _digest_sections(mask_devices(live.facts), live.unavailable)
    statement = {
        **_make_head(rank),
        "root": root_of(document),
        "sections": {name: digest[:SECTION] for name, digest in sections.items()},
        "lock": lock,
        "policy": policy,
        "overrides": overrides,
        "proven": proven,
    }
    found = _describe_files(files)
    if found:
        statement["files"] = found
    return statement, document


def _describe_files(findings: Sequence[Finding]) -> Dict[str, str]:
    """Return what was found in files, by severity: the first message, and how many more there are."""
    messages: Dict[str, List[str]] = {}
    for finding in findings:
        if finding.severity in (ERROR, UNKNOWN, WARNING):
            messages.setdefault(finding.severity, []).append(clean(finding.message))
    described = {}
    for severity, (first, *others) in messages.items():
        more = f" (and {count(len(others), 'more difference')})" if others else ""
        described[severity] = first[: FILES_LIMIT - len(more)] + more
    return described


def make_failure(rank: Rank, problem: str, *, misused: str = "") -> Statement:
    """Return the statement of a rank that could not collect its facts; without a problem, of one
    with the mode `off`.

    Args:
        rank: the rank that makes the statement.
        problem: why it could not.
        misused: the error of all ranks, if it has a setting that does not exist.
    """
    return {
        **_make_head(rank),
        "root": "",
        "sections": {},
        "lock": "",
        "policy": "",
        "overrides": True,
        "proven": False,
        "problem": problem[:PROBLEM_LIMIT],
        "misused": misused,
    }


def _make_head(rank: Rank) -> Statement:
    who = {"rank": rank.rank, "size": rank.size, "node": rank.node, "job": rank.job}
    return {"statement": VERSION, **who, "mode": rank.mode}


KINDS = {
    "rank": int,
    "node": str,
    "job": str,
    "root": str,
    "lock": str,
    "policy": str,
    "overrides": bool,
    "proven": bool,
    "sections": dict,
}


def is_statement(value: object) -> TypeGuard[Statement]:
    """Return whether a value from outside is a statement that can be compared."""
    if not isinstance(value, dict) or value.get("statement") != VERSION:
        return False
    if not _has_kinds(value, KINDS):
        return False
    if value["policy"] and value["policy"] not in names():
        return False
    if value.get("mode") not in MODES or not 0 <= value["rank"] < MOST:
        return False
    size = value.get("size")
    if size is not None and (type(size) is not int or size > MOST):
        return False
    if not is_name(value["node"]) or (value["job"] and not is_name(value["job"])):
        return False
    if not _has_words(value):
        return False
    sections = value["sections"]
    digests = [value["root"], value["lock"], *sections, *sections.values()]
    return all(isinstance(each, str) and len(each) <= DIGEST_LIMIT for each in digests)


def _has_words(value: Mapping[str, object]) -> bool:
    """Return whether the sentences of a statement are some, and short."""
    problem, files = value.get("problem", ""), value.get("files", {})
    if not isinstance(problem, str) or len(problem) > PROBLEM_LIMIT:
        return False
    if not isinstance(value.get("misused", ""), str) or not isinstance(files, dict):
        return False
    if not files.keys() <= {ERROR, UNKNOWN, WARNING}:
        return False
    return all(isinstance(each, str) and len(each) <= FILES_LIMIT for each in files.values())


def is_document(value: object) -> TypeGuard[Document]:
    """Return whether a value from outside is a document that can be compared."""
    kinds = {"facts": dict, "unavailable": dict, "tooling": list, "launch": dict}
    if not isinstance(value, dict) or not _has_kinds(value, kinds):
        return False
    texts = value.get("texts", {})
    if not isinstance(texts, dict) or len(texts) > MOST_TEXTS:
        return False
    if not all(is_text(key, text) for key, text in texts.items()):
        return False
    required = value.get("required", [])
    if not isinstance(required, list):
        return False
    words = [*value["tooling"], *required, *value["launch"].values()]
    if not all(isinstance(word, str) for word in words):
        return False
    return are_facts(value["facts"], value["unavailable"])


def _has_kinds(value: Mapping[str, object], kinds: Mapping[str, type]) -> bool:
    """Return whether an object has values of these kinds by key."""
    # `type`, not `isinstance`: true is an int, but not a rank.
    return all(type(value.get(key)) is kind for key, kind in kinds.items())


def has_looked(statement: Statement) -> bool:
    """Return whether a rank states its facts."""
    return bool(statement["root"])


def root_of(document: Document) -> str:
    """Return the digest of the content of a document: one from outside may have a wrong name."""
    sections = _digest_sections(document["facts"], document["unavailable"])
    return _sha256("\n".join([f"{name}:{digest}" for name, digest in sorted(sections.items())]))


def mask_devices(facts: Tree) -> Tree:
    """Return facts without the parts that always differ from rank to rank: which devices, but not
    how many.
    """
    masked = dict(facts)
    for path in table("by_rank")["count"]:
        masked = _change_nodes(masked, path.split("."), _count_devices)
    for path, starts in table("by_rank")["flags"].items():
        change = partial(_remove_flags, starts=tuple(starts))
        masked = _change_nodes(masked, path.split("."), change)
    return masked


def _remove_flags(value: object, starts: Tuple[str, ...]) -> object:
    """Return flags without those that begin with these words; None, as if it was unset, if no flag
    is left.
    """
    if not isinstance(value, str):
        return value
    flags = value.split()
    others = [flag for flag in flags if not flag.startswith(starts)]
    # A value without any of them is not changed, nor are its spaces.
    if others == flags:
        return value
    return " ".join(others) or None


def drop_unjudged(
    facts: Tree, unavailable: Reasons, rules: Mapping[str, str]
) -> Tuple[Tree, Reasons]:
    """Return facts, with devices counted, and unavailable paths, without those that no policy
    compares.

    A path that a rule of the lockfile can compare is kept; one that such rules allow to differ is
    removed, too.
    """
    held: List[str] = []
    ignored: List[str] = []
    for pattern, rule in rules.items():
        if rule == "ignore":
            ignored.append(pattern)
        else:
            held.append(pattern)
    left = mask_devices(facts)
    reasons = dict(unavailable)
    for pattern in [*table("by_rank")["drop"], *ignored]:
        path = pattern[: -len(".**")] if pattern.endswith(".**") else pattern
        if _can_be_judged(path, held):
            continue
        left = _change_nodes(left, path.split("."), None)
        for below in list(filter(partial(matches, f"{path}.**"), reasons)):
            del reasons[below]
    return left, reasons


def _can_be_judged(path: str, held: Iterable[str]) -> bool:
    return any(can_meet(pattern, path) or can_meet(path, pattern) for pattern in held)


def _change_nodes(node: Tree, steps: List[str], change: Optional[Change]) -> Tree:
    """Return a node in which the nodes at a path are changed; None removes them."""
    step, *rest = steps
    names = list(node) if step == "*" else [step]
    changed = dict(node)
    for name in names:
        if name not in node:
            continue
        if rest:
            if isinstance(node[name], dict):
                changed[name] = _change_nodes(node[name], rest, change)
        elif change is None:
            del changed[name]
        else:
            changed[name] = change(node[name])
    return changed


def _count_devices(value: object) -> object:
    """Return the number of devices in a list such as `2,3`; a value without indexes is not changed."""
    if not isinstance(value, str):
        return value
    parts = value.split(",")
    if not all(part.strip().isdigit() for part in parts):
        return value
    if len(parts) == 1:
        return "1 device"
    return f"{len(parts)} devices"


def _digest_sections(facts: Tree, unavailable: Reasons) -> Dict[str, str]:
    """Return the digest of each section: its facts, and the codes of its unavailable facts."""
    # Reasons are free text, so only codes count.
    codes: Dict[str, List[Tuple[str, str]]] = {}
    for path, entry in sorted(unavailable.items()):
        codes.setdefault(path.partition(".")[0], []).append((path, entry["code"]))
    digests = {}
    for name in {**facts, **codes}:
        digests[name] = _sha256(canonical([facts.get(name), codes.get(name, [])]))
    return digests


def canonical(value: object) -> str:
    """Return JSON that is the same text for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _sha256(text: str) -> str:
    return sha256(text.encode("utf-8")).hexdigest()
