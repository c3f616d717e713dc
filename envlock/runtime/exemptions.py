"""Exemptions: what lets differences pass, by its owner, and how many.

The owners come from `envlock/data/policy.toml`.
"""

from __future__ import annotations

from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Mapping, Optional, Sequence

OVERRIDE = "override"
HELD = "held"
TOOLING = "tooling"
PROJECT = "project.name"
VARIABLE = "variable"
PROOF = "proof"
MACHINE = "machine"
ENVLOCK = "envlock"
POLICY = "policy"


class Exemption:
    """Differences that pass by one owner.

    Attributes:
        owner: who lets them pass, a row of the table.
        count: how many.
    """

    __slots__ = ("count", "owner")

    def __init__(self, owner: str, count: int) -> None:
        if owner not in table("exemptions"):
            raise ValueError("no owner of exemptions")
        self.owner = owner
        self.count = count

    @property
    def is_forbidden(self) -> bool:
        """Whether `--no-overrides` forbids it."""
        return bool(table("exemptions")[self.owner]["forbidden"])

    @property
    def is_in_headline(self) -> bool:
        """Whether the headline of a report says it."""
        return bool(table("exemptions")[self.owner]["headline"])

    def __str__(self) -> str:
        row = table("exemptions")[self.owner]
        noun = row["noun"]
        if self.count != 1:
            noun += "s"
        return f"{self.count:,} {noun}{row['after']}"

    def to_json(self) -> Dict[str, object]:
        """Return JSON values."""
        return {"owner": self.owner, "count": self.count, "forbidden": self.is_forbidden}

    @classmethod
    def read(cls, document: Mapping[str, object]) -> Exemption:
        """Return what `to_json` wrote.

        Raises:
            ValueError, KeyError: it is not one.
        """
        count = document["count"]
        if type(count) is not int:
            raise ValueError("not a count")
        return cls(str(document["owner"]), count)


def list_exemptions(counts: Mapping[str, int]) -> List[Exemption]:
    """Return an exemption for each owner that has let something pass, in the order of the table."""
    if not any(counts.values()):
        return []
    return [Exemption(owner, counts[owner]) for owner in table("exemptions") if counts.get(owner)]


def describe_judge(policy: Optional[str], overrides: int, exempt: Sequence[Exemption]) -> str:
    """Return the policy and everything else that accepts differences, as a phrase that follows a
    verb.
    """
    if policy is None:
        return ""
    everything = [*list_exemptions({OVERRIDE: overrides}), *exempt]
    besides = [str(each) for each in everything if each.is_in_headline]
    if not besides:
        return f" under policy {policy}"
    return f" under policy {policy}, with {' and '.join(besides)}"
