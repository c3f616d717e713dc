"""A model in batches: how it is called in each mode, its inputs, and the digest of one row of what comes out.

Imports TensorFlow, so that it is imported after the user's program.
"""

from __future__ import annotations

import hashlib
import os

import numpy as np
import tensorflow as tf

from envlock.guest.training import contract
from envlock.guest.training.failures import describe_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

    Rows = List[Any]  # the arrays of the inputs, each with the batch as its first axis
    Row = List[Any]  # the result for one row: an array for each output
    Compute = Callable[[Rows], Any]

EAGER, GRAPH, XLA, PREDICT = "eager", "graph", "xla", "predict"

# `predict` computes a graph, and takes apart what a model with the outputs of all layers returns.
LAYER_MODES = {PREDICT: GRAPH}

# A free token of a text is one that every vocabulary has: where no embedding says how many there are, 0 or 1.
SMALLEST_VOCABULARY = 2


class Subject:
    """The model to measure: how it is called in each mode, its inputs, and the Keras model if it is
    one.
    """

    def __init__(self, calls: Dict[str, Compute], rows: Rows, model: Optional[Any]) -> None:
        self.calls = calls
        self.rows = rows
        self.model = model

    @property
    def most(self) -> int:
        """The number of rows."""
        return int(self.rows[0].shape[0])


def measure_mode(
    subject: Subject, mode: str, sizes: Sequence[int], answer: Callable[..., None]
) -> None:
    """Answer with the digest of the sample in batches of each size, at each place, and with other
    rows.
    """
    compute = subject.calls[mode]
    sizes = [size for size in sizes if size <= subject.most]
    # If two equal calls give different results, the result says nothing about batches.
    for size in sorted({sizes[0], sizes[-1]}):
        batch = take_rows(subject.rows, size)
        digests = [digest_row(compute(batch), 0, size) for _ in range(2)]
        if digests[0] != digests[1]:
            answer(mode=mode, unstable=size)
            return
    first = pick_row(compute(take_rows(subject.rows, sizes[0])), 0, sizes[0])
    others = []
    for size in sizes:
        row = pick_row(compute(take_rows(subject.rows, size)), 0, size)
        answer(mode=mode, size=size, **describe_row(row, first))
        if digest(row) != digest(first):
            others.append(size)
    for size in sorted({min(sizes[-1], 8), sizes[-1]}):
        measure_places(subject, mode, size, answer)
        measure_neighbors(subject, mode, size, answer)
    if others and subject.model is not None:
        batches = [take_rows(subject.rows, size) for size in (sizes[0], others[0])]
        answer(mode=mode, between=(sizes[0], others[0]), **find_layer(subject.model, batches, mode))


