"""Check that a committed lockfile matches this environment and the settings of the project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from envlock.lock.settings import Config, choose_policy
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.judgement import has_overrides_enabled
from envlock.runtime.lockfile import read_file
from envlock.runtime.report import ERROR, SETTINGS, Finding, Report
from envlock.workflows.verify import verify

WHY = (
    "A lockfile is compared under what it says itself: other settings have no effect before they "
    "are captured."
)
FIX = "Run `envlock capture`, or put the settings back as they were."


def check(
    lock: Path,
    config: Config,
    policy: str | None = None,
    *,
    entry: Sequence[str] | None = None,
    python: Path | None = None,
    numerics: bool = False,
    progress: Progress = SILENT,
) -> Report:
    """Return what `verify` returns, and in addition whether the settings of the project are those
    of the lockfile.

    Args:
        lock: the lockfile.
        config: the settings of the project.
        policy: how strictly to compare; the lockfile's own when not given.
        entry: the entry points that the lockfile should have; those of the settings when not given.
        python: the interpreter of the environment; this one when not given.
        numerics: also compute the canary of the lockfile.
        progress: shows what is being done.

    Raises:
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        UsageError: there is no such policy or interpreter, or a proof for this machine cannot be
            stored.
        FactError: the interpreter did not answer, or the lockfile has no canary and one is
            required.
    """
    report = verify(
        lock,
        policy,
        overrides=has_overrides_enabled(),
        python=python,
        numerics=numerics,
        progress=progress,
    )
    wanted = config.entry if entry is None else entry
    changed = list(_compare_settings(read_file(str(lock)), config, wanted))
    if changed:
        report = report.add_findings(changed)
    return report


def _compare_settings(
    document: Mapping[str, Any], config: Config, entry: Sequence[str] | None
) -> Iterator[Finding]:
    """Yield each setting in which project and lockfile differ; a setting that the project does not
    have cannot differ.
    """
    locked = document["policy"]
    if config.policy is not None or config.overrides:
        name, overrides = choose_policy(None, config, None)
        if name != locked["name"]:
            yield _make_finding("policy.name", locked["name"], name)
        for path in sorted({*overrides, *locked["overrides"]}):
            old, new = locked["overrides"].get(path), overrides.get(path)
            if old != new:
                yield _make_finding(f"policy.{path}", old, new)
    known = document.get("project", {}).get("entry", [])
    if entry is not None and list(dict.fromkeys(entry)) != known:
        yield _make_finding("entry", ", ".join(known) or None, ", ".join(entry) or None)
    data = sorted(document.get("data", ()))
    if config.data is not None and list(config.data) != data:
        yield _make_finding("data", ", ".join(data) or None, ", ".join(config.data) or None)


def _make_finding(setting: str, locked: str | None, current: str | None) -> Finding:
    """Return the finding that a setting of `[tool.envlock]` differs from the lockfile."""
    where = f"tool.envlock.{setting}"
    message = f"{where}: locked {locked or 'none'}, pyproject.toml {current or 'none'}"
    return Finding(
        SETTINGS,
        ERROR,
        where,
        message=message,
        why=WHY,
        fix=FIX,
        source="[tool.envlock]",
        expected=locked,
        actual=current,
    )
