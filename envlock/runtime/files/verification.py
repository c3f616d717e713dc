"""Deep verification: whether every file of an environment is what its RECORD says, and which files no RECORD lists."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Protocol

from envlock.runtime.files import check_file
from envlock.runtime.files.check_file import has_no_hash, judge
from envlock.runtime.files.compiled import Compiled, compiled
from envlock.runtime.files.findings import Fault, findings
from envlock.runtime.files.read_file import State, states
from envlock.runtime.files.record import content, digest
from envlock.runtime.files.site_packages import around, customized_elsewhere
from envlock.runtime.files.unowned import look_around, managed_by
from envlock.runtime.report import ERROR, INFO, Finding
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from envlock.runtime.files.claims import Package
    from envlock.runtime.files.survey import Survey

    Advance = Callable[[int], None]


class Watch(Protocol):
    """Shows how far something is while it is open."""

    def __call__(
        self, title: str, total: int, *, in_bytes: bool = False
    ) -> AbstractContextManager[Advance]:
        """Return what takes by how much the work got further; the unit is bytes, or files."""
        ...


SCRIPTS = ("bin", "Scripts")


def unwatched(title: str, total: int, *, in_bytes: bool = False) -> AbstractContextManager[Advance]:
    """Show nothing."""
    return nullcontext(lambda _: None)


def look(survey: Survey, advance: Advance = lambda _: None) -> tuple[list[State], list[Fault]]:
    """Return the state of every file that a RECORD lists, and what is wrong with them; this reads all of them."""
    found, faults = [], []
    rivals = {
        title for fault in survey.faults if fault.kind == "rivals" for title in fault.packages
    }
    for state in states(survey.wanted(), advance):
        found.append(state._replace(hashes={}))
        claims = survey.claims[state.path]
        fault = judge(claims, state)
        if fault is not None and not _of_a_replaced_version(fault, rivals):
            faults.append(fault)
    return found, faults


def stale_or_foreign(survey: Survey) -> tuple[list[Fault], list[Compiled]]:
    """Return what belongs to nobody, and the bytecode that is to be compared with its source."""
    managed = [(row["folder"], row["by"]) for row in table("files")["managed"]]
    faults, found = list(customized_elsewhere(survey)), []
    for site in survey.sites:
        owned = survey.owned(site)
        seen = look_around(owned)
        faults += _open_folders(owned.folders)
        faults += around(survey, site, seen, by=managed_by(site, managed))
        found += [each for path in seen.bytecode if (each := compiled(path)) is not None]
    return faults, found


def permissions(survey: Survey, found: list[State]) -> list[Fault]:
    """Return the files and folders whose mode no installer has left."""
    judged = [
        _judged(survey, state)
        for state in found
        if state.problem is None and _has_own_mode(survey, state)
    ]
    faults = []
    for verdict in check_file.judge_modes(judged):
        expected = None if verdict.expected is None else {"mode": f"{verdict.expected:04o}"}
        owners = tuple(claim.package for claim in survey.claims[verdict.path])
        what = f"{verdict.mode:04o}: {verdict.what}"
        severity = ERROR if verdict.sure else INFO
        faults.append(
            Fault(
                "permission",
                verdict.path,
                what,
                owners,
                expected,
                {"mode": f"{verdict.mode:04o}"},
                severity,
            )
        )
    info = {package.title: package.info for package in survey.packages}
    what = "anyone can write to most of its files"
    open_to_all = check_file.writable_by_anyone(judged)
    return faults + [
        Fault("permission", info[title], what, (title,), severity=INFO) for title in open_to_all
    ]


def without_hash(survey: Survey, found: list[State]) -> Iterator[Fault]:
    """Yield the packages with files whose rows have no hash that can be checked."""
    count: dict[str, list[str]] = {}
    for state in found:
        claims = survey.claims[state.path]
        if has_no_hash(state.path, claims, state):
            count.setdefault(claims[0].package, []).append(os.path.basename(state.path))
    info = {package.title: package.info for package in survey.packages}
    for title, names in sorted(count.items()):
        what = f"{len(names)} of its files have no hash, such as {min(names)}"
        yield Fault("no-hash", info[title], what, (title,), severity=INFO)


def not_locked(survey: Survey, locked: Mapping[str, tuple[str | None, ...]]) -> Iterator[Fault]:
    """Yield the packages whose RECORD the lock does not know; nothing where it knows no RECORD."""
    first: dict[str, Package] = {}
    for package in survey.packages:
        first.setdefault(package.name, package)
    for name, package in sorted(first.items()):
        known = [each for each in locked.get(name, ()) if each is not None]
        if not known or package.text is None or package.problem is not None:
            continue
        actual = digest(content(package.rows))
        if actual not in known:
            what = "its RECORD differs from the locked one"
            yield Fault(
                "not-locked",
                package.info,
                what,
                (package.title,),
                {"content": known[0]},
                {"content": actual},
            )


def check(
    survey: Survey, locked: Mapping[str, tuple[str | None, ...]], watch: Watch = unwatched
) -> tuple[list[Fault], list[Compiled]]:
    """Return everything about the files that is not as recorded, and the bytecode whose code was not looked at.

    Args:
        survey: what there is to look at.
        locked: the contents that a lock knows of each package, by name: as installed, and of a wheel that was built.
        watch: shows how far it is.
    """
    with watch("reading files", survey.size, in_bytes=True) as advance:
        found, faults = look(survey, advance)
    elsewhere, compiled = stale_or_foreign(survey)
    faults += [
        *survey.faults,
        *elsewhere,
        *permissions(survey, found),
        *without_hash(survey, found),
    ]
    return [*faults, *not_locked(survey, locked)], compiled


def report(survey: Survey, faults: list[Fault]) -> list[Finding]:
    """Return faults as findings; of the system's own packages they are information."""
    managed = _managed(survey)
    return findings([_of_the_system(fault, managed) for fault in faults], survey.sites)


