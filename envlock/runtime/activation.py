"""`activate()`: line 1 of a script that trains.

It verifies, then makes the installed TensorFlow deterministic. The order of the steps in
`activate()` matters: variables are read only once, by the loader when the process starts and by the
libraries of NumPy and TensorFlow when they are imported, and TensorFlow creates its threads when it
begins to compute.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

from envlock.runtime import calls, own_variables, variable_plan
from envlock.runtime.assertion import (
    check_data,
    locate,
    mismatch,
    mode_of_process,
    refuse,
    say,
    watch,
)
from envlock.runtime.collectors import Snapshot, keras_settings, tensorflow
from envlock.runtime.digits import parse_digits
from envlock.runtime.errors import EnvlockError, FactError, TooLateError, UsageError
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.import_order import where_to_move
from envlock.runtime.judgement import (
    add_files,
    annotate,
    choose_machine,
    collect_here,
    has_overrides_enabled,
    judge_here,
)
from envlock.runtime.lockfile import read_file
from envlock.runtime.recipe import Recipe, find_recipe, warn_beyond_recipes
from envlock.runtime.variable_plan import Variables, is_fixed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Optional, Tuple, Union

    from envlock.runtime.facts import Document
    from envlock.runtime.report import Report

SEED = 42  # if the program names none: any fixed number makes runs equal
MAX_SEED = 2**32 - 1  # the largest that NumPy takes

_done: List[Activation] = []
"""The last activation of this process, if any; a forked child inherits it."""


class Activation:
    """What `activate()` has done; immutable.

    Attributes:
        tensorflow: its version.
        seed: the seed of every random number generator.
        report: the report of the verification; None if nothing was verified.
        steps: what was done, as sentences in order.
        warnings: what could not be done, or what the user should know, as sentences.
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
        # This class's own `__setattr__` refuses, so that of `object` is called.
        object.__setattr__(self, "tensorflow", tensorflow)
        object.__setattr__(self, "seed", seed)
        object.__setattr__(self, "report", report)
        object.__setattr__(self, "steps", tuple(steps))
        object.__setattr__(self, "warnings", tuple(warnings))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an Activation is read-only: {name} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an Activation is read-only: {name} cannot be removed")

    def __reduce__(self) -> Tuple[Callable[..., object], Tuple[object, ...]]:
        """Support pickling, so that a worker process can return it."""
        steps, warnings = list(self.steps), list(self.warnings)
        return Activation, (self.tensorflow, self.seed, self.report, steps, warnings)

    def __str__(self) -> str:
        lines = [f"TensorFlow {self.tensorflow} is activated, seed {self.seed}"]
        lines += ["  " + step for step in self.steps]
        lines += ["  but " + warning for warning in self.warnings]
        return "\n".join(lines)


def is_active() -> bool:
    """Return whether `activate()` has been called in this process, or in its parent."""
    return bool(_done)


def activate(
    seed: Optional[int] = None,
    path: Optional[Union[str, os.PathLike[str]]] = None,
    policy: Optional[str] = None,
    *,
    locked: bool = True,
    quiet: bool = False,
) -> Activation:
    """Verify the environment as `assert_locked()` does, and make TensorFlow deterministic.

    The recipe is that of the installed version. Call it before `import tensorflow`, once in each
    process: variables are set and unset as in the lockfile and the recipe, TensorFlow is imported,
    its threads are fixed to the effective counts in the lockfile, op determinism is switched on,
    and every random number generator of this version is seeded. If lockfile and recipe differ, the
    lockfile's value is used, and the report says so. A second call only seeds again.

    Args:
        seed: for Python's `random`, NumPy and TensorFlow; else `$ENVLOCK_SEED`, else 42.
        path, policy: the lockfile and how strictly to compare, as in `assert_locked()`.
        locked: False uses no lockfile: nothing is verified, and thread counts are not changed.
        quiet: write nothing to stderr.

    Returns:
        What was done.

    Raises:
        EnvironmentMismatch, LockfileError: as in `assert_locked()`. With `ENVLOCK_MODE=warn`
            it prints the mismatch and continues; with `off` no lockfile is read.
        TooLateError: TensorFlow is already imported, and has read or started something that must
            be changed.
        FactError: there is no TensorFlow here, or a step of its recipe fails.
        UsageError: the seed is invalid, or a lockfile is named although `locked` is False.
    """
    number = _choose_seed(seed)
    mode = mode_of_process()
    host = Host()
    lockfile, document = _read_lock(path, mode, locked=locked)
    version, recipe = _find_recipe(host)
    if document.get("machines"):
        own = choose_machine(document, collect_here(document, host))
    else:
        own = document
    readers = _list_readers_done(host)
    wanted = variable_plan.plan_variables(
        os.environ, own["facts"], recipe.set, recipe.unset, readers
    )
    # Everything that can be refused is refused before anything is changed.
    late = _list_late_effects(host, wanted)
    if late:
        refuse(_too_late(late), mode)
    report = None
    if lockfile is not None:
        chosen = policy or os.environ.get("ENVLOCK_POLICY") or None
        live, report = _judge(document, host, wanted, chosen)
        if mode == "deep":
            report = add_files(report, document)
        report = check_data(report, document, lockfile, policy, deep=mode == "deep")
        if not report.match:
            refuse(mismatch(lockfile, report), mode)
        else:
            watch(lockfile, document, live, chosen)
    warnings = [f"too late: {problem}" for problem in late]
    # Variables are set before TensorFlow is imported, because it reads them then, and threads are
    # fixed before anything computes: after that, TensorFlow refuses a different number.
    steps = _set_variables(host, wanted)
    steps += _fix_threads(wanted, mode, warnings)
    steps += _make_calls(recipe, version, number, warnings)
    warnings += warn_beyond_recipes(version)
    warnings += _list_remarks(host, wanted)
    activation = Activation(version, number, report, steps, warnings)
    _done[:] = [activation]
    if not quiet:
        say(_format(activation))
    return activation


