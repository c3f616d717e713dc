"""Whether one file is what RECORD says: its bytes and its size, and whether its permissions are an installer's. Pure.

A RECORD holds no modes. But an installer gives all files of a package the same read and write bits (those that its
umask leaves), and x, if at all, to everyone or to those who may read; so a file that differs from the rest of its
package was changed since. Whether a *library or module* has x differs from wheel to wheel and means nothing: that is
not judged.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from envlock.runtime.files.claims import Claim
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.read_file import State, known

SPECIAL = 0o7000  # setuid, setgid, sticky
ENOUGH_ALIKE = (
    20  # files of a kind without x, so that one with x is odd: wheels themselves have a few such
)


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


def judge_modes(files: Iterable[Judged]) -> list[Verdict]:
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
    return sorted(
        name for name, open_to_all in of_package.items() if sum(open_to_all) * 2 > len(open_to_all)
    )


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
        return Verdict(each.path, mode, wanted, "its owner cannot read it", sure=True)
    if mode & 0o002 and not usual & 0o002:
        return Verdict(each.path, mode, wanted, "anyone can write to it", sure=True)
    if rw != usual and not (each.generated and rw == usual | 0o444):
        return Verdict(each.path, mode, wanted, "differs from the rest of the package", sure=True)
    if each.program and not x & 0o100:
        return Verdict(
            each.path, mode, wanted, f"{each.program} that its owner cannot run", sure=True
        )
    if x not in (0, 0o111, (rw & 0o444) >> 2):
        return Verdict(
            each.path,
            mode,
            wanted,
            "some users can run it but not read it, or the reverse",
            sure=True,
        )
    return None


def _odd(each: Judged, kinds: Counter[tuple[str, str, bool]]) -> Verdict | None:
    with_x, without = (kinds[each.package, each.suffix, x] for x in (True, False))
    if each.mode & 0o111 and not each.may_run and with_x == 1 and without >= ENOUGH_ALIKE:
        return Verdict(
            each.path,
            each.mode,
            None,
            f"is executable, unlike every other {each.suffix} of the package",
            sure=False,
        )
    return None


MISSING, UNREADABLE = "missing", "unreadable"
UNSIGNED = ("/RECORD", "/RECORD.jws", "/RECORD.p7s")
"""Files that no RECORD can give the hash of."""


def judge(claims: list[Claim], state: State) -> Fault | None:
    """Return what is wrong with a file, or None when it is as every RECORD says that lists it."""
    if state.problem is not None:
        return _problem(claims, state)
    hashed = [claim for claim in claims if can_be_checked(claim)]
    sound = [claim for claim in hashed if is_sound(claim, state)]
    if len(sound) == len(hashed):
        return _wrong_size(claims, sound, state)
    names = {claim.package.partition(" ")[0] for claim in hashed}
    if len(names) > 1 and len({claim.hash for claim in hashed}) > 1:
        return _doubly_owned(hashed, sound, state)
    if sound and len({claim.package for claim in hashed}) > 1:
        return None  # two versions of one package lie beside each other: that is one finding of its own
    if sound:
        return _fault("record", claims, state, "is listed twice, with two hashes")
    return _fault("modified", claims, state, _how(claims, state))


def can_be_checked(claim: Claim) -> bool:
    """Return whether the row has a hash that can be computed here."""
    return claim.hash is not None and known(claim.hash.partition("=")[0])


def is_sound(claim: Claim, state: State) -> bool:
    """Return whether the file has the row's hash."""
    name, _, value = (claim.hash or "").partition("=")
    own = state.hashes.get(name)
    return own is not None and value in (
        own,
        _digits(own),
    )  # some builders of the system's packages write digits


def has_no_hash(path: str, claims: list[Claim], state: State) -> bool:
    """Return whether a file is there, and no row about it could be checked."""
    is_left_out = path.endswith((*UNSIGNED, ".pyc"))
    return state.problem is None and not is_left_out and not any(map(can_be_checked, claims))


def _problem(claims: list[Claim], state: State) -> Fault | None:
    if state.problem == UNREADABLE:
        return _fault("permission", claims, state, "cannot be read by this user")
    if state.problem == MISSING:
        is_bytecode = state.path.endswith(".pyc") and not any(claim.hash for claim in claims)
        return (
            None
            if is_bytecode
            else Fault("missing", state.path, "is missing", _owners(claims), _expected(claims))
        )
    kind = "missing" if "is a broken link" in str(state.problem) else "modified"
    return Fault(kind, state.path, str(state.problem), _owners(claims), _expected(claims))


def _wrong_size(claims: list[Claim], sound: list[Claim], state: State) -> Fault | None:
    wrong = [claim.size for claim in sound if claim.size not in (None, state.size)]
    if not wrong:
        return None
    what = f"has the recorded hash, but its RECORD says {wrong[0]} bytes instead of {state.size}"
    return _fault("record", claims, state, what)


def _doubly_owned(hashed: list[Claim], sound: list[Claim], state: State) -> Fault:
    there = [claim.package for claim in sound]
    others = [claim.package for claim in hashed if claim.package not in there]
    if there:
        what = f"{' and '.join(there)} has overwritten the file of {' and '.join(others)}"
    else:
        what = f"claimed by {' and '.join(others)}, but the file belongs to neither"
    rows = [
        {"package": claim.package, "hash": _hex(claim.hash), "size": claim.size} for claim in hashed
    ]
    fault = _fault("doubly-owned", hashed, state, what)
    return fault._replace(
        expected={"rows": rows}, actual={**(fault.actual or {}), "packages": there}
    )


def _how(claims: list[Claim], state: State) -> str:
    sizes = [claim.size for claim in claims if claim.size is not None]
    if sizes and state.size < min(sizes):
        return f"truncated: {state.size:,} of {min(sizes):,} bytes"
    if sizes and state.size > max(sizes):
        return f"longer: {state.size:,} bytes instead of {max(sizes):,}"
    return "different content" if not sizes else "different content of the same size"


def _fault(kind: str, claims: list[Claim], state: State, what: str) -> Fault:
    actual: dict[str, Any] = {"size": state.size, "mode": f"{state.mode:04o}"}
    if state.hashes:
        name, value = next(iter(state.hashes.items()))
        actual["hash"] = _hex(f"{name}={value}")
    return Fault(kind, state.path, what, _owners(claims), _expected(claims), actual)


def _owners(claims: list[Claim]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(claim.package for claim in claims))


def _expected(claims: list[Claim]) -> dict[str, Any]:
    hashes = [claim.hash for claim in claims if claim.hash is not None]
    sizes = [claim.size for claim in claims if claim.size is not None]
    return {
        **({"hash": _hex(hashes[0])} if hashes else {}),
        **({"size": sizes[0]} if sizes else {}),
    }


def _hex(recorded: str | None) -> str | None:
    """Return RECORD's `sha256=BASE64` as `sha256:HEX`, as `sha256sum` prints it; as it stands where it is neither."""
    if recorded is None:
        return None
    name, _, value = recorded.partition("=")
    try:
        return f"{name}:{value if len(value) == 64 else _digits(value)}"
    except ValueError:
        return recorded[:200]


def _digits(value: str) -> str:
    return urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()
