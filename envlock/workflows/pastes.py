"""Differences from what people paste: only what the text states is compared."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from envlock.lock.locks import get_name, load_lock
from envlock.lock.models import Lockfile
from envlock.lock.pastes import FORMATS, Paste, read_paste
from envlock.lock.pastes.statement import Statement, is_beginning
from envlock.runtime.causes import MACHINE, MOVED
from envlock.runtime.compare import TAKE_AWAY, UNINSTALL, compare
from envlock.runtime.errors import LockfileError
from envlock.runtime.exemptions import describe_judge
from envlock.runtime.extent import Extent
from envlock.runtime.facts import matches
from envlock.runtime.lockfile import CONFLICT, SIZE_LIMIT
from envlock.runtime.policies import Policy, is_protected
from envlock.runtime.report import (
    ABSENT,
    COMPARED,
    ERROR,
    OTHER_MACHINE,
    UNKNOWN,
    Finding,
    Report,
    clean,
    count,
    sort_findings,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source
    from envlock.runtime.facts import Tree

    Side = Lockfile | Paste

SECTIONS = {
    "python": "Python",
    "packages": "packages",
    "cpu": "CPU",
    "gpu": "GPU",
    "cuda": "CUDA",
    "system": "the operating system",
    "environ": "variables",
}
"""What a paste can leave out, by section, as its headline says it."""
NAMES_SHOWN = 7
PIPENV = b'"pipfile-spec"'
JSON = re.compile(rb'\{\s*(?:"|\}|$)')
PART = "A text states a part of an environment, and what it does not state can differ."
SYNC = "`envlock sync`"
TAKE_IT = (
    "Install what the text names, or ask for a lockfile from there, which `envlock sync` installs."
)
LOCK_IT = "Compare with a lockfile from there: `envlock capture -o theirs.lock`."


def load_side(source: Source | Paste) -> Side:
    """Return the lockfile that `source` is or names, or what a pasted text states.

    Raises:
        LockfileError: it is neither.
    """
    if isinstance(source, Paste):
        return source
    data = _read(source)
    if data is None or len(data) > SIZE_LIMIT or _is_lockfile(data):
        return load_lock(source)
    paste = read_paste(data.decode("utf-8", "replace"))
    if paste is None:
        known = ", ".join(each.name for each in FORMATS)
        raise LockfileError(
            f"{get_name(source)} is neither a lockfile nor a text that states facts of an environment",
            hint=f"read are: {known}, and requirements as `name==version`",
        )
    return paste


def _is_lockfile(data: bytes) -> bool:
    """Return whether a text begins like a lockfile, and is not the one of Pipenv."""
    begin = data.lstrip()
    # In a part of uv.lock, a line can begin so.
    return begin.startswith(CONFLICT) or (JSON.match(begin) is not None and PIPENV not in data)


def name_side(source: Source | Paste) -> str:
    """Return what a message calls a side."""
    return source.describe() if isinstance(source, Paste) else get_name(source)


def _read(source: Source) -> bytes | None:
    """Return the content of a file that exists; None for a lockfile that is read already."""
    if isinstance(source, Lockfile | None):
        return None
    if isinstance(source, bytes):
        return source
    try:
        with Path(source).open("rb") as file:
            return file.read(SIZE_LIMIT + 1)
    except (OSError, ValueError):
        return None  # the reader of lockfiles says why


def diff_pastes(one: Side, other: Side, rules: Policy, names: tuple[str, str]) -> Report:
    """Return the differences of two sides of which one is a paste, or both are."""
    left, right = _make_facts(one), _make_facts(other)
    pastes = [side for side in (one, other) if isinstance(side, Paste)]
    stated = _list_stated(pastes)
    own = _list_own_packages(one, other)
    lone = {
        path
        for path, each in stated.items()
        if (each.is_guess or path.startswith(own))
        and ABSENT in (_get(path, left), _get(path, right))
    }
    shared = {path: each for path, each in stated.items() if path not in lone}
    sides = _restrict(shared, left), _restrict(shared, right)
    for path, each in shared.items():
        if each.is_loose:
            _complete(path, sides)
    unavailable = [_list_unavailable(side, shared) for side in (one, other)]
    findings = compare((sides[0], unavailable[0]), (sides[1], unavailable[1]), rules, names)
    differing = [str(finding.where) for finding in findings if finding.severity == ERROR]
    for finding in findings:
        _name_lines(finding, one, other)
        # No text can be installed by a command that installs lockfiles, and what only a text has is not here.
        if SYNC in finding.fix or finding.fix in (UNINSTALL, TAKE_AWAY):
            finding.fix = TAKE_IT
        elif any(matches(pattern, str(finding.where)) for pattern in MOVED[MACHINE]):
            finding.fix = OTHER_MACHINE
    judged = [path for path in shared if rules.row(path)["rule"] != "ignore"]
    number = sum(any(f"{path}.".startswith(f"{where}.") for where in differing) for path in judged)
    what = " and ".join(dict.fromkeys(f"a {paste.describe()}" for paste in pastes))
    unstated = name_unstated(shared)
    findings.append(_make_part_finding(what, unstated))
    verdict = "none differs" if not number else f"{number} differ{'s' if number == 1 else ''}"
    answer = "does not match" if number else "cannot decide"
    under = describe_judge(rules.name, len(rules.overrides), ())
    return Report(
        sort_findings(findings),
        command="diff",
        policy=rules.name,
        overrides=len(rules.overrides),
        headline=f"{answer}{under}: {count(len(judged), 'fact')} of {what} compared, {verdict}; not in it: {unstated}",
        subject=names[0],
        notes=_list_notes(lone, pastes),
        extent=Extent(facts=len(judged)),
    )


def _list_own_packages(*sides: Side) -> tuple[str, ...]:
    """Return what the paths begin with of packages that a lockfile leaves out, as they are its project's own."""
    projects = [side.project for side in sides if isinstance(side, Lockfile)]
    paths = [f"packages.{project.name}." for project in projects if project and project.name]
    return tuple(path for path in paths if not is_protected(path))


