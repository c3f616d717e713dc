"""The linter: files and settings in, findings out, less what is ignored. The code that is looked at
is never run.
"""

from __future__ import annotations

import gc
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from envlock.data.lint_tables import LintRule, find_reference, load_lint_rules
from envlock.data.specifiers import matches_version
from envlock.linter.files import Unreadable, matches, read
from envlock.linter.interpreter.programs import Programs, run
from envlock.linter.interpreter.reported_chances import Findings
from envlock.linter.module import Hit, Module
from envlock.linter.notebooks import Cells
from envlock.linter.project_parts import PARTS, Parts
from envlock.linter.rules import (
    BAD_IGNORE,
    DIRECT,
    UNREADABLE,
    UNSEEDED,
    UNSWITCHED,
    UNUSED_IGNORE,
)
from envlock.runtime.errors import UsageError
from envlock.runtime.finding_place import Where
from envlock.runtime.report import Finding

TEXT_LIMIT = 200  # characters of a line that a report shows: a generated file can be one line


@dataclass(frozen=True)
class Settings:
    """What to judge by: a TensorFlow version, whether its environment turns op determinism on, and
    which rules.

    `per_file` pairs patterns of paths or names with rules that are ignored in the files that fit.
    `installed` are the files of packages that others can install; None where that is unknown.
    """

    tensorflow: str
    switched_on: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    installed: frozenset[str] | None = None


def lint(
    files: Sequence[str], settings: Settings, step: Callable[[], None] = lambda: None
) -> list[Finding]:
    """Return what is found in some files, by part, file and line; `step` is called for each file.

    Raises:
        UsageError: a rule that is selected or ignored does not exist.
    """
    active = list_active_rules(settings)
    modules: list[Module] = []
    found: list[Finding] = []
    with _no_collection():
        for file in files:
            try:
                modules.append(read(file))
            except Unreadable as error:
                if UNREADABLE in active:
                    found.append(
                        _make_file_finding(file, UNREADABLE, error.reason, error.line, error.column)
                    )
            step()
        found.extend(check(modules, settings))
    return sorted(found, key=_get_place)


def check(modules: Sequence[Module], settings: Settings) -> Iterator[Finding]:
    """Yield what is found in files that have been read.

    Raises:
        UsageError: a rule that is selected or ignored does not exist.
    """
    active = list_active_rules(settings)
    programs = run(modules, settings.tensorflow, switched=settings.switched_on)
    for module, hits in zip(modules, _collect_hits(programs, settings, active), strict=True):
        aside = _list_ignored(module.path, settings)
        kept = [hit for hit in hits if not hit[0].startswith(aside)]
        for finding in judge(module, kept, [rule for rule in active if not rule.startswith(aside)]):
            if module.cells is None:
                yield finding
            else:
                yield _place_in_cell(finding, module.cells)


def _collect_hits(
    programs: Programs, settings: Settings, active: Sequence[str]
) -> list[list[tuple[str, Hit]]]:
    """Return for each file what the active rules find in it, directly and by running its programs."""
    found: list[list[tuple[str, Hit]]] = []
    parts = Parts(programs, settings.installed)
    for source in programs.sources.all:
        switched = settings.switched_on or programs.is_switched(source)
        direct: list[tuple[str, Hit]] = []
        for rule in active:
            if rule not in DIRECT:
                continue
            hits_of_rule = DIRECT[rule](source.module, settings.tensorflow)
            direct += [
                (rule, hit) for hit in hits_of_rule if not (switched and hit.unless_switched)
            ]
        found.append(direct)
    for source, rule, hit in Findings(programs, parts.find_part):
        if rule in active:
            found[source.index].append((rule, hit))
    for source, hits in zip(programs.sources.all, found, strict=True):
        for at, (rule, hit) in enumerate(hits):
            hits[at] = rule, replace(hit, part=parts.find_part(source, hit.node) or hit.part)
    return found


def _get_place(finding: Finding) -> tuple[int, str, int, int, str, str]:
    where = finding.where
    part = PARTS.index(where.part)
    return part, where.file, where.line, where.column, finding.rule, finding.message


