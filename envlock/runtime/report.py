"""The classes Finding and Report, which every command with a verdict uses."""

from __future__ import annotations

from envlock.runtime.exemptions import OVERRIDE, Exemption, describe_judge, list_exemptions
from envlock.runtime.extent import NOTHING, Extent, decide
from envlock.runtime.facts import Unavailable
from envlock.runtime.finding_place import Where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any,
        Dict,
        Final,
        Generic,
        Iterable,
        Iterator,
        List,
        Literal,
        Mapping,
        Optional,
        Sequence,
        Tuple,
        Union,
    )

    from typing_extensions import TypeVar

    Severity = Literal["error", "unknown", "warning", "info"]
    Attached = TypeVar("Attached", bound="Evidence", default="Evidence", covariant=True)
else:

    class Generic:
        """Accepts the brackets of `Report[Evidence]` and does nothing: importing typing takes 8 ms."""

        def __class_getitem__(cls, parameter):
            return cls

    Attached = Severity = None

REPORT_VERSION = 2

ERROR: Final = "error"  # makes the answer no
UNKNOWN: Final = "unknown"  # a fact that the policy needs and that could not be collected
WARNING: Final = "warning"  # may have an effect
INFO: Final = "info"  # differs and the policy accepts it, or is worth knowing
SEVERITIES: Tuple[Severity, ...] = (ERROR, UNKNOWN, WARNING, INFO)

DEEP = "deep"
"""The rule of a finding that TensorFlow's own loader contradicts the files (`verify --deep`)."""
COMPARED = "compared"
"""The rule of a finding that a fact which a verdict needs was not compared."""
BITS = "bits"
"""The rule of a finding that an operation computes different bits (`verify --numerics`)."""
DATA = "data"
"""The rule of a finding about input files, which are not part of the environment."""
UNREAD = "data-unread"
"""The rule of a finding that a rule demands equal data, and contents were not compared."""
LAUNCHER = "launcher"
"""The rule of a finding that explains differences by the launcher of the process."""
NO_TENSORFLOW = "no-tensorflow"
"""The rule of a finding that TensorFlow is locked and not installed, which explains all others."""
NOT_HELD = "not-held"
"""The rule of a finding that a library is installed of which the lockfile has no facts."""
SETTINGS = "settings"
"""The rule of a finding that a setting of the project is another than the locked one."""
OTHERS = (DEEP, COMPARED, BITS, DATA, UNREAD, LAUNCHER, NO_TENSORFLOW, NOT_HELD, SETTINGS)
"""The rules of findings that say more than that a fact differs."""
FILE_RULE = "file-"
"""The prefix of the rules of findings about installed files (`verify --deep`)."""

SUBJECT = "envlock.lock"
"""The file that is shown for a finding without a place in a file."""
# An exception is shown in a terminal; `envlock verify --deep` has tables of all files.
FILES_SHOWN = 20
# For each kind, where there is no -v: after a change of the installer every package has a line.
INFO_SHOWN = 4
ACCEPT_MACHINE = (
    "To accept it where it computes the locked bits: `envlock verify -p bits` (first "
    "`envlock capture --canary` on the locked machine); as it is: `envlock capture --add-machine`."
)
OTHER_MACHINE = "Ask for a lockfile that was captured on that machine, which may give other bits."
"""The remedy where a text says what another machine is."""
LISTING = {"diff": "diff", "sync": "verify", "verify": "verify"}
"""Commands of which text only counts what may differ, and the one whose `-v` lists it."""
ITEMS_SHOWN = 12
"""Items of a list that `show` prints."""
NAMES_SHOWN = 8
"""Keys of an object that `show` prints."""

MARKS = {ERROR: "x", UNKNOWN: "?", WARNING: "!", INFO: "i"}


class Absent:
    """Stands for a value that a document does not have, which is neither null nor unavailable."""

    def __repr__(self) -> str:
        return "absent"

    def __reduce__(self) -> str:
        """Remain a single object when pickled."""
        return "ABSENT"


ABSENT = Absent()


