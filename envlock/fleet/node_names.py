"""Lists of nodes and of ranks in the notation of Slurm: `n[001-128,200]`. Pure.

Source: https://slurm.schedmd.com/srun.html#OPT_nodelist
"""

from __future__ import annotations

import re

from envlock.runtime.device_ranges import format_ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Dict, Iterable, List, Sequence, Tuple

    Word = Tuple[str, int]
    """A node or a range of nodes as text, and the number of its nodes."""

NAME_LIMIT = 253
"""Characters of a host name: RFC 1035, section 2.3.4."""
IN_NAMES = "-_.@:+"
"""Characters that names have besides letters and digits."""
MOST_PLACES = 4
"""Numbers in a name, from its end, that are tried: a name of 253 characters can have 126."""


def is_name(text: str) -> bool:
    """Return whether a text can be listed as a node: a line of `--vetted`, and a word in a report."""
    if not 0 < len(text) <= NAME_LIMIT or not text.isascii():
        return False
    return all(char.isalnum() or char in IN_NAMES for char in text)


def format_nodes(names: Iterable[str]) -> str:
    """Return the names of nodes as one word; names that differ in one number are combined."""
    return ",".join([word for word, _ in _make_words(names)])


def shorten_nodes(names: Collection[str], limit: int) -> str:
    """Return the names of nodes in at most `limit` characters, and the number of those left out.

    At least one name is shown.
    """
    text = format_nodes(names)
    if len(text) <= limit or len(set(names)) == 1:
        return text
    shown, left = _fit_words(_make_words(names), limit)
    if not shown:  # the first range alone is too long
        singles = sorted(set(names))
        shown, left = _fit_words([(name, 1) for name in singles], limit)
        if not shown:
            shown, left = singles[:1], len(singles) - 1
    return f"{','.join(shown)} and {left:,} more"


def _fit_words(words: Sequence[Word], limit: int) -> Tuple[List[str], int]:
    """Return the first words that fit, and the number of nodes in the others."""
    shown: List[str] = []
    length = 0
    for word, _ in words:
        length += len(word) + 1
        if length > limit:
            break
        shown.append(word)
    return shown, sum([number for _, number in words[len(shown) :]])


def _make_words(names: Iterable[str]) -> List[Word]:
    """Return words for names of nodes: `ip-10-0-7-[12-90].ec2.internal` for 79 of them."""
    numbers = re.compile("([0-9]+)")
    # Names of one form have the same text between their numbers.
    shapes: Dict[Tuple[str, ...], List[List[str]]] = {}
    for name in sorted(set(names)):
        parts = numbers.split(name)
        shapes.setdefault(tuple(parts[::2]), []).append(parts)
    words: List[Word] = []
    for shape in shapes.values():
        words += _fold(shape)
    return sorted(words)


def _fold(names: Sequence[List[str]]) -> List[Word]:
    """Return words for names that differ in numbers only.

    The number for which the fewest words are left becomes ranges.
    """
    places = range(1, len(names[0]), 2)[-MOST_PLACES:]
    if not places:
        return [("".join(name), 1) for name in names]
    place = min(reversed(places), key=lambda place: _count_words(names, place))
    groups: Dict[Tuple[str, str, int], List[int]] = {}
    for name in names:
        digits = name[place]
        # Leading zeros only: n7 and n12 are one range, n07 and n7 two names.
        width = len(digits) if digits[0] == "0" and digits != "0" else 0
        ends = "".join(name[:place]), "".join(name[place + 1 :])
        groups.setdefault((*ends, width), []).append(int(digits))
    _move_to_padded(groups)
    words: List[Word] = []
    for (start, end, width), numbers in groups.items():
        inside = format_ranges(numbers, width)
        if inside.isdigit():
            words.append((f"{start}{inside}{end}", len(numbers)))
        elif inside:
            words.append((f"{start}[{inside}]{end}", len(numbers)))
    return words


def _count_words(names: Sequence[List[str]], place: int) -> int:
    """Return how many words are left if the numbers at a place become ranges."""
    return len({(*name[:place], *name[place + 1 :]) for name in names})


def _move_to_padded(groups: Dict[Tuple[str, str, int], List[int]]) -> None:
    """Move numbers without leading zeros to those with leading zeros of the same length:
    n[098-101].
    """
    for (start, end, width), numbers in sorted(groups.items()):
        if width and (start, end, 0) in groups:
            others = []
            for number in groups[(start, end, 0)]:
                if len(str(number)) == width:
                    numbers.append(number)
                else:
                    others.append(number)
            groups[(start, end, 0)] = others
