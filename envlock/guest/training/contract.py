"""How a user's script or function is loaded and run, and how its result is divided into steps and
quantities.

    Program(asked).load()        -> a call, which returns a result
    perform(call, take)          -> passes what the call records, yields or trains to `take`
    iterate_steps(result)        -> dicts of named values, one for each step
    is_model(result)             -> whether it is a model to train instead

The contract, as in the documentation: a function takes no argument (or `seed`) and returns a value,
a dict of named values, a Keras model or what its `fit` returns (one step), an iterable of these
(one for each step), or `(model, data)` or `(model, data, fit_arguments)`. A whole script is run as
`__main__`, and calls `envlock.record()`.
"""

from __future__ import annotations

import inspect
import os
import random
import runpy
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_file_location

from envlock.guest.training import seed_setting
from envlock.guest.training.failures import describe_failure
from envlock.runtime import recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence

    Call = Callable[[], object]
    Quantities = Mapping[str, object]
    Taker = Callable[[Optional[int], Quantities], None]


class Misuse(Exception):  # noqa: N818 (it is about the request, not about a run)
    """The script or function cannot be run in this way, whatever it computes; the message is a
    whole sentence.
    """


class Program:
    """What is asked for: `script` is a file, whose folder becomes `sys.path[0]`, or with `module`
    the name of a module, for which the current folder does; `function` is one in it, and without it
    runs as a program; `args` are the arguments for `sys.argv[1:]`.
    """

    def __init__(self, asked: Mapping[str, Any]) -> None:
        """Take the seeds from `seed` (of all packages) and `generators` (of Python and NumPy), too."""
        self.module: bool = asked["module"]
        self.script: str = asked["script"] if self.module else os.path.abspath(asked["script"])
        self.function: Optional[str] = asked["function"]
        self.seed: Optional[int] = asked.get("seed")
        self._args: Sequence[str] = asked["args"]
        self._generators: Optional[int] = asked.get("generators")

    def set_seeds(self) -> None:
        """Set the seeds that are asked for."""
        if self._generators is not None:
            random.seed(self._generators)
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.seed(self._generators)
        if self.seed is not None:
            seed_setting.set_all_seeds(self.seed)

    def load(self) -> Call:
        """Return a function that runs the function, or the script, once.

        Raises:
            Misuse: it cannot be imported, there is no such function, or it requires arguments.
        """
        if self.module:
            folder, name = os.getcwd(), self.script
        else:
            folder, name = os.path.split(self.script)
        sys.path.insert(0, folder)
        sys.argv[:] = [self.script, *self._args]
        try:
            if self.module:
                _need_module(self.script, is_program=self.function is None)
            if self.function is None:
                return _make_program_call(self.script, module=self.module)
            if self.module:
                imported = import_module(self.script)
            else:
                imported = _import_file(self.script)
            return _make_function_call(imported, self.function, self.seed)
        except Misuse:
            raise
        except BaseException as error:
            raise Misuse(f"{name} cannot be imported: {describe_failure(error)}") from error


def perform(
    call: Call,
    take: Taker,
    train: Optional[Callable[[object], None]] = None,
    end_step: Callable[[int], None] = lambda number: None,
) -> None:
    """Call a function, and pass each of its steps to `take(step, values)`: those that it records,
    yields or trains, else its result.

    Args:
        call: the function; see `Program.load`.
        take: gets the steps.
        train: what is done with a model that the function returns; `train_model` if not given.
        end_step: gets the number of a step that the function has yielded, before the next one.

    Raises:
        BaseException: any exception of the user's code.
    """
    recording.listen(take)
    try:
        result = call()
        if result is None:
            return
        if is_model(result):
            if train is None:
                train_model(result, take)
            else:
                train(result)
            return
        for number, values in enumerate(iterate_steps(result)):
            take(number, values)
            end_step(number)
    finally:
        recording.listen(None)


def find_folder(script: str, *, module: bool) -> str:
    """Return the folder that names of the user's files are relative to: that of the script.

    For a module, it is the current folder if the module is below it and not installed there, else
    the module's own.
    """
    if not module:
        return os.path.dirname(os.path.abspath(script))
    current = os.getcwd()
    spec = PathFinder.find_spec(script.partition(".")[0], [current, *sys.path])
    places = []
    if spec is not None:
        # The folders of a package, else the file of a module.
        places = list(spec.submodule_search_locations or [spec.origin or current])
    place = os.path.realpath(places[0]) if places else current
    inside = os.path.relpath(place, os.path.realpath(current))
    if not inside.startswith("..") and "site-packages" not in inside.split(os.sep):
        return current
    if os.path.isdir(place):
        return place
    return os.path.dirname(place)


def _need_module(name: str, *, is_program: bool) -> None:
    """Check that a module, or with `is_program` one that can be run, exists; its parent packages
    are imported.

    Raises:
        Misuse: it does not exist.
    """
    try:
        spec = find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name + ".").startswith(error.name + "."):
            raise  # an import inside a package
        spec = None
    if spec is None:
        raise Misuse(f"unknown module {name}")
    if is_program and spec.submodule_search_locations is not None:
        _need_module(name + ".__main__", is_program=False)


def _make_program_call(script: str, *, module: bool) -> Call:
    def call() -> None:
        try:
            if module:
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise

    return call