class Finding:
    """One problem, or one thing worth knowing.

    Attributes:
        rule: the rule that found it, such as `exact` (of the policy), `variable-needed` or
            `ENV203`.
        severity: `error`, `unknown`, `warning` or `info`.
        where: the fact or the place in a file.
        message: what was found, one sentence without a full stop.
        why: its possible effect on the bits, one sentence.
        fix: what to do: a sentence or a command; several lines are alternatives.
        source: the evidence for `why`.
        expected, actual: the two values that were compared; `ABSENT` if a side does not have one
            (or nothing was compared), `Unavailable` if it could not be collected.
        weight: 0 to 100, how likely it explains different bits.
        commands: shell commands that fix it.
        places: how many places of code with one cause it stands for.
    """

    __slots__ = (
        "actual",
        "commands",
        "expected",
        "fix",
        "message",
        "places",
        "rule",
        "severity",
        "source",
        "weight",
        "where",
        "why",
    )

    def __init__(
        self,
        rule: str,
        severity: Severity,
        where: Union[str, Where],
        *,
        message: str,
        why: str,
        fix: str,
        source: str,
        expected: object = ABSENT,
        actual: object = ABSENT,
        weight: int = 0,
        commands: Sequence[str] = (),
        places: int = 1,
    ) -> None:
        self.rule = rule
        self.severity = severity
        if isinstance(where, str):
            where = Where(where)
        self.where = where
        self.message = message
        self.why = why
        self.fix = fix
        self.source = source
        self.expected: Any = expected
        self.actual: Any = actual
        self.weight = weight
        self.commands = list(commands)
        self.places = places

    def to_json(self) -> Dict[str, object]:
        """Return it as JSON values: an absent side has no key, a value that could not be collected
        is an object.
        """
        document: Dict[str, object] = {
            "rule": self.rule,
            "severity": self.severity,
            "message": self.message,
            "why": self.why,
            "fix": self.fix,
            "source": self.source,
            "where": self.where.to_json(),
        }
        if self.expected is not ABSENT:
            document["expected"] = _render_side(self.expected)
        if self.actual is not ABSENT:
            document["actual"] = _render_side(self.actual)
        if self.commands:
            document["commands"] = self.commands
        return document


class Evidence:
    """What a command attaches to its report besides findings: nothing, unless it has a class for it."""

    __slots__ = ()

    def to_json(self) -> Dict[str, object]:
        """Return JSON values by name, in the published shape (data/report.schema.json)."""
        return {}


