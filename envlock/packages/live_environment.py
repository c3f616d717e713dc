"""The environment that a workflow examines; its facts and its folders are collected once."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import EnvironmentMismatch
from envlock.runtime.judgement import judge
from envlock.runtime.report import ERROR, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile
    from envlock.packages.installation import Installation


@dataclass(frozen=True)
class LiveEnvironment:
    """An environment with its facts.

    Attributes:
        python: its interpreter; None for the one that runs envlock.
        snapshot: its facts.
    """

    python: Path | None
    snapshot: Snapshot

    @property
    def interpreter(self) -> Path:
        """The file of its interpreter, also where that is the one that runs envlock."""
        if self.python is None:
            return Path(sys.executable)
        return self.python

    @property
    def has_gpu_build(self) -> bool:
        """Whether it has facts of GPUs, and a TensorFlow that was built for them."""
        tensorflow = self.snapshot.facts.get("tensorflow") or {}
        has_gpu_facts = isinstance(self.snapshot.facts.get("gpu"), dict)
        return has_gpu_facts and bool(tensorflow.get("cuda_build"))

    def get_package(self, name: str | None) -> Mapping[str, Any] | None:
        """Return the facts of a package; None if it is not installed."""
        packages = self.snapshot.facts.get("packages") or {}
        facts: Mapping[str, Any] | None = packages.get(name)
        return facts

    @cached_property
    def installation(self) -> Installation:
        """The folders of its packages; another interpreter is started to list them.

        Raises:
            UsageError: the interpreter cannot be run.
            FactError: it did not answer.
        """
        # Start-up time: `verify` reads no metadata of packages, and does not need `packaging`.
        from envlock.packages.installation import find_installation

        return find_installation(self.python)


def refuse_another_environment(
    lock: Lockfile, found: Snapshot, sections: tuple[str, ...] = ("packages",)
) -> None:
    """Check that the packages, or the facts of these sections, are those of the lockfile.

    Raises:
        EnvironmentMismatch: they are not.
    """
    report = judge(lock.to_document(), found)
    errors = report.of(ERROR)
    findings = [error for error in errors if error.where.fact.startswith(sections)]
    if findings:
        other = Report(
            findings, policy=report.policy, overrides=report.overrides, extent=report.extent
        )
        hint = (
            "run `envlock sync` to get the locked environment, or `envlock capture` to lock this one; "
            "nothing was written"
        )
        raise EnvironmentMismatch(other.to_text(), other, hint=hint)
