"""What `envlock lint` puts together: files, settings, the TensorFlow to judge for, and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from envlock.cli.config import Config
from envlock.cli.progress import bar
from envlock.data.determinism import sources_table
from envlock.data.lint import lint_rules, reference
from envlock.determinism.lint.files import find
from envlock.determinism.lint.finding import Finding
from envlock.determinism.lint.linter import Settings, lint
from envlock.reports import github, junit, listing, sarif
from envlock.reports.problem import Problem, Rule
from envlock.runtime import lockfile
from envlock.runtime.collectors import tensorflow as installed
from envlock.runtime.errors import UsageError
from envlock.runtime.host import Host

FORMATS = ("text", "json", "github", "junit", "sarif")
TRUE = ("1", "true")


@dataclass(frozen=True)
class Judged:
    """For which TensorFlow code is judged, who said so, and whether the locked environment turns op determinism on."""

    tensorflow: str
    origin: str
    switched_on: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a run found, and in how many files."""

    findings: list[Finding]
    files: int
    judged: Judged

    @property
    def exit_code(self) -> int:
        """1 where there is an error or a warning."""
        return int(any(finding.severity != "info" for finding in self.findings))


def run(
    paths: Sequence[str], judged: Judged, config: Config, *, select: list[str], ignore: list[str], quiet: bool
) -> Outcome:
    """Return what is found in files and folders; what the command line names goes before the project's settings.

    Raises:
        UsageError: a path or a rule does not exist.
    """
    settings = Settings(
        judged.tensorflow,
        switched_on=judged.switched_on,
        select=tuple(_names(select) or config.lint.get("select", [])),
        ignore=(*_names(ignore), *config.lint.get("ignore", [])),
    )
    files = find([*paths], config.lint.get("exclude", []))
    with bar("reading", len(files), quiet=quiet) as advance:
        return Outcome(lint(files, settings, lambda: advance(1)), len(files), judged)


def judge_for(version: str | None, lock: str | None) -> Judged:
    """Return the TensorFlow named, else the lock's, else the installed one, else the newest that the tables know.

    Raises:
        UsageError: the version is none.
        LockfileError: the lockfile cannot be read.
    """
    locked = None if lock is None else lockfile.read_file(lock)["facts"]
    environ = (locked or {}).get("environ") or {}
    switched_on = isinstance(environ, dict) and str(environ.get("TF_DETERMINISTIC_OPS")).lower() in TRUE
    if version is not None:
        try:
            Version(version)
        except InvalidVersion:
            hint = "write it as `pip list` shows it, for example 2.16.2"
            raise UsageError(f"`{version}` is no version of TensorFlow", hint=hint) from None
        return Judged(version, "as asked", switched_on)
    known = _version_in((locked or {}).get("tensorflow"))
    if known is not None:
        return Judged(known, "the lock's", switched_on)
    known = _version_in(installed.collect(Host()))
    if known is not None:
        return Judged(known, "the installed one", switched_on)
    return Judged(sources_table().checked_through, "the newest known", switched_on)


def _version_in(facts: Any) -> str | None:
    """Return the version of TensorFlow in its facts, if there is one that compares."""
    version = facts.get("version") if isinstance(facts, dict) else None
    try:
        return str(Version(version)) if isinstance(version, str) else None
    except InvalidVersion:
        return None


def near_lock(config: Config) -> str | None:
    """Return the lockfile of the project: the one its settings name, else the nearest; None where there is none."""
    if config.lock is not None:
        return str(config.lock)
    return lockfile.find(str(Path.cwd()))


def rendered(outcome: Outcome, format: str, *, color: bool) -> str:  # noqa: A002 (the option's name)
    """Return the outcome in one of FORMATS."""
    rules = [Rule(r.id, r.title, r.severity, r.why, r.fix, reference(r.source)) for r in lint_rules().values()]
    found = [_problem(finding) for finding in outcome.findings]
    if format == "json":
        facts = {"tensorflow": outcome.judged.tensorflow, "files": outcome.files, "clean": not outcome.exit_code}
        return listing.json(rules, found, facts)
    if format == "github":
        return github.commands(rules, found)
    if format == "sarif":
        return sarif.log(rules, found)
    if format == "junit":
        return junit.suite("envlock lint", rules, found)
    files = "1 file" if outcome.files == 1 else f"{outcome.files} files"
    judged = f"{files}, for TensorFlow {outcome.judged.tensorflow} ({outcome.judged.origin})"
    return listing.text(rules, found, judged, color=color)


def _problem(finding: Finding) -> Problem:
    return Problem(
        rule=finding.rule,
        severity=finding.severity,
        message=finding.message,
        fix=finding.fix,
        file=finding.path,
        line=finding.line,
        column=finding.column,
        end_line=finding.end_line,
        end_column=finding.end_column,
        text=finding.text,
    )


def _names(values: Sequence[str]) -> list[str]:
    """Return `ENV1,ENV205` and repeated options as one list."""
    return [name.strip() for value in values for name in value.split(",") if name.strip()]
