"""A policy: the rule for each path, and why that path matters.

The rows come from `envlock/data/policy.toml`.
"""

from __future__ import annotations

from envlock.runtime.comparison_rules import RULES
from envlock.runtime.exemptions import ENVLOCK, HELD, OVERRIDE, POLICY
from envlock.runtime.exemptions import TOOLING as OWN_TOOLING
from envlock.runtime.facts import matches
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, TypedDict

    TableRow = Dict[str, Any]
    """A row of the table: a path pattern, the rule of each tier, and why the path matters."""

    RowsByStep = Dict[str, List[TableRow]]
    """Rows by the second step of their pattern."""

    class Row(TypedDict):
        """The rule of a policy for one path, with its reasons."""

        rule: str
        why: str
        fix: str
        source: str
        weight: int


DEFAULT = "strict"
TOOLING = (
    "Only envlock itself requires this package, so nothing that a program computes depends on it."
)
KEPT = (
    " (This project's rule to ignore it does not apply: only a policy's own rows exempt TensorFlow, "
    "Keras, JAX, PyTorch, NumPy and CUDA.)"
)
REQUIRED = (
    "What computes requires this package, so it was installed at the capture, too: a lockfile without "
    "it was edited."
)
LIBRARIES = ("jax", "torch")
"""The sections about a library that computes only where a program imports it, called as its package."""
UNUSED = "No entry point of this project imports this package (`project.entry` of the lockfile)."


def names() -> List[str]:
    """Return the names of the policies, the strictest first."""
    return list(table("policies"))


class Policy:
    """One tier with the overrides of a project.

    Args:
        name: a tier of the table.
        overrides: path pattern -> rule, which go before the rows of the tier.
        tooling: the packages that only envlock requires here; unless they are in `held`, they may
            differ.
        own_tooling: those that the lockfile marks as required only by envlock.
        required: the packages that what computes requires here: they were there at the capture, too,
            so none of them counts as added since.
        held: why each package matters; others may differ. None if all packages matter.

    Raises:
        ValueError: there is no such tier or rule, or a pattern is malformed; the message lists the
            valid ones.
    """

    def __init__(
        self,
        name: str = DEFAULT,
        overrides: Optional[Mapping[str, str]] = None,
        held: Optional[Mapping[str, str]] = None,
        tooling: Iterable[str] = (),
        own_tooling: Iterable[str] = (),
        required: Iterable[str] = (),
    ) -> None:
        self.name = name
        self._held = held
        self._tooling = frozenset([*tooling, *own_tooling])
        self._own_tooling = frozenset(own_tooling)
        self._required = frozenset(required)
        self.overrides: Dict[str, str] = dict(overrides or {})
        if name not in names():
            choices = ", ".join(names())
            raise ValueError(f"unknown policy `{_shorten(name)}` (choose from: {choices})")
        for pattern, rule in self.overrides.items():
            _check_override(pattern, rule)
        self._column = name.replace("-", "_")

    def _find_override(self, path: str) -> Optional[str]:
        """Return the rule of the most specific pattern that matches: the one with the fewest
        wildcards, then the longest.
        """
        fitting = [pattern for pattern in self.overrides if matches(pattern, path)]
        if not fitting:
            return None
        return self.overrides[max(fitting, key=_specificity)]

    def describe_need(self, path: str) -> Optional[str]:
        """Return why the package of a path matters to entry points; None if unknown."""
        package = get_package(path)
        if self._held is None or package is None:
            return None
        return self._held.get(package)

    def _explain_exemption(self, path: str) -> Optional[str]:
        """Return why the package of a path may differ; None if it may not, or the path is not of a
        package.
        """
        package = get_package(path)
        if package is None or self.describe_need(path) is not None:
            return None
        if is_protected(path) and path.partition(".")[0] not in LIBRARIES:
            return None
        if self._held is not None:
            return UNUSED
        if package in self._tooling:
            return TOOLING
        return None

    def row(self, path: str) -> Row:
        """Return the row for a path: with the rule of an override, else the first row that matches.

        A package that no entry point imports, or that only envlock requires, may differ unless an
        override names it. TensorFlow and what computes beside it may differ only by the tier's own
        row.
        """
        row = _find_row(path)
        tier: str = row[self._column]
        rule, why = tier, row["why"]
        override = self._find_override(path)
        if override is not None:
            if override == "ignore" and tier != "ignore" and is_protected(path):
                why += KEPT
            else:
                rule = override
                why += f" (This project overrides the rule of this path: {override}.)"
        elif tier != "ignore":
            exemption = self._explain_exemption(path)
            if exemption is not None:
                rule, why = "ignore", exemption
            elif tier == "superset" and get_package(path) in self._required:
                rule, why = "exact", REQUIRED
        return {
            "rule": rule,
            "why": why,
            "fix": row["fix"],
            "source": row["source"],
            "weight": row["weight"],
        }

    def list_witnesses(self, path: str) -> List[str]:
        """Return the operations of the canary whose equal bits let a path differ; none where nothing does."""
        witnesses: List[str] = _find_row(path).get("witness", [])
        return witnesses

    def tier_rule(self, path: str) -> str:
        """Return the rule for a path in the tier's own row, without the overrides of the project."""
        rule: str = _find_row(path)[self._column]
        return rule

    def find_owner(self, path: str) -> str:
        """Return who lets a path differ: an override, what the lockfile says of its package, or the tier's own row."""
        if self._find_override(path) is not None:
            return OVERRIDE
        if self.tier_rule(path) == "ignore" or self._explain_exemption(path) is None:
            return POLICY
        if self._held is not None:
            return HELD
        if get_package(path) in self._own_tooling:
            return OWN_TOOLING
        return ENVLOCK


