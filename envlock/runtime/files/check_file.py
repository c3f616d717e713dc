"""Whether one file matches its RECORD: its bytes, its size, and permissions that an installer sets.
Pure.

A RECORD has no modes. But an installer gives all files of a package the same read and write bits
(those that its umask leaves), and x, if at all, to everyone or to those who may read; so a file
that differs from the rest of its package was changed later. Whether a *library or module* has x
differs from wheel to wheel and means nothing, so it is not judged.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from envlock.runtime.files.claims import Claim
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.read_file import State, can_compute
from envlock.runtime.report import WARNING

SPECIAL = 0o7000  # setuid, setgid, sticky
ENOUGH_ALIKE = 20
"""Files of one kind without x that make one with x conspicuous: wheels themselves have a few of
these.
"""


class FileMode(NamedTuple):
    """What matters about a file for its mode.

    Attributes:
        program: "a program" or "a script" if it must be executable.
        may_run: whether x is usual for it: a script, a library, a program.
        generated: whether an installer wrote it (an entry point) and gave it x and r for
            everyone.
    """

    path: str
    package: str
    mode: int
    suffix: str
    program: str | None
    may_run: bool
    generated: bool


class Verdict(NamedTuple):
    """The problem with a file's mode; `expected` is None if several modes would be right."""

    path: str
    mode: int
    expected: int | None
    what: str
    sure: bool


def judge_modes(files: Iterable[FileMode]) -> list[Verdict]:
    """Return the files whose mode is not one that an installer sets."""
    files = list(files)
    environment_bits: Counter[int] = Counter()
    package_bits: dict[str, Counter[int]] = {}
    kinds: Counter[tuple[str, str, bool]] = Counter()
    for file in files:
        bits = _get_rw_bits(file.mode)
        environment_bits[bits] += 1
        package_bits.setdefault(file.package, Counter())[bits] += 1
        kinds[file.package, file.suffix, bool(file.mode & 0o111)] += 1
    usual_bits = {}
    for package, counts in package_bits.items():
        usual_bits[package] = _find_usual_bits(counts, environment_bits)
    verdicts = []
    for file in files:
        verdict = _judge_mode(file, usual_bits[file.package]) or _judge_lone_executable(file, kinds)
        if verdict is not None:
            verdicts.append(verdict)
    return verdicts


def find_world_writable(files: Iterable[FileMode]) -> list[str]:
    """Return the packages most of whose files anyone may write to: they were installed without a
    umask.
    """
    totals: Counter[str] = Counter()
    writable: Counter[str] = Counter()
    for file in files:
        totals[file.package] += 1
        if file.mode & 0o002:
            writable[file.package] += 1
    return sorted(name for name in totals if writable[name] * 2 > totals[name])


def _get_rw_bits(mode: int) -> int:
    return mode & 0o666


def _find_usual_bits(counts: Counter[int], environment_bits: Counter[int]) -> int:
    """Return the read and write bits of most files of a package; of equally frequent ones, those
    that are more frequent in the environment.
    """
    # Bits with which the owner cannot read never come from an installer, however many files have
    # them.
    return max(
        counts, key=lambda bits: (bool(bits & 0o400), counts[bits], environment_bits[bits], bits)
    )


def _judge_mode(file: FileMode, usual: int) -> Verdict | None:
    """Return the most serious problem of a mode, given the usual bits of the package."""
    mode, rw, x = file.mode, _get_rw_bits(file.mode), file.mode & 0o111
    expected = usual
    if x or file.program:
        expected |= (usual & 0o444) >> 2
    what = None
    if mode & SPECIAL:
        what = "has setuid, setgid or the sticky bit"
    elif not mode & 0o400:
        what = "its owner cannot read it"
    elif mode & 0o002 and not usual & 0o002:
        what = "anyone can write to it"
    elif rw != usual and not (file.generated and rw == usual | 0o444):
        what = "differs from the rest of the package"
    elif file.program and not x & 0o100:
        what = f"{file.program} that its owner cannot run"
    elif x not in (0, 0o111, (rw & 0o444) >> 2):
        what = "some users can run it but not read it, or the reverse"
    if what is None:
        return None
    return Verdict(file.path, mode, expected, what, sure=True)


def _judge_lone_executable(file: FileMode, kinds: Counter[tuple[str, str, bool]]) -> Verdict | None:
    if file.may_run or not file.mode & 0o111:
        return None
    executable = kinds[file.package, file.suffix, True]
    others = kinds[file.package, file.suffix, False]
    if executable != 1 or others < ENOUGH_ALIKE:
        return None
    what = f"is executable, unlike every other {file.suffix} of the package"
    return Verdict(file.path, file.mode, None, what, sure=False)


MISSING, UNREADABLE = "missing", "unreadable"
UNSIGNED = ("/RECORD", "/RECORD.jws", "/RECORD.p7s")
"""Files whose hash no RECORD can have."""


