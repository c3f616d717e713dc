"""Prepare a command to run in the locked environment."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envlock.lock.live_facts import collect_live, collect_live_for
from envlock.lock.locks import get_file, load_document, name_found_lock
from envlock.packages.live_environment import LiveEnvironment
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.collectors import tensorflow
from envlock.runtime.errors import UsageError
from envlock.runtime.host import Host
from envlock.runtime.input_data import add_data
from envlock.runtime.judgement import (
    LOADED,
    annotate,
    choose_machine,
    has_overrides_enabled,
    judge_here,
)
from envlock.runtime.loaded.agreement import name_files
from envlock.runtime.own_variables import ADDED, format_additions, get_additions
from envlock.runtime.recipe import find_recipe, warn_beyond_recipes
from envlock.runtime.report import Report
from envlock.runtime.tables import table
from envlock.runtime.variable_plan import NAME as HASH_SEED
from envlock.runtime.variable_plan import Variables, is_number, plan_variables
from envlock.workflows.loaded import add_loaded
from envlock.workflows.question import add_way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source


@dataclass(frozen=True)
class Prepared:
    """A command that is ready to be started.

    Attributes:
        program: the file to execute.
        command: its arguments, starting with its name.
        environ: its variables.
        report: how the environment with these variables differs from the lockfile.
        changes: name and new value (None for unset) of each variable that differs from this
            process.
        overruled: name, the lockfile's value, and the value that determinism needs (None for unset)
            where the lockfile's value is used.
    """

    program: str
    command: tuple[str, ...]
    environ: Mapping[str, str]
    report: Report
    changes: tuple[tuple[str, str | None], ...]
    overruled: tuple[tuple[str, str, str | None], ...]

    def execute(self) -> None:
        """Replace this process by the command; returns only by raising.

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
    """What determines the variables of a command.

    Attributes:
        folder: the folder of the environment's programs, which comes first in PATH.
        version: that of the installed TensorFlow; None if unknown.
        deterministic: also switch op determinism on.
        seed: the seed for `envlock.activate()`; None leaves it to the program.
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
    progress: Progress = SILENT,
) -> Prepared:
    """Return a command with the variables of a lockfile and those of the determinism recipe for the
    installed TensorFlow.

    Args:
        command: the program and its arguments; `python` without a folder is that of this
            environment.
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        policy: how strictly to compare; the lockfile's own when not given.
        python: the interpreter of the environment; this one when not given.
        deterministic: also switch op determinism on.
        seed: the seed for `envlock.activate()` if the program does not give one.
        progress: shows that a process imports what computes, to see what it loads, unless nothing has
            changed since the last time. Only if the lockfile has that.

    Raises:
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        UsageError: there is no such command or policy, or it is the Python of another environment.
    """
    document, subject = load_document(lock)
    folder = Path(sys.prefix) / "bin"
    interpreter = None
    if python is not None:
        folder = python.absolute().parent
        interpreter = str(python)
    # The variables are those of one machine, so it is chosen before they are set.
    if "machines" in document:
        facts = choose_machine(document, collect_live(python))["facts"]
    else:
        facts = document["facts"]
    needs = _Needs(folder, _find_tensorflow(python), deterministic, seed)
    wanted = _make_variables(facts, needs)
    program = _find_command(command[0], wanted.environ["PATH"], folder)
    # Collected only now, so that the facts that are compared are those that the command will find.
    found = collect_live_for(document, python, wanted.environ)
    environment, seen = LiveEnvironment(python, found), None
    if LOADED in document["facts"]:
        environment, seen = add_loaded(document, environment, progress, wanted.environ)
    report = judge_here(
        document, environment.snapshot, policy, subject, has_overrides_enabled(), interpreter
    )
    report = annotate(report, wanted.environ)
    if seen is not None:
        name_files(report.findings, seen.places)
        (report.notes if seen.facts is None else report.details).append(seen.note)
    report.notes += name_found_lock(lock, subject)
    if deterministic:
        report.notes += warn_beyond_recipes(needs.version)
    if "data" in document:
        report = add_data(report, document, str(get_file(lock)), policy)
    add_way(report, lock, python)
    changes = tuple((name, value) for name, value, _ in wanted.changes)
    return Prepared(program, tuple(command), wanted.environ, report, changes, tuple(wanted.kept))


def _find_tensorflow(python: Path | None) -> str | None:
    """Return the version of the installed TensorFlow; None if it is not installed, or its version
    is unknown.
    """
    if python is None:
        # The other facts are left out, which takes a fraction of the time.
        installed: object = tensorflow.collect(Host())
    else:
        installed = collect_live(python).facts.get("tensorflow")
    if isinstance(installed, dict) and isinstance(installed.get("version"), str):
        return str(installed["version"])
    return None


def _make_variables(facts: Mapping[str, object], needs: _Needs) -> Variables:
    """Return the variables for the command, and those that differ from this process."""
    environ = dict(os.environ)
    environ["PATH"] = os.pathsep.join([str(needs.folder), environ.get("PATH", os.defpath)])
    needed: dict[str, str] = {}
    unwanted: Sequence[str] = ()
    recipe = find_recipe(needs.version) if needs.version is not None else None
    if recipe is not None:
        needed.update(recipe.set)
        if needs.deterministic:
            needed.update(recipe.by_variable)
            unwanted = recipe.unset
    wanted = plan_variables(environ, facts, needed, unwanted)
    own: dict[str, str] = {}
    # A hash seed that was chosen, in the lockfile or in this shell, is kept.
    if not is_number(wanted.environ.get(HASH_SEED, "")):
        own.update(table("determinism_recipes")["always"])
    additions = {**get_additions(wanted.environ), **own}
    if needs.seed is not None:
        own["ENVLOCK_SEED"] = str(needs.seed)
    changes = [*wanted.changes, *((name, value, "") for name, value in own.items())]
    if additions:
        # It lets an envlock inside the command know that these variables were set by us and are no
        # difference.
        own[ADDED] = format_additions(additions)
    return Variables({**wanted.environ, **own}, sorted(changes), wanted.kept)


def find_program(name: str, path: str | None = None) -> str:
    """Return the path of a program, searched for in the folders of `path`, or in those of PATH when
    not given.

    Raises:
        UsageError: it is in none of the folders.
    """
    found = shutil.which(name, path=path)
    if found is None:
        raise UsageError(f"command not found: {name}", hint="check its spelling and PATH")
    return found


def _find_command(name: str, path: str, own: Path) -> str:
    """Return the path of the program of a command.

    Raises:
        UsageError: it does not exist, or it is a Python outside `own`, the folder of the verified
            environment.
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
