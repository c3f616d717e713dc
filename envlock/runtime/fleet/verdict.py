"""A report that another process has sent as JSON values. Pure."""

from __future__ import annotations

from envlock.runtime.facts import Unavailable
from envlock.runtime.report import ERROR, SEVERITIES, Finding, Report, Where

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
        return Report(
            [_finding(each) for each in document["findings"]],
            command=str(document["command"]),
            policy=policy["name"],
            overrides=policy["overrides"],
            headline=str(document["headline"]),
            notes=[str(note) for note in document["notes"]],
            attachments=dict(document["attachments"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a report: {error!r}") from None


def _finding(document: Mapping[str, Any]) -> Finding:
    message, why, fix, source = (str(document[name]) for name in ("message", "why", "fix", "source"))
    where = dict(document["where"])
    sides = {name: _value(document[name]) for name in ("expected", "actual") if name in document}
    place = Where(where.pop("fact", ""), **where)
    severity = document["severity"] if document["severity"] in SEVERITIES else ERROR
    return Finding(str(document["rule"]), severity, place, message, why, fix, source, **sides)


def _value(value: Any) -> Any:
    is_unavailable = isinstance(value, dict) and "unavailable" in value
    return Unavailable(value["unavailable"], value["code"]) if is_unavailable else value
