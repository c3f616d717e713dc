"""What the doctor says where a rule finds something (doctor.toml explains the columns)."""

from __future__ import annotations

from functools import cache

from envlock.data import Row, Text, determinism, read
from envlock.diagnosis.remedies import Remedy
from envlock.runtime.report import Finding, Severity


class FindingRow(Row):
    """A rule, or another form of its finding; words in braces stand for values."""

    rule: Text | None = None
    title: Text | None = None
    severity: determinism.Severity = "warning"
    where: Text = "{where}"
    message: Text
    why: Text = "{why}"
    fix: Text = "{fix}"
    source: Text = "{source}"


@cache
def load_doctor_table() -> dict[str, FindingRow]:
    """Return the rows by name."""
    return {name: FindingRow.model_validate(row) for name, row in read("doctor").items()}


@cache
def load_titles() -> dict[str, str]:
    """Return what each rule looks for, by its name."""
    return {name: row.title for name, row in load_doctor_table().items() if row.title}


def make_finding(
    name: str,
    remedy: Remedy | None = None,
    /,
    *,
    severity: Severity | None = None,
    **values: object,
) -> Finding:
    """Return the finding of a row.

    Args:
        name: of the row.
        remedy: its text is the value `fix`, and its commands are those of the finding.
        severity: if it is not that of the row.
        values: the words in braces.
    """
    row = load_doctor_table()[name]
    if remedy is not None:
        values["fix"] = remedy.text
    return Finding(
        row.rule or name,
        severity or row.severity,
        row.where.format(**values),
        message=row.message.format(**values),
        why=row.why.format(**values),
        fix=row.fix.format(**values),
        source=row.source.format(**values),
        commands=[] if remedy is None else remedy.commands,
    )
