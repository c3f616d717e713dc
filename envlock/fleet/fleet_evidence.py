"""The evidence in a report on ranks besides its findings: the groups of ranks, and the nodes that
can be used. Pure.
"""

from __future__ import annotations

from envlock.runtime.report import Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, TypedDict

    class _GroupDocument(TypedDict):
        root: str
        count: int
        ranks: str
        nodes: str

    class GroupDocument(_GroupDocument, total=False):
        """Ranks with one environment, as JSON; `differs` has the facts that differ although they
        may not.
        """

        differs: List[str]

    class FailureDocument(TypedDict):
        """Why ranks could not collect their facts, in their own words, with the number of these
        ranks.
        """

        reason: str
        count: int


class FleetEvidence(Evidence):
    """What is attached to a report on ranks.

    Attributes:
        size: how many ranks the job has.
        reported: how many have reported.
        groups: those with one environment, the largest first.
        majority: the root of the environment that more than half of the ranks have; None without
            such an environment.
        vetted: nodes that can be used; None in the digest for the ranks of a large job.
        missing: the ranks that have not reported, as ranges.
        failed: why ranks could not collect their facts.
        node_sets: the nodes of each node set that a message names, by its number.
    """

    __slots__ = (
        "failed",
        "groups",
        "majority",
        "missing",
        "node_sets",
        "reported",
        "size",
        "vetted",
    )

    def __init__(
        self,
        size: int,
        reported: int,
        groups: List[GroupDocument],
        majority: Optional[str],
        vetted: Optional[List[str]],
        missing: str,
    ) -> None:
        self.size = size
        self.reported = reported
        self.groups = groups
        self.majority = majority
        self.vetted = vetted
        self.missing = missing
        self.failed: List[FailureDocument] = []
        self.node_sets: Dict[str, str] = {}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> FleetEvidence:
        """Return the evidence that `to_json` wrote.

        Raises:
            KeyError: a field is missing.
        """
        fleet = document["fleet"]
        evidence = cls(
            fleet["size"],
            fleet["reported"],
            fleet["groups"],
            fleet["majority"],
            fleet["vetted"],
            fleet["missing"],
        )
        evidence.failed = fleet.get("failed", [])
        evidence.node_sets = fleet.get("node_sets", {})
        return evidence

    def to_json(self) -> Dict[str, Any]:
        """Return it as JSON values; empty fields that are not required are left out."""
        fleet: Dict[str, Any] = {
            "size": self.size,
            "reported": self.reported,
            "groups": self.groups,
            "majority": self.majority,
            "vetted": self.vetted,
            "missing": self.missing,
        }
        if self.failed:
            fleet["failed"] = self.failed
        if self.node_sets:
            fleet["node_sets"] = self.node_sets
        return {"fleet": fleet}
