"""Findings, and the report that holds all of them."""

from __future__ import annotations

from envlock.runtime.facts import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Sequence, Tuple

REPORT_VERSION = 1

ERROR = "error"  # breaks the policy
UNKNOWN = "unknown"  # the policy needs it and it could not be collected
INFO = "info"  # differs, and the policy lets it through

DEEP = "deep"  # the rule of a finding that TensorFlow's own answer contradicts what its files say

BITS = "bits"  # the rule of a finding that an operation computes other bits (`verify --numerics`)

FILE_RULE = "file-"  # begins the rules of findings about files (`verify --deep`), whose path is a file's

INFO_SHOWN = 4  # of a kind; another installer would else be one line a package, and hide the rest

_MARKS = {ERROR: "x", UNKNOWN: "?", INFO: "i"}


class Absent:
    """Stands for "not in this document", which is neither null nor unavailable."""

    def __repr__(self) -> str:
        return "absent"

    def __reduce__(self) -> str:
        """Stay the one object after a journey through pickle."""
        return "ABSENT"


ABSENT = Absent()


class Finding:
    """One fact on which the two sides disagree.

    Attributes:
        path: dotted path of the fact, such as `tensorflow.version`.
        rule: the policy's rule for it, such as `exact`.
        expected, actual: the two values; `ABSENT` where a side does not have the path at all, `Unavailable` where
            it could not be told.
        severity: `error`, `unknown` or `info`.
        why: one sentence: what this fact can do to the bits.
        fix: one sentence: what to do.
        source: where `why` is known from.
        weight: 0 to 100, how likely this explains changed bits; findings are shown in this order.
    """

    __slots__ = ("actual", "expected", "fix", "path", "rule", "severity", "source", "weight", "why")

    def __init__(
        self,
        path: str,
        *,
        rule: str,
        expected: Any,
        actual: Any,
        severity: str,
        why: str,
        fix: str,
        source: str,
        weight: int,
    ) -> None:
        self.path = path
        self.rule = rule
        self.expected = expected
        self.actual = actual
        self.severity = severity
        self.why = why
        self.fix = fix
        self.source = source
        self.weight = weight

    def to_json(self) -> Dict[str, Any]:
        """Return JSON values: a side that is absent has no key, one that could not be told is an object."""
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "weight"}
        return {name: _json_value(value) for name, value in fields.items() if value is not ABSENT}