class Report(Generic[Attached]):
    """The result of a command: its findings and its verdict.

    Attributes:
        command: the command, such as `verify`.
        findings: in the order in which they are shown.
        policy: the name of the policy that was used; None without one.
        overrides: how many paths have rules of the project.
        exempt: what is accepted for another reason, by its owners; `exemptions` has the overrides, too.
        headline: the answer in one line.
        subject: the file that findings without a place of their own are about.
        notes: sentences for the user that are not findings.
        details: more of them, which text has only on request.
        titles: a short title for each rule.
        attachments: the evidence that the command attaches, as JSON values by name.
        breaking: the severities that make the answer no.
        extent: how much was compared; None if the command compares nothing, as a linter.
    """

    def __init__(
        self,
        findings: Iterable[Finding],
        *,
        command: str = "verify",
        policy: Optional[str] = None,
        overrides: int = 0,
        exempt: Sequence[Exemption] = (),
        headline: Optional[str] = None,
        subject: str = SUBJECT,
        notes: Sequence[str] = (),
        titles: Optional[Mapping[str, str]] = None,
        evidence: Optional[Attached] = None,
        breaking: Sequence[str] = (ERROR, UNKNOWN),
        extent: Optional[Extent] = None,
    ) -> None:
        self.findings = list(findings)
        self.command = command
        self.policy = policy
        self.overrides = overrides
        self.exempt = list(exempt)
        if headline is None:
            headline = make_headline(self.findings, policy, overrides, self.exempt)
            if not self.findings and extent is not None and extent.is_nothing:
                headline = NOTHING
        self.headline = headline
        self.subject = subject
        self.notes = list(notes)
        self.details: List[str] = []
        self.titles = dict(titles or {})
        if evidence is None:
            # Without the argument the type is Report[Evidence], which mypy does not infer inside
            # the class.
            evidence = Evidence()  # type: ignore[assignment]
        self.evidence: Attached = evidence  # type: ignore[assignment]
        self.breaking = tuple(breaking)
        self.extent = extent

    def of(self, severity: str) -> List[Finding]:
        """Return the findings of one severity, in order."""
        return [finding for finding in self.findings if finding.severity == severity]

    def add_findings(
        self,
        findings: Iterable[Finding],
        notes: Iterable[str] = (),
        extent: Optional[Extent] = None,
    ) -> Report:
        """Return this report with what else was found and compared, and its headline."""
        if self.extent is not None and extent is not None:
            extent = self.extent.add(extent)
        report = Report(
            sort_findings([*self.findings, *findings]),
            command=self.command,
            policy=self.policy,
            overrides=self.overrides,
            exempt=self.exempt,
            subject=self.subject,
            notes=[*self.notes, *notes],
            extent=extent or self.extent,
        )
        report.details = self.details
        return report

    @property
    def match(self) -> bool:
        """Whether the answer is yes."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """0 for yes, 1 for no, 4 if what decides it is unknown, or nothing was compared."""
        decisive = {finding.severity for finding in self.findings}.intersection(self.breaking)
        return decide(bool(decisive - {UNKNOWN}), UNKNOWN in decisive, self.extent)

    @property
    def compared(self) -> Optional[Dict[str, int]]:
        """How much was compared, by kind, and how much of what is needed is `unknown`."""
        if self.extent is None:
            return None
        return {**self.extent.to_json(), "unknown": len(self.of(UNKNOWN))}

    @property
    def attachments(self) -> Dict[str, Any]:
        """The evidence as JSON values by name; a new dict on every access."""
        return self.evidence.to_json()

    def to_json(self) -> Dict[str, Any]:
        """Return the report as JSON values, in the published shape (data/report.schema.json)."""
        return {
            "report_version": REPORT_VERSION,
            "command": self.command,
            "match": self.match,
            "headline": self.headline,
            "policy": self._render_policy(),
            "compared": self.compared,
            "findings": self._render_findings(),
            "notes": [*self.notes, *self.details],
            "attachments": self.attachments,
        }

    def _render_findings(self) -> List[Dict[str, object]]:
        """Return each finding as JSON values, with the name of its cause if that has several."""
        documents = list(map(Finding.to_json, self.findings))
        if self.match:
            return documents
        names = {
            id(part): name
            for name, parts in find_causes(self.findings)
            for part in parts
            if len(parts) > 1
        }
        for finding, document in zip(self.findings, documents):  # noqa: B905 (Python 3.8)
            if id(finding) in names:
                document["cause"] = names[id(finding)]
        return documents

    def _render_policy(self) -> Optional[Dict[str, object]]:
        if self.policy is None:
            return None
        return {
            "name": self.policy,
            "overrides": self.overrides,
            "exempt": [str(each) for each in self.exempt if each.is_in_headline],
            "exemptions": list(map(Exemption.to_json, self.exemptions)),
        }

    @property
    def exemptions(self) -> List[Exemption]:
        """Everything that lets differences pass, by its owners, the overrides first."""
        return [*list_exemptions({OVERRIDE: self.overrides}), *self.exempt]

    def lines(self, *, verbose: bool = False) -> Iterator[Tuple[str, str]]:
        """Yield (style, line) of the text report; a style is a severity, `title`, `note` or
        `plain`.

        Findings about installed files are only counted, in the headline: `to_text` lists them, and
        envlock/reports/file_tables.py makes tables of them.

        Args:
            verbose: list also what the policy allows, and the facts of each change.
        """
        allowed = self.allowed
        number = count(len(allowed), "difference")
        is_counted = self.command in LISTING and not verbose
        if self.headline and self.match and allowed and is_counted:
            yield "title", f"{self.headline} ({number} allowed, {self.name_listing()})"
        elif self.headline:
            yield "title", self.headline
        for _, block in self.blocks(verbose=verbose):
            yield from block
        if allowed and not is_counted:
            yield "title", f"{number} that policy {self.policy} allows"
            yield from _render_allowed(allowed, None if verbose else INFO_SHOWN)
        elif allowed and not self.match:
            yield "note", f"{number} that policy {self.policy} allows ({self.name_listing()})"
        for note in [*self.notes, *self.details] if verbose else self.notes:
            yield "plain", clean(note)

    def name_listing(self) -> str:
        """Return which command lists what this report only counts."""
        return f"`envlock {LISTING[self.command]} -v` lists all"

    @property
    def changes(self) -> List[Finding]:
        """The findings, in which the facts that one event changes are one."""
        if self.match:
            return self.findings
        return _merge_parts(self.findings)

    @property
    def allowed(self) -> List[Finding]:
        """The differences that the policy accepts, without those of installed files."""
        if self.policy is None:
            return []
        return list(filter(_is_allowable, self.of(INFO)))

    def blocks(self, *, verbose: bool = False) -> List[Tuple[str, List[Tuple[str, str]]]]:
        """Return a (rule, lines) pair for each group of findings with one reason and one remedy.

        A line is a (style, line) pair. Findings about files, and allowed differences, are left out.

        Args:
            verbose: list the facts of a change of several one by one.
        """
        # By identity: two findings can have equal values.
        allowed = {id(finding) for finding in self.allowed}
        listed = self.findings if verbose else self.changes
        others = [finding for finding in listed if id(finding) not in allowed]
        shown = [finding for finding in others if not finding.rule.startswith(FILE_RULE)]
        return [(group[0].rule, list(self._render_group(group))) for group in _group_alike(shown)]

    def _render_group(self, group: List[Finding]) -> Iterator[Tuple[str, str]]:
        messages = []
        for finding in group:
            text = f"{clean(str(finding.where))}: " if finding.where.file else ""
            text += clean(finding.message)
            if finding.rule in self.titles:
                text += f" [{finding.rule}]"
            messages.append(text)
        for message in _merge_devices(messages):
            yield group[0].severity, f"  {MARKS[group[0].severity]} {message}"
        yield "note", f"      why: {clean(group[0].why)}"
        for fix in group[0].fix.split("\n"):
            yield "note", f"      fix: {clean(fix)}"

    def to_text(self) -> str:
        """Return the report as plain text, as the exception shows it."""
        return "\n".join([line for _, line in self._render_everything()])

    def _render_everything(self) -> Iterator[Tuple[str, str]]:
        """Yield (style, line) of everything, also of the first files that are not as recorded."""
        yield from self.lines()
        files = self.render_files()
        yield from files[:FILES_SHOWN]
        if len(files) > FILES_SHOWN:
            yield "note", f"  and {count(len(files) - FILES_SHOWN, 'more file')}"

    def render_files(self) -> List[Tuple[str, str]]:
        """Return (style, line) for each file that is not as recorded."""
        lines: List[Tuple[str, str]] = []
        for finding in self.findings:
            if finding.rule.startswith(FILE_RULE) and finding.severity in self.breaking:
                line = f"  {MARKS[finding.severity]} {clean(finding.message)}"
                lines.append((finding.severity, line))
        return lines

    __str__ = __repr__ = to_text

    def _repr_html_(self) -> str:
        """Return the report as a notebook shows it."""
        # Not at the top: only a notebook asks.
        from html import escape

        return f"<pre>{escape(self.to_text())}</pre>"


def sort_findings(findings: Iterable[Finding]) -> List[Finding]:
    """Return findings by severity, then by weight; equal ones in their original order."""
    return sorted(
        findings, key=lambda finding: (SEVERITIES.index(finding.severity), -finding.weight)
    )


def count_severities(findings: Sequence[Finding]) -> str:
    """Return the number of findings of each severity, such as `1 error, 2 warnings`."""
    nouns = {ERROR: "error", UNKNOWN: "unknown fact", WARNING: "warning", INFO: "note"}
    parts = []
    for severity, noun in nouns.items():
        number = sum(finding.severity == severity for finding in findings)
        if number:
            parts.append(count(number, noun))
    return ", ".join(parts)


def make_headline(
    findings: List[Finding], policy: Optional[str], overrides: int, exempt: Sequence[Exemption]
) -> str:
    """Return a sentence: whether a lockfile matches, and how many facts and files do not."""
    under = describe_judge(policy, overrides, exempt)
    wrong = _list_wrong(findings)
    missing = _list_missing(findings)
    if wrong:
        return f"does not match{under}: {'; '.join([' and '.join(wrong), *missing])}"
    if missing:
        return f"cannot decide{under}: {' and '.join(missing)}"
    unheld = [str(finding.where) for finding in findings if finding.rule == NOT_HELD]
    if "facts" in unheld:
        return f"matches{under}, but does not hold all that this envlock looks at"
    if unheld:
        verb = "is" if len(unheld) == 1 else "are"
        listed = f"{' and '.join(unheld)} {verb} installed and not held by this lockfile"
        return f"matches{under}, but {listed}"
    if any(finding.rule == UNREAD for finding in findings):
        return f"matches{under}, with data by names and sizes only"
    return f"matches{under}"


def _list_wrong(findings: List[Finding]) -> List[str]:
    """Return a phrase for each kind of difference, with its number."""
    facts = _count_kind(findings, ERROR, "")
    bits = _count_kind(findings, ERROR, BITS)
    files = _count_kind(findings, ERROR, FILE_RULE)
    wrong = []
    if facts:
        wrong.append(_say_facts(findings, facts))
    if bits:
        wrong.append(_agree(bits, "canary result", "differs", "differ"))
    if files:
        wrong.append(_agree(files, "file", "is not as recorded", "are not as recorded"))
    settings = _count_kind(findings, ERROR, SETTINGS)
    if settings:
        wrong.append(_agree(settings, "setting", "differs", "differ"))
    data = _count_kind(findings, ERROR, DATA)
    if data:
        wrong.append(f"there is other data at {count(data, 'path')}")
    return wrong


def _say_facts(findings: List[Finding], number: int) -> str:
    """Return how many facts differ; a missing TensorFlow, which explains them, comes first."""
    for finding in findings:
        if finding.rule == NO_TENSORFLOW:
            if number == 1:
                return finding.message
            others = _agree(number - 1, "more fact", "differs", "differ")
            return f"{finding.message}, and {others}"
    changes = number - len(findings) + len(_merge_parts(findings))
    if changes < number:
        return f"{count(changes, 'change')} ({count(number, 'fact')})"
    return _agree(number, "fact", "differs", "differ")


def find_causes(findings: Iterable[Finding]) -> List[Tuple[str, List[Finding]]]:
    """Return the findings that a fact differs and must not, by the name of their cause, for each
    of several ranks or nodes apart.
    """
    places: Dict[str, Dict[str, Finding]] = {}
    for finding in findings:
        place = _find_place(finding)
        if place is not None and finding.severity == ERROR:
            places.setdefault(place, {})[finding.where.fact] = finding
    if not places:
        return []
    # Not at the top: a script that matches starts without it.
    from envlock.runtime import causes

    return [
        (name, [differing[path] for path in paths])
        for differing in places.values()
        for name, paths in causes.find_causes(list(differing))
    ]


def _find_place(finding: Finding) -> Optional[str]:
    """Return what a message that a fact differs begins with: nothing, or which ranks it is about;
    None for other findings.
    """
    where = finding.where
    if where.file or finding.rule in OTHERS or finding.rule.startswith(FILE_RULE):
        return None
    place, path, _ = finding.message.partition(f"{where.fact}: ")
    return place if path and (not place or place.endswith(": ")) else None


def _merge_parts(findings: List[Finding]) -> List[Finding]:
    """Return findings in which each cause of several facts is one, in place of its heaviest part."""
    merged: Dict[int, Optional[Finding]] = {}
    lead = next((each for each in findings if each.rule == NO_TENSORFLOW), None)
    missing: List[Finding] = []
    for name, parts in find_causes(findings):
        if lead is not None and _is_uninstalled(parts):
            missing += parts
        elif len(parts) > 1:
            merged.update(dict.fromkeys(map(id, parts)))
            merged[id(parts[0])] = _make_change(name, parts, findings)
    if lead is not None and missing:
        merged.update(dict.fromkeys(map(id, missing)))
        merged[id(lead)] = _say_missing(lead, missing)
    found = [merged.get(id(finding), finding) for finding in findings]
    return [finding for finding in found if finding is not None]


def _is_uninstalled(parts: List[Finding]) -> bool:
    """Return whether a cause is a locked package that is not installed, with what it brings."""
    is_gone = all(part.actual is None or part.actual is ABSENT for part in parts)
    return is_gone and any(part.where.fact.startswith("packages.") for part in parts)


def _say_missing(lead: Finding, missing: List[Finding]) -> Finding:
    """Return the finding that TensorFlow is missing, with the number of packages that are missing, too."""
    names = [each for each in missing if each.where.fact.startswith("packages.")]
    number = count(len(missing) + 1, "fact")
    what = f"{lead.message}; {count(len(names), 'locked package')} missing ({number})"
    return _reword(lead, what, lead.fix)


def _make_change(name: str, parts: List[Finding], findings: List[Finding]) -> Finding:
    """Return one finding for a cause, with the reason and the remedy of its heaviest part."""
    # Not at the top: where all matches, no cause is asked for.
    from envlock.runtime import causes

    first = parts[0]
    paths = [part.where.fact for part in parts]
    place = _find_place(first)
    changes = {
        each.where.fact: f"{show(each.expected)} -> {show(each.actual)}"
        for each in findings
        if _find_place(each) == place
    }
    fix = first.fix
    # On another architecture, no canary and no lockfile of these wheels helps.
    is_locked = first.fix != OTHER_MACHINE
    if name == causes.MACHINE and is_locked and "system.machine" not in paths:
        # Under the rule `proven`, the remedy is the one that this lockfile allows.
        fix = next((part.fix for part in parts if part.rule == "proven"), ACCEPT_MACHINE)
    message = causes.describe(name, paths, changes)
    return _reword(first, f"{place}{message} ({count(len(parts), 'fact')})", fix)


def _reword(finding: Finding, message: str, fix: str) -> Finding:
    """Return a finding that stands for several, with its reason."""
    return Finding(
        finding.rule,
        finding.severity,
        finding.where,
        message=message,
        why=finding.why,
        fix=fix,
        source=finding.source,
        weight=finding.weight,
    )


def _list_missing(findings: List[Finding]) -> List[str]:
    """Return a phrase for each kind of thing that could not be compared."""
    unknown = _count_kind(findings, UNKNOWN, "")
    unread = _count_kind(findings, UNKNOWN, FILE_RULE)
    incomparable = _count_kind(findings, UNKNOWN, BITS)
    uncompared = _count_kind(findings, UNKNOWN, COMPARED)
    data = _count_kind(findings, UNKNOWN, DATA)
    noun = "more fact" if _count_kind(findings, ERROR, "") else "fact"
    missing = []
    if unknown:
        missing.append(f"{count(unknown, noun)} could not be collected")
    if unread:
        missing.append(f"{count(unread, 'file')} could not be read")
    if data:
        missing.append(f"the data at {count(data, 'path')} could not be read")
    if incomparable:
        missing.append(f"{count(incomparable, 'part')} of the canary could not be compared")
    if uncompared:
        missing.append(_agree(uncompared, "needed fact", "was not compared", "were not compared"))
    return missing


def _count_kind(findings: List[Finding], severity: str, kind: str) -> int:
    """Return how many findings of a severity are of a kind; that of facts is ""."""
    number = 0
    for finding in findings:
        own = ""
        if finding.rule in (BITS, COMPARED, DATA, SETTINGS):
            own = finding.rule
        elif finding.rule.startswith(FILE_RULE):
            own = FILE_RULE
        if finding.severity == severity and own == kind:
            number += 1
    return number


def _agree(number: int, noun: str, singular: str, plural: str) -> str:
    """Return a number with its noun and its verb: `1 fact differs`, `2 facts differ`."""
    verb = singular if number == 1 else plural
    return f"{count(number, noun)} {verb}"


def _is_allowable(finding: Finding) -> bool:
    return finding.rule != LAUNCHER and not finding.rule.startswith(FILE_RULE)


def _merge_devices(messages: List[str]) -> List[str]:
    """Return messages in which devices that are alike stand as ranges."""
    # Not at the top: a report without findings renders no group.
    from envlock.runtime.device_ranges import merge_devices

    return merge_devices(messages)


def _render_allowed(allowed: List[Finding], limit: Optional[int]) -> Iterator[Tuple[str, str]]:
    by_reason: Dict[str, List[str]] = {}
    for finding in allowed:
        by_reason.setdefault(finding.why, []).append(clean(finding.message))
    for why, listed in by_reason.items():
        messages = _merge_devices(listed)
        for message in messages[:limit]:
            yield INFO, f"  {MARKS[INFO]} {message}"
        more = len(messages) - len(messages[:limit])
        if more:
            yield INFO, f"  {MARKS[INFO]} and {more} more (`--format json` lists all)"
        yield "note", f"      why: {why}"


def _group_alike(findings: List[Finding]) -> List[List[Finding]]:
    """Return the findings in order, neighbours of one severity, reason and remedy together."""
    groups: List[List[Finding]] = []
    last: Optional[Tuple[str, str, str]] = None
    for finding in findings:
        shared = (finding.severity, finding.why, finding.fix)
        if shared == last:
            groups[-1].append(finding)
        else:
            groups.append([finding])
        last = shared
    return groups


def _render_side(value: object) -> object:
    """Return one of the two values that were compared, as JSON."""
    if isinstance(value, Unavailable):
        return {"unavailable": value.reason, "code": value.code}
    return value


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 fact`, `2 facts`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}s"


def join_first(names: Sequence[str], most: int) -> str:
    """Return the first names, and how many there are besides: `a, b and 3 more`."""
    text = ", ".join(names[:most])
    if len(names) > most:
        text += f" and {len(names) - most} more"
    return text


def show(value: object) -> str:
    """Return a fact as people read it: null is "none", long values are cut."""
    if value is None:
        return "none"
    if value is ABSENT:
        return "absent"
    if isinstance(value, Unavailable):
        return f"unknown ({clean(value.reason)})"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{_shorten(map(show, value[:ITEMS_SHOWN]), len(value) > ITEMS_SHOWN)}]"
    if isinstance(value, dict):
        return _show_node(value)
    if value == "":
        return '""'
    return clean(str(value))


def _show_node(value: Mapping[str, object]) -> str:
    """Return what says most of several facts: a version, a name, GPUs, else which facts these are."""
    for key in ("version", "name"):
        if key in value:
            return show(value[key])
    devices = value.get("devices")
    if devices and isinstance(devices, dict):
        found = list(dict.fromkeys(map(show, devices.values())))
        driver = f"driver {show(value.get('driver_version'))}"
        return _shorten([*found[:ITEMS_SHOWN], driver], len(found) > ITEMS_SHOWN)
    names = sorted(value)
    return f"{{{_shorten(map(clean, names[:NAMES_SHOWN]), len(names) > NAMES_SHOWN)}}}"


def _shorten(words: Iterable[str], has_more: bool) -> str:
    listed = list(words)
    if has_more:
        listed.append("...")
    return ", ".join(listed)


def clean(text: str) -> str:
    """Return text with everything escaped that could move a terminal's cursor or change its colour."""
    if text.isprintable():
        return text
    escaped = ""
    for char in text:
        if not char.isprintable():
            char = repr(char)[1:-1]
        escaped += char
    return escaped


def clean_lines(text: str) -> str:
    """Return `clean` text that keeps its lines."""
    return "\n".join(map(clean, text.split("\n")))
