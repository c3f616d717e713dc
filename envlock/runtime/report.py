"""One Finding and one Report for every command that judges."""

from __future__ import annotations

from envlock.runtime.facts import Unavailable
from envlock.runtime.where import Where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any,
        Dict,
        Iterable,
        Iterator,
        List,
        Mapping,
        Optional,
        Sequence,
        Tuple,
        Union,
    )

REPORT_VERSION = 2

ERROR = "error"  # the answer is no
UNKNOWN = "unknown"  # the policy needs it and it could not be collected
WARNING = "warning"  # it may hurt
INFO = "info"  # differs, and the policy lets it through; or worth knowing
SEVERITIES = (ERROR, UNKNOWN, WARNING, INFO)

DEEP = "deep"  # the rule of a finding that TensorFlow's own loader contradicts the files (`verify --deep`)
COMPARED = "compared"  # the rule of a finding that nothing was compared of what a verdict needs
BITS = "bits"  # the rule of a finding that an operation computes other bits (`verify --numerics`)
LAUNCHER = "launcher"  # the rule of a finding that what started the process explains differences
NO_TENSORFLOW = "no-tensorflow"  # the rule of a finding that TensorFlow is locked and not here: it explains all others
FILE_RULE = "file-"  # begins the rules of findings about installed files (`verify --deep`)

SUBJECT = "envlock.lock"  # the file that a finding without a place in a file is shown at
FILES_SHOWN = 20  # in an exception; `envlock verify --deep` has tables
INFO_SHOWN = 4  # of a kind; another installer would else be one line a package, and hide the rest

MARKS = {ERROR: "x", UNKNOWN: "?", WARNING: "!", INFO: "i"}
MEANINGS = {ERROR: "error", UNKNOWN: "unknown", WARNING: "warning", INFO: "information"}


class Absent:
    """Stands for "not in this document", which is neither null nor unavailable."""

    def __repr__(self) -> str:
        return "absent"

    def __reduce__(self) -> str:
        """Stay the one object after a journey through pickle."""
        return "ABSENT"


ABSENT = Absent()


class Finding:
    """One thing that is wrong, or worth knowing.

    Attributes:
        rule: what found it, such as `exact` (a rule of the policy), `variable-needed` or `ENV203`.
        severity: `error`, `unknown`, `warning` or `info`.
        where: the fact or the place in a file.
        message: what was found, one sentence without a full stop.
        why: what it can do to the bits, one sentence.
        fix: what to do: a sentence or a command; several lines are alternatives.
        source: where `why` is known from.
        expected, actual: the two values that were compared; `ABSENT` where a side does not have it (or nothing was
            compared), `Unavailable` where it could not be collected.
        weight: 0 to 100, how likely this explains changed bits.
        commands: lines for a shell that put it right.
    """

    __slots__ = (
        *(
            "actual",
            "commands",
            "expected",
            "fix",
            "message",
            "rule",
            "severity",
            "source",
            "weight",
            "where",
            "why",
        ),
    )

    def __init__(
        self,
        rule: str,
        severity: str,
        where: Union[str, Where],
        message: str,
        why: str,
        fix: str,
        source: str,
        *,
        expected: Any = ABSENT,
        actual: Any = ABSENT,
        weight: int = 0,
        commands: Sequence[str] = (),
    ) -> None:
        self.rule = rule
        self.severity = severity
        self.where = Where(where) if isinstance(where, str) else where
        self.message = message
        self.why = why
        self.fix = fix
        self.source = source
        self.expected = expected
        self.actual = actual
        self.weight = weight
        self.commands = list(commands)

    def to_json(self) -> Dict[str, Any]:
        """Return JSON values: a side that is absent has no key, one that could not be collected is an object."""
        words = {
            name: getattr(self, name)
            for name in ("rule", "severity", "message", "why", "fix", "source")
        }
        sides = {"expected": self.expected, "actual": self.actual}
        compared = {
            name: _json_value(value) for name, value in sides.items() if value is not ABSENT
        }
        commands = {"commands": self.commands} if self.commands else {}
        return {**words, "where": self.where.to_json(), **compared, **commands}