class Report:
    """Every difference between two sets of facts, most telling first.

    Attributes:
        findings: ordered by severity, then by weight, then by path.
        policy: name of the policy that judged.
        expected_name, actual_name: what the two sides are called in text ("the lock" and "live").
        notes: sentences about what does not differ, and is worth a word.
    """

    __slots__ = ("actual_name", "expected_name", "findings", "notes", "policy")

    def __init__(
        self,
        findings: List[Finding],
        policy: str,
        expected_name: str = "the lock",
        actual_name: str = "live",
        notes: Sequence[str] = (),
    ) -> None:
        order = (ERROR, UNKNOWN, INFO)
        self.findings = sorted(findings, key=lambda f: (order.index(f.severity), -f.weight, f.path))
        self.policy = policy
        self.expected_name = expected_name
        self.actual_name = actual_name
        self.notes = list(notes)

    def of(self, severity: str) -> List[Finding]:
        """Return the findings of one severity, in order."""
        return [finding for finding in self.findings if finding.severity == severity]

    @property
    def match(self) -> bool:
        """Whether nothing breaks the policy and nothing that it needs is unknown."""
        return all(finding.severity == INFO for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """0 when it matches, 1 when it does not, 4 when that cannot be told for want of a fact."""
        if self.of(ERROR):
            return 1
        return 4 if self.of(UNKNOWN) else 0

    def to_json(self) -> Dict[str, Any]:
        """Return the report as JSON values, in the published shape."""
        return {
            "report_version": REPORT_VERSION,
            "match": self.match,
            "policy": self.policy,
            "findings": [finding.to_json() for finding in self.findings],
            **({"notes": self.notes} if self.notes else {}),
        }

    def of_files(self) -> List[Finding]:
        """Return the findings about files, in order."""
        return [finding for finding in self.findings if finding.rule.startswith(FILE_RULE)]

    def lines(self) -> Iterator[Tuple[str, str]]:
        """Yield (style, line) for people; a style is a severity, `title` or `note`.

        Findings about files are counted only: envlock/reports/files.py makes tables of them.
        """
        yield "title", self._title()
        errors, unknown, info = (self._facts(severity) for severity in (ERROR, UNKNOWN, INFO))
        for group in _alike(errors + unknown):
            for finding in group:
                yield finding.severity, f"  {_MARKS[finding.severity]} {self.sentence(finding)}"
            yield "note", f"      why: {group[0].why}"
            yield "note", f"      fix: {group[0].fix}"
        if info:
            yield "title", f"{_count(len(info), 'difference')} that policy {self.policy} lets through"
        for group in _alike(info):
            for finding in group[:INFO_SHOWN]:
                yield INFO, f"  {_MARKS[INFO]} {self.sentence(finding)}"
            if len(group) > INFO_SHOWN:
                yield INFO, f"  {_MARKS[INFO]} and {len(group) - INFO_SHOWN} more of the kind (`--format json` has all)"
            yield "note", f"      why: {group[0].why}"
        yield from (("plain", note) for note in self.notes)

    def to_text(self) -> str:
        """Return the report as plain text, as the exception shows it."""
        return "\n".join(line for _, line in self.lines())

    def _facts(self, severity: str) -> List[Finding]:
        return [finding for finding in self.of(severity) if not finding.rule.startswith(FILE_RULE)]

    def _bits(self, severity: str) -> int:
        return sum(finding.rule == BITS for finding in self.of(severity))

    def _title(self) -> str:
        bits, incomparable = self._bits(ERROR), self._bits(UNKNOWN)
        errors, unknown = len(self._facts(ERROR)) - bits, len(self._facts(UNKNOWN)) - incomparable
        files = len(self.of(ERROR)) - errors - bits
        unread = len(self.of(UNKNOWN)) - unknown - incomparable
        wrong = [f"{_count(errors, 'fact')} {'differs' if errors == 1 else 'differ'}"] if errors else []
        wrong += [f"{_count(bits, 'result')} of the canary {'has' if bits == 1 else 'have'} other bits"] if bits else []
        wrong += [f"{_count(files, 'file')} {'is' if files == 1 else 'are'} not as recorded"] if files else []
        more = "more " if errors else ""
        untold = [f"{_count(unknown, more + 'fact')} could not be collected"] if unknown else []
        untold += [f"{_count(unread, 'file')} could not be looked at"] if unread else []
        untold += [f"{_count(incomparable, 'part')} of the canary could not be compared"] if incomparable else []
        if wrong:
            return f"does not match under policy {self.policy}: {'; '.join([' and '.join(wrong), *untold])}"
        if untold:
            return f"cannot tell under policy {self.policy}: {' and '.join(untold)}"
        return f"matches under policy {self.policy}"

    def sentence(self, finding: Finding) -> str:
        """Return what a finding says of its fact, in one sentence without a full stop."""
        path, name = clean(finding.path), clean(self.expected_name)
        if finding.rule == BITS:
            return (
                f"{path}: {show(finding.actual) if isinstance(finding.actual, Unavailable) else finding.actual['what']}"
            )
        wanted = f"{name} does not have it" if finding.expected is ABSENT else f"{name} has {show(finding.expected)}"
        if finding.rule == DEEP and isinstance(finding.actual, Unavailable):
            return f"{path}: TensorFlow could not be asked: {show(finding.actual)}"
        if finding.rule == DEEP:
            return f"{path}: the files say {show(finding.expected)}, TensorFlow's own loader {show(finding.actual)}"
        if isinstance(finding.actual, Unavailable):
            return f"{path} could not be told {_where(self.actual_name)}: {show(finding.actual)} ({wanted})"
        return f"{path} is {show(finding.actual)} {_where(self.actual_name)}, {wanted}"


def _alike(findings: List[Finding]) -> List[List[Finding]]:
    """Return the findings in their order, neighbours of one severity, reason and remedy together."""
    groups: List[List[Finding]] = []
    for finding in findings:
        last = groups[-1][0] if groups else None
        if last is not None and (last.severity, last.why, last.fix) == (finding.severity, finding.why, finding.fix):
            groups[-1].append(finding)
        else:
            groups.append([finding])
    return groups


def _json_value(value: Any) -> Any:
    return {"unavailable": value.reason, "code": value.code} if isinstance(value, Unavailable) else value


def _where(name: str) -> str:
    return name if name == "live" else f"in {clean(name)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def show(value: Any) -> str:
    """Return a fact as people read it: null is "none", long lists are cut, control characters are escaped."""
    if value is None:
        return "none"
    if isinstance(value, Unavailable):
        return clean(value.reason)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        shown = ", ".join(show(item) for item in value[:12])
        return f"[{shown}{', ...' if len(value) > 12 else ''}]"
    if isinstance(value, dict):
        return show(value["version"]) if "version" in value else f"{{{', '.join(map(clean, sorted(value)[:8]))}}}"
    return clean(str(value) if value != "" else '""')


def clean(text: str) -> str:
    """Return text that cannot move a terminal's cursor or colour: what is not printable is escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
