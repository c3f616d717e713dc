"""One run of the user's function or script under the tracer, in its own mode or eagerly, which
writes a trace.
"""

from __future__ import annotations

import json
import os
import random
import sys
from contextlib import ExitStack, contextmanager
from functools import wraps

from envlock import __version__
from envlock.guest.tracing import private, tensors
from envlock.guest.tracing.thread_traces import Threads
from envlock.guest.tracing.trace_writer import TraceWriter
from envlock.guest.tracing.tracer import Enough, Tracer
from envlock.guest.training import contract

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple

    from tensorflow import Tensor

    from envlock.guest.dataset_graphs import Datasets
    from envlock.guest.tracing.value_makers import Makers

    class Steps(Protocol):
        """Receives the steps of a run: a tracer, or an inventory of operations."""

        step: int
        batches: int

        def begin_step(self, number: int) -> None: ...

        def write_value(self, name: str, value: Tensor) -> None: ...


EAGER, GRAPH = "eager", "graph"
_INTER, _INTRA = "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"


class Observed:
    """What is known about a run besides its trace."""

    def __init__(self, tracer: Tracer, seeded: Sequence[int], makers: Makers) -> None:
        """Copy it from a tracer that has been stopped; `seeded` are the entries at which the
        program set all seeds.
        """
        self.threads: Dict[str, object] = {
            "elsewhere": tracer.elsewhere,
            "seeded": list(seeded),
            "makers": makers.to_json(),
            "workers": count_workers(),
        }
        if tracer.threads is not None:
            self.threads.update(tracer.threads.to_json())
        self.suspects = tracer.suspects.to_json()
        self.blind = tracer.blind


def count_workers() -> int:
    """Return the number of processes in TF_CONFIG, as tf.distribute reads it; 1 if it has none."""
    try:
        cluster = json.loads(os.environ.get("TF_CONFIG", "{}"))["cluster"]
        return max(sum(map(len, cluster.values())), 1)
    except (ValueError, KeyError, TypeError, AttributeError):
        return 1


@contextmanager
def open_trace(
    tf: ModuleType,
    path: str,
    datasets: Datasets,
    *,
    mode: str,
    limit: Optional[int],
    conditions: Optional[Mapping[str, object]] = None,
) -> Iterator[Tracer]:
    """Trace the block into the file `path`; the last requested step ends it without an error.

    `datasets` collects the pipelines, and finds the places of all entries.

    Raises:
        CallbacksMissing: this TensorFlow has no operation callbacks.
    """
    was_eager = tf.config.functions_run_eagerly()
    with open(path, "wb") as stream, ExitStack() as stack:
        header = make_header(tf, mode, conditions or {})
        writer = TraceWriter(stream, header)
        threads = Threads(path, header)
        tracer = Tracer(
            tf,
            writer,
            datasets.places,
            limit,
            threads=threads,
        )
        stack.enter_context(private.watch_python_functions(tracer.observe_python))
        stack.enter_context(count_batches(tracer))
        stack.enter_context(datasets.collect(tf, tracer.pause))
        writer.begin_step(0)
        # In the user's own mode, the values that the run records are compared even if no operation
        # can be observed.
        tracer.start(needed=mode != GRAPH)
        if tracer.blind is None:
            stack.enter_context(threads.follow(tracer.observe, lambda: tracer.entries))
        try:
            # Otherwise the program decides, which may have switched graphs off itself.
            if mode == EAGER:
                tf.config.run_functions_eagerly(True)
            yield tracer
        except Enough:
            pass
        finally:
            ran_eagerly = tf.config.functions_run_eagerly()
            tf.config.run_functions_eagerly(was_eager)
            tracer.stop()
            end: Dict[str, object] = {
                "elsewhere": tracer.elsewhere + threads.entries,
                "functions_run_eagerly": ran_eagerly,
            }
            writer.close({**end, **_read_conditions(tf)})


def make_header(tf: ModuleType, mode: str, conditions: Mapping[str, object]) -> Dict[str, object]:
    """Return the header of a trace."""
    keras = getattr(sys.modules.get("keras"), "__version__", None)
    if not isinstance(keras, str):
        keras = None
    return {
        "made_by": "envlock " + __version__,
        "tensorflow": tf.__version__,
        "keras": keras,
        "python": "{}.{}.{}".format(*sys.version_info[:3]),
        "mode": mode,
        "fingerprint": tensors.NAME,
        "conditions": dict(conditions),
    }


