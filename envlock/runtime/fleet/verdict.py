"""A report that another process has sent as JSON values. Pure."""

from __future__ import annotations

from envlock.runtime.facts import Unavailable
from envlock.runtime.fleet.fleet_evidence import FleetEvidence
from envlock.runtime.report import ERROR, SEVERITIES, Finding, Report
from envlock.runtime.where import Where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping


def report_of(document: Mapping[str, Any]) -> Report:
    """Return the report that `Report.to_json` wrote.

    Raises:
        ValueError: it is not one.
    """
    try:
        policy = document["policy"] or {"name": None, "overrides": 0}
        rest: Any = {name: document[name] for name in ("command", "headline", "notes")}
        # Where ranks did not get to a verdict, nothing is attached.
        if document["attachments"]:
            rest["evidence"] = FleetEvidence.read(document["attachments"])
        findings = [_finding(each) for each in document["findings"]]
        rest["exempt"] = policy.get("exempt", ())
        return Report(findings, policy=policy["name"], overrides=policy["overrides"], **rest)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"not a report: {error!r}") from None


def _finding(document: Mapping[str, Any]) -> Finding:
    words: Any = {name: str(document[name]) for name in ("rule", "message", "why", "fix", "source")}
    where = dict(document["where"])
    place = Where(where.pop("fact", ""), **where)
    severity = document["severity"] if document["severity"] in SEVERITIES else ERROR
    sides: Any = {
        name: _value(document[name]) for name in ("expected", "actual") if name in document
    }
    return Finding(severity=severity, where=place, **words, **sides)


def _value(value: Any) -> Any:
    is_unavailable = isinstance(value, dict) and "unavailable" in value
    return Unavailable(value["unavailable"], value["code"]) if is_unavailable else value