def _read_lock(
    path: Optional[Union[str, os.PathLike[str]]], mode: str, *, locked: bool
) -> Tuple[Optional[str], Document]:
    """Return the path of the lockfile and its content; None and an empty document if no lockfile is
    to be read.
    """
    if path is not None and not locked:
        raise UsageError(f"lockfile {path} is named, but `locked` is False", hint="use one of them")
    if not locked:
        return None, {"facts": {}}
    if mode == "off":
        say("warning: ENVLOCK_MODE=off, the environment is not verified")
        return None, {"facts": {}}
    lockfile = locate(path)
    return lockfile, read_file(lockfile)


def _choose_seed(seed: Optional[int]) -> int:
    """Return the given seed, else the seed of the process, else 42."""
    given: object = os.environ.get("ENVLOCK_SEED") if seed is None else seed
    if given is None or given == "":
        return SEED
    number = _parse_seed(given)
    if number is None:
        raise UsageError(f"the seed is {given!r}", hint=f"use a whole number from 0 to {MAX_SEED}")
    return number


def _parse_seed(given: object) -> Optional[int]:
    """Return a seed given as a whole number, a NumPy integer or a string of digits; None for
    anything else.
    """
    if isinstance(given, bool):
        return None
    if isinstance(given, str):
        # No valid seed has more digits.
        number = parse_digits(given, 10)
    else:
        index = getattr(given, "__index__", None)
        if index is None:
            return None
        number = int(index())
    if number is None or not 0 <= number <= MAX_SEED:
        return None
    return number


def _find_recipe(host: Host) -> Tuple[str, Recipe]:
    """Return the version of the installed TensorFlow, and the recipe that makes it deterministic."""
    facts = tensorflow.collect(host)
    version: object = facts["version"] if isinstance(facts, dict) else facts
    if isinstance(version, Unavailable):
        raise FactError(
            f"the version of TensorFlow is unknown: {version.reason}", hint="reinstall TensorFlow"
        )
    if not isinstance(version, str):
        raise FactError(
            "TensorFlow is not installed", hint="install it, or call envlock.assert_locked()"
        )
    recipe = find_recipe(version)
    if recipe is None:
        raise FactError(f"invalid TensorFlow version: {version}", hint="reinstall TensorFlow")
    return version, recipe


def _list_readers_done(host: Host) -> List[str]:
    """Return the libraries that have read their variables already; NumPy's read theirs when NumPy
    is imported.
    """
    readers = ["loader", "python"]
    if host.has_imported("numpy"):
        readers += ["mkl", "numpy", "openblas"]
    return readers


def _list_late_effects(host: Host, wanted: Variables) -> List[str]:
    """Return the effects that can no longer be achieved in this process."""
    if not host.has_imported("tensorflow"):
        return []
    problems = []
    for name, value, why in wanted.changes:
        if name not in own_variables.THREADS:
            state = "unset" if value is None else value
            problems.append(f"{name} must be {state} before it is imported ({why})")
    # A second call only seeds again, and TensorFlow may have started to compute by then.
    if not _done and calls.is_initialised(calls.import_tensorflow()):
        problems.append(
            "it has started computing, so its threads and results can no longer be changed"
        )
    return problems


