"""A report on any number of ranks in few lines, for people and for every rank; and what one rank needs beside it. Pure.

The whole report stays where it was made: `fleet check --format json`, or a file in the folder of the job.
"""

from __future__ import annotations

from envlock.runtime.fleet.fleet_evidence import FleetEvidence
from envlock.runtime.fleet.statement import canonical
from envlock.runtime.report import ABSENT, Finding, Report, clean, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Sequence, Tuple

    from envlock.runtime.fleet.fleet_evidence import GroupDocument
    from envlock.runtime.fleet.reduction import Group

LINES, SIZE = 200, 20_000
"""Lines and bytes that the text of a digest stays below, whatever ranks and nodes are called."""

DOCUMENT_SIZE = 64_000
"""Bytes that its JSON values stay below: what every rank reads."""

FINDING_LINES, FINDING_SIZE = 130, 11_000  # of all findings
NOTES, NOTE_SIZE = 20, 350
WORDS_SIZE = 400  # bytes of a message, a reason or a remedy
VALUE_SIZE = 200  # and of a value, as JSON
GROUPS, LIST_SIZE = 5, 200  # groups, and bytes of their lists of ranks and of nodes
OWN, OWN_SIZE = 40, 8_000  # differences of one rank, and their bytes
PARTS = 256  # environments that get a part of their own: a file each


def digest(report: Report, where: str = "") -> Report:
    """Return a report on ranks that stays below the sizes above; one that does so is returned as it is.

    Args:
        report: on ranks; another one is returned as it is.
        where: what shows the whole report, or has it.
    """
    fleet = report.evidence
    if not isinstance(fleet, FleetEvidence):
        return report
    is_short = (
        len(canonical(report.to_json())) < SIZE and report.to_text().count("\n") < FINDING_LINES
    )
    if is_short and not fleet.node_sets:
        return report
    findings = _first(report.findings)
    left = len(report.findings) - len(findings)
    notes = [_cut(each, NOTE_SIZE) for each in report.notes[:NOTES]]
    if left:
        notes.append(count(left, "more finding"))
    if where and (left or fleet.node_sets):
        notes.append(f"complete lists: {_cut(where, NOTE_SIZE)}")
    return Report(
        findings,
        command=report.command,
        policy=report.policy,
        overrides=report.overrides,
        exempt=report.exempt,
        headline=_cut(report.headline, WORDS_SIZE),
        subject=report.subject,
        notes=notes,
        evidence=_evidence(fleet),
    )


def _first(findings: Sequence[Finding]) -> List[Finding]:
    """Return the first findings that fit, cut to size, but at least one: it has the exit code."""
    found: List[Finding] = []
    lines = size = 0
    before: Tuple[str, ...] = ()
    for each in findings:
        short = _short(each)
        head = (short.severity, short.why, short.fix)
        shown = (
            [short.message]
            if head == before
            else [short.message, short.why, *short.fix.split("\n")]
        )
        lines += len(shown) + (each.severity == "info")
        size += sum(
            [len(clean(line).encode("utf-8", "replace")) + len("      why: \n") for line in shown]
        )
        if found and (lines > FINDING_LINES or size > FINDING_SIZE):
            break
        found.append(short)
        before = head
    return found


def _short(finding: Finding) -> Finding:
    words: Dict[str, Any] = {name: getattr(finding, name) for name in Finding.__slots__}
    words.update({name: _cut(words[name], WORDS_SIZE) for name in ("message", "why", "source")})
    words["fix"] = "\n".join([_cut(line, WORDS_SIZE // 4) for line in finding.fix.split("\n")[:4]])
    if "\n" not in finding.fix:
        words["fix"] = _cut(finding.fix, WORDS_SIZE)
    values = {
        key: value for key, value in finding.to_json().items() if key in ("expected", "actual")
    }
    words.update(
        {key: ABSENT for key, value in values.items() if len(canonical(value)) > VALUE_SIZE}
    )
    return Finding(**words)


def _cut(text: str, size: int) -> str:
    """Return the start of a text, in so many bytes at most as it is printed, and as JSON has it."""
    raw = clean(text).encode("utf-8", "replace")
    if len(raw) <= size:
        return text
    return raw[: size - 3].decode("utf-8", "ignore") + "..."


def _evidence(fleet: FleetEvidence) -> FleetEvidence:
    """Return how many ranks there are and the first groups, without lists that grow with the nodes."""
    groups: List[GroupDocument] = []
    for each in fleet.groups[:GROUPS]:
        short: GroupDocument = {
            "root": each["root"],
            "count": each["count"],
            "ranks": _cut(each["ranks"], LIST_SIZE),
            "nodes": _cut(each["nodes"], LIST_SIZE),
        }
        groups.append(short)
    missing = _cut(fleet.missing, LIST_SIZE)
    return FleetEvidence(fleet.size, fleet.reported, groups, fleet.majority, None, missing)


def parts(groups: Sequence[Group]) -> Dict[str, Dict[str, Any]]:
    """Return for each environment that is odd, by its root, which ranks have it and what differs there.

    Only the first `PARTS` are given; a rank of another one has the digest alone.
    """
    found: Dict[str, Dict[str, Any]] = {}
    for group in [each for each in groups if each.odd]:
        differs: List[str] = []
        for finding in group.odd[:OWN]:
            differs.append(_cut(finding.message, WORDS_SIZE))
            if sum(map(len, differs)) > OWN_SIZE:
                break
        if len(group.odd) > len(differs):
            differs.append(count(len(group.odd) - len(differs), "more difference"))
        for each in group.members:
            if not each["root"].isalnum() or (each["root"] not in found and len(found) == PARTS):
                continue  # the root names a file
            part = found.setdefault(each["root"], {"ranks": [], "differs": differs})
            part["ranks"].append(each["rank"])
    return found
