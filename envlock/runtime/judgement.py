"""Compare the live environment with a lockfile."""

from __future__ import annotations

import os
import sys

from envlock.runtime.collectors import Snapshot, take_snapshot
from envlock.runtime.compare import (
    NAMES,
    PROVEN,
    FactCount,
    compare,
    find_uncompared,
    find_unheld_libraries,
    find_unlocked_backend,
    find_unproven_library,
)
from envlock.runtime.errors import LockfileError, make_choice_error
from envlock.runtime.exemptions import (
    ENVLOCK,
    HELD,
    MACHINE,
    OVERRIDE,
    PROJECT,
    PROOF,
    TOOLING,
    VARIABLE,
    Exemption,
    list_exemptions,
)
from envlock.runtime.extent import Extent
from envlock.runtime.host import Host
from envlock.runtime.own_variables import get_own_recipe
from envlock.runtime.policies import Policy, get_package, is_protected, names
from envlock.runtime.report import (
    ERROR,
    INFO,
    NO_TENSORFLOW,
    SUBJECT,
    Report,
    clean,
    show,
    sort_findings,
)

LOCAL_FOLDER = "file:"
"""What is recorded about the origin of a package from a folder; for one from a file, the name of
the file is added.
"""

LOADED = "loaded"
"""The section that only an observed process has."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

    from envlock.runtime.facts import Document
    from envlock.runtime.report import Finding

ELSEWHERE = "This is another environment than the locked one, or its installation has not finished."
NO_CANARY = (
    "Verify on the locked hardware, or allow other hardware by the policy same-arch; "
    "a canary of TensorFlow proves nothing here."
)
ADD_CANARY = (
    "Run `envlock capture --canary` on the locked machine, then `envlock verify -p bits` here; "
    "or accept this machine as it is: `envlock capture --add-machine`."
)
NAME_IT = (
    "Activate the locked environment, or name it with `--python`; or `envlock sync` makes one, and "
    "`envlock sync --python PYTHON` installs into this one."
)


def judge(
    lock: Document,
    live: Snapshot,
    policy: Optional[str] = None,
    *,
    sides: Tuple[str, str] = NAMES,
    overrides: bool = True,
    proof: Optional[FrozenSet[str]] = None,
    exempt: Sequence[Exemption] = (),
) -> Report:
    """Return every difference between a lockfile and a snapshot, under the lockfile's policy or the
    one named.

    This is the verdict of every command that checks an environment. It is yes only if no fact
    differs that the policy compares, none is unavailable that it needs, and enough was compared.

    Args:
        lock: a validated document.
        live: what the collectors found.
        policy: the name of a policy; the lockfile's own when not given.
        sides: the names of the two in messages.
        overrides: whether the lockfile's own rules apply.
        proof: the results of the canary that have the locked bits on this machine
            (`machine_proof.list_results`); None if it is not proven.
        exempt: what the snapshot already leaves out.

    Raises:
        LockfileError: the lockfile names a policy or a rule that does not exist.
        UsageError: `policy` does not exist.
    """
    rules = build_policy(
        lock, policy, overrides=overrides, tooling=live.tooling, required=live.required
    )
    lock, live = _leave_out_unseen(lock, live)
    given = live
    live = _leave_out_own_package(lock, live, overrides=overrides)
    counts = {PROJECT: _count_packages(given) - _count_packages(live)}
    notes = []
    if lock.get("machines"):
        lock, which, is_first = _choose_machine(lock, live, rules, proof)
        notes.append(which)
        counts[MACHINE] = int(not is_first)
        if not is_first and LOADED in live.facts:
            lock, live = _leave_out_loaded(lock, live)
            notes.append(
                "loaded: not compared: the lockfile has seen that of its first machine only"
            )
    locked = (lock["facts"], lock["unavailable"])
    found = (live.facts, live.unavailable)
    # The canary computes nothing with that library, so that its results prove nothing here.
    if proof is not None and find_unproven_library(locked, found, rules) is not None:
        proof = None
    findings = compare(locked, found, rules, sides, proof=proof)
    # "Nothing differs" is an answer only where something was compared.
    findings += find_uncompared(locked, found, rules)
    findings += find_unlocked_backend(locked, found, rules)
    findings += find_unheld_libraries(locked, found, rules)
    return Report(
        sort_findings(findings),
        policy=rules.name,
        overrides=len(rules.overrides),
        exempt=[*list_exemptions(_count_exempt(findings, rules, counts)), *exempt],
        notes=notes,
        extent=Extent(facts=FactCount(locked, found, rules)),
    )


def _leave_out_unseen(lock: Document, live: Snapshot) -> Tuple[Document, Snapshot]:
    """Return both sides without what is loaded, unless both have looked at it: line 1 of a script and
    `--static` do not, nor did an older envlock.
    """
    if f"{LOADED}.imports" in live.unavailable:  # the look failed: no more is known
        imports = {"imports": lock["facts"][LOADED]["imports"]}
        return {**lock, "facts": {**lock["facts"], LOADED: imports}}, live
    if LOADED in lock["facts"] and LOADED in live.facts:
        return lock, live
    return _leave_out_loaded(lock, live)


def _leave_out_loaded(lock: Document, live: Snapshot) -> Tuple[Document, Snapshot]:
    """Return both sides without what is loaded."""
    facts = {name: value for name, value in lock["facts"].items() if name != LOADED}
    found = {name: value for name, value in live.facts.items() if name != LOADED}
    return {**lock, "facts": facts}, live.with_facts(found)


def _count_packages(snapshot: Snapshot) -> int:
    """Return how many packages a snapshot has; 0 if they could not be listed."""
    packages = snapshot.facts.get("packages")
    if not isinstance(packages, dict):
        return 0
    return len(packages)


def _count_exempt(
    findings: List[Finding], rules: Policy, known: Mapping[str, int]
) -> Dict[str, int]:
    """Return how much differs and passes by each owner: packages, or facts.

    Overrides are not among them: each is counted, whether it meets a difference or not.
    """
    passing: Dict[str, Set[str]] = {}
    for finding in findings:
        if finding.severity != INFO:
            continue
        path = str(finding.where)
        owner = rules.find_owner(path)
        if finding.rule == PROVEN and owner != OVERRIDE:
            owner = PROOF
        elif owner in (HELD, TOOLING, ENVLOCK):
            path = get_package(path) or path
        passing.setdefault(owner, set()).add(path)
    counts = dict(known)
    for owner, paths in passing.items():
        if owner != OVERRIDE:
            counts[owner] = len(paths)
    return counts


def _choose_machine(
    lock: Document, live: Snapshot, rules: Policy, proof: Optional[Collection[str]]
) -> Tuple[Document, str, bool]:
    """Return the lockfile with the facts of the machine that fits this one best, a sentence on
    which it is, and whether it is the first one and does fit.
    """
    # Not at the top: a lockfile with one machine, which most have, does not need it when a script
    # starts.
    from envlock.runtime import machines

    here = {"facts": live.facts, "unavailable": live.unavailable}
    place, fits = machines.find_nearest(lock, here, rules, proof=proof)
    chosen = machines.replace_machine(lock, machines.list_profiles(lock)[place])
    return chosen, machines.describe_choice(lock, place, fits), fits and place == 0


def choose_machine(lock: Document, live: Snapshot) -> Document:
    """Return the lockfile with the facts of that one of its machines that fits this one best."""
    if not lock.get("machines"):
        return lock
    chosen, _, _ = _choose_machine(lock, live, build_policy(lock), None)
    return chosen


def verify(
    lock: Document,
    policy: Optional[str] = None,
    *,
    deep: bool = False,
    host: Optional[Host] = None,
    live: Optional[Snapshot] = None,
) -> Report:
    """Compare the facts of the live environment, which are collected if they are not given; see
    `judge`. ENVLOCK_NO_OVERRIDES applies.

    With `deep`, every installed file is also compared with its RECORD.
    """
    if live is None:
        live = collect_here(lock, host)
    report = annotate(judge_here(lock, live, policy, overrides=has_overrides_enabled()), os.environ)
    if deep:
        report = add_files(report, lock)
    return report


def add_files(report: Report, lock: Document) -> Report:
    """Return the report with findings about installed files that are not as recorded."""
    # Not at the top: a script without ENVLOCK_MODE=deep reads no installed file.
    from envlock.runtime.files.deep import verify_files

    findings, number = verify_files(lock)
    return report.add_findings(findings, extent=Extent(files=number))


def collect_here(lock: Document, host: Optional[Host] = None) -> Snapshot:
    """Return what the collectors find; a package with the files of its locked wheel gets the locked
    origin.
    """
    if host is None:
        host = Host()
    # Its sources are not hashed: they need not be as locked.
    host.own_package = _find_uncompared_package(lock)
    live = take_snapshot(host)
    if lock["facts"].get("packages") == live.facts.get("packages"):
        return live
    # Not at the top: if all packages are as locked, no metadata is read.
    from envlock.runtime.locked_wheels import complete_packages

    machine = host
    return complete_packages(lock, live, lambda: machine)


def _find_uncompared_package(lock: Document) -> Optional[str]:
    """Return the project's own package, if the lockfile does not lock it: its code is left out."""
    name: Optional[str] = lock.get("project", {}).get("name")
    if name in (lock["facts"].get("packages") or {}):
        return None
    return name


