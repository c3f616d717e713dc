"""What a misspelt pattern of facts was probably to be."""

from __future__ import annotations

from difflib import get_close_matches

from envlock.runtime.policies import can_meet, load_index


def find_nearest_pattern(pattern: str) -> str | None:
    """Return the most similar pattern that matches something a lockfile can have; the pattern
    itself if it matches something.
    """
    rows, patterns = load_index()
    named = [path for path in rows if not path.endswith("**")]
    # Sections whose names are free, numerics and machines: any step below them fits.
    free_sections = set(patterns)
    for path in named:
        free_sections.discard(path.partition(".")[0])
    if pattern.partition(".")[0] in free_sections:
        return pattern
    if any(can_meet(pattern, path) for path in named):
        return pattern
    candidates = [_fill_wildcards(path, pattern) for path in [*named, *sorted(free_sections)]]
    near: list[str] = get_close_matches(pattern, dict.fromkeys(candidates), n=1, cutoff=0.5)
    if not near:
        return None
    return near[0]


def _fill_wildcards(path: str, pattern: str) -> str:
    """Return a row's path with the pattern's own names in place of its wildcards, and with its end."""
    steps = pattern.split(".")
    filled = path.split(".")
    for place, name in enumerate(filled):
        if name == "*" and place < len(steps):
            filled[place] = steps[place]
    if steps[-1] == "**":
        filled = [*filled[: len(steps) - 1], "**"]
    return ".".join(filled)
