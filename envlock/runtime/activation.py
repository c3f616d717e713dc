"""`activate()`: line 1 of a script that trains. Verifies, then makes the installed TensorFlow deterministic."""

from __future__ import annotations

import os

from envlock.runtime import calls, own_variables, uncured, variables
from envlock.runtime.assertion import locate, mismatch, mode_of_process, refuse, say
from envlock.runtime.collectors import keras, tensorflow
from envlock.runtime.errors import FactError, TooLateError, UsageError
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.import_order import where_to_move
from envlock.runtime.lockfile import read_file
from envlock.runtime.recipe import recipe_for
from envlock.runtime.variables import is_fixed
from envlock.runtime.verify import (
    for_machine,
    found_here,
    judge_here,
    overrides_count,
    told,
    with_files,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple, Union

    from envlock.runtime.recipe import Recipe
    from envlock.runtime.report import Report
    from envlock.runtime.variables import Variables

SEED = 42
MAX_SEED = 2**32 - 1  # the largest that NumPy takes

_done: List[Activation] = []
"""The last activation of this process, if any; a forked child inherits it."""


class Activation:
    """What `activate()` has done. Cannot be changed.

    Attributes:
        tensorflow: its version.
        seed: what everything was seeded with.
        report: the verification's; None where there was none.
        steps: whole sentences, in the order in which they were done.
        warnings: what could not be done, or remains to be known.
    """

    __slots__ = ("report", "seed", "steps", "tensorflow", "warnings")

    tensorflow: str
    seed: int
    report: Optional[Report]
    steps: Tuple[str, ...]
    warnings: Tuple[str, ...]

    def __init__(
        self,
        tensorflow: str,
        seed: int,
        report: Optional[Report],
        steps: List[str],
        warnings: List[str],
    ) -> None:
        values = {"tensorflow": tensorflow, "seed": seed, "report": report}
        for name, value in {**values, "steps": tuple(steps), "warnings": tuple(warnings)}.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an Activation is read-only: {name} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an Activation is read-only: {name} cannot be removed")

    def __reduce__(self) -> Tuple[Any, ...]:
        """Let it travel from a worker process."""
        return Activation, (
            self.tensorflow,
            self.seed,
            self.report,
            list(self.steps),
            list(self.warnings),
        )

    def __str__(self) -> str:
        lines = [
            f"TensorFlow {self.tensorflow} is activated, seed {self.seed}",
            *("  " + step for step in self.steps),
        ]
        return "\n".join(lines + ["  but " + warning for warning in self.warnings])


def activate(
    seed: Optional[int] = None,
    path: Optional[Union[str, os.PathLike[str]]] = None,
    policy: Optional[str] = None,
    *,
    locked: bool = True,
    quiet: bool = False,
) -> Activation:
    """Verify the environment as `assert_locked()` does, and make TensorFlow deterministic by the recipe of its version.

    Call it before `import tensorflow`, once a process: variables are set and unset as the lock and the recipe have
    them, TensorFlow is imported, its threads are fixed to the lock's effective counts, op determinism is switched on,
    and everything that the version draws from is seeded. Where the two differ the lock wins, and the report says so. A
    second call only seeds again.

    Args:
        seed: for Python's `random`, NumPy and TensorFlow; else `$ENVLOCK_SEED`, else 42.
        path, policy: the lockfile and how closely to hold to it, as in `assert_locked()`.
        locked: False does without a lockfile: nothing is verified, and threads are left as they are.
        quiet: say nothing on stderr.

    Returns:
        What was done.

    Raises:
        EnvironmentMismatch, LockfileError: as in `assert_locked()`. With `ENVLOCK_MODE=warn` it goes on, loudly; with
            `off` no lockfile is looked at.
        TooLateError: TensorFlow is imported, and has read or begun something that would have to be otherwise.
        FactError: there is no TensorFlow here, or a step of its recipe fails.
        UsageError: the seed is not a seed, or a lockfile is named although none is wanted.
    """
    number, mode, host = _seed(seed), mode_of_process(), Host()
    lockfile, document = _lock(path, mode, locked=locked)
    version, recipe = _recipe(host)
    mine = (
        for_machine(document, found_here(document, host)) if document.get("machines") else document
    )
    wanted = variables.plan(os.environ, mine["facts"], recipe.set, recipe.unset, _leave(host))
    late = _lateness(host, wanted)
    if late:
        refuse(_too_late(late), mode)
    report = None if lockfile is None else _verified(document, host, wanted, policy, lockfile, mode)
    warnings = [f"too late: {problem}" for problem in late]
    steps = [
        *_set(host, wanted),
        *_fix_threads(wanted, mode, warnings),
        *_call(recipe, version, number, warnings),
    ]
    warnings += [*_remarks(host, wanted), *uncured.here()]
    _done[:] = [Activation(version, number, report, steps, warnings)]
    if not quiet:
        say(_line(_done[0]))
    return _done[0]


def _lock(
    path: Optional[Union[str, os.PathLike[str]]], mode: str, *, locked: bool
) -> Tuple[Optional[str], Dict[str, Any]]:
    """Return the lockfile and what it holds; where none is to be looked at, None and no facts."""
    if path is not None and not locked:
        raise UsageError(f"lockfile {path} is named, but `locked` is False", hint="use one of them")
    if not locked:
        return None, {"facts": {}}
    if mode == "off":
        say("warning: ENVLOCK_MODE=off, the environment is not verified")
        return None, {"facts": {}}
    lockfile = locate(path)
    return lockfile, read_file(lockfile)


def _seed(seed: Optional[int]) -> int:
    given = os.environ.get("ENVLOCK_SEED") if seed is None else seed
    if given is None or given == "":
        return SEED
    plain = isinstance(given, str) and given.isascii() and given.isdigit() and len(given) <= 10
    number = int(given) if plain else getattr(given, "__index__", lambda: -1)()
    if isinstance(given, bool) or not 0 <= number <= MAX_SEED:
        raise UsageError(f"the seed is {given!r}", hint=f"use a whole number from 0 to {MAX_SEED}")
    return int(number)


def _recipe(host: Host) -> Tuple[str, Recipe]:
    facts = tensorflow.collect(host)
    version = facts if facts is None or isinstance(facts, Unavailable) else facts["version"]
    if version is None:
        raise FactError(
            "TensorFlow is not installed", hint="install it, or call envlock.assert_locked()"
        )
    if isinstance(version, Unavailable):
        raise FactError(
            f"the version of TensorFlow is unknown: {version.reason}", hint="reinstall TensorFlow"
        )
    recipe = recipe_for(version)
    if recipe is None:
        raise FactError(f"invalid TensorFlow version: {version}", hint="reinstall TensorFlow")
    return version, recipe


def _leave(host: Host) -> List[str]:
    """Return who has read its variables already: loader and Python, and NumPy with its libraries once imported."""
    return ["loader", "python"] + (["mkl", "numpy", "openblas"] if host.imported("numpy") else [])


def _lateness(host: Host, wanted: Variables) -> List[str]:
    """Return what can no longer be brought about in this process."""
    if not host.imported("tensorflow"):
        return []
    problems = [
        f"{name} must be {'unset' if value is None else value} before it is imported ({why})"
        for name, value, why in wanted.changes
        if name not in own_variables.THREADS
    ]
    if not _done and calls.initialised(calls.tensorflow()):
        problems.append(
            "it has started computing, so its threads and results can no longer be changed"
        )
    return problems


def _too_late(problems: List[str]) -> TooLateError:
    said = f"envlock.activate() is too late: TensorFlow is imported, and {'; '.join(problems)}"
    return TooLateError(said, hint=where_to_move())


def _verified(
    document: Dict[str, Any],
    host: Host,
    wanted: Variables,
    policy: Optional[str],
    lockfile: str,
    mode: str,
) -> Report:
    """Judge the environment as it is to be; see `assert_locked()`."""
    host.environ = wanted.environ
    chosen = policy or os.environ.get("ENVLOCK_POLICY") or None
    report = told(
        judge_here(document, found_here(document, host), chosen, overrides=overrides_count()),
        host.environ,
    )
    if mode == "deep":
        report = with_files(report, document)
    if not report.match:
        refuse(mismatch(lockfile, report), mode)
    return report


def _set(host: Host, wanted: Variables) -> List[str]:
    """Set and unset the variables; return a step for each but the threads'."""
    imported = host.imported("tensorflow")
    for name, value, _ in wanted.changes:
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
        if not imported:
            own_variables.settled[name] = value
    os.environ.pop(own_variables.ADDED, None)
    if own_variables.ADDED in wanted.environ:
        os.environ[own_variables.ADDED] = wanted.environ[own_variables.ADDED]
    told = [change for change in wanted.changes if change[0] not in own_variables.THREADS]
    return [
        f"unset {name}: {why}" if value is None else f"set {name}={value}: {why}"
        for name, value, why in told
    ]


def _fix_threads(wanted: Variables, mode: str, warnings: List[str]) -> List[str]:
    """Import TensorFlow and fix its threads to the counts of the variables; return the steps."""
    numbers = {name: wanted.environ.get(name, "") for name in own_variables.THREADS}
    counts = {
        name: int(number)
        for name, number in numbers.items()
        if number.isascii() and number.isdigit()
    }
    try:
        tf = calls.tensorflow()
    except Exception as error:
        told = f"{type(error).__name__}: {_first_line(error)}"
        raise FactError(
            f"TensorFlow cannot be imported: {told}", hint="run `envlock doctor` to find the cause"
        ) from error
    try:
        calls.fix_threads(tf, counts)
    except RuntimeError as error:
        problem = f"its threads cannot be changed: {error}"
        refuse(_too_late([problem]), mode)
        warnings.append(f"too late: {problem}")
        return []
    return [f"fixed {calls.SAID[name]} threads to {count}" for name, count in counts.items()]


def _call(recipe: Recipe, version: str, seed: int, warnings: List[str]) -> List[str]:
    """Make the recipe's calls; return the steps."""
    made = [*([] if _done else _patch(recipe, warnings)), *recipe.calls, *recipe.seeds]
    for call in made:
        _make(call, seed, version)
    return [f"called {calls.spelled(call, seed)}" for call in made]


def _remarks(host: Host, wanted: Variables) -> List[str]:
    """Return what is not as determinism wants it, and stays so."""
    remarks = [
        f"{name}: locked {held}, but determinism needs {'it unset' if other is None else other}"
        for name, held, other in wanted.kept
    ]
    backend = keras.keras_backend(host)
    if backend not in (None, "tensorflow"):
        remarks.append(f"Keras computes with {backend}, which no call of TensorFlow's reaches")
    if not is_fixed(host):
        remarks.append(
            "Python's hash seed is not fixed, so the order of sets differs from run to run (`envlock run` fixes it)"
        )
    return remarks


def _patch(recipe: Recipe, warnings: List[str]) -> List[str]:
    """Return the call that replaces operations, if this TensorFlow needs one and its package is installed."""
    from importlib.util import find_spec

    for patch in recipe.patches:
        if find_spec(patch["call"].partition(".")[0]) is not None:
            return [patch["call"]]
    if recipe.patches:
        package = recipe.patches[0]["package"]
        warnings.append(
            f"{package} is not installed; without its patch the gradient of bias_add is nondeterministic on a GPU"
        )
    return []


def _make(call: str, seed: int, version: str) -> None:
    try:
        calls.make(call, seed)
    except Exception as error:
        told = f"{type(error).__name__}: {_first_line(error)}"
        raise FactError(
            f"{calls.spelled(call, seed)}, which TensorFlow {version} needs, failed: {told}",
            hint="run `envlock doctor` to find the cause",
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]


def _line(activation: Activation) -> str:
    told = f"TensorFlow {activation.tensorflow} is activated, seed {activation.seed}"
    return "; ".join((told, *activation.warnings))
