"""One run of the user's function or script under the tracer, in his own mode or eagerly; a trace is left of it."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack, contextmanager

from envlock.guest.tracing import in_graph, private, tensors
from envlock.guest.tracing.state import of as conditions_of
from envlock.guest.tracing.threads import Threads
from envlock.guest.tracing.trace_writer import TraceWriter
from envlock.guest.tracing.tracer import Enough, Tracer
from envlock.guest.training import contract
from envlock.runtime import recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence

    from envlock.guest.datasets import Datasets
    from envlock.guest.tracing.makers import Makers
    from envlock.guest.tracing.source_lines import Places

EAGER, GRAPH = "eager", "graph"
IN_GRAPH, IN_GRAPH_ALL = "in-graph", "in-graph-all"
"""As it is, with fingerprints inside of graphs: of what can race, or of every operation."""


class Observed:
    """What a run left beside its trace."""

    def __init__(self, tracer: Tracer, seeded: Sequence[int], makers: Makers) -> None:
        """Take it from a tracer that has been stopped; `seeded`: at which entries the program set all seeds."""
        self.threads = {
            "elsewhere": tracer.elsewhere,
            "seeded": list(seeded),
            "makers": makers.to_json(),
        }
        self.threads["workers"] = workers()
        if tracer.threads is not None:
            self.threads.update(tracer.threads.to_json())
        self.suspects = tracer.suspects.to_json()
        self.blind = tracer.blind


def workers() -> int:
    """Return how many processes TF_CONFIG names, as tf.distribute reads it; 1 where it names none."""
    try:
        cluster = json.loads(os.environ.get("TF_CONFIG", "{}"))["cluster"]
        return max(sum(len(each) for each in cluster.values()), 1)
    except (ValueError, KeyError, TypeError, AttributeError):
        return 1


@contextmanager
def traced(
    tf: Any,
    path: str,
    places: Places,
    *,
    mode: str,
    limit: Optional[int],
    datasets: Datasets,
    counts: bool = False,
    conditions: Optional[Mapping[str, Any]] = None,
) -> Iterator[Tracer]:
    """Trace what is done inside into the file `path`; the last step asked for ends it quietly.

    `counts`: where nobody else counts, each call of a graph that is looked into is a step.

    Raises:
        CallbacksMissing: this TensorFlow has no operation callbacks.
    """
    was_eager = tf.config.functions_run_eagerly()
    with open(path, "wb") as stream, ExitStack() as stack:
        writer = TraceWriter(stream, header(tf, mode, conditions or {}))
        graphs = (
            in_graph.InGraph(tf, places, every=mode == IN_GRAPH_ALL)
            if mode in (IN_GRAPH, IN_GRAPH_ALL)
            else None
        )
        threads = Threads(path, header(tf, mode, conditions or {}))
        tracer = Tracer(
            tf,
            writer,
            places,
            limit,
            graphs=graphs,
            counts=counts and graphs is not None,
            threads=threads,
        )
        stack.enter_context(private.python_functions(tracer.python))
        stack.enter_context(counted_batches(tracer))
        stack.enter_context(datasets.seen(tf, tracer.quietly))
        writer.step(0)
        tracer.start(needed=mode != GRAPH)
        if tracer.blind is None:
            stack.enter_context(threads.followed(tracer.see, lambda: tracer.entries))
        try:
            tf.config.run_functions_eagerly(mode == EAGER)
            yield tracer
        except Enough:
            pass
        finally:
            tf.config.run_functions_eagerly(was_eager)
            tracer.stop()
            unseen = 0 if graphs is None else graphs.unseen
            writer.close(
                {
                    "elsewhere": tracer.elsewhere + threads.entries,
                    "unseen": unseen,
                    **conditions_of(tf),
                }
            )


def header(tf: Any, mode: str, conditions: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the header of a trace."""
    from envlock.runtime.version import __version__

    keras = getattr(sys.modules.get("keras"), "__version__", None)
    return {
        "made_by": "envlock " + __version__,
        "tensorflow": tf.__version__,
        "keras": keras if isinstance(keras, str) else None,
        "python": "{}.{}.{}".format(*sys.version_info[:3]),
        "mode": EAGER if mode == EAGER else GRAPH,
        "fingerprint": tensors.NAME
        if mode in (EAGER, GRAPH)
        else "{}, {}".format(tensors.NAME, in_graph.NAME),
        "conditions": dict(conditions),
    }


def perform(call: Callable[[], Any], current: Callable[[], Optional[Tracer]]) -> None:
    """Call, and write down the quantities of its steps: what it records, gives or trains, or else its result.

    `current` gives the tracer, which may come to be only while a script is running.

    Raises:
        BaseException: whatever the user's code raises.
    """
    recording.listen(_taker(current))
    try:
        result = call()
        tracer = current()
        if tracer is None or result is None:
            return
        if contract.is_model(result):
            from envlock.guest.training import keras_fit

            keras_fit.train(*result, taker=lambda step, values: _write(tracer, values))
        else:
            for number, values in enumerate(contract.steps(result)):
                _write(tracer, values)
                tracer.begin_step(number + 1)
    finally:
        recording.listen(None)


def _taker(current: Callable[[], Optional[Tracer]]) -> Callable[..., None]:
    """Return what takes recorded values: a name that comes again begins the next step."""
    names: Dict[str, None] = {}

    def take(step: Optional[int], values: Mapping[str, Any]) -> None:
        tracer = current()
        if tracer is None:
            return
        if step is not None and step > tracer.step:
            tracer.begin_step(step)
        elif step is None and any(name in names for name in values):
            names.clear()
            tracer.begin_step(tracer.step + 1)
        names.update(dict.fromkeys(values))
        _write(tracer, values)

    return take


def _write(tracer: Tracer, values: Mapping[str, Any]) -> None:
    for name, value in contract.named(values).items():
        tracer.value(name, value)


@contextmanager
def counted_batches(tracer: Tracer) -> Iterator[None]:
    """Let every batch of `Model.fit`, of whatever Keras, be a step."""
    undo = []
    for keras in _kerases():
        owner = next((each for each in keras.Model.__mro__ if "fit" in vars(each)), None)
        if owner is not None:
            original = owner.fit
            undo.append((owner, original))
            owner.fit = _counting(original, keras, tracer)
    try:
        yield
    finally:
        for owner, original in undo:
            owner.fit = original


def _kerases() -> Any:
    found = []
    for name in ("keras", "tf_keras"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "Model") and hasattr(module, "callbacks"):
            found.append(module)
    return found


def _counting(original: Any, keras: Any, tracer: Tracer) -> Any:
    from functools import wraps

    class Counts(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            tracer.begin_step(tracer.batches)
            tracer.batches += 1

    @wraps(original)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = kwargs.get("callbacks") or []
        if len(args) < 6 and isinstance(given, (list, tuple)):  # it is the sixth argument
            kwargs["callbacks"] = [*given, Counts()]
        return original(self, *args, **kwargs)

    return fit


def as_new(script: str, *, module: bool = False) -> None:
    """Make this process like a new one: the script's module is forgotten, what Keras counts, and every seed."""
    import random

    path = os.path.realpath(script)
    for name, each in list(sys.modules.items()):
        file = getattr(each, "__file__", None)
        same = (
            name == script if module else isinstance(file, str) and os.path.realpath(file) == path
        )
        if name != "__main__" and same:
            del sys.modules[name]
    for keras in _kerases():
        keras.backend.clear_session()
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "tensorflow" in sys.modules:
        private.forget_seed()