def _make_facts(side: Side) -> Tree:
    """Return what a side holds."""
    if isinstance(side, Paste):
        return side.make_facts()
    facts: Tree = side.to_document()["facts"]
    return facts


def _list_stated(pastes: list[Paste]) -> dict[str, Statement]:
    """Return what is compared: what the paste states, or both do."""
    first, *others = pastes
    stated = {each.path: each for each in first.statements}
    for paste in others:
        loose = {each.path: each for each in paste.statements}
        stated = {
            path: each._replace(is_loose=each.is_loose or loose[path].is_loose)
            for path, each in stated.items()
            if path in loose
        }
    return stated


def _get(path: str, facts: Tree) -> object:
    """Return the fact at a path; `ABSENT` without one."""
    node: object = facts
    for step in path.split("."):
        if not isinstance(node, dict) or step not in node:
            return ABSENT
        node = node[step]
    return node


def _restrict(paths: Iterable[str], facts: Tree) -> Tree:
    """Return the facts at these paths; a node that is null on the way is one of them."""
    kept: Tree = {}
    for path in paths:
        node, copy = facts, kept
        *above, name = path.split(".")
        for step in above:
            if not isinstance(node.get(step), dict):
                name = step
                break
            node, copy = node[step], copy.setdefault(step, {})
        if name in node:
            copy[name] = node[name]
    return kept


def _complete(path: str, sides: tuple[Tree, Tree]) -> None:
    """Give both sides the whole value where that of one is its beginning."""
    *above, name = path.split(".")
    nodes = [_get(".".join(above), side) for side in sides]
    if not all(isinstance(node, dict) and isinstance(node.get(name), str) for node in nodes):
        return
    short, whole = sorted((node[name] for node in nodes if isinstance(node, dict)), key=len)
    if is_beginning(short, whole):
        for node in nodes:
            if isinstance(node, dict):
                node[name] = whole


def _list_unavailable(side: Side, paths: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return what of the compared facts could not be collected."""
    if isinstance(side, Paste):
        return {}
    unavailable: dict[str, dict[str, str]] = side.to_document()["unavailable"]
    return {
        path: entry
        for path, entry in unavailable.items()
        if any(f"{each}.".startswith(f"{path}.") for each in paths)
    }


def name_unstated(paths: Collection[str]) -> str:
    """Return what facts at these paths leave out, as a phrase."""
    names = []
    for section, name in SECTIONS.items():
        if not any(path.startswith(f"{section}.") for path in paths):
            names.append(name)
    return _join(names)


def _name_lines(finding: Finding, one: Side, other: Side) -> None:
    """Add to a finding the lines that state the fact."""
    where = f"{finding.where}."
    found = []
    for side in (one, other):
        if isinstance(side, Paste):
            lines = [each.line for each in side.statements if f"{each.path}.".startswith(where)]
            found += [(line, clean(side.lines[line - 1].strip())) for line in lines[:1]]
    if found:
        finding.message += f" ({' and '.join(f'line {line}' for line, _ in found)})"
        finding.source = "; ".join(f"line {line}: {text}" for line, text in found)


def _make_part_finding(what: str, unstated: str) -> Finding:
    """Return that the text states a part only, which leaves the answer open."""
    return Finding(
        COMPARED,
        UNKNOWN,
        "facts",
        message=f"not in {what}: {unstated}",
        why=PART,
        fix=LOCK_IT,
        source="design",
        weight=0,
    )


def _list_notes(lone: Collection[str], pastes: list[Paste]) -> list[str]:
    """Return notes on what the text states and what is not compared all the same."""
    notes = []
    names = [path.split(".")[1] for path in sorted(lone) if path.startswith("packages.")]
    if names:
        notes.append(f"not compared, as the other side has nothing of the name: {_join(names)}")
    disputed = [path for paste in pastes for path in paste.disputed]
    if disputed:
        notes.append(f"not compared, as the text states two values: {_join(disputed)}")
    unversioned = [name for paste in pastes for name in paste.unversioned]
    if unversioned:
        notes.append(f"not compared, as the text states no version: {_join(unversioned)}")
    return notes


def _join(names: list[str]) -> str:
    """Return names as a phrase, of many only the first."""
    if len(names) > NAMES_SHOWN:
        names = [*names[:NAMES_SHOWN], f"{len(names) - NAMES_SHOWN} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "nothing"