def judge_here(
    lock: Document,
    live: Snapshot,
    policy: Optional[str] = None,
    subject: str = SUBJECT,
    overrides: bool = True,
    python: Optional[str] = None,
) -> Report:
    """Compare this machine with a lockfile; see `judge`. A proof in the user's cache counts.

    Args:
        lock, live, policy, overrides: as in `judge`.
        subject: the file that findings without a place of their own are about.
        python: the interpreter that a message names; this one when not given.
    """
    counted, exempt = _count_own_variables(live, overrides)
    report = judge(lock, counted, policy, overrides=overrides, exempt=exempt)
    report.subject = subject
    # The cache is read last, and only if a proof would decide: a match does not need it.
    if not needs_proof(report):
        return _lead_with_tensorflow(report, python or sys.executable)
    if "numerics" not in lock:
        for finding in report.findings:
            if finding.rule == PROVEN:
                finding.fix = ADD_CANARY
    library = find_unproven(lock, live, policy, overrides)
    if library is not None:
        for finding in report.findings:
            if finding.rule == PROVEN:
                finding.fix = NO_CANARY
        report.notes.append(
            f"no proof for this machine is possible: the program can compute with {library}, "
            "of which the canary computes nothing"
        )
        return report
    # Not at the top: most machines are the locked one, and need no proof.
    from envlock.runtime import machine_proof

    if not machine_proof.is_proven(lock, counted, os.environ):
        return report
    report = judge_proven(lock, live, policy, overrides, machine_proof.list_results(lock))
    report.subject = subject
    report.notes.append(machine_proof.note(lock))
    return report