class Report:
    """What a command found.

    Attributes:
        command: the command, such as `verify`.
        findings: in the order in which they are shown.
        policy: the name of the policy that judged; None where none did.
        overrides: how many paths the project holds by rules of its own.
        exempt: what passes by somebody else than the policy and its overrides, a phrase each; the headline has them.
        headline: the answer in one line.
        subject: the file that findings without a place of their own are about.
        notes: sentences that are worth reading and are not findings.
        titles: a short title for each rule.
        attachments: what the command shows beside findings, as JSON values by name.
        breaking: the severities that make the answer no.
    """

    def __init__(
        self,
        findings: Iterable[Finding],
        *,
        command: str = "verify",
        policy: Optional[str] = None,
        overrides: int = 0,
        exempt: Sequence[str] = (),
        headline: Optional[str] = None,
        subject: str = SUBJECT,
        notes: Sequence[str] = (),
        titles: Optional[Mapping[str, str]] = None,
        attachments: Optional[Mapping[str, Any]] = None,
        breaking: Sequence[str] = (ERROR, UNKNOWN),
    ) -> None:
        self.findings = list(findings)
        self.command = command
        self.policy = policy
        self.overrides = overrides
        self.exempt = list(exempt)
        self.headline = (
            _headline(self.findings, policy, overrides, self.exempt)
            if headline is None
            else headline
        )
        self.subject = subject
        self.notes = list(notes)
        self.titles = dict(titles or {})
        self.attachments = dict(attachments or {})
        self.breaking = tuple(breaking)

    def of(self, severity: str) -> List[Finding]:
        """Return the findings of one severity, in order."""
        return [finding for finding in self.findings if finding.severity == severity]

    def with_more(self, findings: Iterable[Finding], notes: Iterable[str] = ()) -> Report:
        """Return this report with more findings and notes, and the headline that they make."""
        return Report(
            ranked([*self.findings, *findings]),
            command=self.command,
            policy=self.policy,
            overrides=self.overrides,
            exempt=self.exempt,
            subject=self.subject,
            notes=[*self.notes, *notes],
        )

    @property
    def match(self) -> bool:
        """Whether the answer is yes."""
        return not any(finding.severity in self.breaking for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """0 for yes, 1 for no, 4 where a fact that decides it could not be collected."""
        if self.match:
            return 0
        return (
            1
            if any(f.severity in self.breaking and f.severity != UNKNOWN for f in self.findings)
            else 4
        )

    def to_json(self) -> Dict[str, Any]:
        """Return the report as JSON values, in the published shape (data/report.schema.json)."""
        return {
            "report_version": REPORT_VERSION,
            "command": self.command,
            "match": self.match,
            "headline": self.headline,
            "policy": self._policy(),
            "findings": [finding.to_json() for finding in self.findings],
            "notes": self.notes,
            "attachments": self.attachments,
        }

    def _policy(self) -> Optional[Dict[str, Any]]:
        if self.policy is None:
            return None
        return {"name": self.policy, "overrides": self.overrides, "exempt": self.exempt}

    def lines(self) -> Iterator[Tuple[str, str]]:
        """Yield (style, line) for people; a style is a severity, `title`, `note` or `plain`.

        Findings about installed files are counted only: `to_text` lists them, envlock/reports/files.py makes tables.
        """
        if self.headline:
            yield "title", self.headline
        aside = self.allowed
        for _, block in self.blocks():
            yield from block
        if aside:
            yield "title", f"{count(len(aside), 'difference')} that policy {self.policy} allows"
        for group in _alike(aside):
            for finding in group[:INFO_SHOWN]:
                yield INFO, f"  {MARKS[INFO]} {clean(finding.message)}"
            if len(group) > INFO_SHOWN:
                yield (
                    INFO,
                    f"  {MARKS[INFO]} and {len(group) - INFO_SHOWN} more (`--format json` lists all)",
                )
            yield "note", f"      why: {group[0].why}"
        yield from (("plain", clean(note)) for note in self.notes)

    @property
    def allowed(self) -> List[Finding]:
        """The differences that the policy lets through."""
        if self.policy is None:
            return []
        found = [finding for finding in self.of(INFO) if finding.rule != LAUNCHER]
        return [finding for finding in found if not finding.rule.startswith(FILE_RULE)]

    def blocks(self) -> List[Tuple[str, List[Tuple[str, str]]]]:
        """Return the rule and the (style, line) pairs of findings that are alike; neither files nor what is allowed."""
        aside = {id(finding) for finding in self.allowed}
        shown = [
            each
            for each in self.findings
            if id(each) not in aside and not each.rule.startswith(FILE_RULE)
        ]
        return [(group[0].rule, list(self._group(group))) for group in _alike(shown)]

    def _group(self, group: List[Finding]) -> Iterator[Tuple[str, str]]:
        for finding in group:
            rule = f" [{finding.rule}]" if finding.rule in self.titles else ""
            place = f"{clean(str(finding.where))}: " if finding.where.file else ""
            yield (
                finding.severity,
                f"  {MARKS[finding.severity]} {place}{clean(finding.message)}{rule}",
            )
        yield "note", f"      why: {clean(group[0].why)}"
        for fix in group[0].fix.split("\n"):
            yield "note", f"      fix: {clean(fix)}"

    def to_text(self) -> str:
        """Return the report as plain text, as the exception shows it."""
        return "\n".join([line for _, line in with_legend(self._all_lines())])

    def _all_lines(self) -> Iterator[Tuple[str, str]]:
        """Yield (style, line), with the first files that are not as recorded, a line each."""
        yield from self.lines()
        files = self.file_lines()
        yield from files[:FILES_SHOWN]
        if len(files) > FILES_SHOWN:
            yield "note", f"  and {count(len(files) - FILES_SHOWN, 'more file')}"

    def file_lines(self) -> List[Tuple[str, str]]:
        """Return (style, line) for each file that is not as recorded."""
        wrong = [
            each
            for each in self.findings
            if each.rule.startswith(FILE_RULE) and each.severity in self.breaking
        ]
        return [
            (each.severity, f"  {MARKS[each.severity]} {clean(each.message)}") for each in wrong
        ]

    __str__ = to_text

    def _repr_html_(self) -> str:
        """Return the report as a notebook shows it."""
        from html import escape

        return f"<pre>{escape(self.to_text())}</pre>"


def with_legend(lines: Iterable[Tuple[str, str]]) -> Iterator[Tuple[str, str]]:
    """Yield (style, line) pairs, and at the end a line that explains the marks among them."""
    used = set()
    for style, line in lines:
        if style in MARKS and line.startswith(f"  {MARKS[style]} "):
            used.add(style)
        yield style, line
    if used:
        yield (
            "note",
            "marks: "
            + ", ".join([f"{MARKS[each]} {MEANINGS[each]}" for each in SEVERITIES if each in used]),
        )


def ranked(findings: Iterable[Finding]) -> List[Finding]:
    """Return findings by severity, then by weight; else in the order in which they came."""
    return sorted(
        findings, key=lambda finding: (SEVERITIES.index(finding.severity), -finding.weight)
    )


def tally(findings: Sequence[Finding]) -> str:
    """Return how many findings there are of each severity, such as `1 error, 2 warnings`; empty where there is none."""
    nouns = {ERROR: "error", UNKNOWN: "unknown fact", WARNING: "warning", INFO: "note"}
    numbers = {
        severity: sum(finding.severity == severity for finding in findings)
        for severity in SEVERITIES
    }
    return ", ".join(
        count(number, nouns[severity]) for severity, number in numbers.items() if number
    )


def _headline(
    findings: List[Finding], policy: Optional[str], overrides: int, exempt: Sequence[str]
) -> str:
    """Return whether a lock matches, and how many of what does not."""

    def number(severity: str, start: str) -> int:
        kinds = [
            f.rule if f.rule in (BITS, COMPARED) or f.rule.startswith(FILE_RULE) else ""
            for f in findings
        ]
        pairs = zip(findings, kinds)  # noqa: B905 (Python 3.8 has no `strict`)
        return sum(
            f.severity == severity and (kind.startswith(start) if start else not kind)
            for f, kind in pairs
        )

    facts, bits, files = (number(ERROR, start) for start in ("", BITS, FILE_RULE))
    unknown, incomparable, unread = (number(UNKNOWN, start) for start in ("", BITS, FILE_RULE))
    uncompared = number(UNKNOWN, COMPARED)
    wrong = [f"{count(facts, 'fact')} {'differs' if facts == 1 else 'differ'}"] if facts else []
    wrong += (
        [f"{count(bits, 'canary result')} {'differs' if bits == 1 else 'differ'}"] if bits else []
    )
    wrong += (
        [f"{count(files, 'file')} {'is' if files == 1 else 'are'} not as recorded"] if files else []
    )
    missing = (
        [f"{count(unknown, 'more fact' if facts else 'fact')} could not be collected"]
        if unknown
        else []
    )
    missing += [f"{count(unread, 'file')} could not be read"] if unread else []
    missing += (
        [f"{count(incomparable, 'part')} of the canary could not be compared"]
        if incomparable
        else []
    )
    lead = [finding.message for finding in findings if finding.rule == NO_TENSORFLOW]
    if lead and facts > 1:
        wrong[0] = (
            f"{lead[0]}, and {count(facts - 1, 'more fact')} {'differs' if facts == 2 else 'differ'}"
        )
    elif lead:
        wrong[0] = lead[0]
    if uncompared:
        missing.append(
            f"{count(uncompared, 'needed fact')} {'was' if uncompared == 1 else 'were'} not compared"
        )
    rules = [count(overrides, "override"), *exempt] if overrides else list(exempt)
    besides = f", with {' and '.join(rules)}" if rules else ""
    under = f" under policy {policy}{besides}" if policy is not None else ""
    if wrong:
        return f"does not match{under}: {'; '.join([' and '.join(wrong), *missing])}"
    if missing:
        return f"cannot decide{under}: {' and '.join(missing)}"
    return f"matches{under}"


def _alike(findings: List[Finding]) -> List[List[Finding]]:
    """Return the findings in their order, neighbours of one severity, reason and remedy together."""
    groups: List[List[Finding]] = []
    for finding in findings:
        last = groups[-1][0] if groups else None
        if last is not None and (last.severity, last.why, last.fix) == (
            finding.severity,
            finding.why,
            finding.fix,
        ):
            groups[-1].append(finding)
        else:
            groups.append([finding])
    return groups


def _json_value(value: Any) -> Any:
    return (
        {"unavailable": value.reason, "code": value.code}
        if isinstance(value, Unavailable)
        else value
    )


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 fact`, `2 facts`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def show(value: Any) -> str:
    """Return a fact as people read it: null is "none", what is long is cut, control characters are escaped."""
    if value is None:
        return "none"
    if value is ABSENT:
        return "absent"
    if isinstance(value, Unavailable):
        return f"unknown ({clean(value.reason)})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        shown = ", ".join(show(item) for item in value[:12])
        return f"[{shown}{', ...' if len(value) > 12 else ''}]"
    if isinstance(value, dict):
        names = ", ".join(map(clean, sorted(value)[:8]))
        return (
            show(value["version"])
            if "version" in value
            else f"{{{names}{', ...' if len(value) > 8 else ''}}}"
        )
    return clean(str(value) if value != "" else '""')


def clean(text: str) -> str:
    """Return text that cannot move a terminal's cursor or colour: what is not printable is escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def clean_lines(text: str) -> str:
    """Return `clean` text that keeps its lines."""
    return "\n".join(map(clean, text.split("\n")))
