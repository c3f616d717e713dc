"""What the doctor finds, and all of it together. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from envlock.runtime.report import clean

REPORT_VERSION = 1
Severity = Literal["error", "warning", "info"]
ORDER: tuple[Severity, ...] = ("error", "warning", "info")
MARKS: Mapping[Severity, str] = {"error": "x", "warning": "!", "info": "i"}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or may be.

    Attributes:
        rule: the rule that found it, such as `variable-aborts`.
        severity: `error` (it will fail, or compute other bits than wanted), `warning` (it may), `info`.
        subject: what it is about: a dotted path of a fact, or the name of a variable.
        evidence: what was found, one sentence.
        why: what it does, one sentence.
        fix: a command, a line to paste, or one sentence.
        source: where `why` is known from.
        set, unset: variables that put it right, for `--fix-env`; names and values of the tables only.
    """

    rule: str
    severity: Severity
    subject: str
    evidence: str
    why: str
    fix: str
    source: str
    set: Mapping[str, str] = field(default_factory=dict)
    unset: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        words = ("rule", "severity", "subject", "evidence", "why", "fix", "source")
        return {**{word: getattr(self, word) for word in words}, "set": dict(self.set), "unset": list(self.unset)}


class Diagnosis:
    """Every finding, the worst first.

    Attributes:
        findings: ordered by severity, then as the rules found them.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = sorted(findings, key=lambda finding: ORDER.index(finding.severity))

    @property
    def sound(self) -> bool:
        """Whether nothing is an error."""
        return all(finding.severity != "error" for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """0 when sound, else 1."""
        return 0 if self.sound else 1

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, in the published shape."""
        found = [finding.to_json() for finding in self.findings]
        return {"report_version": REPORT_VERSION, "sound": self.sound, "findings": found}

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield (style, line) for people; nothing where nothing was found."""
        if self.findings:
            yield "title", self._title()
        for finding in self.findings:
            yield finding.severity, f"  {MARKS[finding.severity]} {clean(finding.evidence)} [{finding.rule}]"
            yield "note", f"      why: {clean(finding.why)}"
            yield "note", f"      fix: {clean(finding.fix)}"

    def _title(self) -> str:
        counts = [sum(finding.severity == each for finding in self.findings) for each in ORDER]
        nouns = ("error", "warning", "note")
        told = [f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in zip(counts, nouns, strict=True) if n]
        return f"{'sound' if self.sound else 'not sound'}: {', '.join(told)}"
