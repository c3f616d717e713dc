"""A policy: which rule each path has, and why that path matters. The rows come from `envlock/data/policy.toml`."""

from __future__ import annotations

from envlock.runtime.rules import RULES
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

    Row = Dict[str, Any]

DEFAULT = "strict"
TOOLING = (
    "Only envlock itself requires this package, so nothing that a program computes depends on it."
)
KEPT = (
    " (This project's rule to ignore it does not apply: only a policy's own rows exempt TensorFlow, Keras, NumPy and "
    "CUDA.)"
)
UNUSED = "No entry point of this project imports this package (`project.entry` of the lockfile)."


def names() -> List[str]:
    """Return the policies there are, strictest first."""
    return list(table("policies"))


class Policy:
    """One tier, and the overrides of a project.

    Args:
        name: a tier of the table.
        overrides: path pattern -> rule, looked at before the tier's own rows.
        tooling: the packages that only envlock requires here; unless they are in `held`, they may differ.
        own_tooling: those that the lockfile says so of.
        held: how each package is known to matter; others may differ. None where all packages are held.

    Raises:
        ValueError: there is no such tier or rule, or a pattern is malformed; the message says which there are.
    """

    def __init__(
        self,
        name: str = DEFAULT,
        overrides: Optional[Mapping[str, str]] = None,
        held: Optional[Mapping[str, str]] = None,
        tooling: Iterable[str] = (),
        own_tooling: Iterable[str] = (),
    ) -> None:
        self.name = name
        self._held = None if held is None else dict(held)
        self._tooling = frozenset([*tooling, *own_tooling])
        self._own_tooling = frozenset(own_tooling)
        self.overrides: Dict[str, str] = dict(overrides or {})
        known = names()
        if name not in known:
            raise ValueError(f"unknown policy `{_short(name)}` (choose from: {', '.join(known)})")
        for pattern, rule in self.overrides.items():
            if rule not in RULES:
                raise ValueError(f"unknown rule `{_short(rule)}` (choose from: {', '.join(RULES)})")
            steps = pattern.split(".")
            if not all(map(_is_step, steps)) or "**" in steps[:-1]:
                raise ValueError(f"invalid path pattern `{_short(pattern)}` (example: `cpu.*`)")
        self._column = name.replace("-", "_")

    def _override(self, path: str) -> Optional[str]:
        """Return the rule of the most specific pattern that fits: the fewest wildcards, then the longest."""
        fitting = [pattern for pattern in self.overrides if matches(pattern, path)]
        return self.overrides[max(fitting, key=_specificity)] if fitting else None

    def known(self, path: str) -> Optional[str]:
        """Return how the package of a path is known to matter to entry points; None where that was not asked."""
        package = _package(path)
        return None if self._held is None or package is None else self._held.get(package)

    def _unneeded(self, path: str) -> Optional[str]:
        """Return why the package of a path may differ; None where it may not, or the path is of no package."""
        package = _package(path)
        if package is None or self.known(path) is not None or is_protected(path):
            return None
        if self._held is not None:
            return UNUSED
        return TOOLING if package in self._tooling else None

    def row(self, path: str) -> Dict[str, Any]:
        """Return {rule, why, fix, source, weight} of a path: an override's rule, else the first row that fits.

        A package that no entry point imports, or that only envlock requires, may differ, unless an override names it.
        What computes may differ only by the tier's own row.
        """
        row = _row(path)
        told = {key: row[key] for key in ("why", "fix", "source", "weight")}
        tier: str = row[self._column]
        rule = self._override(path)
        if rule == "ignore" != tier and is_protected(path):
            return {"rule": tier, **told, "why": told["why"] + KEPT}
        if rule is not None:
            told["why"] += f" (This project overrides the rule of this path: {rule}.)"
            return {"rule": rule, **told}
        unneeded = None if tier == "ignore" else self._unneeded(path)
        if unneeded is not None:
            return {"rule": "ignore", **told, "why": unneeded}
        return {"rule": tier, **told}

    def tier_rule(self, path: str) -> str:
        """Return the rule of a path by the tier's own row, whatever the project says."""
        rule: str = _row(path)[self._column]
        return rule

    def is_exempt_by_lockfile(self, path: str) -> bool:
        """Return whether a package may differ because the lockfile says that no program, or only envlock, needs it."""
        if (
            self._override(path) is not None
            or _row(path)[self._column] == "ignore"
            or self._unneeded(path) is None
        ):
            return False
        return self._held is not None or _package(path) in self._own_tooling


