"""A baseline: what was found in old code, so that only new findings are reported. Pure.

A finding is known by its file, its rule and the text of its line, and by the number of its places:
code that moves up or down stays known; a line that is changed, and one place more, is looked at again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from envlock.runtime.errors import UsageError
from envlock.runtime.report import Finding

VERSION = 1
WRITE = "`envlock lint --baseline FILE --write-baseline` writes one"
Key = tuple[str, str, str]
"""File, rule, and the text of the line."""


@dataclass(frozen=True)
class Judged:
    """Findings that a baseline does not hold, how many it holds, and how many of its own are gone."""

    new: list[Finding]
    known: int
    gone: int


def make_baseline(findings: Iterable[Finding]) -> dict[str, object]:
    """Return the baseline of some findings as JSON values, sorted, so that its changes can be read."""
    counts = Counter[Key]()
    for finding in findings:
        counts[_get_key(finding)] += finding.places
    rows: list[dict[str, object]] = []
    for (file, rule, text), number in sorted(counts.items()):
        rows.append({"file": file, "rule": rule, "text": text, "count": number})
    return {"baseline_version": VERSION, "findings": rows}


def parse_baseline(document: object) -> dict[Key, int]:
    """Return how many places of each kind a baseline holds.

    Raises:
        UsageError: it is not a baseline, or one of another version.
    """
    if not isinstance(document, dict) or document.get("baseline_version") != VERSION:
        raise UsageError(f"this is not a baseline of version {VERSION}", hint=WRITE)
    known: dict[Key, int] = {}
    for row in document.get("findings", ()):
        known[row["file"], row["rule"], row["text"]] = row["count"]
    return known


def filter_known(
    findings: Sequence[Finding],
    known: Mapping[Key, int],
    is_examined: Callable[[str, str], bool] = lambda _file, _rule: True,
) -> Judged:
    """Return the findings that a baseline does not hold, or with fewer places.

    Args:
        findings: what was found.
        known: what the baseline holds.
        is_examined: takes a file and a rule; what was not looked for is not counted as gone.
    """
    left = Counter(dict(known))
    new: list[Finding] = []
    for finding in findings:
        key = _get_key(finding)
        # Each row of the baseline is used up once, so that a second finding of its kind is new.
        if left[key] < finding.places:
            new.append(finding)
        left[key] = max(left[key] - finding.places, 0)
    gone = 0
    for key, number in left.items():
        if is_examined(key[0], key[1]):
            gone += number
    return Judged(new, len(findings) - len(new), gone)


def _get_key(finding: Finding) -> Key:
    where = finding.where
    return where.file, finding.rule, where.text or finding.message
