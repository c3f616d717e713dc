"""`envlock.diverge(function)`: the runs are made in this process, as in a notebook or a test."""

from __future__ import annotations

import importlib
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from envlock.divergence.comparison import compare
from envlock.divergence.debug import debug
from envlock.divergence.evidence import DivergeEvidence
from envlock.divergence.observed_runs import Observed, Request
from envlock.divergence.trace import read
from envlock.guest.dataset_graphs import Datasets
from envlock.guest.target import Target
from envlock.guest.tracing import temporary_names
from envlock.guest.tracing.private import CallbacksMissing, find_blindness, read_determinism
from envlock.guest.tracing.runs import Observed as Ran
from envlock.guest.tracing.runs import open_trace, perform
from envlock.guest.tracing.source_lines import Places
from envlock.guest.tracing.state import State
from envlock.guest.tracing.value_makers import Held, Makers
from envlock.guest.training import seed_setting
from envlock.runtime.errors import FactError, UsageError
from envlock.runtime.report import Report


def diverge(
    function: Callable[[], Any], *, runs: int = 5, steps: int | None = None, seed: int | None = None
) -> Report[DivergeEvidence]:
    """Return what makes runs of a function differ: the first operation, its line, and a remedy.

    Before each run the value of every live tf.Variable is restored, and TensorFlow's seed is reset.
    The generators of Python and NumPy continue, because it is unknown whether they were seeded: do
    it in the function, or pass `seed`.

    Args:
        function: takes nothing; what it returns is compared, too (as for `envlock diverge
            SCRIPT:FUNCTION`).
        runs: how often to call it, twice at least; when they differ, as often again eagerly.
        steps: end each run after this many steps.
        seed: set all seeds to this before each run.

    Raises:
        UsageError: it is not a function, or TensorFlow is not installed.
        FactError: this TensorFlow does not show its operations, and the function records no values.
        Exception: whatever the function raises.
    """
    if runs < 2 or not callable(function):
        raise UsageError(
            "diverge needs a function, and at least two runs",
            hint="call it like `envlock.diverge(train_step, runs=5)`",
        )
    try:
        tf = importlib.import_module("tensorflow")
    except ImportError:
        raise UsageError("diverge needs TensorFlow, which is not installed here") from None
    name = getattr(function, "__qualname__", type(function).__name__)
    target = Target(_find_file(function), name)
    request = Request(target, None, runs, fresh=False, steps=steps, seed=seed)
    observer = partial(_observe, tf, function, State(tf))
    return debug(request, lambda text: None, observer, processes=False)


def _find_file(function: Callable[[], object]) -> Path:
    try:
        return Path(inspect.getsourcefile(inspect.unwrap(function)) or "unknown.py")
    except TypeError:  # an object, or built in
        return Path("unknown.py")


def _observe(
    tf: Any, function: Callable[[], Any], state: State, request: Request, folder: Path
) -> Observed:
    folder.mkdir()
    places = Places(str(request.target.script.parent))
    datasets = Datasets(places)
    paths = []
    ends, suspects = {}, {}
    blind: str | None = None
    with _keep_generators(request.generators):
        for number in range(request.runs):
            state.put_back()
            _set_seeds(request)
            path = folder / f"{number}.trace"
            paths.append(path)
            try:
                tracing = open_trace(
                    tf, str(path), datasets, mode=request.mode, limit=request.steps
                )
                with tracing as tracer:
                    entries = partial(getattr, tracer, "entries")
                    held = Held(request.held, request.now)
                    makers = Makers(places, entries, held, request.since)
                    with (
                        makers.watch(),
                        seed_setting.watch_seeding(entries) as calls,
                        temporary_names.watch_names(),
                    ):
                        perform(function, lambda tracer=tracer: tracer)  # type: ignore[misc]
            except CallbacksMissing as error:
                raise FactError(f"this TensorFlow does not show its operations: {error}") from None
            ran = Ran(tracer, calls, makers)
            ends[number] = ran.threads
            suspects, blind = ran.suspects, ran.blind
    state.put_back()
    answers: dict[str, object] = {
        "ends": ends,
        "suspects": suspects,
        "determinism": read_determinism(),
        "datasets": datasets.to_json(),
    }
    if not blind:
        blind = find_blindness(tf)
    if blind is not None:
        answers["callbacks"] = blind
    comparison = compare(list(map(read, paths)))
    return Observed(request, folder, read(paths[0]).header, comparison, answers)


def _set_seeds(request: Request) -> None:
    if request.seed is not None:
        seed_setting.set_all_seeds(request.seed)
    if request.generators is not None:
        random.seed(request.generators)
        sys.modules["numpy"].random.seed(request.generators)


@contextmanager
def _keep_generators(generators: int | None) -> Iterator[None]:
    """Give Python's and NumPy's generators back their states, if they are only seeded to see what happens."""
    of_python, of_numpy = random.getstate(), sys.modules["numpy"].random.get_state()
    try:
        yield
    finally:
        if generators is not None:
            random.setstate(of_python)
            sys.modules["numpy"].random.set_state(of_numpy)
