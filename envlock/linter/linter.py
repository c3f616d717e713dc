"""The linter: files and settings in, findings out, less what is ignored. The code that is looked at is never run."""

from __future__ import annotations

import gc
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from envlock.data.determinism import holds
from envlock.data.lint import LintRule, lint_rules, reference
from envlock.linter.files import Unreadable, read
from envlock.linter.module import Hit, Module
from envlock.linter.notebooks import Cells
from envlock.linter.program import SWITCHED, Summary, programs, summary
from envlock.linter.project import Project
from envlock.linter.rules import BAD_IGNORE, RULES, UNREADABLE, UNUSED_IGNORE
from envlock.runtime.errors import UsageError
from envlock.runtime.report import Finding
from envlock.runtime.where import Where

TEXT_LIMIT = 200  # characters of a line that a report shows


@dataclass(frozen=True)
class Settings:
    """What to judge by: a TensorFlow version, whether its environment turns op determinism on, and which rules."""

    tensorflow: str
    switched_on: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True)
class Looked:
    """What one file gave: findings that count if its programs allow it, and its ignore comments."""

    summary: Summary
    found: list[tuple[Hit, Finding]]
    comments: list[Ignore]
    cells: Cells | None = None


def lint(
    files: Sequence[str], settings: Settings, step: Callable[[], None] = lambda: None
) -> list[Finding]:
    """Return what is found in some files, by file and line; `step` is called after each file is read.

    Raises:
        UsageError: a rule that is selected or ignored does not exist.
    """
    active = _active(settings)
    looked: list[Looked] = []
    found: list[Finding] = []
    with _no_collection():
        project = Project(files)
        for file in project.ordered():
            try:
                module = read(file, project)
                looked.append(look(module, settings.tensorflow, active))
                project.add(module)
            except Unreadable as error:
                found.extend(_unreadable(file, error) if UNREADABLE in active else ())
            step()
    outside = frozenset({SWITCHED} if settings.switched_on else ())
    for each, does in zip(looked, programs([each.summary for each in looked]), strict=True):
        judged = judge(each, does | outside, active)
        found.extend(
            judged if each.cells is None else (_in_cell(finding, each.cells) for finding in judged)
        )
    return sorted(found, key=_place)


def _place(finding: Finding) -> tuple[str, int, int, str, str]:
    where = finding.where
    return where.file, where.line, where.column, finding.rule, finding.message


def _in_cell(finding: Finding, cells: Cells) -> Finding:
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
    )
    message = f"cell {cell}: {finding.message}"
    return Finding(
        finding.rule, finding.severity, place, message, finding.why, finding.fix, finding.source
    )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the collector of cycles from going through all nodes again and again; none of them is in a cycle."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def look(module: Module, tensorflow: str, active: Sequence[str]) -> Looked:
    """Return what the active rules find in a module; whether it counts is decided when its programs are known."""
    found: list[tuple[Hit, Finding]] = []
    for rule in active:
        hits = RULES[rule](module, tensorflow) if rule in RULES else iter(())
        found.extend((hit, _finding(module, lint_rules()[rule], hit)) for hit in hits)
    comments = ignores(module.text, lint_rules())
    return Looked(summary(module, tensorflow), found, comments, module.cells)


def judge(looked: Looked, does: frozenset[str], active: Sequence[str]) -> Iterator[Finding]:
    """Yield the findings of a file that count in programs that do this, without what its comments ignore."""
    for hit, finding in looked.found:
        if (
            hit.needs <= does
            and not hit.unless & does
            and not _is_ignored(finding, looked.comments)
        ):
            yield finding
    yield from _about_comments(looked, active)


def _active(settings: Settings) -> tuple[str, ...]:
    """Return the rules that count: those selected (all, if none is) without those ignored, for this TensorFlow."""
    rules = lint_rules()
    for name in (*settings.select, *settings.ignore):
        if not any(rule.startswith(name) for rule in rules) or not name:
            hint = f"choose from: {', '.join(rules)}, or a prefix such as ENV2"
            raise UsageError(f"unknown rule `{name}`", hint=hint)
    chosen = [rule for rule in rules if not settings.select or rule.startswith(settings.select)]
    kept = [rule for rule in chosen if not (settings.ignore and rule.startswith(settings.ignore))]
    return tuple(rule for rule in kept if holds(rules[rule].tensorflow, settings.tensorflow))