def _place_in_cell(finding: Finding, cells: Cells) -> Finding:
    """Return a finding in a notebook with the line in its cell, and the cell in the message."""
    where = finding.where
    cell, line = cells.place(where.line)
    place = Where(
        file=where.file,
        line=line,
        column=where.column,
        end_line=line + max(where.end_line - where.line, 0),
        end_column=where.end_column,
        text=where.text,
        part=where.part,
    )
    message = f"cell {cell}: {finding.message}"
    return Finding(
        finding.rule, finding.severity, place, message, finding.why, finding.fix, finding.source
    )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the collector of cycles from going through all nodes again and again.

    No node is in a cycle, so that it would find nothing.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def judge(
    module: Module, hits: Sequence[tuple[str, Hit]], active: Sequence[str]
) -> Iterator[Finding]:
    """Yield the findings of a file, without what its comments ignore."""
    comments = parse_ignores(module.text, load_lint_rules())
    found: dict[tuple[str, int, str], Finding] = {}
    for rule, hit in hits:
        finding = _make_finding(module, load_lint_rules()[rule], hit)
        # Two calls on one line with the same message read as one finding that stands there twice.
        key = rule, finding.where.line, finding.message
        if key not in found and not _is_ignored(finding, comments):
            found[key] = finding
    yield from _join_trainings(list(found.values()))
    # Last, as it takes the judged findings to know which comments have ignored something.
    yield from _judge_comments(module.path, comments, active)