def _check_override(pattern: str, rule: str) -> None:
    """Raise ValueError if there is no such rule, or the pattern is malformed."""
    if rule not in RULES:
        raise ValueError(f"unknown rule `{_shorten(rule)}` (choose from: {', '.join(RULES)})")
    steps = pattern.split(".")
    if not all(map(_is_step, steps)) or "**" in steps[:-1]:
        raise ValueError(f"invalid path pattern `{_shorten(pattern)}` (example: `cpu.*`)")


def is_protected(path: str) -> bool:
    """Return whether a path belongs to software that computes, which no rule of a lockfile or a
    project exempts.
    """
    return f"{path}.".startswith(tuple(table("protected")))


def get_package(path: str) -> Optional[str]:
    """Return the package that a path is about; None if it is about no single package."""
    section, _, rest = path.partition(".")
    if section == "loaded":  # the files of a package
        section, _, rest = rest.partition(".")
    elif section in LIBRARIES:
        return section
    if section != "packages" or not rest:
        return None
    return rest.partition(".")[0]


def can_meet(pattern: str, path: str) -> bool:
    """Return whether two patterns can match the same path, or one can match a node on the way to
    the other.
    """
    left, right = pattern.split("."), path.split(".")
    if left[-1] == "**":
        left = left[:-1]
    if len(left) > len(right):
        return False
    pairs = zip(left, right)  # noqa: B905 (up to the end of the shorter one)
    return all(one == other or "*" in (one, other) for one, other in pairs)


def _find_row(path: str) -> TableRow:
    """Return the row with exactly this path, else the first one of its section whose pattern
    matches.
    """
    rows, patterns = load_index()
    row = rows.get(path)
    if row is None:
        section, _, rest = path.partition(".")
        names = patterns.get(section, {ANY: []})
        fitting = names.get(rest.partition(".")[0], names[ANY]) + patterns["**"][ANY]
        row = next(row for row in fitting if matches(row["path"], path))
    return row


def find_effect(path: str) -> Optional[str]:
    """Return the fact that decides in a path's place where both sides have it, or None."""
    effect: Optional[str] = _find_row(path).get("effect")
    return effect


def read_value(path: str, value: Optional[str]) -> Optional[str]:
    """Return what the reader of a variable takes a value for: the first of those that mean the same to it, or None
    for what leaving it unset means.
    """
    groups: List[List[Optional[str]]] = _find_row(path).get("same", [])
    return next((group[0] for group in groups if value in group), value)


def find_cause(path: str) -> Optional[str]:
    """Return the path in whose place a fact decides, or None."""
    if not path.startswith(("named.", "python.hash")):
        return None
    return next((row["path"] for row in table("policy") if row.get("effect") == path), None)


def load_index() -> Tuple[Dict[str, TableRow], Dict[str, RowsByStep]]:
    """Return the rows by path, and the patterns by section and second step.

    A lockfile has thousands of paths: without this index, each would be compared with every
    pattern.
    """
    if not _index:
        # Read only if something differs: it is the largest table.
        rows: List[TableRow] = table("policy")
        sections: Dict[str, List[TableRow]] = {}
        for row in rows:
            if "*" in row["path"]:
                sections.setdefault(row["path"].partition(".")[0], []).append(row)
        patterns = {section: _group_by_second_step(group) for section, group in sections.items()}
        _index.append(({row["path"]: row for row in rows}, patterns))
    return _index[0]


def _group_by_second_step(rows: Sequence[TableRow]) -> RowsByStep:
    """Return the rows that can match a path, by its second step and in their order; those under `*`
    match any step.
    """
    steps = []
    for row in rows:
        second = row["path"].split(".")[1:2] or [ANY]
        steps.append(second[0].replace("**", ANY))
    groups: RowsByStep = {step: [] for step in {ANY, *steps}}
    for row, step in zip(rows, steps):  # noqa: B905 (Python 3.8 has no `strict`)
        for group in groups:
            if step in (group, ANY):
                groups[group].append(row)
    return groups


ANY = "*"
_index: List[Tuple[Dict[str, TableRow], Dict[str, RowsByStep]]] = []


def _specificity(pattern: str) -> Tuple[int, int, str]:
    steps = pattern.split(".")
    return -(steps.count("*") + steps.count("**")), len(steps), pattern


def _is_step(text: str) -> bool:
    return text in ("*", "**") or (text.isascii() and text.translate(_STEP_SIGNS).isalnum())


_STEP_SIGNS = dict.fromkeys(map(ord, "_-"))


def _shorten(text: str) -> str:
    return ascii(text)[1:-1][:60]
