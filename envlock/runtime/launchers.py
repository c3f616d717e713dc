"""Who started this process, by the variables that launchers and worker pools set, and what that explains. Pure."""

from __future__ import annotations

from envlock.runtime.report import ERROR, INFO, LAUNCHER, UNKNOWN, Finding
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping

    Environ = Mapping[str, str]

SET = "set"
"""Stands for a value that only has to be there: no launcher gives this one."""

DOES = {
    "launcher": "{} started this process ({} is set) and explains {}",
    "pool": "this process is a worker of {} ({} is set), which explains {}",
    "limit": "{} limits this process ({} is set) and explains {}",
}


def explained(findings: Iterable[Finding], environ: Environ) -> List[Finding]:
    """Return a finding for each launcher, pool or limit that explains differences; each difference is explained once.

    Args:
        findings: those of a report.
        environ: the variables of the process that they are about.
    """
    left = {each.where.fact: None for each in findings if each.severity in (ERROR, UNKNOWN)}
    found = []
    for row in table("launchers"):
        variable = next((name for name in row["any"] if environ.get(name)), None)
        if variable is None or not all(environ.get(name) for name in row["all"]):
            continue
        facts = [
            path for path in row["facts"] if path in left and _is_its_doing(row, path, environ)
        ]
        for path in facts:
            del left[path]
        if facts:
            message = DOES[row["kind"]].format(row["name"], variable, ", ".join(facts))
            found.append(
                Finding(LAUNCHER, INFO, facts[0], message, row["why"], row["fix"], row["source"])
            )
    return found


def traces(environ: Environ) -> Dict[str, str]:
    """Return what `explained` needs of the variables of a process, so that another one can ask it.

    Of the variables that only have to be set, the values, which differ from process to process, are left out.
    """
    kept: Dict[str, str] = {}
    for row in table("launchers"):
        kept.update({name: SET for name in (*row["any"], *row["all"]) if environ.get(name)})
    for row in table("launchers"):
        if row["value"] is None and row["value_of"] is None:
            continue
        counts = [path.partition(".")[2] for path in row["facts"] if path.startswith("environ.")]
        for name in [*counts, *([row["value_of"]] if row["value_of"] else [])]:
            if environ.get(name, "").isdigit():
                kept[name] = environ[name]
    return kept


def _is_its_doing(row: Dict[str, Any], path: str, environ: Environ) -> bool:
    """Return whether a fact is as this row sets it; a variable with another value is the user's."""
    section, _, name = path.partition(".")
    if section != "environ":
        return True
    wanted = row["value"] if row["value_of"] is None else environ.get(row["value_of"])
    return wanted is None or environ.get(name) == wanted
