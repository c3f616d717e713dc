"""What runs of the project's functions: written into a lock, and compared with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from envlock.guest.target import Target, parse_target
from envlock.lock.fingerprints import parse_programs
from envlock.lock.models import Lockfile
from envlock.numerics.programs.parts import Observed
from envlock.numerics.programs.program_comparison import (
    Compared,
    compare_code,
    compare_switches,
    compare_target,
    find_other_version,
    report_unknown,
)
from envlock.numerics.programs.program_run import STEPS, observe_program
from envlock.runtime import lockfile
from envlock.runtime.errors import FactError, UsageError
from envlock.workflows.live_environment import LiveEnvironment
from envlock.workflows.progress import Progress


def renew_programs(
    new: Lockfile,
    earlier: Lockfile | None,
    environment: LiveEnvironment,
    functions: Mapping[str, Target],
    progress: Progress,
) -> Lockfile:
    """Return a lockfile with the fingerprints of these functions; without functions, with the earlier
    ones if they still hold.

    Raises:
        UsageError: a function cannot be run in this way.
        FactError: a function fails, or no part is the same twice.
    """
    folder = find_project_folder(None)
    if functions:
        return add_programs(new, environment, functions, folder, progress)
    return keep_programs(new, earlier, folder, progress)


def add_programs(
    lock: Lockfile,
    environment: LiveEnvironment,
    targets: Mapping[str, Target],
    folder: Path,
    progress: Progress,
) -> Lockfile:
    """Return a lockfile with the fingerprints of these functions; each runs twice, and only parts that
    are equal both times are kept.

    Args:
        lock: of the environment.
        environment: where they run.
        targets: the functions by their names in the lockfile.
        folder: that of the project: paths of its code begin there.
        progress: shows what is going on.

    Raises:
        UsageError: a function cannot be run so, or a file of the project has a name that the format has no room for.
        FactError: a function fails, or no part is the same twice.
    """
    section: dict[str, object] = {}
    switches: dict[str, str] = {}
    version = ""
    for name, target in targets.items():
        progress.say(f"noting what runs of {name} ({STEPS} steps, twice)")
        first, second = (observe_program(target, environment.python) for _ in range(2))
        kept = _select_steady(name, first, second, progress)
        section[name] = {"code": digest_files(first.files, folder), "parts": kept}
        version, switches = first.tensorflow, dict(first.switches)
    try:
        programs = parse_programs({"tensorflow": version, "switches": switches, "targets": section})
    except ValueError as error:
        hint = "give files and functions names of letters, digits and `_`"
        raise UsageError(f"a lockfile cannot hold this program: {error}", hint=hint) from None
    return lock.model_copy(update={"program": programs})


def _select_steady(
    name: str, first: Observed, second: Observed, progress: Progress
) -> dict[str, object]:
    """Return the parts that were the same in both runs, in the form of the lockfile.

    Raises:
        FactError: no part was the same.
    """
    kept: dict[str, object] = {}
    for part, found in first.parts.items():
        other = second.parts.get(part)
        if other is None or other.digest != found.digest:
            progress.say(f"warning: {name}: {part} is another program in each run: left out")
            continue
        kept[part] = {
            "kind": found.kind,
            "digest": found.digest,
            "operations": found.operations,
        }
    for part, reason in first.failed.items():
        progress.say(f"warning: {name}: {part} has no fingerprint: {reason}")
    if not kept:
        raise FactError(
            f"nothing of {name} can be compared later: it runs no operation, or others each time",
            hint="find the cause with `envlock diverge`",
        )
    return kept


def keep_programs(
    new: Lockfile, earlier: Lockfile | None, folder: Path, progress: Progress
) -> Lockfile:
    """Return the lockfile with the programs of the earlier one, unless a fact or the code has changed."""
    if earlier is None or earlier.program is None:
        return new
    reason = None
    if (earlier.facts, earlier.unavailable) != (new.facts, new.unavailable):
        reason = "facts differ"
    for name, target in earlier.program.targets.items():
        if digest_files([str(folder / file) for file in target.code], folder) != target.code:
            reason = f"the code of {name} has changed"
    if reason is None:
        return new.model_copy(update={"program": earlier.program})
    progress.say(
        f"warning: dropped the program of the old lockfile, as {reason} (`--program` notes a new one)"
    )
    return new


def compare_programs(
    lock: Lockfile, name: str, folder: Path, environment: LiveEnvironment, progress: Progress
) -> Compared:
    """Return which parts run differently from the lockfile; `name` is how a message calls the lockfile.

    Raises:
        FactError: the lockfile has no program, or one fails here.
        UsageError: a function cannot be run.
    """
    if lock.program is None:
        raise FactError(
            f"{name} has no program",
            hint="run `envlock capture --program train.py:step` to add one",
        )
    compared = Compared()
    switches: Mapping[str, str] | None = None
    for title, locked in lock.program.targets.items():
        # The code is compared before anything runs: with other code, other parts prove nothing.
        paths = [str(folder / file) for file in locked.code]
        changed = compare_code(title, locked.code, digest_files(paths, folder))
        if changed is not None:
            compared.findings.append(changed)
            continue
        progress.say(f"noting what runs of {title} ({STEPS} steps)")
        live = observe_program(find_target(title, folder), environment.python)
        problem = find_other_version(lock.program.tensorflow, live.tensorflow)
        if problem is None:
            # Here it may import files that it did not import when it was locked.
            problem = compare_code(title, locked.code, digest_files(live.files, folder))
        if problem is not None:
            compared.findings.append(problem)
        else:
            compare_target(compared, title, locked.parts, live)
            switches = live.switches
    if switches is not None:
        compared.findings += compare_switches(lock.program.switches, switches)
    if not compared.equal and not compared.findings:
        compared.findings.append(report_unknown("program", "nothing was compared", "lock it again"))
    return compared


def find_target(name: str, folder: Path) -> Target:
    """Return the function that a lock names, in the project's folder.

    Raises:
        UsageError: it is not there.
    """
    script, _, function = name.rpartition(":")
    if (folder / script).is_file():
        return Target(folder / script, function)
    return parse_target(name)


def digest_files(paths: Iterable[str], folder: Path) -> dict[str, str]:
    """Return the SHA-256 of files by their path from the project's folder on; one that is gone has none."""
    digests = {}
    root = folder.resolve()
    for path in map(Path, paths):
        try:
            data = path.read_bytes()
        except OSError:
            continue
        file = path.resolve()
        inside = file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name
        digests[inside] = hashlib.sha256(data).hexdigest()
    return digests


def find_project_folder(lock: Path | None) -> Path:
    """Return the folder of the project of a lock, or that of the current folder."""
    start = lock.parent if lock is not None else Path.cwd()
    return Path(lockfile.find_project(str(start)))
