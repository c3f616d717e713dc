"""Prepare a command to run in the locked environment."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envlock.lock.live_facts import collect_live, collect_live_for
from envlock.runtime.collectors import tensorflow
from envlock.runtime.errors import UsageError
from envlock.runtime.host import Host
from envlock.runtime.judgement import annotate, choose_machine, has_overrides_enabled, judge_here
from envlock.runtime.own_variables import ADDED, format_additions, get_additions
from envlock.runtime.recipe import find_recipe
from envlock.runtime.report import Report
from envlock.runtime.short_report import with_acceptance
from envlock.runtime.tables import table
from envlock.runtime.variable_plan import NAME as HASH_SEED
from envlock.runtime.variable_plan import Variables, is_number, plan_variables
from envlock.workflows.locks import load_document

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
        overruled: name, the lock's value, and what determinism needs (None: unset) where the lock
            wins.
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


@dataclass(frozen=True)
class _Needs:
    """What the variables of a command are made from.

    Attributes:
        folder: that of the environment's programs, which comes first in PATH.
        version: of the installed TensorFlow; None where it is unknown.
        deterministic: also switch op determinism on.
        seed: for `envlock.activate()`; None leaves it to the program.
    """

    folder: Path
    version: str | None
    deterministic: bool
    seed: int | None


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
    document, subject = load_document(lock)
    folder = Path(sys.prefix) / "bin"
    interpreter = None
    if python is not None:
        folder = python.absolute().parent
        interpreter = str(python)
    facts = document["facts"]
    if "machines" in document:
        facts = choose_machine(document, collect_live(python))["facts"]
    needs = _Needs(folder, _find_tensorflow(python), deterministic, seed)
    wanted = _make_variables(facts, needs)
    program = _find_command(command[0], wanted.environ["PATH"], folder)
    # Collected only now: the facts are compared as the command will find them.
    found = collect_live_for(document, python, wanted.environ)
    report = judge_here(document, found, policy, subject, has_overrides_enabled(), interpreter)
    report = with_acceptance(annotate(report, wanted.environ))
    changes = tuple((name, value) for name, value, _ in wanted.changes)
    return Prepared(program, tuple(command), wanted.environ, report, changes, tuple(wanted.kept))


def _find_tensorflow(python: Path | None) -> str | None:
    """Return the version of the installed TensorFlow; None where there is none, or its version is unknown."""
    if python is None:
        # Without the other facts, which takes a fraction of the time.
        installed: object = tensorflow.collect(Host())
    else:
        installed = collect_live(python).facts.get("tensorflow")
    if isinstance(installed, dict) and isinstance(installed.get("version"), str):
        return str(installed["version"])
    return None


def _make_variables(facts: Mapping[str, object], needs: _Needs) -> Variables:
    """Return the variables for the command, and which of them are not as in this process."""
    environ = dict(os.environ)
    environ["PATH"] = os.pathsep.join([str(needs.folder), environ.get("PATH", os.defpath)])
    needed: dict[str, str] = {}
    unwanted: Sequence[str] = ()
    recipe = None
    if needs.version is not None:
        recipe = find_recipe(needs.version)
    if recipe is not None:
        needed.update(recipe.set)
        if needs.deterministic:
            needed.update(recipe.by_variable)
            unwanted = recipe.unset
    wanted = plan_variables(environ, facts, needed, unwanted)
    own: dict[str, str] = {}
    # A hash seed that somebody has chosen, by the lock or in this shell, stays.
    if not is_number(wanted.environ.get(HASH_SEED, "")):
        own.update(table("determinism_recipes")["always"])
    additions = {**get_additions(wanted.environ), **own}
    if needs.seed is not None:
        own["ENVLOCK_SEED"] = str(needs.seed)
    changes = [*wanted.changes, *((name, value, "") for name, value in own.items())]
    if additions:
        # By this an envlock in the command does not count our variables as a difference.
        own[ADDED] = format_additions(additions)
    return Variables({**wanted.environ, **own}, sorted(changes), wanted.kept)


def find_program(name: str, path: str | None = None) -> str:
    """Return the file of a program, from the folders of PATH where none are given.

    Raises:
        UsageError: it is in none of them.
    """
    found = shutil.which(name, path=path)
    if found is None:
        raise UsageError(f"command not found: {name}", hint="check its spelling and PATH")
    return found


def _find_command(name: str, path: str, own: Path) -> str:
    """Return the file of a command.

    Raises:
        UsageError: there is none, or it is a Python that is not in `own`, the folder of the
            verified environment.
    """
    found = find_program(name, path)
    folder = Path(found).parent
    is_python = Path(found).name.startswith("python")
    if is_python and folder.resolve() != own.resolve():
        raise UsageError(
            f"{found} is not the Python of the verified environment ({own.parent})",
            hint="name its environment with `--python`, or write a bare `python`",
        )
    return found