def _too_late(problems: List[str]) -> TooLateError:
    message = f"envlock.activate() is too late: TensorFlow is imported, and {'; '.join(problems)}"
    return TooLateError(message, hint=where_to_move())


def _judge(
    document: Document, host: Host, wanted: Variables, policy: Optional[str]
) -> Tuple[Snapshot, Report]:
    """Return the facts of the environment as it will be, with the variables that are about to be set, and
    what differs.
    """
    host.environ = wanted.environ
    live = collect_here(document, host)
    report = judge_here(document, live, policy, overrides=has_overrides_enabled())
    return live, annotate(report, host.environ)


def _set_variables(host: Host, wanted: Variables) -> List[str]:
    """Set and unset the variables; return a step for each, except those for threads."""
    # An imported TensorFlow has already read them: what is set now is no longer a fact of this
    # process.
    is_read = host.has_imported("tensorflow")
    steps = []
    for name, value, why in wanted.changes:
        step = f"unset {name}: {why}"
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
            step = f"set {name}={value}: {why}"
        if not is_read:
            own_variables.settled[name] = value
        if name not in own_variables.THREADS:
            steps.append(step)
    os.environ.pop(own_variables.ADDED, None)
    if own_variables.ADDED in wanted.environ:
        os.environ[own_variables.ADDED] = wanted.environ[own_variables.ADDED]
    return steps


def _fix_threads(wanted: Variables, mode: str, warnings: List[str]) -> List[str]:
    """Import TensorFlow and fix its thread counts to those of the variables; return the steps."""
    counts = {}
    for name in own_variables.THREADS:
        number = parse_digits(wanted.environ.get(name, ""))
        if number is not None:
            counts[name] = number
    try:
        tf = calls.import_tensorflow()
    except EnvlockError:  # what it has loaded is not as locked
        raise
    except Exception as error:
        raise FactError(
            f"TensorFlow cannot be imported: {_format_error(error)}",
            hint="run `envlock doctor` to find the cause",
        ) from error
    try:
        calls.fix_threads(tf, counts)
    except RuntimeError as error:
        problem = f"its threads cannot be changed: {error}"
        refuse(_too_late([problem]), mode)
        warnings.append(f"too late: {problem}")
        return []
    return [f"fixed {calls.SAID[name]} threads to {count}" for name, count in counts.items()]


def _make_calls(recipe: Recipe, version: str, seed: int, warnings: List[str]) -> List[str]:
    """Make the recipe's calls; return the steps."""
    made: List[str] = []
    # A second call only seeds again: operations are replaced only once.
    if not _done:
        made += _find_patch(recipe, warnings)
    made += [*recipe.calls, *recipe.seeds]
    for call in made:
        _make_call(call, seed, version)
    return [f"called {calls.format_call(call, seed)}" for call in made]


def _list_remarks(host: Host, wanted: Variables) -> List[str]:
    """Return the deviations from determinism that remain."""
    remarks = []
    for name, locked, needed in wanted.kept:
        if needed is None:
            needed = "it unset"
        remarks.append(f"{name}: locked {locked}, but determinism needs {needed}")
    backend = keras_settings.find_keras_backend(host)
    if backend not in (None, "tensorflow"):
        remarks.append(f"Keras computes with {backend}, which no call of TensorFlow's reaches")
    if not is_fixed(host):
        remarks.append(
            "Python's hash seed is not fixed, so the order of sets differs from run to run "
            "(`envlock run` fixes it)"
        )
    return remarks


def _find_patch(recipe: Recipe, warnings: List[str]) -> List[str]:
    """Return the call that replaces operations, if this version needs one and its package is
    installed.
    """
    for patch in recipe.patches:
        if find_spec(patch["call"].partition(".")[0]) is not None:
            return [patch["call"]]
    if recipe.patches:
        package = recipe.patches[0]["package"]
        warnings.append(
            f"{package} is not installed; "
            "without its patch the gradient of bias_add is nondeterministic on a GPU"
        )
    return []


def _make_call(call: str, seed: int, version: str) -> None:
    try:
        calls.make(call, seed)
    except Exception as error:
        which = f"{calls.format_call(call, seed)}, which TensorFlow {version} needs"
        raise FactError(
            f"{which}, failed: {_format_error(error)}",
            hint="run `envlock doctor` to find the cause",
        ) from error


def _format_error(error: Exception) -> str:
    """Return the type of an error and the first line of its message."""
    line = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {line[:200]}"


def _format(activation: Activation) -> str:
    line = f"TensorFlow {activation.tensorflow} is activated, seed {activation.seed}"
    return "; ".join((line, *activation.warnings))
