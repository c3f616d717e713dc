"""Deep verification: whether every file of an environment matches its RECORD.

Files that no RECORD lists are reported as well.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from types import MappingProxyType
from typing import Protocol

from envlock.runtime.files import check_file
from envlock.runtime.files.check_file import has_hash, has_no_hash, judge
from envlock.runtime.files.compiled_file import CompiledFile, parse_compiled_name
from envlock.runtime.files.findings import Fault, is_below, make_findings
from envlock.runtime.files.read_file import State, read_states
from envlock.runtime.files.record_rows import get_common_content, hash_content
from envlock.runtime.files.site_packages import find_customizations, judge_site
from envlock.runtime.files.unowned import find_manager, list_redirected, look_around
from envlock.runtime.report import ERROR, INFO, WARNING, Finding
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import Optional

    from envlock.runtime.files.claims import Package
    from envlock.runtime.files.survey import Survey

    Advance = Callable[[int], None]
    Locked = Mapping[str, tuple[Optional[str], ...]]
    """The contents that a lockfile has for each package, by name."""

    Corrections = Mapping[str, Mapping[str, Optional[str]]]
    """For each package whose wheel has a wrong RECORD: path -> sha256 of the file in the wheel, None
    for one that is not in it.
    """

    Overwritten = Mapping[str, Mapping[str, str]]
    """For each package: path -> name of the package that has replaced this file by its own."""


class Watch(Protocol):
    """Shows the progress of one task while it is open."""

    def __call__(
        self, title: str, total: int, *, in_bytes: bool = False
    ) -> AbstractContextManager[Advance]:
        """Return a function that takes the progress since its last call, in bytes or in files."""
        ...


SCRIPTS = ("bin", "Scripts")


def watch_nothing(
    title: str, total: int, *, in_bytes: bool = False
) -> AbstractContextManager[Advance]:
    """Show nothing."""
    return nullcontext(lambda _: None)


def look(survey: Survey, advance: Advance = lambda _: None) -> tuple[list[State], list[Fault]]:
    """Read every file that a RECORD lists; return their states and their faults."""
    states, faults = [], []
    rivals: set[str] = set()
    for fault in survey.faults:
        if fault.kind == "duplicate-package":
            rivals.update(fault.packages)
    for state in read_states(survey.list_requests(), advance):
        states.append(state._replace(hashes={}))
        verdict = judge(survey.claims[state.path], state)
        if verdict is not None and not _is_of_replaced_version(verdict, rivals):
            faults.append(verdict)
    return states, faults


def find_unowned(survey: Survey) -> tuple[list[Fault], list[CompiledFile]]:
    """Return the files without an owner, and the bytecode to compare with its source."""
    managed = _list_managed_folders()
    faults, bytecode = list(find_customizations(survey)), []
    for site in survey.sites:
        owned = survey.get_ownership(site)
        seen = look_around(owned)
        faults += _check_folders(owned.folders)
        faults += judge_site(survey, site, seen, by=find_manager(site, managed))
        for path in seen.bytecode:
            file = parse_compiled_name(path)
            if file is not None:
                bytecode.append(file)
        bytecode += list_redirected(owned.folders, sys.pycache_prefix)
    return faults, bytecode


def _list_managed_folders() -> list[tuple[str, str]]:
    """Return (pattern, package manager) for the folders that the system manages."""
    return [(row["folder"], row["by"]) for row in table("files")["managed"]]


def check_permissions(survey: Survey, states: list[State]) -> list[Fault]:
    """Return the files and folders whose mode no installer sets."""
    files = [_describe_mode(survey, state) for state in states if _has_own_mode(survey, state)]
    faults = []
    for verdict in check_file.judge_modes(files):
        mode = f"{verdict.mode:04o}"
        faults.append(
            Fault(
                "permission",
                verdict.path,
                f"{mode}: {verdict.what}",
                survey.list_owners(verdict.path),
                None if verdict.expected is None else {"mode": f"{verdict.expected:04o}"},
                {"mode": mode},
                severity=ERROR if verdict.sure else INFO,
            )
        )
    folders = _get_metadata_folders(survey)
    what = "anyone can write to most of its files"
    for title in check_file.find_world_writable(files):
        path = folders[title]
        faults.append(Fault("permission", path, what, (title,), severity=INFO))
    return faults


def _get_metadata_folders(survey: Survey) -> dict[str, str]:
    """Return title -> metadata folder."""
    return {package.title: package.info for package in survey.packages}


def find_unhashed(survey: Survey, states: list[State]) -> Iterator[Fault]:
    """Yield the packages with files whose rows have no hash that can be checked."""
    unhashed: dict[str, list[str]] = {}
    for state in states:
        claims = survey.claims[state.path]
        if has_no_hash(state.path, claims, state):
            unhashed.setdefault(claims[0].package, []).append(os.path.basename(state.path))
    folders = _get_metadata_folders(survey)
    for title, names in sorted(unhashed.items()):
        what = f"{len(names)} of its files have no hash, such as {min(names)}"
        yield Fault("no-hash", folders[title], what, (title,), severity=INFO)


def find_unlocked(survey: Survey, locked: Locked) -> Iterator[Fault]:
    """Yield the packages whose RECORD is not the locked one.

    A package without a locked RECORD is skipped.
    """
    first: dict[str, Package] = {}
    for package in survey.packages:
        first.setdefault(package.name, package)
    for name, package in sorted(first.items()):
        contents = [known for known in locked.get(name, ()) if known is not None]
        if not contents or package.text is None or package.problem is not None:
            continue
        actual = hash_content(get_common_content(package.rows))
        if actual not in contents:
            yield Fault(
                "not-locked",
                package.info,
                "its RECORD differs from the locked one",
                (package.title,),
                {"content": contents[0]},
                {"content": actual},
            )


def apply_corrections(survey: Survey, locked: Locked, corrections: Corrections) -> Iterator[Fault]:
    """Replace what a wheel's own RECORD says wrongly of its files by the locked truth, where the
    installed RECORD is the locked one; yield a warning for each such package.
    """
    for package in survey.packages:
        right = corrections.get(package.name)
        if not right or hash_content(get_common_content(package.rows)) not in locked[package.name]:
            continue
        for row in package.rows:
            if row.path in right:
                survey.correct(package, row, right[row.path])
        what = f"the RECORD of its wheel is wrong about {len(right)} of its files"
        title = (package.title,)
        yield Fault("misrecorded", package.info, what, title, severity=WARNING)


def leave_to_winners(survey: Survey, locked: Locked, overwritten: Overwritten) -> Iterator[Fault]:
    """Leave each file that two packages install to the one that the lockfile names, where the
    installed RECORD of the other is the locked one; yield a warning for each such package.
    """
    for package in survey.packages:
        winners = overwritten.get(package.name)
        if (
            not winners
            or hash_content(get_common_content(package.rows)) not in locked[package.name]
        ):
            continue
        for row in package.rows:
            if row.path in winners:
                survey.correct(package, row, None)
        names = " and ".join(sorted(set(winners.values())))
        what = f"as locked, {len(winners)} of its files were overwritten by {names}"
        yield Fault("doubly-owned", package.info, what, (package.title,), severity=WARNING)


def check(
    survey: Survey,
    locked: Locked,
    watch: Watch = watch_nothing,
    corrections: Corrections = MappingProxyType({}),
    overwritten: Overwritten = MappingProxyType({}),
) -> tuple[list[Fault], list[CompiledFile]]:
    """Return all faults of the files, and the bytecode that was not compared.

    Args:
        survey: the files to check.
        locked: the contents that a lockfile has for each package, by name: as installed, and those
            of a wheel that was built.
        watch: shows the progress.
        corrections: what is locked of wheels whose own RECORD is wrong.
        overwritten: what is locked of files that two packages install.
    """
    wrong = list(apply_corrections(survey, locked, corrections))
    wrong += leave_to_winners(survey, locked, overwritten)
    with watch("reading files", survey.size, in_bytes=True) as advance:
        states, faults = look(survey, advance)
    unowned, bytecode = find_unowned(survey)
    faults += survey.faults
    faults += wrong
    faults += unowned
    faults += check_permissions(survey, states)
    faults += find_unhashed(survey, states)
    faults += find_unlocked(survey, locked)
    return faults, bytecode


def report(survey: Survey, faults: list[Fault]) -> list[Finding]:
    """Return faults as findings; those of the system's own packages are information."""
    managers = _find_managers(survey)
    return make_findings([_reduce_severity(fault, managers) for fault in faults], survey.sites)


