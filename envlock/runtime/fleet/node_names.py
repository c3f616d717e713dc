"""Lists of nodes and of ranks as Slurm writes them: `n[001-128,200]`. Pure.

Source: https://slurm.schedmd.com/srun.html#OPT_nodelist
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Tuple

NAME_LIMIT = 253  # characters of a host name: RFC 1035, section 2.3.4
IN_NAMES = "-_.@:+"  # beside letters and digits


def is_name(text: str) -> bool:
    """Return whether a text can be listed as a node: a line of what `--vetted` writes, and a word of a report."""
    return 0 < len(text) <= NAME_LIMIT and text.isascii() and all(char.isalnum() or char in IN_NAMES for char in text)


def node_list(names: Iterable[str]) -> str:
    """Return the names of nodes as one word, those that differ in their last number together."""
    import re

    with_number = re.compile(r"(.*?)([0-9]{1,18})([^0-9]*)")
    groups: Dict[Tuple[str, str, int], List[int]] = {}
    words: List[str] = []
    for name in sorted(set(names)):
        found = with_number.fullmatch(name)
        if found is None:
            words.append(name)
            continue
        start, digits, end = found.groups()
        width = len(digits) if digits[0] == "0" else 0
        groups.setdefault((start, end, width), []).append(int(digits))
    # a number without leading zeros belongs to those with zeros if it is as long: n[098-101]
    for (start, end, width), numbers in sorted(groups.items()):
        if width and (start, end, 0) in groups:
            loose = groups[(start, end, 0)]
            numbers += [number for number in loose if len(str(number)) == width]
            groups[(start, end, 0)] = [number for number in loose if len(str(number)) != width]
    for (start, end, width), numbers in groups.items():
        inside = ranges(numbers, width)
        if inside:
            words.append(f"{start}{inside}{end}" if inside.isdigit() else f"{start}[{inside}]{end}")
    return ",".join(sorted(words))


def ranges(numbers: Iterable[int], width: int = 0) -> str:
    """Return numbers with neighbours together: `0-3,7`; of at least `width` digits."""
    runs: List[List[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join([f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in runs])