def _import_file(script: str) -> ModuleType:
    name = os.path.splitext(os.path.basename(script))[0]
    if not name.isidentifier() or name in sys.modules:
        name = "_envlock_script"
    spec = spec_from_file_location(name, script)
    if spec is None or spec.loader is None:
        raise Misuse(f"{script} is not a Python file: its name must end in .py")
    module = module_from_spec(spec)
    # So that its classes can be pickled, and that it gets this module if it imports itself.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _make_function_call(module: ModuleType, name: str, seed: Optional[int]) -> Call:
    function: object = module
    for part in name.split("."):
        if not hasattr(function, part):
            raise Misuse(f"{_get_name(module)} has no function {name}")
        function = getattr(function, part)
    if not callable(function):
        raise Misuse(f"{name} is {_describe_type(function)}, not a function")
    parameters = _list_parameters(function)
    takes_seed = any(parameter.name == "seed" for parameter in parameters)
    required = [parameter.name for parameter in parameters if _is_required(parameter)]
    others = [parameter for parameter in required if parameter != "seed"]
    if others:
        names = ", ".join(others)
        raise Misuse(f"{name} needs the arguments {names}, but envlock passes only `seed`")

    def call() -> object:
        if takes_seed and seed is not None:
            return function(seed=seed)
        if "seed" in required:
            raise Misuse(f"{name} needs a seed: add `--seed`")
        return function()

    return call


def _list_parameters(function: Callable[..., object]) -> Sequence[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:  # a function written in C
        return []


def _is_required(parameter: inspect.Parameter) -> bool:
    # The kinds are ordered: those before `*args` can be given by position.
    return parameter.default is parameter.empty and parameter.kind < parameter.VAR_POSITIONAL


def _get_name(module: ModuleType) -> str:
    """Return the user's name for a module: its file, or its dotted name if it belongs to a package."""
    if "." in module.__name__ or module.__file__ is None:
        return module.__name__
    return os.path.basename(module.__file__)


def iterate_steps(result: object) -> Iterator[Quantities]:
    """Yield the named values of each step as they arrive: a generator's step has ended when the
    next one is requested.
    """
    if _is_stream(result):
        for step in result:  # type: ignore[attr-defined]
            yield _name_quantities(step)
    else:
        yield _name_quantities(result)


def _is_stream(result: object) -> bool:
    """Return whether a result consists of steps: a list of numbers is one value, a list of dicts is
    not.
    """
    if isinstance(result, (list, tuple)):
        return bool(result) and all(map(_is_mapping, result))
    if isinstance(result, (str, bytes)) or _is_mapping(result):
        return False
    # Arrays, tensors and Keras models can be iterated over, too.
    if hasattr(result, "shape") or hasattr(result, "get_weights"):
        return False
    return hasattr(result, "__iter__")


def _name_quantities(value: object) -> Quantities:
    """Return the named values of one step, for any return value of a function: those of Keras have
    names for their parts.
    """
    if _is_mapping(value):
        return value  # type: ignore[return-value]
    history = getattr(value, "history", None)
    if _is_mapping(history):  # the return value of `fit`
        return history  # type: ignore[return-value]
    if hasattr(value, "get_weights"):
        return {"weights": value.get_weights()}
    return {"result": value}


def is_model(result: object) -> bool:
    """Return whether a function's result is `(model, data)` or `(model, data, fit_arguments)` of
    Keras.
    """
    if not isinstance(result, (tuple, list)) or len(result) not in (2, 3):
        return False
    return hasattr(result[0], "fit") and hasattr(result[0], "get_weights")


def train_model(result: object, taker: Callable[[int, Quantities], None]) -> None:
    """Train the model in a result for which `is_model` is true, and pass every step to `taker(step,
    values)`.

    Raises:
        BaseException: any exception of the user's model or data.
    """
    # Imported here: it imports TensorFlow, which only a function that returns a model needs.
    from envlock.guest.training import keras_fit

    keras_fit.train(*result, taker=taker)  # type: ignore[misc]


def flatten(values: Quantities) -> Dict[str, object]:
    """Return the quantities of a step, flat: lists and dicts become `name/0`, `name/key`; None is
    left out.

    A value that TensorFlow stores as several tensors (a sparse gradient) becomes several
    quantities, too.
    """
    flat: Dict[str, object] = {}
    for name, value in values.items():
        _flatten(str(name), value, flat)
    return flat


def _flatten(name: str, value: object, flat: Dict[str, object]) -> None:
    parts = _split(value)
    if parts is not None:
        for key, part in parts.items():
            _flatten(f"{name}/{key}", part, flat)
    elif value is not None:
        flat[name] = value


def _split(value: object) -> Optional[Mapping[object, object]]:
    """Return the parts of a value; None if it is a single value."""
    if _is_mapping(value):
        return value  # type: ignore[return-value]
    if isinstance(value, (list, tuple)) and not _are_numbers(value):
        return dict(enumerate(value))
    if hasattr(value, "values") and hasattr(value, "indices"):  # IndexedSlices, SparseTensor
        return {"indices": value.indices, "values": value.values}
    if hasattr(value, "flat_values") and hasattr(value, "nested_row_splits"):  # RaggedTensor
        return {"values": value.flat_values, "row_splits": list(value.nested_row_splits)}
    return None


def _are_numbers(values: Sequence[object]) -> bool:
    """Return whether a list has only numbers, so that it is one value."""
    return all(isinstance(value, (bool, int, float, complex)) for value in values)


def _is_mapping(value: object) -> bool:
    """Return whether a value is a dict or similar, and not an array."""
    return hasattr(value, "keys") and hasattr(value, "items") and not hasattr(value, "__array__")


def _describe_type(value: object) -> str:
    if value is None:
        return "None"
    return f"of type {type(value).__name__}"
