"""Judge the live environment by a lockfile."""

from __future__ import annotations

import os
import sys

from envlock.runtime.collectors import Snapshot, snapshot
from envlock.runtime.compare import (
    NAMES,
    PROVEN,
    compare,
    other_backend,
    uncompared,
    unlocked_backend,
)
from envlock.runtime.errors import LockfileError, UsageError
from envlock.runtime.host import Host
from envlock.runtime.own_variables import recipe_of_ours
from envlock.runtime.policy import Policy, is_protected, names
from envlock.runtime.report import (
    ERROR,
    INFO,
    NO_TENSORFLOW,
    SUBJECT,
    Report,
    clean,
    count,
    ranked,
    show,
)

LOCAL_FOLDER = "file:"
"""What is recorded of the origin of a package that was installed from a folder; of a file, its name follows."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

    from envlock.runtime.report import Finding

ELSEWHERE = "This is another environment than the locked one, or its installation has not finished."
NAME_IT = (
    "Activate the locked environment, name it with `--python`, or install the locked packages here."
)


def judge(
    lock: Dict[str, Any],
    live: Snapshot,
    policy: Optional[str] = None,
    subject: str = SUBJECT,
    sides: Tuple[str, str] = NAMES,
    overrides: bool = True,
    proven: bool = False,
    exempt: Sequence[str] = (),
) -> Report:
    """Return every difference between a lock and a snapshot, under the lock's policy or the one named.

    `sides` are what the two are called in messages; without `overrides`, the lock's own rules do not count; `proven`
    says that the canary has given the locked bits on this machine; `exempt` is what the snapshot leaves out already.

    Raises:
        LockfileError: the lock names a policy or a rule that does not exist.
        UsageError: `policy` does not exist.
    """
    rules = policy_of(lock, policy, overrides=overrides, tooling=live.tooling)
    here = _without_own_package(lock, live, overrides=overrides)
    notes = []
    if lock.get("machines"):
        lock, which = _machine(lock, here, rules, proven)
        notes.append(which)
    locked, found = (lock["facts"], lock["unavailable"]), (here.facts, here.unavailable)
    is_proven = (
        proven and other_backend(locked, found) is None
    )  # the canary is TensorFlow's and NumPy's
    findings = compare(locked, found, rules, sides, is_proven=is_proven)
    findings += uncompared(locked, found, rules) + unlocked_backend(locked, found, rules)
    return Report(
        ranked(findings),
        policy=rules.name,
        overrides=len(rules.overrides),
        exempt=[*_exempt(findings, rules), *exempt],
        subject=subject,
        notes=notes,
    )


def _exempt(findings: List[Finding], rules: Policy) -> List[str]:
    """Return how many packages differ and pass by what the lockfile says, and not by the policy."""
    passed = [str(finding.where) for finding in findings if finding.severity == INFO]
    packages = {path.split(".")[1] for path in passed if rules.is_exempt_by_lockfile(path)}
    return [f"{count(len(packages), 'package')} exempt by the lockfile"] if packages else []


def _machine(
    lock: Dict[str, Any], live: Snapshot, rules: Policy, proven: bool
) -> Tuple[Dict[str, Any], str]:
    """Return the lock with the facts of the machine that this one fits best, and a sentence that says which it is."""
    from envlock.runtime import machines

    here = {"facts": live.facts, "unavailable": live.unavailable}
    place, fits = machines.nearest(lock, here, rules, is_proven=proven)
    return machines.with_machine(lock, machines.profiles(lock)[place]), machines.sentence(
        lock, place, fits
    )


def for_machine(lock: Dict[str, Any], live: Snapshot) -> Dict[str, Any]:
    """Return the lock with the facts of the machine that this one fits best, of those that it accepts."""
    return _machine(lock, live, policy_of(lock), False)[0] if lock.get("machines") else lock


def verify(
    lock: Dict[str, Any],
    policy: Optional[str] = None,
    *,
    deep: bool = False,
    host: Optional[Host] = None,
) -> Report:
    """Capture the live environment and judge it; see `judge`. ENVLOCK_NO_OVERRIDES counts. `deep` reads its files."""
    report = told(
        judge_here(lock, found_here(lock, host), policy, overrides=overrides_count()), os.environ
    )
    return with_files(report, lock) if deep else report


def with_files(report: Report, lock: Dict[str, Any]) -> Report:
    """Return a report that also says which installed files are not as recorded."""
    from envlock.runtime.files.deep import verify_files

    return report.with_more(verify_files(lock))


def found_here(lock: Dict[str, Any], host: Optional[Host] = None) -> Snapshot:
    """Return what the collectors find; a package that has the files of its locked wheel has its locked origin."""
    machine = Host() if host is None else host
    live = snapshot(machine)
    if lock["facts"].get("packages") == live.facts.get("packages"):
        return live
    from envlock.runtime.locked_wheels import with_locked_origins
    from envlock.runtime.tooling import with_tooling

    return with_tooling(lock, with_locked_origins(lock, live, lambda: machine), lambda: machine)


def judge_here(
    lock: Dict[str, Any],
    live: Snapshot,
    policy: Optional[str] = None,
    subject: str = SUBJECT,
    overrides: bool = True,
    python: Optional[str] = None,
) -> Report:
    """Judge this machine; see `judge`. A proof in the user's cache counts, and is looked for only where it decides.

    `python` is the interpreter that a message names; this one when not given.
    """
    own = recipe_of_ours(os.environ)
    exempt = [f"{count(len(own), 'variable')} set by envlock"] if own and overrides else []
    if own and not overrides:
        live = _with_variables(live, own)
    report = judge(lock, live, policy, subject, overrides=overrides, exempt=exempt)
    if not needs_proof(report):
        return _without_tensorflow(report, python or sys.executable)
    from envlock.runtime.proof import is_proven, note

    if not is_proven(lock, live, os.environ):
        return report
    report = judge(lock, live, policy, subject, overrides=overrides, proven=True, exempt=exempt)
    report.notes.append(note(lock))
    return report


def _with_variables(live: Snapshot, own: Mapping[str, str]) -> Snapshot:
    """Return a snapshot in which variables that envlock has set are facts like any other."""
    environ = live.facts.get("environ")
    if not isinstance(environ, dict):
        return live
    return Snapshot({**live.facts, "environ": {**environ, **own}}, live.unavailable, live.tooling)


def _without_tensorflow(report: Report, python: str) -> Report:
    """Return a report that begins with it where TensorFlow is locked and there is none: all else follows from that."""
    for finding in report.findings:
        if (
            str(finding.where) == "tensorflow"
            and finding.severity == ERROR
            and finding.actual is None
        ):
            finding.rule, finding.weight, finding.why, finding.fix = (
                NO_TENSORFLOW,
                100,
                ELSEWHERE,
                NAME_IT,
            )
            finding.message = (
                f"no TensorFlow in {clean(python)}, but {show(finding.expected)} in the lockfile"
            )
            report.findings.remove(finding)
            report.findings.insert(0, finding)
            return report.with_more([])
    return report


def needs_proof(report: Report) -> bool:
    """Return whether facts differ that may differ on a machine that is known to compute the locked bits."""
    return any(finding.rule == PROVEN and finding.severity != INFO for finding in report.findings)


def told(report: Report, environ: Mapping[str, str]) -> Report:
    """Return a report that shows values in clear, and says what a launcher or a worker pool explains.

    Both by the variables of the process. A report without findings stays as it is, at no cost.
    """
    if report.findings:
        from envlock.runtime.clear import show_in_clear

        show_in_clear(report.findings, environ)
    if not report.match:
        from envlock.runtime.launchers import explained

        report.findings += explained(report.findings, environ)
    return report


def overrides_count() -> bool:
    """Return whether the rules of a lock's own count in this process: ENVLOCK_NO_OVERRIDES=1 says no."""
    return os.environ.get("ENVLOCK_NO_OVERRIDES", "") in ("", "0")