def find_unproven(
    lock: Document, live: Snapshot, policy: Optional[str] = None, overrides: bool = True
) -> Optional[str]:
    """Return the library beside TensorFlow with which the program can compute, or None; see
    `find_unproven_library`.
    """
    rules = build_policy(lock, policy, overrides=overrides, tooling=live.tooling)
    locked = (lock["facts"], lock["unavailable"])
    return find_unproven_library(locked, (live.facts, live.unavailable), rules)


def judge_proven(
    lock: Document,
    live: Snapshot,
    policy: Optional[str],
    overrides: bool,
    proof: FrozenSet[str],
) -> Report:
    """Judge this machine, on which these results of the canary have the locked bits; see `judge`."""
    counted, exempt = _count_own_variables(live, overrides)
    return judge(lock, counted, policy, overrides=overrides, proof=proof, exempt=exempt)


def _count_own_variables(live: Snapshot, overrides: bool) -> Tuple[Snapshot, List[Exemption]]:
    """Return the snapshot to judge, and the exemption of variables that envlock has set itself."""
    own = get_own_recipe(os.environ)
    if not own:
        return live, []
    if overrides:
        return live, [Exemption(VARIABLE, len(own))]
    return _with_variables(live, own), []


def _with_variables(live: Snapshot, own: Mapping[str, str]) -> Snapshot:
    """Return a snapshot in which variables that envlock has set are treated like any other fact."""
    environ = live.facts.get("environ")
    if not isinstance(environ, dict):
        return live
    return live.with_facts({**live.facts, "environ": {**environ, **own}})


def _lead_with_tensorflow(report: Report, python: str) -> Report:
    """Return a report that begins with the missing TensorFlow, if it is locked and not installed:
    all other differences follow from that.
    """
    for finding in report.findings:
        is_tensorflow = str(finding.where) == "tensorflow" and finding.severity == ERROR
        if is_tensorflow and finding.actual is None:
            finding.rule = NO_TENSORFLOW
            finding.weight = 100
            finding.why = ELSEWHERE
            finding.fix = NAME_IT
            locked = show(finding.expected)
            finding.message = f"no TensorFlow in {clean(python)}, but {locked} in the lockfile"
            report.findings.remove(finding)
            report.findings.insert(0, finding)
            return report.add_findings([])
    return report