def _is_ignored(finding: Finding, comments: Sequence[Ignore]) -> bool:
    ignored = False
    for comment in comments:
        inside = any(
            finding.where.line <= line <= finding.where.end_line for line in comment.covers
        )
        if comment.problem is None and finding.rule in comment.rules and inside:
            comment.used.add(finding.rule)
            ignored = True
    return ignored


def _finding(module: Module, rule: LintRule, hit: Hit) -> Finding:
    line = getattr(hit.node, "lineno", 1)
    source = reference(hit.source or rule.source)
    end = getattr(hit.node, "end_lineno", None) or line
    where = Where(
        file=module.path,
        line=line,
        column=_column(module, line, getattr(hit.node, "col_offset", 0)),
        end_line=end,
        end_column=_column(module, end, getattr(hit.node, "end_col_offset", None) or 0),
        text=module.line(line).strip()[:TEXT_LIMIT],
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


def _column(module: Module, line: int, offset: int) -> int:
    """Return the column as editors count: the parser counts bytes of UTF-8."""
    text = module.line(line)
    return (offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))) + 1


def _about_comments(looked: Looked, active: Sequence[str]) -> Iterator[Finding]:
    for comment in looked.comments:
        unused = [rule for rule in comment.rules if rule not in comment.used and rule in active]
        if comment.problem is not None:
            rule, message = BAD_IGNORE, f"this comment ignores nothing: {comment.problem}"
        elif unused:
            rule, message = UNUSED_IGNORE, f"no finding to ignore here for {', '.join(unused)}"
        else:
            continue
        if rule in active:
            yield _of_file(looked.summary.path, rule, message, comment.line, comment.column)


def _unreadable(file: str, error: Unreadable) -> Iterator[Finding]:
    yield _of_file(file, UNREADABLE, error.reason, error.line, error.column)


def _of_file(path: str, rule: str, message: str, line: int, column: int) -> Finding:
    row = lint_rules()[rule]
    where = Where(file=path, line=line, column=column, end_line=line, end_column=column)
    return Finding(rule, row.severity, where, message, row.why, row.fix, reference(row.source))


MARK = re.compile(r"#\s*envlock:\s*ignore\b\s*(?:\[([^\]]*)\])?\s*(.*)$")


@dataclass
class Ignore:
    """An ignore comment.

    Attributes:
        line, column: where it stands; `covers` are the lines it is for.
        rules: what it names.
        problem: why it ignores nothing, or None.
        used: the rules of it for which there was a finding.
    """

    line: int
    column: int
    covers: tuple[int, ...]
    rules: tuple[str, ...]
    problem: str | None
    used: set[str] = field(default_factory=set)


def ignores(text: str, known: Iterable[str]) -> list[Ignore]:
    """Return the ignore comments of a file; text in strings does not count."""
    if "envlock:" not in text:
        return []
    rules = frozenset(known)
    marked = ((token, MARK.search(token.string)) for token in _comments(text))
    return [_ignore(token, found, rules) for token, found in marked if found is not None]


def _comments(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token
    except (
        tokenize.TokenError,
        SyntaxError,
    ):  # the parser took it, so that all comments before are right
        return


def _ignore(token: tokenize.TokenInfo, found: re.Match[str], known: frozenset[str]) -> Ignore:
    line, column = token.start
    names = tuple(name for name in re.split(r"[\s,]+", (found[1] or "").strip()) if name)
    alone = not token.line[:column].strip()
    covers = (line, line + 1) if alone else (line,)
    return Ignore(line, column + 1, covers, names, _problem(names, found[2], known))


def _problem(names: tuple[str, ...], reason: str, known: frozenset[str]) -> str | None:
    if not names:
        return "it names no rule"
    unknown = [name for name in names if name not in known]
    if unknown:
        return f"unknown rule {', '.join(unknown)}"
    return None if re.search(r"\w", reason) else "it gives no reason"
