"""What a module returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from refresh.rows import Asked


@dataclass
class Found:
    """What a source says about one table.

    Attributes:
        lists: the rows, by list.
        evidence: what the sources of these rows mean.
        through: the newest version that the source has; None where it does not tell, or is not what the table is about.
        decide: what a person must decide, as sentences.
        wrong: what contradicts the table in another way than a row can.
        moves_horizon: whether the whole table was checked by this.
    """

    lists: list[Asked] = field(default_factory=list)
    evidence: dict[str, str] = field(default_factory=dict)
    through: str | None = None
    decide: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    moves_horizon: bool = True
