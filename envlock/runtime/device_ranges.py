"""What is said alike of several GPUs, in one sentence: `gpu.devices.0-7.name`. Pure."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Match, Sequence

_DEVICE = re.compile(r"\b(gpu\.devices\.|GPU )([0-9]+)\b(?=[.: (]|$)")
"""A GPU by its index, as facts and as sentences name it."""
HOLE = "\0"
"""Stands for the index; no text of a report has this character, as `clean` shows it otherwise."""


def merge_devices(messages: Sequence[str]) -> List[str]:
    """Return messages in their order, those that differ only by the index of one GPU as one.

    A machine has up to 16 equal GPUs, and what differs in one differs in all.
    """
    indexes: Dict[str, List[int]] = {}
    for message in messages:
        match = _DEVICE.search(message)
        if match is None:
            indexes.setdefault(message, [])
            continue
        key = _replace_index(message, match, HOLE)
        indexes.setdefault(key, []).append(int(match[2]))
    merged = []
    for key, numbers in indexes.items():
        text = key.replace(f"GPU {HOLE}", f"GPUs {HOLE}", 1) if len(numbers) > 1 else key
        merged.append(text.replace(HOLE, format_ranges(numbers)))
    return merged


def _replace_index(message: str, match: Match[str], index: str) -> str:
    """Return a message with another index in each place that names the GPU of a match."""
    return re.sub(rf"\b{re.escape(match[1])}{match[2]}\b", lambda _: match[1] + index, message)


def format_ranges(numbers: Iterable[int], width: int = 0) -> str:
    """Return numbers with consecutive ones combined: `0-3,7`; each with at least `width` digits."""
    runs: List[List[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = []
    for first, last in runs:
        word = f"{first:0{width}}"
        if last != first:
            word += f"-{last:0{width}}"
        words.append(word)
    return ",".join(words)
