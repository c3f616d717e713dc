"""Lists of nodes and of ranks as Slurm writes them: `n[001-128,200]`. Pure.

Source: https://slurm.schedmd.com/srun.html#OPT_nodelist
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Dict, Iterable, List, Sequence, Tuple

NAME_LIMIT = 253  # characters of a host name: RFC 1035, section 2.3.4
IN_NAMES = "-_.@:+"  # beside letters and digits
MOST_PLACES = (
    4  # numbers of a name, from its end, that are tried: a name of 253 characters can have 126
)


def is_name(text: str) -> bool:
    """Return whether a text can be listed as a node: a line of what `--vetted` writes, and a word of a report."""
    return (
        0 < len(text) <= NAME_LIMIT
        and text.isascii()
        and all(char.isalnum() or char in IN_NAMES for char in text)
    )


def node_list(names: Iterable[str]) -> str:
    """Return the names of nodes as one word, those that differ in one number together."""
    return ",".join([word for word, _ in _words(names)])


def few(names: Collection[str], limit: int) -> str:
    """Return the names of nodes in at most `limit` characters, but at least one name, and how many more there are."""
    words = _words(names)
    text = ",".join([word for word, _ in words])
    if len(text) <= limit or len(set(names)) == 1:
        return text
    shown, left = _fitting(words, limit)
    if not shown:  # the first range alone is too long
        singles = sorted(set(names))
        shown, left = _fitting([(name, 1) for name in singles], limit)
        if not shown:
            shown, left = singles[:1], len(singles) - 1
    return f"{','.join(shown)} and {left:,} more"


def _fitting(words: Sequence[Tuple[str, int]], limit: int) -> Tuple[List[str], int]:
    """Return the first words that fit, and how many nodes the others stand for."""
    shown: List[str] = []
    length = 0
    for word, _ in words:
        length += len(word) + 1
        if length > limit:
            break
        shown.append(word)
    return shown, sum([number for _, number in words[len(shown) :]])


def _words(names: Iterable[str]) -> List[Tuple[str, int]]:
    """Return words for names of nodes, and how many each stands for: `ip-10-0-7-[12-90].ec2.internal` for 79."""
    import re

    numbers = re.compile("([0-9]+)")
    shapes: Dict[Tuple[str, ...], List[List[str]]] = {}
    for name in sorted(set(names)):
        parts = numbers.split(name)
        shapes.setdefault(tuple(parts[::2]), []).append(parts)
    return sorted([word for parts in shapes.values() for word in _folded(parts)])


def _folded(names: Sequence[List[str]]) -> List[Tuple[str, int]]:
    """Return words for names that differ in numbers only: the number that leaves the fewest words becomes ranges."""
    places = range(1, len(names[0]), 2)[-MOST_PLACES:]
    if not places:
        return [("".join(name), 1) for name in names]
    place = min(
        reversed(places),
        key=lambda each: len({(*name[:each], *name[each + 1 :]) for name in names}),
    )
    groups: Dict[Tuple[str, str, int], List[int]] = {}
    for name in names:
        digits = name[place]
        width = 0  # of leading zeros only: n7 and n12 are one range, n07 and n7 two names
        if digits[0] == "0" and digits != "0":
            width = len(digits)
        ends = "".join(name[:place]), "".join(name[place + 1 :])
        groups.setdefault((*ends, width), []).append(int(digits))
    # a number without leading zeros belongs to those with zeros if it is as long: n[098-101]
    for (start, end, width), found in sorted(groups.items()):
        if width and (start, end, 0) in groups:
            loose = groups[(start, end, 0)]
            found += [number for number in loose if len(str(number)) == width]
            groups[(start, end, 0)] = [number for number in loose if len(str(number)) != width]
    words = []
    for (start, end, width), found in groups.items():
        inside = ranges(found, width)
        if inside:
            words.append(
                (
                    f"{start}{inside}{end}" if inside.isdigit() else f"{start}[{inside}]{end}",
                    len(found),
                )
            )
    return words


def ranges(numbers: Iterable[int], width: int = 0) -> str:
    """Return numbers with neighbours together: `0-3,7`; of at least `width` digits."""
    runs: List[List[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join([f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in runs])