def judge(claims: list[Claim], state: State) -> Fault | None:
    """Return the problem of a file, or None if it matches every RECORD that lists it."""
    if state.problem is not None:
        return _explain_problem(claims, state)
    hashed = [claim for claim in claims if can_be_checked(claim)]
    sound = [claim for claim in hashed if is_sound(claim, state)]
    if len(sound) == len(hashed):
        return _check_size(claims, sound, state)
    packages, names, hashes = set(), set(), set()
    for claim in hashed:
        packages.add(claim.package)
        names.add(claim.package.partition(" ")[0])
        hashes.add(claim.hash)
    if len(names) > 1 and len(hashes) > 1:
        return _explain_two_owners(hashed, sound, state)
    if sound and len(packages) > 1:
        return None  # two versions of one package are installed beside each other, which is a finding of its own
    if sound:
        return _make_fault("damaged-record", claims, state, "is listed twice, with two hashes")
    return _make_fault("modified", claims, state, _describe_change(claims, state))


def can_be_checked(claim: Claim) -> bool:
    """Return whether the row has a hash of a kind that can be computed here."""
    return claim.hash is not None and can_compute(claim.hash.partition("=")[0])


def has_hash(claims: list[Claim]) -> bool:
    """Return whether a row has a hash of any kind."""
    return any(claim.hash for claim in claims)


def is_sound(claim: Claim, state: State) -> bool:
    """Return whether the file has the hash of the row."""
    name, _, value = (claim.hash or "").partition("=")
    own = state.hashes.get(name)
    if own is None:
        return False
    # Some builders of system packages write hexadecimal digits.
    return value in (own, _convert_to_digits(own))


def has_no_hash(path: str, claims: list[Claim], state: State) -> bool:
    """Return whether a file exists, and no row about it could be checked."""
    if state.problem is not None or path.endswith((*UNSIGNED, ".pyc")):
        return False
    return not any(map(can_be_checked, claims))


def _explain_problem(claims: list[Claim], state: State) -> Fault | None:
    problem = str(state.problem)
    if problem == UNREADABLE:
        return _make_fault("permission", claims, state, "cannot be read by this user")
    kind, what = "modified", problem
    if problem == MISSING:
        if state.path.endswith(".pyc") and not has_hash(claims):
            return None  # Python compiles it again
        kind, what = "missing", "is missing"
    elif "is a broken link" in problem:
        kind = "missing"
    return Fault(kind, state.path, what, _list_owners(claims), _get_expected(claims))


def _check_size(claims: list[Claim], sound: list[Claim], state: State) -> Fault | None:
    for claim in sound:
        if claim.size not in (None, state.size):
            what = (
                f"has the recorded hash, but its RECORD says {claim.size} bytes "
                f"instead of {state.size}"
            )
            fault = _make_fault("misrecorded", claims, state, what)
            return fault._replace(severity=WARNING)
    return None


def _explain_two_owners(hashed: list[Claim], sound: list[Claim], state: State) -> Fault:
    winners = [claim.package for claim in sound]
    losers = [claim.package for claim in hashed if claim.package not in winners]
    if winners:
        what = f"{' and '.join(winners)} has overwritten the file of {' and '.join(losers)}"
    else:
        what = f"claimed by {' and '.join(losers)}, but the file belongs to neither"
    rows = []
    for claim in hashed:
        digest = _convert_to_hex(claim.hash)
        rows.append({"package": claim.package, "hash": digest, "size": claim.size})
    fault = _make_fault("doubly-owned", hashed, state, what)
    actual = {**(fault.actual or {}), "packages": winners}
    return fault._replace(expected={"rows": rows}, actual=actual)


def _describe_change(claims: list[Claim], state: State) -> str:
    sizes = [claim.size for claim in claims if claim.size is not None]
    if not sizes:
        return "different content"
    if state.size < min(sizes):
        return f"truncated: {state.size:,} of {min(sizes):,} bytes"
    if state.size > max(sizes):
        return f"longer: {state.size:,} bytes instead of {max(sizes):,}"
    return "different content of the same size"


def _make_fault(kind: str, claims: list[Claim], state: State, what: str) -> Fault:
    actual: dict[str, object] = {"size": state.size, "mode": f"{state.mode:04o}"}
    if state.hashes:
        name, value = next(iter(state.hashes.items()))
        actual["hash"] = _convert_to_hex(f"{name}={value}")
    return Fault(kind, state.path, what, _list_owners(claims), _get_expected(claims), actual)


def _list_owners(claims: list[Claim]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(claim.package for claim in claims))


def _get_expected(claims: list[Claim]) -> dict[str, object]:
    """Return the first hash and the first size in the RECORDs."""
    expected: dict[str, object] = {}
    for claim in claims:
        if claim.hash is not None:
            expected["hash"] = _convert_to_hex(claim.hash)
            break
    for claim in claims:
        if claim.size is not None:
            expected["size"] = claim.size
            break
    return expected


def _convert_to_hex(recorded: str | None) -> str | None:
    """Return RECORD's `sha256=BASE64` as `sha256:HEX`, as `sha256sum` prints it.

    A value of another form is returned unchanged, cut to 200 characters.
    """
    if recorded is None:
        return None
    name, _, value = recorded.partition("=")
    if len(value) == 64:  # already in digits
        return f"{name}:{value}"
    try:
        return f"{name}:{_convert_to_digits(value)}"
    except ValueError:
        return recorded[:200]


def _convert_to_digits(value: str) -> str:
    return urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()