def needs_proof(report: Report) -> bool:
    """Return whether facts differ that may differ on a machine that is proven to compute the locked
    bits.
    """
    return any(finding.rule == PROVEN and finding.severity != INFO for finding in report.findings)


def annotate(report: Report, environ: Mapping[str, str]) -> Report:
    """Return a report that shows values in plain text, and explains differences that a launcher or
    a worker pool causes.

    Both depend on the variables of the process. A report without findings is returned unchanged, at
    no cost.
    """
    if report.findings:
        # Not at the top: a script that matches starts without it.
        from envlock.runtime.launchers import annotate_findings

        annotate_findings(report, environ)
    return report


def has_overrides_enabled() -> bool:
    """Return whether a lockfile's own rules apply in this process: ENVLOCK_NO_OVERRIDES=1 switches
    them off.
    """
    return os.environ.get("ENVLOCK_NO_OVERRIDES", "") in ("", "0")


def _leave_out_own_package(lock: Document, live: Snapshot, *, overrides: bool) -> Snapshot:
    """Return a snapshot without the package that the lockfile names as the project's own, if it may
    be left out.

    TensorFlow and what computes beside it is never left out, nor is a package that the lockfile
    locks under that name. If the lockfile's own rules do not apply, the package must be installed
    from a folder of this machine, as a project is: a package from an index is not the project's.
    """
    name = lock.get("project", {}).get("name")
    if name is None or is_protected(f"packages.{name}"):
        return live
    locked = lock["facts"].get("packages")
    if isinstance(locked, dict) and name in locked:
        return live
    if not overrides and _get_origin_url(live, name) != LOCAL_FOLDER:
        return live
    return remove_package(live, name)


def _get_origin_url(live: Snapshot, name: str) -> object:
    """Return what is recorded about where a package came from; None if nothing is."""
    packages = live.facts.get("packages") or {}
    package = packages.get(name) or {}
    origin = package.get("origin") or {}
    return origin.get("url")


def remove_package(live: Snapshot, name: Optional[str]) -> Snapshot:
    """Return a snapshot without the project's own package: its code belongs to the project, in any
    version.
    """
    packages = live.facts.get("packages")
    if name is None or not isinstance(packages, dict):
        return live
    facts = {
        **live.facts,
        "packages": {other: packages[other] for other in packages if other != name},
    }
    own = f"packages.{name}."
    unavailable = live.unavailable.copy()
    for path in live.unavailable:
        if f"{path}.".startswith(own):
            del unavailable[path]
    return live.with_facts(facts, unavailable)


def build_policy(
    lock: Document,
    name: Optional[str] = None,
    *,
    overrides: bool = True,
    tooling: Sequence[str] = (),
    required: Sequence[str] = (),
) -> Policy:
    """Return the policy that applies: the one named, else the lockfile's own, with the lockfile's
    rules.

    The packages that the project's entry points import count as rules of the lockfile.

    Args:
        lock: a validated document.
        name: the name of a policy.
        overrides: whether the lockfile's own rules apply.
        tooling: the packages that only envlock requires here; those at the time of the capture
            count like overrides.
        required: the packages that what computes requires here.

    Raises:
        LockfileError: the lockfile names a policy or a rule that does not exist.
        UsageError: `name` does not exist.
    """
    if name is not None and name not in names():
        raise make_choice_error("policy", name, names())
    project: Document = {}
    rules: Mapping[str, str] = {}
    if overrides:
        project = lock.get("project", {})
        rules = lock["policy"]["overrides"]
    try:
        return Policy(
            name or lock["policy"]["name"],
            rules,
            _describe_held_packages(project),
            tooling,
            project.get("tooling", ()),
            required,
        )
    except ValueError as error:
        raise LockfileError(
            f"invalid policy in the lockfile: {error}", hint="capture again"
        ) from None


def _describe_held_packages(project: Document) -> Optional[Dict[str, str]]:
    """Return why each package matters to the entry points; None without entry points."""
    if "held" not in project:
        return None
    held = {}
    for name, how in project.get("observed", {}).items():
        held[name] = f"{how} by a run"
    held.update(project["held"])
    return held
