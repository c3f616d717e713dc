"""From the operations that differ to the likeliest cause, by the table's signs. Pure: values in, a ranking out.

Naive Bayes: each cause expects signs (an operation differs, a group died, a version is another), some always and some
often; a sign that no cause expects speaks against it. The shares add up to one over the causes of the table, so they
say which of the known causes it is likeliest to be, and no more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from envlock.data.canary import Cause

ALWAYS, OFTEN, NEVER = 0.97, 0.5, 0.015
"""How probable a sign is where the cause shows it always, often, or was never seen to show it."""

LEAST = 0.005  # a cause below this share is not worth a word


@dataclass(frozen=True)
class Suspect:
    """A cause, and its share among the known causes (0 to 1)."""

    cause: Cause
    share: float

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        row = self.cause
        return {
            "id": row.id,
            "title": row.title,
            "likelihood": round(self.share, 3),
            "why": row.why,
            "fix": row.fix,
            "sources": row.sources,
        }


def suspects(signs: Collection[str], looked_at: Collection[str], causes: Sequence[Cause]) -> list[Suspect]:
    """Return the causes that explain the signs, likeliest first; none where there is no sign.

    Args:
        signs: what was seen: names of operations that differ, `ended:GROUP`, `version:NAME`, `coarse:GROUP`.
        looked_at: all signs that could have been seen: an operation that was not compared says nothing.
        causes: the table's.
    """
    if not signs:
        return []
    weights = [_fit(cause, signs, looked_at) for cause in causes]
    best = max(weights)
    total = sum(math.exp(weight - best) for weight in weights)
    found = [Suspect(cause, math.exp(weight - best) / total) for cause, weight in zip(causes, weights, strict=True)]
    ranked = sorted(found, key=lambda each: (-each.share, each.cause.id))
    return [each for each in ranked if each.share >= LEAST]


def _fit(cause: Cause, signs: Collection[str], looked_at: Collection[str]) -> float:
    return sum(_log(_probability(cause, sign), seen=sign in signs) for sign in looked_at)


def _probability(cause: Cause, sign: str) -> float:
    if sign in cause.always:
        return ALWAYS
    return OFTEN if sign in cause.often else NEVER


def _log(probability: float, *, seen: bool) -> float:
    return math.log(probability if seen else 1 - probability)


def unexplained(ranked: Sequence[Suspect], signs: Collection[str]) -> list[str]:
    """Return the operations that differ although the likeliest cause was never seen to change them, sorted."""
    if not ranked:
        return []
    cause = ranked[0].cause
    return sorted(sign for sign in signs if ":" not in sign and sign not in {*cause.always, *cause.often})


def sentence(ranked: Sequence[Suspect], left: Sequence[str] = ()) -> str:
    """Return the likeliest cause with its share, the runner-up, and what is `left` unexplained."""
    if not ranked:
        return "No cause of the table explains it."
    first = f"Likeliest of the known causes: {ranked[0].cause.title} ({_percent(ranked[0].share)})"
    then = f"next: {ranked[1].cause.title} ({_percent(ranked[1].share)})" if len(ranked) > 1 else "no other comes near"
    more = f" There is more to it, as it was not seen to change {', '.join(left)}." if left else ""
    return f"{first}; {then}.{more}"


def _percent(share: float) -> str:
    return "more than 99 %" if share > 0.99 else f"{share * 100:.0f} %" if share >= 0.01 else "less than 1 %"
