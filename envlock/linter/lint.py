"""Find code that makes TensorFlow give different bits."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path

from envlock.data.determinism import load_source_table
from envlock.data.lint_tables import load_lint_rules
from envlock.data.specifiers import parse_version
from envlock.linter.baseline import WRITE, Judged, filter_known, make_baseline, parse_baseline
from envlock.linter.files import find, find_installed
from envlock.linter.linter import Settings, list_active_rules
from envlock.linter.linter import lint as judge
from envlock.lock.locks import load_lock
from envlock.lock.writer import write_atomically
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.collectors import tensorflow as installed
from envlock.runtime.errors import UsageError
from envlock.runtime.host import Host
from envlock.runtime.report import (
    ERROR,
    WARNING,
    Evidence,
    Finding,
    Report,
    clean,
    count,
    count_severities,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source

TRUE = ("1", "true")


@dataclass(frozen=True)
class LintEvidence(Evidence):
    """How many files were read, and the version of TensorFlow that they were checked against."""

    files: int
    tensorflow: str

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {"files": self.files, "tensorflow": self.tensorflow}


def lint(
    paths: Sequence[str | os.PathLike[str]],
    *,
    tensorflow: str | None = None,
    lock: Source | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    exclude: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Report[LintEvidence]:
    """Return the findings in files and folders, by file and line. The code is read and never run.

    Those in tests come after the others, and those in functions that nothing calls come last.

    The report matches if it has no findings, or only notes. The attachments are `files` (how many
    were read) and `tensorflow` (the version that they were checked against).

    Args:
        paths: files, and folders with *.py and *.ipynb files.
        tensorflow: the version to check against; when not given that of the lockfile, else the
            installed one, else the newest known.
        lock: the lockfile that says which TensorFlow, and whether op determinism is on.
        select: only these rules, or prefixes of rules.
        ignore: leave out these rules, or prefixes of rules.
        exclude: patterns of files that are not read.
        progress: shows what is being done.

    Raises:
        UsageError: a path, a rule or the version does not exist, or the paths have no code.
        LockfileError: the lockfile cannot be read.
    """
    options = LintOptions(tensorflow, lock, tuple(select), tuple(ignore), exclude=tuple(exclude))
    return lint_with(paths, options, progress)


@dataclass(frozen=True)
class LintOptions:
    """What `lint` takes, and two things more.

    Attributes:
        tensorflow, lock, select, ignore, exclude: as of `lint`.
        per_file: rules, or prefixes of rules, that are ignored in the files that a pattern fits.
        baseline: what `make_baseline` made of earlier findings, which are left out, or None.
        python: the interpreter whose TensorFlow counts as the installed one; None for this one.
    """

    tensorflow: str | None = None
    lock: Source | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file: Mapping[str, Sequence[str]] = field(default_factory=dict)
    baseline: Mapping[str, object] | None = None
    python: Path | None = None


def lint_with(
    paths: Sequence[str | os.PathLike[str]], options: LintOptions, progress: Progress = SILENT
) -> Report[LintEvidence]:
    """Return the findings as `lint` does, less those that the options leave out.

    Raises:
        UsageError: a path, a rule or the version does not exist, the paths have no code, or the
            baseline is not one.
        LockfileError: the lockfile cannot be read.
    """
    version, origin, switched_on = _choose_version(options.tensorflow, options.lock, options.python)
    per_file = [(each, tuple(rules)) for each, rules in options.per_file.items()]
    wanted = [os.fspath(path) for path in paths]
    files = find(wanted, list(options.exclude))
    if not files:
        raise UsageError(
            f"no Python files or notebooks in {', '.join(map(clean, wanted))}",
            hint="name files, or folders that have some besides those of `exclude` in the settings",
        )
    settings = Settings(
        version,
        switched_on=switched_on,
        select=options.select,
        ignore=options.ignore,
        per_file=tuple(per_file),
        installed=find_installed(files),
    )
    with progress.bar("reading", len(files)) as advance:
        findings = judge(files, settings, lambda: advance(1))
    newer = load_source_table().horizon.describe_beyond(version)
    notes = [newer] if newer else []
    if options.baseline is not None:
        rules = list_active_rules(settings)

        # A finding that is gone counts as corrected only where this call would have found it.
        def is_examined(file: str, rule: str) -> bool:
            read_or_deleted = file in files or not Path(file).exists()
            return read_or_deleted and rule in rules

        judged = filter_known(findings, parse_baseline(options.baseline), is_examined)
        findings = judged.new
        notes += _describe_baseline(judged)
    read = count(len(files), "file")
    return Report(
        findings,
        command="lint",
        headline=f"{count_severities(findings) or 'no findings'} in {read}, for TensorFlow {version} ({origin})",
        notes=notes,
        titles={rule: row.title for rule, row in load_lint_rules().items()},
        evidence=LintEvidence(len(files), version),
        breaking=(ERROR, WARNING),
    )


def _describe_baseline(judged: Judged) -> list[str]:
    """Return what a reader must know of findings that are not shown."""
    notes = []
    if judged.known:
        notes.append(f"{count(judged.known, 'finding')} of the baseline not shown")
    if judged.gone:
        gone = count(judged.gone, "finding")
        notes.append(f"{gone} of the baseline not found any more: write it again")
    return notes


def read_baseline(file: Path) -> dict[str, object]:
    """Return a baseline that was written before.

    Raises:
        UsageError: it cannot be read, or is not JSON.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}", hint=WRITE) from None
    except ValueError:
        raise UsageError(f"cannot read {file}: it is not JSON") from None
    if not isinstance(document, dict):
        raise UsageError(f"cannot read {file}: it is not a baseline")
    return document


def write_baseline(file: Path, findings: Sequence[Finding]) -> None:
    """Write the baseline of some findings.

    Raises:
        UsageError: the file cannot be written.
    """
    text = json.dumps(make_baseline(findings), indent=1, ensure_ascii=False) + "\n"
    try:
        write_atomically(file, text.encode())
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from None


def _choose_version(
    version: str | None, source: Source | None, python: Path | None
) -> tuple[str, str, bool]:
    """Return the TensorFlow to check against, how it is known, and whether op determinism is on
    there.

    Raises:
        UsageError: `version` is not a version.
    """
    switched_on = False
    locked = None
    if source is not None:
        facts = load_lock(source).facts
        environ = facts.environ or {}
        switched_on = str(environ.get("TF_DETERMINISTIC_OPS")).lower() in TRUE
        if facts.tensorflow is not None:
            locked = facts.tensorflow.version
    if version is not None:
        if parse_version(version) is None:
            hint = "use the form that `pip list` shows, such as 2.16.2"
            raise UsageError(f"invalid TensorFlow version `{version}`", hint=hint)
        return version, "as given", switched_on
    live = _find_installed(python)
    for known, origin in ((locked, "locked"), (live, "installed")):
        parsed = parse_version(known)
        if parsed is not None:
            return str(parsed), origin, switched_on
    return load_source_table().horizon.through, "the newest known", switched_on


def _find_installed(python: Path | None) -> object:
    """Return the version of the TensorFlow that is installed beside an interpreter, or None.

    Of another interpreter its files are read; nothing is started.
    """
    if python is None:
        found = installed.collect(Host())
        return found.get("version") if isinstance(found, dict) else None
    # Not resolved: in an environment it is a link to the interpreter that made it.
    folders = python.absolute().parent.parent.glob("lib*/python3*/site-packages")
    for each in distributions(path=list(map(str, folders))):
        if each.metadata["Name"].lower().replace("_", "-") in installed.DISTRIBUTIONS:
            return each.version
    return None