def _without_own_package(lock: Dict[str, Any], live: Snapshot, *, overrides: bool) -> Snapshot:
    """Return a snapshot without the project's own package, where what the lockfile calls so can be that.

    It is never what computes. A lockfile that locks a package of that name means it. Without the lockfile's own
    rules, it must be installed from a folder of this machine, as a project is; a package of an index is somebody's.
    """
    name = lock.get("project", {}).get("name")
    packages = lock["facts"].get("packages")
    is_locked = isinstance(packages, dict) and name in packages
    if name is None or is_locked or is_protected(f"packages.{name}"):
        return live
    origin = ((live.facts.get("packages") or {}).get(name) or {}).get("origin") or {}
    if not overrides and origin.get("url") != LOCAL_FOLDER:
        return live
    return without_package(live, name)


def without_package(live: Snapshot, name: Optional[str]) -> Snapshot:
    """Return a snapshot without the project's own package: its code is the project's, whatever its version."""
    packages = live.facts.get("packages")
    if name is None or not isinstance(packages, dict):
        return live
    others = {each: facts for each, facts in packages.items() if each != name}
    own = f"packages.{name}."
    unavailable = {
        path: entry for path, entry in live.unavailable.items() if not f"{path}.".startswith(own)
    }
    return Snapshot(
        {**_without_hook(live.facts, name), "packages": others}, unavailable, live.tooling
    )


def _without_hook(facts: Dict[str, Any], name: str) -> Dict[str, Any]:
    """Return facts without the .pth file by which a package is installed for development."""
    python = facts.get("python")
    startup = python.get("startup") if isinstance(python, dict) else None
    pth = startup.get("pth") if isinstance(startup, dict) else None
    if (
        not isinstance(python, dict)
        or not isinstance(startup, dict)
        or not isinstance(pth, dict)
        or not pth
    ):
        return facts
    from envlock.runtime.startup import belongs_to

    kept = {key: value for key, value in pth.items() if not belongs_to(key, name)}
    return {**facts, "python": {**python, "startup": {**startup, "pth": kept}}}


def policy_of(
    lock: Dict[str, Any],
    name: Optional[str] = None,
    *,
    overrides: bool = True,
    tooling: Sequence[str] = (),
) -> Policy:
    """Return the policy in force: the lock's overrides, where they count, under the name given or else the lock's own.

    The packages that the project's entry points import are the lock's own rule, too. `tooling` are those that only
    envlock requires here; those where the lock was captured count like overrides.

    Raises:
        LockfileError: the lock names a policy or a rule that does not exist.
        UsageError: `name` does not exist.
    """
    if name is not None and name not in names():
        raise UsageError(f"unknown policy `{name}`", hint=f"choose from: {', '.join(names())}")
    try:
        project = lock.get("project", {}) if overrides else {}
        return Policy(
            name or lock["policy"]["name"],
            lock["policy"]["overrides"] if overrides else {},
            _held(project),
            tooling,
            project.get("tooling", ()),
        )
    except ValueError as error:
        raise LockfileError(
            f"invalid policy in the lockfile: {error}", hint="capture again"
        ) from None


def _held(project: Mapping[str, Any]) -> Optional[Dict[str, str]]:
    """Return how each package is known to matter to the project's entry points; None where it names none."""
    if "held" not in project:
        return None
    seen: Dict[str, str] = project.get("observed", {})
    return {**{name: f"{how} by a run" for name, how in seen.items()}, **project["held"]}