def _find_managers(survey: Survey) -> dict[str, str]:
    """Return title -> package manager, for the packages in folders of the system."""
    folders = _list_managed_folders()
    managers = {}
    for package in survey.packages:
        manager = find_manager(package.folder, folders)
        if manager is not None:
            managers[package.title] = manager
    return managers


def _reduce_severity(fault: Fault, managers: Mapping[str, str]) -> Fault:
    """Return a fault of a system package as information: distributors strip and move files that a
    RECORD lists.
    """
    if fault.severity == INFO or not fault.packages:
        return fault
    if not all(title in managers for title in fault.packages):
        return fault
    what = f"{fault.what} (it belongs to {managers[fault.packages[0]]})"
    return fault._replace(severity=INFO, what=what)


def _check_folders(folders: set[str]) -> list[Fault]:
    """Return the folders that every user may write to; a single fault if that is true of most of
    them.
    """
    # With the sticky bit only the owner of a file can replace it.
    writable = sorted(folder for folder in folders if _get_mode(folder) & 0o1002 == 0o002)
    if len(writable) * 2 > len(folders):
        what = "anyone can add files to it and to most folders below it"
        return [Fault("permission", writable[0], what, severity=INFO)]
    faults = []
    for path in writable:
        what = f"{_get_mode(path) & 0o7777:04o}: anyone can add files to it"
        faults.append(Fault("permission", path, what))
    return faults


def _get_mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _is_of_replaced_version(fault: Fault, rivals: set[str]) -> bool:
    """Return whether a missing file belongs to one of two versions of a package that are installed
    in one folder.
    """
    return fault.kind == "missing" and len(fault.packages) == 1 and fault.packages[0] in rivals


def _has_own_mode(survey: Survey, state: State) -> bool:
    """Return whether the file exists with a mode that an installer has set.

    Python gives bytecode the mode of its source.
    """
    if state.problem is not None:
        return False
    return not state.path.endswith(".pyc") or has_hash(survey.claims[state.path])


def _describe_mode(survey: Survey, state: State) -> check_file.FileMode:
    folder, _, name = state.path.rpartition("/")
    is_script, is_elf, is_library = state.head[:2] == b"#!", state.head == b"\x7fELF", ".so" in name
    is_in_scripts = os.path.basename(folder) in SCRIPTS
    is_installed_script = is_in_scripts and not is_below(folder, survey.sites)
    program = None
    if is_script and is_installed_script:
        program = "a script"
    elif is_elf and not is_library and "/bin/" in state.path:
        program = "a program"
    return check_file.FileMode(
        state.path,
        survey.claims[state.path][0].package,
        state.mode,
        os.path.splitext(name)[1] or name,
        program,
        may_run=is_script or is_elf or is_library,
        generated=is_installed_script,
    )
