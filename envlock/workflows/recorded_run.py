"""Run a prepared command, and record the environment before and after it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from envlock.lock import creation
from envlock.lock.live_facts import collect_live_for
from envlock.lock.writer import write_atomically
from envlock.runtime.assertion import locate
from envlock.runtime.compare import are_both_unavailable, compare
from envlock.runtime.environment_line import make_line
from envlock.runtime.errors import EnvlockError, UsageError
from envlock.runtime.judgement import build_policy
from envlock.runtime.report import Finding, sort_findings
from envlock.runtime.version import __version__
from envlock.workflows.locks import load_document
from envlock.workflows.run import Prepared
from envlock.workflows.settings import read_project_name
from envlock.workflows.signalled_child import run_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile
    from envlock.workflows.locks import Source

RECORD_VERSION = 1
POLICY = "strict"
"""What drifts is judged strictly, whatever the lockfile allows: both sides are one environment."""


@dataclass(frozen=True)
class LockVerdict:
    """The lockfile of a run.

    Attributes:
        line: its line.
        policy: the policy that it was compared under.
        match: whether the environment before the run was the locked one.
    """

    line: str
    policy: str | None
    match: bool


@dataclass(frozen=True)
class RecordedFacts:
    """The environment at one time, as in a lockfile."""

    facts: Mapping[str, object]
    unavailable: Mapping[str, object]


@dataclass(frozen=True)
class RunRecord:
    """What is recorded of a run; the values that only its end gives are None before.

    Attributes:
        record_version: of this format.
        created_by: the version of envlock.
        lock: the lockfile, and whether this was its environment.
        started, ended: times in UTC, in ISO 8601.
        exit_code: that of the command, as a shell reports it.
        before, after: the environment that the command found, and that it left.
        drift: the findings between the two, under the policy `strict`.
        problem: why there is no `after`, although the command has ended.
    """

    record_version: int
    created_by: str
    lock: LockVerdict
    started: str
    before: RecordedFacts
    ended: str | None = None
    exit_code: int | None = None
    after: RecordedFacts | None = None
    drift: tuple[Mapping[str, object], ...] | None = None
    problem: str | None = None

    def to_bytes(self) -> bytes:
        """Return it as JSON."""
        return json.dumps(asdict(self), indent=2, sort_keys=True).encode() + b"\n"


@dataclass(frozen=True)
class RecordedRun:
    """A run that has ended.

    Attributes:
        code: the exit code of the command.
        drift: what differs between the environments before and after it.
        problem: why that is unknown; None if it is known.
    """

    code: int
    drift: tuple[Finding, ...]
    problem: str | None


def check_record(path: Path, lock: Source | None) -> None:
    """Refuse to write a record over the lockfile.

    Raises:
        UsageError: both are one file.
    """
    if isinstance(lock, bytes) or not path.exists():
        return
    if path.samefile(locate(lock)):  # type: ignore[arg-type] # a path, or None
        raise UsageError(f"{path} is the lockfile", hint="name another file for the record")


def run_recorded(
    prepared: Prepared, lock: Source | None, python: Path | None, path: Path
) -> RecordedRun:
    """Run a command to its end and write the record of the run, whether it succeeds or not.

    The record is written before the command starts, without its end: a full disk is found before
    hours of work, and of a run that was killed there is what was known.

    Args:
        prepared: the command.
        lock: its lockfile.
        python: the interpreter of the environment; this one when not given.
        path: the file to write.

    Raises:
        UsageError: the command cannot be run.
        FactError: the interpreter did not answer before the run.
        WriteError: the record cannot be written.
    """
    document, _ = load_document(lock)
    before = _capture(document, python, prepared)
    record = RunRecord(
        RECORD_VERSION,
        f"envlock {__version__}",
        LockVerdict(make_line(document), prepared.report.policy, prepared.report.match),
        _read_clock(),
        _select_facts(before),
    )
    write_atomically(path, record.to_bytes(), "record")
    code = run_child(prepared, prepared.environ)
    # The time of the end is taken first: to collect the facts takes seconds of its own.
    record = replace(record, ended=_read_clock(), exit_code=code)
    drift: tuple[Finding, ...] = ()
    try:
        after = _capture(document, python, prepared)
    except EnvlockError as error:
        # The command may have broken its own environment; its exit code counts all the same.
        record = replace(record, problem=error.message)
    else:
        drift = tuple(_find_drift(before, after))
        findings = tuple(finding.to_json() for finding in drift)
        record = replace(record, after=_select_facts(after), drift=findings)
    write_atomically(path, record.to_bytes(), "record")
    return RecordedRun(code, drift, record.problem)


def _capture(document: dict[str, object], python: Path | None, prepared: Prepared) -> Lockfile:
    """Return the environment with the variables of the command, as a lockfile would have it."""
    project = {}
    name = read_project_name(Path.cwd())
    if name is not None:
        project["name"] = name
    live = collect_live_for(document, python, prepared.environ)
    return creation.capture(live=live, project=project or None)


def _find_drift(before: Lockfile, after: Lockfile) -> list[Finding]:
    rules = build_policy({"policy": {"name": POLICY, "overrides": {}}}, POLICY)
    first, last = before.to_document(), after.to_document()
    sides = (first["facts"], first["unavailable"]), (last["facts"], last["unavailable"])
    found = compare(*sides, rules, ("before", "after"))
    # A fact that is unknown at both times is not a drift.
    return sort_findings(each for each in found if not are_both_unavailable(each))


def _select_facts(lock: Lockfile) -> RecordedFacts:
    document = lock.to_document()
    return RecordedFacts(document["facts"], document["unavailable"])


def _read_clock() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