def perform(call: Callable[[], object], current: Callable[[], Optional[Steps]]) -> None:
    """Call a function, and write the quantities of its steps.

    `current` returns the tracer, which may be created only while a script is running.

    Raises:
        BaseException: any exception of the user's code.
    """

    def train(model: object) -> None:
        tracer = current()
        if tracer is not None:  # which counts the batches as steps
            contract.train_model(model, lambda step, values: _write(tracer, values))

    def end_step(number: int) -> None:
        tracer = current()
        if tracer is not None:
            tracer.begin_step(number + 1)

    contract.perform(call, _make_taker(current), train, end_step)


def _make_taker(current: Callable[[], Optional[Steps]]) -> Callable[..., None]:
    """Return a function that receives recorded values: a name that is repeated begins the next
    step.
    """
    names: Dict[str, None] = {}

    def take(step: Optional[int], values: Mapping[str, object]) -> None:
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


def _write(tracer: Steps, values: Mapping[str, object]) -> None:
    for name, value in contract.flatten(values).items():
        tracer.write_value(name, value)


@contextmanager
def count_batches(tracer: Steps) -> Iterator[None]:
    """Count every batch of `Model.fit`, in any Keras, as a step."""
    undo: List[Tuple[type, Callable[..., object]]] = []
    for keras in find_kerases():
        for owner in keras.Model.__mro__:
            # `Model` may inherit it.
            if "fit" in vars(owner):
                undo.append((owner, owner.fit))
                owner.fit = _make_counting_fit(owner.fit, keras, tracer)
                break
    try:
        yield
    finally:
        for owner, original in undo:
            owner.fit = original  # type: ignore[attr-defined]


def find_kerases() -> List[ModuleType]:
    """Return the imported Keras packages that have models."""
    found = []
    for name in ("keras", "tf_keras"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "Model") and hasattr(module, "callbacks"):
            found.append(module)
    return found


def _make_counting_fit(
    original: Callable[..., object], keras: ModuleType, tracer: Steps
) -> Callable[..., object]:
    class Counts(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
        def on_train_batch_begin(self, batch: int, logs: Optional[object] = None) -> None:
            tracer.begin_step(tracer.batches)
            tracer.batches += 1

    @wraps(original)
    def fit(self: object, *args: object, **kwargs: object) -> object:
        callbacks = kwargs.get("callbacks") or []
        # It is the sixth argument: if it is given by position, or is not a list, nothing is added.
        if len(args) < 6 and isinstance(callbacks, (list, tuple)):
            kwargs["callbacks"] = [*callbacks, Counts()]
        return original(self, *args, **kwargs)

    return fit


def forget_previous_run(script: str, *, module: bool = False) -> None:
    """Make this process like a new one: reset the script's module, the counters of Keras, and every
    seed.
    """
    path = os.path.realpath(script)
    for name, imported in list(sys.modules.items()):
        if name == "__main__":
            continue
        file = getattr(imported, "__file__", None)
        if module:
            is_script = name == script
        else:
            is_script = isinstance(file, str) and os.path.realpath(file) == path
        if is_script:
            del sys.modules[name]
    for keras in find_kerases():
        keras.backend.clear_session()
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "tensorflow" in sys.modules:
        private.forget_seed()


def _read_conditions(tf: ModuleType) -> Dict[str, object]:
    """Return threads, op determinism, the number of devices of each kind, and whether XLA is on
    globally.
    """
    threading = tf.config.threading
    conditions = {
        "threads.intra_op": _count_threads(threading.get_intra_op_parallelism_threads(), _INTRA),
        "threads.inter_op": _count_threads(threading.get_inter_op_parallelism_threads(), _INTER),
        "op_determinism": private.read_determinism(),
        "xla": str(tf.config.optimizer.get_jit() or "off"),
    }
    devices: Dict[str, int] = {}
    for device in tf.config.list_logical_devices():
        name = "devices." + device.device_type
        devices[name] = devices.get(name, 0) + 1
    return {**conditions, **devices}


def _count_threads(setting: int, variable: str) -> Optional[int]:
    """Return the number of threads: the setting, else the variable, else one for each CPU of this
    process.
    """
    if setting:
        return setting
    try:
        return int(os.environ.get(variable, "")) or len(os.sched_getaffinity(0))
    except ValueError:
        return len(os.sched_getaffinity(0))