def measure_places(subject: Subject, mode: str, size: int, answer: Callable[..., None]) -> None:
    """Answer with the digest of the sample at the first, a middle and the last place of a batch."""
    first: Optional[Row] = None
    for place in sorted({0, size // 2, size - 1}):
        batch = []
        for array in take_rows(subject.rows, size):
            moved = array.copy()
            moved[[0, place]] = moved[[place, 0]]
            batch.append(moved)
        row = pick_row(subject.calls[mode](batch), place, size)
        first = first or row
        answer(mode=mode, size=size, place=place, **describe_row(row, first))


def measure_neighbors(subject: Subject, mode: str, size: int, answer: Callable[..., None]) -> None:
    """Answer with the digest of the sample with rows of zeros (padding), with copies of itself, and
    with rows in another order; if it differs, with the first layer that computes with them.

    Kernels are chosen by shapes, which are all equal here: only values of the other rows can make a
    difference.
    """
    first = pick_row(subject.calls[mode](take_rows(subject.rows, size)), 0, size)
    batches: Dict[str, Rows] = {"zeros": [], "copies": [], "others": []}
    for array in take_rows(subject.rows, size):
        padded = array.copy()
        padded[1:] = array.dtype.type(0)
        copied = array.copy()
        copied[1:] = array[0]
        turned = array.copy()
        turned[1:] = array[1:][::-1]
        for name, batch in (("zeros", padded), ("copies", copied), ("others", turned)):
            batches[name].append(batch)
    others: List[Rows] = []
    for name, rows in batches.items():
        row = pick_row(subject.calls[mode](rows), 0, size)
        answer(mode=mode, size=size, neighbors=name, **describe_row(row, first))
        if digest(row) != digest(first) and not others:
            others = [take_rows(subject.rows, size), rows]
    if others and subject.model is not None:
        answer(mode=mode, mixing=True, **find_layer(subject.model, others, mode))


def find_layer(model: Any, batches: Sequence[Rows], mode: str) -> Dict[str, Any]:
    """Return the first layer whose output for the first row differs between two batches, or why no
    layer is named.
    """
    # Here: a TensorFlow with a Keras of its own may have no package of this name.
    import keras

    try:
        layers = [layer for layer in model.layers if layer.__class__.__name__ != "InputLayer"]
        taps = keras.Model(model.inputs, [layer.output for layer in layers])
    except Exception as error:  # a subclass of Model: its layers are not a graph
        return {"layer": None, "reason": describe_failure(error)}
    compute = bind_calls(taps)[LAYER_MODES.get(mode, mode)]
    outputs = [compute(batch) for batch in batches]
    for number, layer in enumerate(layers):
        digests = {
            digest_row(output[number] if len(layers) > 1 else output, 0, len(batch[0]))
            for output, batch in zip(outputs, batches)
        }
        if len(digests) > 1:
            kind = layer.__class__.__name__
            return {"layer": layer.name, "kind": kind, "number": number + 1}
    reason = "with the output of every layer taken out, no layer differs"
    return {"layer": None, "reason": reason}


def make_subject(asked: Mapping[str, Any], found: Any, given: Any) -> Subject:
    """Return what is asked about: a model or function, with the inputs that its script gives or None.

    Raises:
        Misuse: it needs inputs that are not given.
    """
    if asked["inputs"] is not None:
        given = read_inputs(asked["inputs"])
    most = max(max(sizes) for sizes in asked["sizes"].values())
    model = found if is_keras_model(found) else None
    if given is not None:
        rows = [as_rows(array) for array in flatten(given)]
    elif model is not None:
        rows = make_inputs(model, most, asked["seed"])
    else:
        rows = make_signature_inputs(found, most, asked["seed"])
    if len({array.shape[0] for array in rows}) != 1:
        raise contract.Misuse("the inputs have different numbers of rows")
    if rows[0].shape[0] < 2:
        raise contract.Misuse("the inputs have one row: a batch needs two")
    names = sorted(given) if isinstance(given, dict) else None
    return Subject(bind_calls(found, names), rows, model)


def is_keras_model(found: Any) -> bool:
    """Return whether this is a model of Keras, recognised by its attributes: three packages define
    one.
    """
    return hasattr(found, "predict") and hasattr(found, "layers")


def load_model(path: str) -> Any:
    """Return the model in a file of Keras, or the function that a SavedModel serves.

    Raises:
        Misuse: there is no such model.
    """
    try:
        if os.path.isdir(path):
            loaded = tf.saved_model.load(path)
            signature = loaded.signatures["serving_default"]
            signature.envlock_owner = loaded  # or its variables are gone
            return signature
        return tf.keras.models.load_model(path, compile=False)
    except KeyError:
        raise contract.Misuse(f"{path} serves nothing: it has no `serving_default`") from None
    except Exception as error:
        raise contract.Misuse(f"{path} cannot be loaded: {describe_failure(error)}") from error


def bind_calls(found: Any, names: Optional[List[str]] = None) -> Dict[str, Compute]:
    """Return the functions that compute a batch in each mode that this model or function has;
    `names` are those of its inputs.
    """

    def call(*tensors: Any) -> Any:
        return call_found(found, tensors, names)

    calls: Dict[str, Compute] = {GRAPH: trace_calls(call, False), XLA: trace_calls(call, True)}
    if hasattr(found, "structured_input_signature"):
        return calls  # a served function is a graph already
    if hasattr(found, "get_concrete_function"):
        # Called as it is, it is a graph already, with the shapes that it wants.
        calls[GRAPH] = lambda rows: call_in_graph(call, rows)
        return calls
    calls[EAGER] = lambda rows: call(*[tf.constant(array) for array in rows])
    if is_keras_model(found):
        calls[PREDICT] = lambda rows: found.predict(
            arrange(rows, names), batch_size=len(rows[0]), verbose=0
        )
    return calls


def call_found(found: Any, tensors: Sequence[Any], names: Optional[List[str]]) -> Any:
    """Return the output of the model or function, called as people and servers call it.

    Not with `training=False`: that would overrule a layer that is called with `training=True`.
    """
    if hasattr(found, "structured_input_signature"):
        return found(**dict(zip(sorted(found.structured_input_signature[1]), tensors)))
    return found(arrange(tensors, names))


def arrange(tensors: Sequence[Any], names: Optional[List[str]]) -> Any:
    """Return the inputs in the form that a model takes: by name, as a single one, or as a list."""
    if names is not None:
        return dict(zip(names, tensors))
    if len(tensors) == 1:
        return tensors[0]
    return list(tensors)


def trace_calls(call: Callable[..., Any], compiled: bool) -> Compute:
    """Return a function that computes a batch in a graph, which XLA compiles or not."""
    functions: Dict[Tuple[Any, ...], Any] = {}

    def compute(rows: Rows) -> Any:
        # One graph serves every size, as a server has it; XLA compiles a program for each.
        size = len(rows[0]) if compiled else None
        specs = [tf.TensorSpec([size, *array.shape[1:]], array.dtype) for array in rows]
        key = tuple((tuple(spec.shape), spec.dtype) for spec in specs)
        if key not in functions:
            functions[key] = tf.function(call, input_signature=specs, jit_compile=compiled)
        return call_in_graph(functions[key], rows)

    return compute


def call_in_graph(function: Callable[..., Any], rows: Rows) -> Any:
    """Return what a function computes as a graph, also where the program has switched graphs off."""
    was_eager = tf.config.functions_run_eagerly()
    try:
        tf.config.run_functions_eagerly(False)
        return function(*[tf.constant(array) for array in rows])
    finally:
        tf.config.run_functions_eagerly(was_eager)


def make_inputs(model: Any, most: int, seed: int) -> Rows:
    """Return generated inputs for a Keras model: normal numbers, and tokens that its embeddings
    know.

    Raises:
        Misuse: the model does not say which inputs it takes.
    """
    inputs = getattr(model, "inputs", None)
    if not inputs:
        raise contract.Misuse(
            "the model was not built, so its inputs are unknown: give some with --inputs"
        )
    sizes = [
        layer.input_dim
        for layer in getattr(model, "layers", ())
        if isinstance(getattr(layer, "input_dim", None), int)
    ]
    vocabulary = min(sizes, default=SMALLEST_VOCABULARY)
    specs = [(each.name, tuple(each.shape), str(each.dtype)) for each in inputs]
    return [make_array(spec, most, seed + n, vocabulary) for n, spec in enumerate(specs)]


def make_signature_inputs(found: Any, most: int, seed: int) -> Rows:
    """Return generated inputs for the function that a SavedModel serves.

    Raises:
        Misuse: it is another function, which does not say which inputs it takes.
    """
    signature = getattr(found, "structured_input_signature", None)
    if signature is None:
        raise contract.Misuse(
            "a function's inputs are unknown: return (function, inputs), or give --inputs"
        )
    specs = [
        (name, tuple(spec.shape), spec.dtype.name) for name, spec in sorted(signature[1].items())
    ]
    return [make_array(spec, most, seed + n, SMALLEST_VOCABULARY) for n, spec in enumerate(specs)]


def make_array(
    spec: Tuple[str, Tuple[Any, ...], str], most: int, seed: int, vocabulary: int
) -> Any:
    """Return `most` rows for one input.

    Raises:
        Misuse: another dimension than the batch is unknown, or it takes strings.
    """
    name, shape, kind = spec
    if any(size is None for size in shape[1:]):
        raise contract.Misuse(f"input `{name}` has a free dimension: give inputs with --inputs")
    if shape[0] is not None:
        raise contract.Misuse(f"input `{name}` is for batches of {shape[0]} only")
    random = np.random.default_rng(seed)
    full = (most, *shape[1:])
    if kind.startswith(("int", "uint")):
        return random.integers(0, vocabulary, full).astype(kind)
    if kind == "bool":
        return random.integers(0, 2, full).astype(bool)
    if kind == "bfloat16" or kind.startswith("float"):
        return random.standard_normal(full).astype(tf.as_dtype(kind).as_numpy_dtype)
    raise contract.Misuse(f"input `{name}` takes {kind}: give inputs with --inputs")


def read_inputs(path: str) -> Any:
    """Return the arrays of a file that `numpy.save` or `numpy.savez` wrote.

    Raises:
        Misuse: it is not such a file.
    """
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise contract.Misuse(f"{path} cannot be read: {describe_failure(error)}") from error
    if isinstance(found, np.ndarray):
        return found
    arrays = {name: found[name] for name in found.files}
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    return arrays


def flatten(value: Any) -> List[Any]:
    """Return the arrays of an input or an output in order: those of a dict by sorted name."""
    if isinstance(value, dict):
        return [leaf for name in sorted(value) for leaf in flatten(value[name])]
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in flatten(part)]
    return [value]


def as_rows(value: Any) -> Any:
    """Return one input as an array with the batch as its first axis.

    Raises:
        Misuse: it is a scalar.
    """
    array = np.asarray(value)
    if array.ndim == 0:
        raise contract.Misuse("an input is a single number: the first axis must be the batch")
    return array


def take_rows(rows: Rows, size: int) -> Rows:
    """Return the first rows of every input."""
    return [array[:size] for array in rows]


def pick_row(output: Any, place: int, size: int) -> Row:
    """Return the result for one row, an array for every output.

    Raises:
        ValueError: an output has no row for each row of the batch.
    """
    row = []
    for tensor in flatten(output):
        array = np.asarray(tensor)
        if array.ndim == 0 or array.shape[0] != size:
            raise ValueError(f"a result of shape {array.shape} has no row for each of {size}")
        row.append(np.ascontiguousarray(array[place]))
    return row


def digest(row: Row) -> str:
    """Return the digest of the result for one row: the bytes, type and shape of every output."""
    found = hashlib.sha256()
    for array in row:
        found.update(f"{array.dtype.name} {array.shape}\n".encode("ascii"))
        found.update(array.tobytes())
    return found.hexdigest()[:16]


def digest_row(output: Any, place: int, size: int) -> str:
    """Return the digest of the result for one row; raises the errors of `pick_row`."""
    return digest(pick_row(output, place, size))


def describe_row(row: Row, reference: Row) -> Dict[str, Any]:
    """Return the digest of a result and, if it is another one, how far its numbers are from the
    reference, and how large those are.
    """
    found: Dict[str, Any] = {"digest": digest(row)}
    if found["digest"] == digest(reference):
        return found
    distances, largest = [0.0], [0.0]
    for array, other in zip(row, reference):
        if array.shape == other.shape and array.size and array.dtype.kind not in "USO":
            here, there = array.astype(np.float64), other.astype(np.float64)
            distances.append(float(np.max(np.abs(here - there))))
            largest.append(float(np.max(np.abs(there))))
    if np.isfinite(max(distances)) and np.isfinite(max(largest)):
        found.update(far=max(distances), largest=max(largest))
    return found
