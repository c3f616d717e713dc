"""Prepare a command to run in the locked environment."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envlock.lock.live import live, live_of
from envlock.runtime.collectors import tensorflow
from envlock.runtime.errors import UsageError
from envlock.runtime.host import Host
from envlock.runtime.own_variables import ADDED, added, listed
from envlock.runtime.recipe import recipe_for
from envlock.runtime.report import Report
from envlock.runtime.short import with_acceptance
from envlock.runtime.tables import table
from envlock.runtime.variables import NAME as HASH_SEED
from envlock.runtime.variables import Variables, is_number, plan
from envlock.runtime.verify import for_machine, judge_here, overrides_count, told
from envlock.workflows.locks import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


@dataclass(frozen=True)
class Prepared:
    """A command as it is to be started.

    Attributes:
        program: the file to execute.
        command: its arguments, its name first.
        environ: its variables.
        report: how the environment, with these variables, differs from the lock.
        changes: name, and the new value or None for unset, of each variable that is not as it was.
        overruled: name, the lock's value, and what determinism needs (None: unset) where the lock wins.
    """

    program: str
    command: tuple[str, ...]
    environ: Mapping[str, str]
    report: Report
    changes: tuple[tuple[str, str | None], ...]
    overruled: tuple[tuple[str, str, str | None], ...]

    def execute(self) -> None:
        """Take this process's place; return only by raising.

        Raises:
            UsageError: the program cannot be executed.
        """
        try:
            os.execve(self.program, list(self.command), dict(self.environ))  # noqa: S606 (the point: no shell)
        except OSError as error:
            hint = "check that it is executable"
            raise UsageError(
                f"cannot run `{self.command[0]}`: {error.strerror}", hint=hint
            ) from None


def prepare(
    command: Sequence[str],
    lock: Source | None = None,
    *,
    policy: str | None = None,
    python: Path | None = None,
    deterministic: bool = False,
    seed: int | None = None,
) -> Prepared:
    """Return a command with the variables of a lock and of the recipe of the installed TensorFlow.

    Args:
        command: the program and its arguments; a bare `python` is this environment's.
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        policy: how closely to compare; the lock's own when not given.
        python: the interpreter of the environment; this one when not given.
        deterministic: also switch op determinism on.
        seed: what `envlock.activate()` seeds with where the program names none.

    Raises:
        LockfileError: the lock is missing, unreadable, invalid, or newer than this envlock.
        UsageError: there is no such command or policy, or it is the Python of another environment.
    """
    document, subject = plain(lock)
    folder = Path(sys.prefix) / "bin" if python is None else python.absolute().parent
    wanted = _variables(
        _facts(document, python),
        _tensorflow(python),
        folder,
        deterministic=deterministic,
        seed=seed,
    )
    program = _program(command[0], wanted.environ["PATH"], folder)
    found = live_of(document, python, wanted.environ)
    where = None if python is None else str(python)
    report = told(
        judge_here(document, found, policy, subject, overrides_count(), where), wanted.environ
    )
    report = with_acceptance(report)
    changes = tuple((name, value) for name, value, _ in wanted.changes)
    return Prepared(program, tuple(command), wanted.environ, report, changes, tuple(wanted.kept))


def _facts(document: dict[str, Any], python: Path | None) -> dict[str, Any]:
    """Return the facts of a lock; of several machines those of the one that this is."""
    facts: dict[str, Any] = document["facts"]
    return for_machine(document, live(python))["facts"] if "machines" in document else facts


def _tensorflow(python: Path | None) -> str | None:
    """Return the version of the installed TensorFlow, where there is one and its version is known."""
    installed = (
        tensorflow.collect(Host()) if python is None else live(python).facts.get("tensorflow")
    )
    version = installed.get("version") if isinstance(installed, dict) else None
    return version if isinstance(version, str) else None


def _variables(
    facts: Mapping[str, Any],
    version: str | None,
    folder: Path,
    *,
    deterministic: bool,
    seed: int | None,
) -> Variables:
    """Return the variables for the command; `folder` is that of the environment's programs."""
    environ = dict(os.environ)
    environ["PATH"] = os.pathsep.join([str(folder), environ.get("PATH", os.defpath)])
    recipe = recipe_for(version) if version is not None else None
    needed = {**recipe.set, **(recipe.by_variable if deterministic else {})} if recipe else {}
    wanted = plan(environ, facts, needed, recipe.unset if recipe and deterministic else [])
    own = (
        {}
        if is_number(wanted.environ.get(HASH_SEED, ""))
        else table("determinism_recipes")["always"]
    )
    additions = {**added(wanted.environ), **own}
    if additions:
        own = {**own, ADDED: listed(additions)}
    own = own if seed is None else {**own, "ENVLOCK_SEED": str(seed)}
    changes = [
        *wanted.changes,
        *((name, value, "") for name, value in own.items() if name != ADDED),
    ]
    return Variables({**wanted.environ, **own}, sorted(changes), wanted.kept)


def located(name: str, path: str | None = None) -> str:
    """Return the file of a program, from the folders of PATH where none are given.

    Raises:
        UsageError: it is in none of them.
    """
    found = shutil.which(name, path=path)
    if found is None:
        raise UsageError(f"command not found: {name}", hint="check its spelling and PATH")
    return found


def _program(name: str, path: str, own: Path) -> str:
    found = located(name, path)
    folder = Path(found).parent
    is_python = Path(found).name.startswith("python")
    if is_python and folder.resolve() != own.resolve():
        raise UsageError(
            f"{found} is not the Python of the verified environment ({own.parent})",
            hint="name its environment with `--python`, or write a bare `python`",
        )
    return found
