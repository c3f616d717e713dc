"""What `envlock verify --deep` does beyond the facts: it reads every file, and asks TensorFlow itself."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from envlock.cli.output import talk
from envlock.cli.progress import Advance, bar
from envlock.determinism import loaded_cuda as asked
from envlock.lock.document import identity_of
from envlock.lock.identity import Identity
from envlock.packages.files.survey import survey
from envlock.packages.files.verification import verify_files
from envlock.packages.installation import installation
from envlock.runtime.capture import Snapshot
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.report import Finding


def deep(name: str, document: dict[str, Any], found: Snapshot, python: Path | None, *, quiet: bool) -> list[Finding]:
    """Return what is wrong with the files of the environment, then what TensorFlow's own answer contradicts.

    Raises:
        UsageError: there is no such interpreter.
        FactError: it did not answer.
        LockfileError: the lock's section about packages is not valid.
    """
    findings = files(identity_of(document, name), python, quiet=quiet)
    if isinstance(found.facts.get("cuda"), dict):  # no CUDA build of TensorFlow: there is nothing to ask
        talk("asking TensorFlow itself which CUDA libraries it gets", quiet=quiet)
    return findings + contradictions(found, python)


def files(lock: Identity | None, python: Path | None, *, quiet: bool) -> list[Finding]:
    """Return what about the files is not as recorded, or not as locked."""

    def watch(title: str, total: int, in_bytes: bool) -> AbstractContextManager[Advance]:
        return bar(title, total, quiet=quiet, in_bytes=in_bytes)

    packages = {} if lock is None else lock.packages
    return verify_files(survey(installation(python)), python or Path(sys.executable), packages, watch)


def contradictions(found: Snapshot, python: Path | None) -> list[Finding]:
    """Return where TensorFlow's own libraries answer otherwise than its files say."""
    cuda = found.facts.get("cuda")
    if not isinstance(cuda, dict):
        return []
    answers = asked.ask_tensorflow(Host(), python=python)
    return [asked.unanswered(answers)] if isinstance(answers, Unavailable) else asked.contradictions(cuda, answers)