def _join_trainings(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield findings, one of a line at which a training starts with neither a seed nor the switch."""
    unseeded = {each.where.line for each in findings if each.rule == UNSEEDED}
    switches = {each.where.line: each for each in findings if each.rule == UNSWITCHED}
    for finding in findings:
        switch = switches.get(finding.where.line)
        if finding is switch and finding.where.line in unseeded:
            continue
        if finding.rule == UNSEEDED and switch is not None:
            message = f"{finding.message}, and nothing turns op determinism on"
            fix = f"{finding.fix} {switch.fix}"
            yield Finding(
                finding.rule,
                finding.severity,
                finding.where,
                message,
                finding.why,
                fix,
                finding.source,
            )
        else:
            yield finding


def list_active_rules(settings: Settings) -> tuple[str, ...]:
    """Return the rules that count: those selected (all, if none is) without those ignored, for this
    TensorFlow.
    """
    rules = load_lint_rules()
    named = [*settings.select, *settings.ignore]
    for _, names in settings.per_file:
        named += names
    for name in named:
        if not any(rule.startswith(name) for rule in rules) or not name:
            hint = f"choose from: {', '.join(rules)}, or a prefix such as ENV2"
            raise UsageError(f"unknown rule `{name}`", hint=hint)
    active: list[str] = []
    for rule, row in rules.items():
        if settings.select and not rule.startswith(settings.select):
            continue
        if settings.ignore and rule.startswith(settings.ignore):
            continue
        if matches_version(row.tensorflow, settings.tensorflow):
            active.append(rule)
    return tuple(active)


def _list_ignored(path: str, settings: Settings) -> tuple[str, ...]:
    """Return the rules, or beginnings of rules, that the settings ignore in a file."""
    found: list[str] = []
    for pattern, rules in settings.per_file:
        if matches(path, pattern):
            found += rules
    return tuple(found)


def _is_ignored(finding: Finding, comments: Sequence[Ignore]) -> bool:
    ignored = False
    # Not only up to the first comment that fits: each of them has had something to ignore.
    for comment in comments:
        inside = any(
            finding.where.line <= line <= finding.where.end_line for line in comment.covers
        )
        if comment.problem is None and finding.rule in comment.rules and inside:
            comment.used.add(finding.rule)
            ignored = True
    return ignored


def _make_finding(module: Module, rule: LintRule, hit: Hit) -> Finding:
    line = getattr(hit.node, "lineno", 1)
    source = find_reference(hit.source or rule.source)
    end = getattr(hit.node, "end_lineno", None) or line
    where = Where(
        file=module.path,
        line=line,
        column=_count_column(module, line, getattr(hit.node, "col_offset", 0)),
        end_line=end,
        end_column=_count_column(module, end, getattr(hit.node, "end_col_offset", None) or 0),
        text=module.get_line(line).strip()[:TEXT_LIMIT],
        part=hit.part,
    )
    return Finding(
        rule.id,
        hit.severity or rule.severity,
        where,
        hit.message,
        rule.why,
        hit.fix or rule.fix,
        source,
    )


def _count_column(module: Module, line: int, offset: int) -> int:
    """Return the column as editors count, from 1 and in characters; the parser counts bytes of
    UTF-8.
    """
    text = module.get_line(line)
    if not text.isascii():
        offset = len(text.encode()[:offset].decode(errors="replace"))
    return offset + 1


def _judge_comments(
    path: str, comments: Sequence[Ignore], active: Sequence[str]
) -> Iterator[Finding]:
    for comment in comments:
        unused = [rule for rule in comment.rules if rule not in comment.used and rule in active]
        if comment.problem is not None:
            rule, message = BAD_IGNORE, f"this comment ignores nothing: {comment.problem}"
        elif unused:
            rule, message = UNUSED_IGNORE, f"no finding to ignore here for {', '.join(unused)}"
        else:
            continue
        if rule in active:
            yield _make_file_finding(path, rule, message, comment.line, comment.column)


def _make_file_finding(path: str, rule: str, message: str, line: int, column: int) -> Finding:
    """Return a finding about a comment, or about a file that cannot be read."""
    row = load_lint_rules()[rule]
    where = Where(file=path, line=line, column=column, end_line=line, end_column=column)
    return Finding(rule, row.severity, where, message, row.why, row.fix, find_reference(row.source))


MARK = re.compile(r"#\s*envlock:\s*ignore\b\s*(?:\[([^\]]*)\])?\s*(.*)$")
"""A comment such as `# envlock: ignore[ENV303, ENV304] only their sizes count`: rules, and a
reason.
"""


@dataclass
class Ignore:
    """An ignore comment.

    Attributes:
        line, column: its place; `covers` are the lines that it applies to.
        rules: the rules that it names.
        problem: why it ignores nothing, or None.
        used: those of its rules for which there was a finding.
    """

    line: int
    column: int
    covers: tuple[int, ...]
    rules: tuple[str, ...]
    problem: str | None
    used: set[str] = field(default_factory=set)


def parse_ignores(text: str, known: Iterable[str]) -> list[Ignore]:
    """Return the ignore comments of a file; text in strings does not count."""
    if "envlock:" not in text:  # most files: to split one into tokens takes as long as to parse it
        return []
    rules = frozenset(known)
    found: list[Ignore] = []
    for token in _list_comments(text):
        mark = MARK.search(token.string)
        if mark is not None:
            found.append(_parse_ignore(token, mark, rules))
    return found


def _list_comments(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token
    # The parser has taken the text, so that the comments up to here are right.
    except (tokenize.TokenError, SyntaxError):
        return


def _parse_ignore(token: tokenize.TokenInfo, mark: re.Match[str], known: frozenset[str]) -> Ignore:
    line, column = token.start
    names = tuple(name for name in re.split(r"[\s,]+", mark[1] or "") if name)
    # Alone on its line, it is about the next one: a long line has no place for a reason.
    covers: tuple[int, ...] = (line,)
    if not token.line[:column].strip():
        covers = (line, line + 1)
    return Ignore(line, column + 1, covers, names, _find_problem(names, mark[2], known))


def _find_problem(names: tuple[str, ...], reason: str, known: frozenset[str]) -> str | None:
    if not names:
        return "it names no rule"
    # No prefixes: ENV3 would also ignore what its author has not seen.
    unknown = [name for name in names if name not in known]
    if unknown:
        return f"unknown rule {', '.join(unknown)}"
    if not re.search(r"\w", reason):
        return "it gives no reason"
    return None
