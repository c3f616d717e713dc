"""A report on any number of ranks in a few lines, and what a single rank needs in addition. Pure.

The whole report stays where it was made: `fleet check --format json`, or a file in the folder of
the job.
"""

from __future__ import annotations

from envlock.fleet.fleet_evidence import FleetEvidence
from envlock.fleet.statement import canonical
from envlock.runtime.exemptions import OVERRIDE, Exemption
from envlock.runtime.extent import Extent
from envlock.runtime.facts import Unavailable
from envlock.runtime.finding_place import Where
from envlock.runtime.report import (
    ABSENT,
    ERROR,
    INFO,
    SEVERITIES,
    Finding,
    Report,
    clean,
    count,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

    from envlock.fleet.fleet_evidence import GroupDocument
    from envlock.fleet.reduction import Group

    Part = Dict[str, Any]
    """The part for one environment: what `differs` there."""

LINES, SIZE = 200, 20_000
"""Lines and bytes that the text of a digest never exceeds, however long the names of ranks and
nodes are.
"""

DOCUMENT_SIZE = 64_000
"""Bytes that its JSON values, which every rank reads, never exceed."""

FINDING_LINES, FINDING_SIZE = 130, 11_000
"""The limits of all findings together."""
NOTES, NOTE_SIZE = 20, 350
WORDS_SIZE = 400
"""Bytes of a message, a reason or a remedy."""
VALUE_SIZE = 200
"""Bytes of a value, as JSON."""
GROUPS, LIST_SIZE = 5, 200
"""Groups, and bytes of the lists of their ranks and nodes."""
OWN, OWN_SIZE = 40, 8_000
"""Differences of one rank, and their bytes."""
PARTS = 256
"""Environments that get a part of their own, each in a file."""


def digest(report: Report, where: str = "") -> Report:
    """Return a report on ranks that does not exceed the sizes above; a small report is returned
    unchanged.

    Args:
        report: on ranks; other reports are returned unchanged.
        where: the command or the file that has the whole report.
    """
    fleet = report.evidence
    if not isinstance(fleet, FleetEvidence):
        return report
    has_node_sets = bool(fleet.node_sets)
    is_short = len(canonical(report.to_json())) < SIZE
    if is_short and report.to_text().count("\n") < FINDING_LINES and not has_node_sets:
        return report
    findings = _choose_findings(report.findings)
    left = len(report.findings) - len(findings)
    notes = [_cut(note, NOTE_SIZE) for note in report.notes[:NOTES]]
    if left:
        notes.append(count(left, "more finding"))
    if where and (left or has_node_sets):
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
        evidence=_shorten_evidence(fleet),
        extent=report.extent,
    )


def _choose_findings(findings: Sequence[Finding]) -> List[Finding]:
    """Return the first findings that fit, shortened, but at least one: it determines the exit code."""
    chosen: List[Finding] = []
    lines = size = 0
    before: Tuple[str, ...] = ()
    for finding in findings:
        short = _shorten(finding)
        # Consecutive findings with the same reason and remedy are printed with it once.
        head = (short.severity, short.why, short.fix)
        printed = [short.message]
        if head != before:
            printed += [short.why, *short.fix.split("\n")]
        lines += len(printed)
        if finding.severity == INFO:
            lines += 1
        for line in printed:
            size += len(clean(line).encode("utf-8", "replace")) + len("      why: \n")
        if chosen and (lines > FINDING_LINES or size > FINDING_SIZE):
            break
        chosen.append(short)
        before = head
    return chosen


