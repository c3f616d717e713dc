"""The ranking that `envlock images` prints, as JSON values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from envlock.image.bases.candidate import SUBJECTS, Candidate, Value, explain_candidate
from envlock.image.bases.needs import BaseNeeds

LISTING_VERSION = 1


def describe_ranking(candidates: Iterable[Candidate], needs: BaseNeeds) -> dict[str, object]:
    """Return the base images for a lockfile, in their order."""
    wanted = asdict(needs)
    # The lockfile has the same.
    del wanted["libraries"]
    return {
        "listing_version": LISTING_VERSION,
        "wanted": wanted,
        "candidates": [_describe_candidate(candidate, needs) for candidate in candidates],
    }


def _describe_candidate(candidate: Candidate, needs: BaseNeeds) -> dict[str, object]:
    python_from = str(candidate.python_from) if candidate.python_from is not None else None
    archive = asdict(candidate.python_archive) if candidate.python_archive is not None else None
    return {
        "route": candidate.route,
        "image": str(candidate.reference),
        "exact": candidate.exact,
        "usable": candidate.usable,
        "holds": _describe_values({name: candidate.holds.get(name, Value()) for name in SUBJECTS}),
        "mismatches": list(candidate.mismatches),
        "python_from": python_from,
        "python_archive": archive,
        "reason": explain_candidate(candidate, needs),
    }


def _describe_values(holds: Mapping[str, Value]) -> dict[str, dict[str, object]]:
    """Return the versions that are known, by their subjects."""
    values = {}
    for name, value in holds.items():
        if value.version is not None:
            values[name] = value._asdict()
    return values
