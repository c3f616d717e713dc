"""Lines for a shell that put the variables right; names and values of the tables only. Pure."""

from __future__ import annotations

from envlock.determinism import values
from envlock.determinism.finding import Diagnosis


def exports(diagnosis: Diagnosis) -> list[str]:
    """Return `export NAME=value` and `unset NAME` lines for everything that a variable can mend, sorted by name."""
    set_: dict[str, str] = {}
    unset: set[str] = set()
    for finding in diagnosis.findings:
        unset |= set(finding.unset)
        set_.update(finding.set)
    lines = {name: values.unset(name) for name in unset}
    lines.update({name: values.export(name, value) for name, value in set_.items()})
    return [line for _, line in sorted(lines.items())]
