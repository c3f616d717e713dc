"""What is wrong with ranks themselves, whatever their facts are. Pure."""

from __future__ import annotations

from envlock.runtime.assertion import ENFORCING, OFF
from envlock.runtime.fleet.places import listed, together
from envlock.runtime.report import ERROR, UNKNOWN, Finding, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Sequence

    from envlock.runtime.fleet.places import Members, Places
    from envlock.runtime.fleet.statement import Statement

COMMAND = "fleet check"
MISSING = "rank-missing"
SHOWN = 5  # kinds of failures, and of lockfiles
SOURCE = "docs/fleet.md"
WHERE = "fleet"  # what a finding is about that is not about a fact
PARTS = "Ranks compute parts of one result: where environments differ, the bits depend on which rank computes what."
LOST = "A rank that does not report can have any environment, or has ended."
SEVERAL = "Each rank reads the lockfile where it runs; with several, ranks are held to several environments."
SWITCHED = "A rank that goes on whatever is found would start without those that refuse."
OF_RANKS = {
    MISSING: (
        UNKNOWN,
        LOST,
        "Look for the end of that rank in the launcher's log, and start the job again.",
    ),
    "rank-size": (ERROR, PARTS, "Give each job a folder of its own, or the number of its ranks."),
    "rank-failed": (UNKNOWN, LOST, "Remove the cause on these nodes, and start the job again."),
    "rank-mode": (ERROR, SWITCHED, "Set ENVLOCK_MODE for all ranks, or for none."),
    "rank-lockfile": (ERROR, SEVERAL, "Put one lockfile where every node reads it."),
    "rank-facts": (UNKNOWN, LOST, "Run the job again in an empty folder."),
    "rank-groups": (
        ERROR,
        PARTS,
        "Remove the differences above first; `--format json` lists all groups.",
    ),
}
"""What is wrong with ranks rather than with facts, by the rule of its finding: how bad, why, and what to do."""


def of_ranks(rule: str, message: str) -> Finding:
    """Return a finding on ranks."""
    severity, why, fix = OF_RANKS[rule]
    return Finding(rule, severity, WHERE, message, why, fix, SOURCE)


def problems(
    statements: Sequence[Statement], compared: Sequence[Statement], size: int, places: Places
) -> Iterator[Finding]:
    """Yield what is wrong with the ranks themselves, whatever their facts are."""
    missing = set(range(size)) - {each["rank"] for each in statements}
    if missing:
        yield of_ranks(MISSING, f"no report from {listed(missing)}")
    beyond = [each for each in statements if is_beyond(each, size)]
    if beyond:
        job = f"a job of another size, not of {count(size, 'rank')}"
        yield of_ranks("rank-size", f"{places.of(beyond)}: belongs to {job}")
    yield from _switched(statements, places)
    yield from _failed(failures(statements), places)
    kinds = together(compared, lambda each: each["lock"])
    if len(kinds) > 1:
        digests = [each[0]["lock"][:12] for each in kinds[:SHOWN]]
        shown = [f"sha256:{digest}" if digest else "none" for digest in digests]
        words = [f"{places.of(members)} {digest}" for members, digest in zip(kinds, shown)]  # noqa: B905 (Python 3.8)
        words += [f"{len(kinds) - SHOWN:,} more"] if len(kinds) > SHOWN else []
        yield of_ranks("rank-lockfile", f"ranks have different lockfiles: {', '.join(words)}")


def is_beyond(statement: Statement, size: int) -> bool:
    """Return whether a rank belongs to a job of another size."""
    return bool(statement["rank"] >= size or statement.get("size") not in (None, size))


def _switched(statements: Sequence[Statement], places: Places) -> Iterator[Finding]:
    """Yield ranks that go on whatever is found, while others do not; or that nothing has been looked at."""
    loose = [each for each in statements if each["mode"] not in ENFORCING]
    if len(loose) < len(statements):
        for members in together(loose, lambda each: each["mode"]):
            message = f"{places.of(members)}: ENVLOCK_MODE={members[0]['mode']}, while other ranks enforce"
            yield of_ranks("rank-mode", message)
    elif loose and not any(each["root"] for each in statements):
        finding = of_ranks("rank-mode", "ENVLOCK_MODE=off on all ranks: nothing is compared")
        finding.severity = UNKNOWN
        yield finding


def failures(statements: Sequence[Statement]) -> List[Members]:
    """Return the ranks that could not look at their environment, those with one cause together."""
    failed = [
        each
        for each in statements
        if not each["root"] and (each["mode"] != OFF or each.get("problem"))
    ]
    return together(failed, _cause)


def _cause(statement: Statement) -> str:
    """Return why a rank has failed without what is its own: its node, paths, and numbers."""
    import re

    text = re.sub(
        r"[^\s'\"`]*/[^\s'\"`:]*",
        "PATH",
        str(statement.get("problem")).replace(statement["node"], "NODE"),
    )
    return re.sub("0x[0-9a-f]+|[0-9]+", "NUMBER", text)


def reasons(members: Members) -> Dict[str, int]:
    """Return the reasons that ranks state, as they are, and how many ranks state each; the lowest rank's first."""
    found: Dict[str, int] = {}
    for each in sorted(members, key=_rank):
        reason = each.get("problem") or "no reason given"
        found[reason] = found.get(reason, 0) + 1
    return found


def _rank(statement: Statement) -> int:
    return int(statement["rank"])


def _failed(causes: Sequence[Members], places: Places) -> Iterator[Finding]:
    """Yield a finding for each of the first causes, with the reason of its lowest rank, and one for all others."""
    for members in causes[:SHOWN]:
        first, *others = reasons(members)
        more = f" (and {count(len(others), 'similar reason')})" if others else ""
        yield of_ranks("rank-failed", f"{places.of(members)}: cannot report: {first}{more}")
    if len(causes) > SHOWN:
        rest = [each for members in causes[SHOWN:] for each in members]
        number = count(len(causes) - SHOWN, "other reason")
        yield of_ranks("rank-failed", f"{places.of(rest)}: cannot report: {number}")
