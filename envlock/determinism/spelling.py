"""Rule on names that are nearly those of known variables. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from envlock.data import determinism, variables
from envlock.determinism import values
from envlock.determinism.finding import Finding
from envlock.determinism.patient import Patient

SHORTEST = 9  # letters of a known name: below, two changes make another word of it


def misspelt(patient: Patient) -> Iterator[Finding]:
    """Yield variables that are set under a name that is nearly a known one."""
    table = determinism.variable_table()
    known = {row.name for row in variables()} | {row.name for row in table.variable if row.read_by != "nobody"}
    for name in sorted(patient.others or ()):
        meant = None if name in table.real else nearest(name, known)
        if meant is not None:
            yield Finding(
                "variable-misspelt",
                "warning",
                meant,
                f"{name!r} is set, a name that nobody reads",
                f"{meant} is one that is read: a name one or two letters off, in other case or with a blank has "
                "no effect, and nothing says so.",
                _fix(name, meant, patient),
                "comparison with the names of the tables",
            )


def _fix(name: str, meant: str, patient: Patient) -> str:
    """Return a line that gives the value to the name that was meant, unless that has one; words for an odd name."""
    if not (name.isascii() and name.isidentifier()):
        return f"unset the misspelt name, and set {meant} if it was meant"
    unset = values.unset(name)
    return unset if patient.variables.get(meant) is not None else f'export {meant}="${name}"; {unset}'


def nearest(name: str, known: set[str]) -> str | None:
    """Return the known name that was probably meant; None where none is near."""
    bare = _bare(name)
    same = sorted(each for each in known if _bare(each) == bare and each != name)
    if same:
        return same[0]
    near = [(distance(name, each), each) for each in known if len(each) >= SHORTEST and abs(len(each) - len(name)) <= 2]
    best = min(near, default=(3, ""))
    return best[1] if 0 < best[0] <= 2 and _is_ours(name, best[1]) else None


def _is_ours(name: str, meant: str) -> bool:
    """Return whether the first word is the same: FT_ENABLE_X is somebody else's TF_ENABLE_X only by accident."""
    return name[:2] == meant[:2]


def _bare(name: str) -> str:
    return "".join(filter(str.isalnum, name)).upper()


def distance(one: str, other: str) -> int:
    """Return how many letters must be added, left out, replaced or swapped with their neighbour."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            cost = min(last[j] + 1, row[-1] + 1, last[j - 1] + (a != b))
            if before and i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]
