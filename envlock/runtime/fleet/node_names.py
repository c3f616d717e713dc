"""Lists of nodes and of ranks as Slurm writes them: `n[001-128,200]`. Pure.

Source: https://slurm.schedmd.com/srun.html#OPT_nodelist
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Tuple


def node_list(names: Iterable[str]) -> str:
    """Return the names of nodes as one word, those that differ in their last number together."""
    groups: Dict[Tuple[str, str, int], List[int]] = {}
    plain: Dict[str, None] = {}
    for name in sorted(set(names)):
        start, digits, end = _split(name)
        if digits and len(digits) < 19:
            width = len(digits) if digits[0] == "0" else 0
            groups.setdefault((start, end, width), []).append(int(digits))
        else:
            plain[name] = None
    # a number without leading zeros belongs to those with zeros if it is as long: n[098-101]
    for (start, end, width), numbers in sorted(groups.items()):
        if width and (start, end, 0) in groups:
            loose = groups[(start, end, 0)]
            numbers += [number for number in loose if len(str(number)) == width]
            groups[(start, end, 0)] = [number for number in loose if len(str(number)) != width]
    words = [_word(*key, numbers) for key, numbers in groups.items() if numbers]
    return ",".join(sorted([*plain, *words]))


def ranges(numbers: Iterable[int], width: int = 0) -> str:
    """Return numbers with neighbours together: `0-3,7`."""
    runs: List[List[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join([_padded(a, width) if a == b else f"{_padded(a, width)}-{_padded(b, width)}" for a, b in runs])


def _word(start: str, end: str, width: int, numbers: List[int]) -> str:
    inside = ranges(numbers, width)
    return f"{start}{inside}{end}" if inside.isdigit() else f"{start}[{inside}]{end}"


def _padded(number: int, width: int) -> str:
    return str(number).zfill(width)


def _split(name: str) -> Tuple[str, str, str]:
    """Return what stands before the last number of a name, the number, and what follows."""
    stop = len(name)
    while stop and not _is_digit(name[stop - 1]):
        stop -= 1
    start = stop
    while start and _is_digit(name[start - 1]):
        start -= 1
    return name[:start], name[start:stop], name[stop:]


def _is_digit(char: str) -> bool:
    return char.isascii() and char.isdigit()