def _shorten(finding: Finding) -> Finding:
    """Return a finding with shortened texts, and without values that are too long."""
    lines = finding.fix.split("\n")
    if len(lines) > 1:
        fix = "\n".join([_cut(line, WORDS_SIZE // 4) for line in lines[:4]])
    else:
        fix = _cut(finding.fix, WORDS_SIZE)
    sides = {"expected": finding.expected, "actual": finding.actual}
    shown = finding.to_json()
    for side in sides:
        if side in shown and len(canonical(shown[side])) > VALUE_SIZE:
            sides[side] = ABSENT
    return Finding(
        finding.rule,
        finding.severity,
        finding.where,
        message=_cut(finding.message, WORDS_SIZE),
        why=_cut(finding.why, WORDS_SIZE),
        fix=fix,
        source=_cut(finding.source, WORDS_SIZE),
        expected=sides["expected"],
        actual=sides["actual"],
        weight=finding.weight,
        commands=finding.commands,
    )


def _cut(text: str, size: int) -> str:
    """Return the start of a text, in at most `size` bytes when it is printed, and in JSON."""
    raw = clean(text).encode("utf-8", "replace")
    if len(raw) <= size:
        return text
    return raw[: size - 3].decode("utf-8", "ignore") + "..."


def _shorten_evidence(fleet: FleetEvidence) -> FleetEvidence:
    """Return the number of ranks and the first groups, without lists that grow with the number of
    nodes.
    """
    groups: List[GroupDocument] = []
    for group in fleet.groups[:GROUPS]:
        short: GroupDocument = {
            "root": group["root"],
            "count": group["count"],
            "ranks": _cut(group["ranks"], LIST_SIZE),
            "nodes": _cut(group["nodes"], LIST_SIZE),
        }
        groups.append(short)
    missing = _cut(fleet.missing, LIST_SIZE)
    return FleetEvidence(fleet.size, fleet.reported, groups, fleet.majority, None, missing)


def split_by_root(groups: Sequence[Group]) -> Dict[str, Part]:
    """Return for each odd environment, by its root, what differs there.

    Only the first `PARTS` are returned; a rank with another environment gets only the digest.
    """
    parts: Dict[str, Part] = {}
    for group in groups:
        if not group.odd:
            continue
        differs = _list_differences(group.odd)
        for root in dict.fromkeys(member["root"] for member in group.members):
            # The root becomes the name of a file.
            if root.isalnum() and len(parts) < PARTS:
                parts.setdefault(root, {"differs": differs})
    return parts


def _list_differences(findings: Sequence[Finding]) -> List[str]:
    """Return the messages of the first findings, and the number of the others."""
    messages: List[str] = []
    size = 0
    for finding in findings[:OWN]:
        message = _cut(finding.message, WORDS_SIZE)
        messages.append(message)
        size += len(message)
        if size > OWN_SIZE:
            break
    left = len(findings) - len(messages)
    if left:
        messages.append(count(left, "more difference"))
    return messages


def parse_report(document: Mapping[str, Any]) -> Report:
    """Return the report that another process has sent, as `Report.to_json` wrote it.

    Raises:
        ValueError: the document is not a report.
    """
    try:
        policy = document["policy"] or {"name": None, "overrides": 0}
        # If the ranks did not reach a verdict, nothing is attached.
        evidence = FleetEvidence.read(document["attachments"]) if document["attachments"] else None
        return Report(
            [_parse_finding(finding) for finding in document["findings"]],
            command=document["command"],
            policy=policy["name"],
            overrides=policy["overrides"],
            exempt=_parse_exemptions(policy),
            headline=document["headline"],
            notes=document["notes"],
            evidence=evidence,
            extent=_parse_extent(document.get("compared")),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"not a report: {error!r}") from None


def _parse_extent(compared: Optional[Mapping[str, Any]]) -> Optional[Extent]:
    if compared is None:
        return None
    return Extent.read(compared)


def _parse_exemptions(policy: Mapping[str, Any]) -> List[Exemption]:
    """Return the exemptions of a report without the overrides, which have a number of their own."""
    found = map(Exemption.read, policy.get("exemptions", ()))
    return [each for each in found if each.owner != OVERRIDE]


def _parse_finding(document: Mapping[str, Any]) -> Finding:
    where = dict(document["where"])
    severity = document["severity"]
    # An unknown severity must not be treated as harmless.
    if severity not in SEVERITIES:
        severity = ERROR
    return Finding(
        str(document["rule"]),
        severity,
        Where(where.pop("fact", ""), **where),
        message=str(document["message"]),
        why=str(document["why"]),
        fix=str(document["fix"]),
        source=str(document["source"]),
        expected=_parse_value(document.get("expected", ABSENT)),
        actual=_parse_value(document.get("actual", ABSENT)),
    )


def _parse_value(value: object) -> object:
    if isinstance(value, dict) and "unavailable" in value:
        return Unavailable(value["unavailable"], value["code"])
    return value
