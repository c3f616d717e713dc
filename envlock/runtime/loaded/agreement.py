"""What of a locked and a seen section `loaded` has to be equal. Pure.

It is not the sets: another host (pytest, IPython, a worker) and optional packages load more files. What is compared
is what both have of Python itself, what the lockfile has of each role, and what nothing explains.
"""

from __future__ import annotations

from envlock.runtime.collectors.python import ARITHMETIC
from envlock.runtime.loaded.description import INTERPRETER, PACKAGES, STANDARD, UNEXPLAINED
from envlock.runtime.loaded.startup_files import STARTUP
from envlock.runtime.policies import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Iterable, List, Mapping

    from envlock.runtime.facts import Tree
    from envlock.runtime.report import Finding

SECTION = "loaded"
STRICT = Policy("strict")
IMPORTS = "imports"
BY_NAME = (INTERPRETER, STANDARD)
ON_DEMAND = ("data",)
"""The roles of which a library comes with the module that needs it, such as sqlite3: its absence says nothing."""


def align(
    locked: Tree,
    seen: Tree,
    *,
    is_whole: bool = True,
    complete: Collection[str] = (),
    is_same_build: bool = True,
) -> Tree:
    """Return the seen section with what a comparison is about.

    Args:
        locked: the section of a lockfile.
        seen: what a process has loaded.
        is_whole: whether the process has imported all that was imported for the lockfile: only then does a
            library that it lacks say something.
        complete: the roles whose libraries are all loaded even if something else is not imported yet.
        is_same_build: whether Python was built by the same compiler: else its own files differ, and no policy
            asks for that.
    """
    aligned: Tree = {}
    for name, value in locked.items():
        if name == INTERPRETER and not is_same_build:
            aligned[name] = value
        elif name in BY_NAME:
            aligned[name] = {**value, **_keep(seen.get(name, {}), value)}
        elif name == PACKAGES:
            aligned[name] = {**value, **_keep_versions(seen.get(name, {}), value)}
        elif name == ARITHMETIC:
            aligned[name] = seen.get(name, value)
        elif name in (IMPORTS, UNEXPLAINED, STARTUP) or not isinstance(value, list):
            aligned[name] = value
        else:
            is_all = (is_whole or name in complete) and name not in ON_DEMAND
            aligned[name] = _choose(value, seen.get(name, []), is_whole=is_all)
    if locked.get(STARTUP) or seen.get(STARTUP):
        aligned[STARTUP] = seen.get(STARTUP, [])
    known = locked.get(UNEXPLAINED, [])
    # One cause, one finding: a library that stands for a locked one is compared there, wherever it lies.
    libraries = [each for value in aligned.values() if isinstance(value, list) for each in value]
    new = [each for each in seen.get(UNEXPLAINED, []) if each not in (*known, *libraries)]
    aligned[UNEXPLAINED] = sorted([*known, *new])
    return aligned


def _keep(seen: Mapping[str, str], locked: Mapping[str, str]) -> Tree:
    """Return what was seen of the locked modules, of which the same parts ran."""
    return {
        name: value
        for name, value in seen.items()
        if name in locked and value.split()[1:] == locked[name].split()[1:]
    }


def _keep_versions(seen: Mapping[str, str], locked: Mapping[str, str]) -> Tree:
    """Return what was seen of the locked packages of which the same version has other files. Another version is a
    fact of its own, and what may have another version, such as pip, may have other files.
    """
    kept = {}
    for name, value in seen.items():
        old = locked.get(name, value)
        is_same_version = value.partition(" ")[0] == old.partition(" ")[0]
        if (
            value != old
            and is_same_version
            and STRICT.tier_rule(f"packages.{name}.version") != "ignore"
        ):
            kept[name] = value
    return kept


def _choose(locked: List[str], seen: List[str], *, is_whole: bool) -> List[str]:
    """Return the libraries of a role that stand for the locked ones: all of the same names."""
    names = {each.partition(" ")[0] for each in locked}
    chosen = {each for each in seen if each.partition(" ")[0] in names}
    if not is_whole:
        there = {each.partition(" ")[0] for each in chosen}
        chosen.update(each for each in locked if each.partition(" ")[0] not in there)
    return sorted(chosen)


def name_files(findings: Iterable[Finding], places: Mapping[str, str]) -> None:
    """Say in each finding about a loaded file which file of this machine it is, and who asked for it."""
    for finding in findings:
        section, _, fact = str(finding.where).partition(".")
        if section != SECTION or fact in (ARITHMETIC, IMPORTS):
            continue
        new = finding.actual if isinstance(finding.actual, list) else []
        old = finding.expected if isinstance(finding.expected, list) else []
        words = []
        for each in new:
            if each not in old:
                name = each.partition(" ")[0]
                words.append(places.get(each) or places.get(f"{fact}.{name}") or name)
        if isinstance(finding.actual, str):
            words.append(places.get(fact, fact))
        elif not words:
            words += [f"{each.partition(' ')[0]} is not loaded" for each in old if each not in new]
            words += [f"{path} is" for path in _list_others(fact, new, places)]
        if words:
            what = "a file that nothing explains" if fact == UNEXPLAINED else "not the locked file"
            if fact.startswith(f"{PACKAGES}."):
                what = "the same version with other files than the locked ones"
            finding.message = f"{SECTION}.{fact}: {what}: {'; '.join(words)}"


def _list_others(role: str, new: List[str], places: Mapping[str, str]) -> List[str]:
    """Return the libraries of a role that stand for no locked one: one of them took its place."""
    libraries = {key: path for key, path in places.items() if key.startswith(f"{role}/")}
    return [path for key, path in libraries.items() if key.partition("/")[2] not in new]
