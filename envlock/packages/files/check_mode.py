"""Which permissions are not as an installer leaves them. Pure.

A RECORD holds no modes. But an installer gives all files of a package the same read and write bits (those that its
umask leaves), and x, if at all, to everyone or to those who may read; so a file that differs from the rest of its
package was changed since. Whether a *library or module* has x differs from wheel to wheel and means nothing: that is
not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

SPECIAL = 0o7000  # setuid, setgid, sticky
ENOUGH_ALIKE = 20  # files of a kind without x, so that one with x is odd: wheels themselves have a few such


class Judged(NamedTuple):
    """A file as far as its mode is concerned.

    Attributes:
        program: "a program" or "a script" where it must be one that can be run.
        may_run: whether x on it is nothing to wonder at: a script, a library, a program.
        generated: whether an installer wrote it (an entry point), which gives it x and r for everyone.
    """

    path: str
    package: str
    mode: int
    suffix: str
    program: str | None
    may_run: bool
    generated: bool


class Verdict(NamedTuple):
    """What is wrong with a file's mode; `expected` is None where there is no one right mode."""

    path: str
    mode: int
    expected: int | None
    what: str
    sure: bool


def judge(files: Iterable[Judged]) -> list[Verdict]:
    """Return the files whose mode is not that of an installed file."""
    listed = list(files)
    everywhere = Counter(_rw(each.mode) for each in listed)
    of_package: dict[str, Counter[int]] = {}
    kinds: Counter[tuple[str, str, bool]] = Counter()
    for each in listed:
        of_package.setdefault(each.package, Counter())[_rw(each.mode)] += 1
        kinds[each.package, each.suffix, bool(each.mode & 0o111)] += 1
    usual = {name: _usual(count, everywhere) for name, count in of_package.items()}
    found = [_first_wrong(each, usual[each.package]) or _odd(each, kinds) for each in listed]
    return [verdict for verdict in found if verdict is not None]


def writable_by_anyone(files: Iterable[Judged]) -> list[str]:
    """Return the packages of which most files may be written by anyone: their installer's umask was none."""
    of_package: dict[str, list[bool]] = {}
    for each in files:
        of_package.setdefault(each.package, []).append(bool(each.mode & 0o002))
    return sorted(name for name, open_to_all in of_package.items() if sum(open_to_all) * 2 > len(open_to_all))


def _rw(mode: int) -> int:
    return mode & 0o666


def _usual(count: Counter[int], everywhere: Counter[int]) -> int:
    """Return the read and write bits of most of a package's files; where two are as many, those of the environment."""
    return max(count, key=lambda bits: (bool(bits & 0o400), count[bits], everywhere[bits], bits))


def _first_wrong(each: Judged, usual: int) -> Verdict | None:
    mode, rw, x = each.mode, _rw(each.mode), each.mode & 0o111
    wanted = usual | ((usual & 0o444) >> 2 if x or each.program else 0)
    if mode & SPECIAL:
        return Verdict(each.path, mode, wanted, "has setuid, setgid or the sticky bit", sure=True)
    if not mode & 0o400:
        return Verdict(each.path, mode, wanted, "its owner may not read it", sure=True)
    if mode & 0o002 and not usual & 0o002:
        return Verdict(each.path, mode, wanted, "anyone may write to it", sure=True)
    if rw != usual and not (each.generated and rw == usual | 0o444):
        return Verdict(each.path, mode, wanted, "is not as the rest of the package", sure=True)
    if each.program and not x & 0o100:
        return Verdict(each.path, mode, wanted, f"{each.program} that its owner may not run", sure=True)
    if x not in (0, 0o111, (rw & 0o444) >> 2):
        return Verdict(each.path, mode, wanted, "may be run by some who cannot read it, or the reverse", sure=True)
    return None


def _odd(each: Judged, kinds: Counter[tuple[str, str, bool]]) -> Verdict | None:
    with_x, without = (kinds[each.package, each.suffix, x] for x in (True, False))
    if each.mode & 0o111 and not each.may_run and with_x == 1 and without >= ENOUGH_ALIKE:
        return Verdict(each.path, each.mode, None, f"may be run, as no other {each.suffix} of the package", sure=False)
    return None
