"""The linter: files and settings in, findings out, less what is ignored. The code that is looked at
is never run.
"""

from __future__ import annotations

import ast
import gc
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from envlock.data.lint_tables import LintRule, find_reference, load_lint_rules
from envlock.data.specifiers import matches_version
from envlock.linter.facts import Facts
from envlock.linter.files import Unreadable, matches, read
from envlock.linter.findings import Found
from envlock.linter.module import Module
from envlock.linter.project import PARTS, File, Project
from envlock.linter.rules import BAD_IGNORE, UNREADABLE, UNSEEDED, UNSWITCHED, UNUSED_IGNORE, find
from envlock.runtime.errors import UsageError
from envlock.runtime.finding_place import Where
from envlock.runtime.report import Finding, Severity

SEED_ALL = "tf.keras.utils.set_random_seed(seed)"
SEED_GRAPH = "tf.random.set_seed(seed)"
OLDER = {
    "<2.0": "tf.set_random_seed(seed)",
    ">=2.0,<2.7": SEED_GRAPH,
}
"""What seeds TensorFlow before 2.7, which `set_random_seed` of Keras came with."""
PLAIN = "numpy.random.seed(seed) and random.seed(seed)"
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
        modules.clear()  # so that the collector goes through all nodes once, and not twice
    return sorted(found, key=_get_place)


def check(modules: Sequence[Module], settings: Settings) -> Iterator[Finding]:
    """Yield what is found in files that have been read.

    Raises:
        UsageError: a rule that is selected or ignored does not exist.
    """
    active = list_active_rules(settings)
    project = Project(modules, settings.installed)
    by_file: dict[File, list[Found]] = {file: [] for file in project.files}
    for found in find(Facts(project), settings.tensorflow, switched_on=settings.switched_on):
        if found.rule in active:
            by_file[found.file].append(found)
    for file, mine in by_file.items():
        aside = _list_ignored(file.path, settings)
        kept = [each for each in mine if not each.rule.startswith(aside)]
        rules = [rule for rule in active if not rule.startswith(aside)]
        yield from judge(file.module, kept, rules, settings.tensorflow)


def _get_place(finding: Finding) -> tuple[int, str, int, int, str, str]:
    where = finding.where
    part = PARTS.index(where.part)
    return part, where.file, where.line, where.column, finding.rule, finding.message


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
    module: Module, found: Sequence[Found], active: Sequence[str], tensorflow: str
) -> Iterator[Finding]:
    """Yield the findings of a file, without what its comments ignore."""
    comments = parse_ignores(module.text, load_lint_rules())
    # Two calls on one line with the same message read as one finding that stands there twice.
    once: dict[tuple[str, int, str], Found] = {}
    for each in found:
        once.setdefault((each.rule, each.line, each.message), each)
    kept = [each for each in once.values() if not _is_ignored(each, comments)]
    for each in _join_trainings(kept):
        yield _make_finding(module, each, tensorflow)
    # Last, as it takes the judged findings to know which comments have ignored something.
    yield from _judge_comments(module.path, comments, active)


def _join_trainings(found: Sequence[Found]) -> Iterator[Found]:
    """Yield findings, one of a line at which a training starts with neither a seed nor the switch."""
    unseeded = {each.line for each in found if each.rule == UNSEEDED}
    switches = {each.line: each for each in found if each.rule == UNSWITCHED}
    for each in found:
        switch = switches.get(each.line)
        if each.rule == UNSEEDED and switch is not None:
            message = f"{each.message}, and nothing turns op determinism on"
            yield replace(each, message=message, fix=f"{each.fix} {switch.fix}")
        elif each is not switch or each.line not in unseeded:
            yield each


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
    return tuple(
        rule for pattern, rules in settings.per_file if matches(path, pattern) for rule in rules
    )


def _is_ignored(found: Found, comments: Sequence[Ignore]) -> bool:
    ignored = False
    end = getattr(found.node, "end_lineno", None) or found.line
    # Not only up to the first comment that fits: each of them has had something to ignore.
    for comment in comments:
        inside = any(found.line <= line <= end for line in comment.covers)
        if comment.problem is None and found.rule in comment.rules and inside:
            comment.used.add(found.rule)
            ignored = True
    return ignored


def _make_finding(module: Module, found: Found, tensorflow: str) -> Finding:
    """Return what is shown: places as readers count them, and a remedy that the version has."""
    row = load_lint_rules()[found.rule]
    line, message = found.line, found.message
    end = getattr(found.node, "end_lineno", None) or line
    shift = 0
    if module.cells is not None:
        cell, line_of_cell = module.cells.place(line)
        shift, message = line - line_of_cell, f"cell {cell}: {message}"
    where = Where(
        file=module.path,
        line=line - shift,
        column=_find_column(module, line, found.node),
        end_line=max(end, line) - shift,
        end_column=_count_column(module, end, getattr(found.node, "end_col_offset", None) or 0),
        text=module.get_line(line).strip()[:TEXT_LIMIT],
        part=found.part,
    )
    fix = _fit_version(found.fix or row.fix, tensorflow)
    finding = _fill(row, where, message, found.severity, fix)
    finding.places += found.others
    return finding


def _fill(
    row: LintRule, where: Where, message: str, severity: Severity | None = None, fix: str = ""
) -> Finding:
    return Finding(
        row.id,
        severity or row.severity,
        where,
        message=message,
        why=row.why,
        fix=fix or row.fix,
        source=find_reference(row.source),
    )


def _find_column(module: Module, line: int, node: ast.AST) -> int:
    """Return the column of a place, or that of the name of a call in a chain of several lines."""
    offset = getattr(node, "col_offset", 0)
    if getattr(node, "lineno", line) == line:
        return _count_column(module, line, offset)
    text = module.get_line(line)
    return len(text) - len(text.lstrip(" .")) + 1


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
    where = Where(file=path, line=line, column=column, end_line=line, end_column=column)
    return _fill(load_lint_rules()[rule], where, message)


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
    covers = (line,) if token.line[:column].strip() else (line, line + 1)
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


def _fit_version(fix: str, tensorflow: str) -> str:
    """Return a remedy with the functions that the version has.

    Sources: https://github.com/tensorflow/tensorflow/releases/tag/v2.7.0, and
    https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/random/set_random_seed
    """
    for versions, call in OLDER.items():
        if not matches_version([versions], tensorflow):
            continue
        # Python and NumPy have functions of their own, which are named beside it.
        for own in ("np.random.seed(seed)", "random.seed(seed)"):
            fix = fix.replace(f"{own}, or {SEED_ALL}, at", f"{own} at")
        fix = fix.replace(f"{SEED_ALL}, or {SEED_GRAPH}, at", f"{call} at")
        fix = fix.replace(SEED_ALL, f"{call}, {PLAIN}")
        return fix.replace(SEED_GRAPH, call)
    return fix