def is_protected(path: str) -> bool:
    """Return whether a path is of what computes, which no rule of a lockfile or a project exempts."""
    return f"{path}.".startswith(tuple(table("protected")))


def _package(path: str) -> Optional[str]:
    """Return the package that a path is of; None where it is of none, or of all."""
    section, _, rest = path.partition(".")
    return rest.partition(".")[0] if rest and section == "packages" else None


def nearest(pattern: str) -> Optional[str]:
    """Return the pattern like this one that fits what a lock can hold; `pattern` itself where it fits something."""
    rows, patterns = _indexed()
    named = [path for path in rows if not path.endswith("**")]
    sections = set(patterns) - {
        path.partition(".")[0] for path in named
    }  # of free names: numerics and machines
    if pattern.partition(".")[0] in sections or any(can_meet(pattern, path) for path in named):
        return pattern
    from difflib import get_close_matches

    near = {_filled(path, pattern): None for path in [*named, *sorted(sections)]}
    return next(iter(get_close_matches(pattern, near, cutoff=0.5)), None)


def can_meet(pattern: str, path: str) -> bool:
    """Return whether two patterns can name one path, or a node on the way to it."""
    left, right = pattern.split("."), path.split(".")
    if left[-1] == "**":
        left = left[:-1]
    pairs = zip(left, right)  # noqa: B905 (as long as the shorter one)
    return len(left) <= len(right) and all(
        "*" in (one, other) or one == other for one, other in pairs
    )


def _filled(path: str, pattern: str) -> str:
    """Return a row's path with the pattern's own names for its wildcards, and with its end."""
    given = pattern.split(".")
    names = [
        given[at] if name == "*" and at < len(given) else name
        for at, name in enumerate(path.split("."))
    ]
    return ".".join([*names[: len(given) - 1], "**"] if given[-1] == "**" else names)


def _row(path: str) -> Dict[str, Any]:
    """Return the table's row: the one that names the path itself, else the first of its section whose pattern fits."""
    rows, patterns = _indexed()
    row = rows.get(path)
    if row is None:
        section, _, rest = path.partition(".")
        names = patterns.get(section, {ANY: []})
        fitting = names.get(rest.partition(".")[0], names[ANY]) + patterns["**"][ANY]
        row = next(row for row in fitting if matches(row["path"], path))
    return row


def _indexed() -> Tuple[Dict[str, Row], Dict[str, Dict[str, List[Row]]]]:
    """Return the rows by path, and the patterns by section and second step, too; a lock has thousands of paths."""
    if not _index:
        rows: List[Dict[str, Any]] = table(
            "policy"
        )  # read only where something differs: it is the largest table
        sections: Dict[str, List[Row]] = {}
        for row in rows:
            if "*" in row["path"]:
                sections.setdefault(row["path"].partition(".")[0], []).append(row)
        patterns = {section: _by_second_step(found) for section, found in sections.items()}
        _index.append(({row["path"]: row for row in rows}, patterns))
    return _index[0]


def _by_second_step(rows: Sequence[Row]) -> Dict[str, List[Row]]:
    """Return the rows that can fit a path by its second step, in their order; under `*` those for any other step."""
    steps = [(row["path"].split(".")[1:2] or [ANY])[0].replace("**", ANY) for row in rows]
    return {
        step: [row for row, other in zip(rows, steps) if other in (step, ANY)]  # noqa: B905 (Python 3.8 has no `strict`)
        for step in {ANY, *steps}
    }


ANY = "*"
_index: List[Tuple[Dict[str, Row], Dict[str, Dict[str, List[Row]]]]] = []


def _specificity(pattern: str) -> Tuple[int, int, str]:
    steps = pattern.split(".")
    return -sum(step in ("*", "**") for step in steps), len(steps), pattern


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern names a path: `*` is one name, a final `**` is the node itself and all below it."""
    wanted, given = pattern.split("."), path.split(".")
    if wanted[-1] == "**":
        wanted = wanted[:-1]
        given = given[: len(wanted)]
    return len(wanted) == len(given) and all(
        want in ("*", name)
        for want, name in zip(wanted, given)  # noqa: B905 (Python 3.8 has no `strict`)
    )


def _is_step(text: str) -> bool:
    return text in ("*", "**") or (text.isascii() and text.translate(_STEP_SIGNS).isalnum())


_STEP_SIGNS = {ord(char): None for char in "_-"}


def _short(text: str) -> str:
    return ascii(text)[1:-1][:60]
