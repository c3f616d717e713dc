"""Which launcher or pool started this process, from the variables that these set, and the
differences that this explains. Pure.
"""

from __future__ import annotations

from envlock.runtime.clear_values import show_in_clear
from envlock.runtime.report import ERROR, INFO, LAUNCHER, UNKNOWN, Finding, Report
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Tuple

    Environ = Mapping[str, str]

SET = "set"
"""Stands for a variable that only has to be set: no launcher sets this value."""

DOES = {
    "launcher": "{} started this process ({} is set) and explains {}",
    "pool": "this process is a worker of {} ({} is set), which explains {}",
    "limit": "{} limits this process ({} is set) and explains {}",
}


def annotate_findings(report: Report, environ: Environ) -> None:
    """Show values in clear in the findings of a report, and add those that say what a launcher explains."""
    show_in_clear(report.findings, environ)
    if not report.match:
        explained = explain_differences(report.findings, environ)
        report.findings += [finding for finding, _ in explained]


def explain_differences(
    findings: Iterable[Finding], environ: Environ
) -> List[Tuple[Finding, List[str]]]:
    """Return a finding for each launcher, pool or limit that explains differences, with their facts.

    Each difference is explained once.

    Args:
        findings: those of a report.
        environ: the variables of the process that was compared.
    """
    unexplained = set()
    for finding in findings:
        if finding.severity in (ERROR, UNKNOWN):
            unexplained.add(finding.where.fact)
    explanations = []
    for row in table("launchers"):
        variable = next((name for name in row["any"] if environ.get(name)), None)
        if variable is None or not all(map(environ.get, row["all"])):
            continue
        facts = [path for path in row["facts"] if path in unexplained]
        facts = [path for path in facts if _is_its_doing(row, path, environ)]
        if not facts:
            continue
        unexplained.difference_update(facts)
        message = DOES[row["kind"]].format(row["name"], variable, ", ".join(facts))
        finding = Finding(
            LAUNCHER,
            INFO,
            facts[0],
            message=message,
            why=row["why"],
            fix=row["fix"],
            source=row["source"],
        )
        explanations.append((finding, facts))
    return explanations


def collect_traces(environ: Environ) -> Dict[str, str]:
    """Return the variables of a process that `explain_differences` needs, so that it can be called
    in another process.

    Of variables that only have to be set, the values are left out, because they differ from process
    to process.
    """
    kept: Dict[str, str] = {}
    for row in table("launchers"):
        kept.update(dict.fromkeys(filter(environ.get, (*row["any"], *row["all"])), SET))
    for row in table("launchers"):
        if row["value"] is None and row["value_of"] is None:
            continue
        names = [path.partition(".")[2] for path in row["facts"] if path.startswith("environ.")]
        if row["value_of"]:
            names.append(row["value_of"])
        for name in names:
            if environ.get(name, "").isdigit():
                kept[name] = environ[name]
    return kept


def _is_its_doing(row: Dict[str, Any], path: str, environ: Environ) -> bool:
    """Return whether a fact has the value that this row sets; a variable with another value comes
    from the user.
    """
    section, _, name = path.partition(".")
    if section != "environ":
        return True
    wanted = environ.get(row["value_of"]) if row["value_of"] is not None else row["value"]
    return wanted is None or environ.get(name) == wanted
