"""A policy: which rule each path has, and why that path matters. The rows come from `envlock/data/policy.toml`."""

from __future__ import annotations

from envlock.runtime.rules import RULES
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

DEFAULT = "strict"


def names() -> List[str]:
    """Return the policies there are, strictest first."""
    return list(table("policies"))


class Policy:
    """One tier, and the overrides of a project.

    Args:
        name: a tier of the table.
        overrides: path pattern -> rule, looked at before the tier's own rows.

    Raises:
        ValueError: there is no such tier or rule, or a pattern is malformed; the message says which there are.
    """

    def __init__(self, name: str = DEFAULT, overrides: Optional[Mapping[str, str]] = None) -> None:
        self.name = name
        self.overrides: Dict[str, str] = dict(overrides or {})
        known = names()
        if name not in known:
            raise ValueError(f"there is no policy `{_short(name)}` (there are: {', '.join(known)})")
        for pattern, rule in self.overrides.items():
            if rule not in RULES:
                raise ValueError(f"there is no rule `{_short(rule)}` (there are: {', '.join(RULES)})")
            if not all(map(_is_step, pattern.split("."))):
                raise ValueError(f"`{_short(pattern)}` is no path pattern, such as `cpu.*`")
        self._column = name.replace("-", "_")

    def row(self, path: str) -> Dict[str, Any]:
        """Return {rule, why, fix, source, weight} of a path: an override's rule, else the first row that fits."""
        rows: List[Dict[str, Any]] = table("policy")  # read only where something differs: it is the largest table
        row = next(row for row in rows if matches(row["path"], path))
        told = {key: row[key] for key in ("why", "fix", "source", "weight")}
        rule = next((rule for pattern, rule in self.overrides.items() if matches(pattern, path)), None)
        if rule is None:
            return {"rule": row[self._column], **told}
        told["why"] += f" (This project holds the path by a rule of its own: {rule}.)"
        return {"rule": rule, **told}


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern names a path: `*` is one name, a final `**` is the node itself and all below it."""
    wanted, given = pattern.split("."), path.split(".")
    if wanted[-1] == "**":
        wanted = wanted[:-1]
        given = given[: len(wanted)]
    return len(wanted) == len(given) and all(want in ("*", name) for want, name in zip(wanted, given))  # noqa: B905 (Python 3.8 has no `strict`)


def _is_step(text: str) -> bool:
    return (text.isascii() and text.translate(_STEP_SIGNS).isalnum()) or (bool(text) and not text.strip("*_-"))


_STEP_SIGNS = {ord(char): None for char in "_*-"}


def _short(text: str) -> str:
    return ascii(text)[1:-1][:60]