def _managed(survey: Survey) -> dict[str, str]:
    """Return title -> who looks after it, for the packages in folders of the system."""
    rows = [(row["folder"], row["by"]) for row in table("files")["managed"]]
    found = {package.title: managed_by(package.folder, rows) for package in survey.packages}
    return {title: by for title, by in found.items() if by is not None}


def _of_the_system(fault: Fault, managed: Mapping[str, str]) -> Fault:
    """Return a fault of the system's packages as information: they strip and move what a RECORD lists."""
    if (
        fault.severity == INFO
        or not fault.packages
        or not all(title in managed for title in fault.packages)
    ):
        return fault
    return fault._replace(
        severity=INFO, what=f"{fault.what} (it belongs to {managed[fault.packages[0]]})"
    )


def _open_folders(folders: set[str]) -> list[Fault]:
    """Return the folders that anyone may write to; the one they lie in, where they all are so."""
    found = sorted(folder for folder in folders if _mode(folder) & 0o1002 == 0o002)
    if len(found) * 2 > len(folders):
        what = "anyone can add files to it and to most folders below it"
        return [Fault("permission", found[0], what, severity=INFO)]
    return [
        Fault("permission", path, f"{_mode(path) & 0o7777:04o}: anyone can add files to it")
        for path in found
    ]


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _of_a_replaced_version(fault: Fault, rivals: set[str]) -> bool:
    """Whether a file is gone that only one of two versions lists, which lie beside each other."""
    return fault.kind == "missing" and len(fault.packages) == 1 and fault.packages[0] in rivals


def _has_own_mode(survey: Survey, state: State) -> bool:
    """Whether an installer has set the mode; Python gives bytecode that of its source, whenever it makes it."""
    return not state.path.endswith(".pyc") or any(claim.hash for claim in survey.claims[state.path])


def _judged(survey: Survey, state: State) -> check_file.Judged:
    folder, _, name = state.path.rpartition("/")
    is_script, is_elf, is_library = state.head[:2] == b"#!", state.head == b"\x7fELF", ".so" in name
    is_installed_script = os.path.basename(folder) in SCRIPTS and not any(
        folder.startswith(site + "/") for site in survey.sites
    )
    program = "a program" if is_elf and not is_library and "/bin/" in state.path else None
    if is_script and is_installed_script:
        program = "a script"
    return check_file.Judged(
        state.path,
        survey.claims[state.path][0].package,
        state.mode,
        os.path.splitext(name)[1] or name,
        program,
        may_run=is_script or is_elf or is_library,
        generated=is_installed_script,
    )
