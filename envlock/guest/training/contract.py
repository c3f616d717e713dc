"""How a user's script or function is loaded and run, and what of its result is a step of which quantities.

    load(script, function, args) -> a call, which takes the seed and gives a result
    steps(result)                -> dicts of named values, one a step; None where the result is a model to train

The contract, as the documentation has it: a function takes no argument (or `seed`) and returns a value, a dict of named
values, a Keras model or what its `fit` returns (one step), an iterable of these (one each step), or `(model, data)` or
`(model, data, fit_arguments)`. A whole script is run as `__main__`, and calls `envlock.record()`.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_file_location

from envlock.guest.training.failures import described

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence

    Call = Callable[[Optional[int]], Any]


class Misuse(Exception):  # noqa: N818 (it is not about a run, but about what was asked for)
    """The script or function cannot be run so, whatever it computes; the message is a whole sentence."""


def load(
    script: str, function: Optional[str], args: Sequence[str], *, module: bool = False
) -> Call:
    """Return what runs the function, or the script, once.

    Args:
        script: a file, whose folder becomes `sys.path[0]`; or the name of a module, for which the current one does.
        function: a function in it; None: run it as a program.
        args: what the program finds in `sys.argv[1:]`.
        module: `script` is the name of a module.

    Raises:
        Misuse: it cannot be imported, there is no such function, or it wants arguments.
    """
    script = script if module else os.path.abspath(script)
    sys.path.insert(0, os.getcwd() if module else os.path.dirname(script))
    sys.argv[:] = [script, *args]
    try:
        if module:
            _need_module(script, program=function is None)
        if function is None:
            return _whole(script, module=module)
        return _callable(import_module(script) if module else _imported(script), function)
    except Misuse:
        raise
    except BaseException as error:
        name = script if module else os.path.basename(script)
        raise Misuse(f"{name} cannot be imported: {described(error)}") from error


def folder_of(script: str, *, module: bool) -> str:
    """Return the folder that the user's files are named from: the script's; of a module the current one, or its own.

    The second where the module lies below the current folder, and is not installed there.
    """
    if not module:
        return os.path.dirname(os.path.abspath(script))
    here = os.getcwd()
    found = PathFinder.find_spec(script.partition(".")[0], [here, *sys.path])
    places = (
        [] if found is None else list(found.submodule_search_locations or [found.origin or here])
    )
    place = os.path.realpath(places[0]) if places else here
    inside = os.path.relpath(place, os.path.realpath(here))
    own = not inside.startswith("..") and "site-packages" not in inside.split(os.sep)
    return here if own else place if os.path.isdir(place) else os.path.dirname(place)


def _need_module(name: str, *, program: bool) -> None:
    """Do nothing where a module, or with `program` one that can be run, is found; its packages are imported.

    Raises:
        Misuse: it cannot.
    """
    try:
        found = find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name + ".").startswith(error.name + "."):
            raise  # something that a package imports
        found = None
    if found is None:
        raise Misuse(f"unknown module {name}")
    if program and found.submodule_search_locations is not None:
        _need_module(name + ".__main__", program=False)


def _whole(script: str, *, module: bool) -> Call:
    def call(seed: Optional[int]) -> None:
        import runpy

        try:
            if module:
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise

    return call


def _imported(script: str) -> Any:
    stem = os.path.splitext(os.path.basename(script))[0]
    name = stem if stem.isidentifier() and stem not in sys.modules else "_envlock_script"
    spec = spec_from_file_location(name, script)
    if spec is None or spec.loader is None:
        raise Misuse(f"{script} is not a Python file: its name must end in .py")
    module = module_from_spec(spec)
    sys.modules[name] = (
        module  # so that its classes can be pickled, and its own imports of itself are this one
    )
    spec.loader.exec_module(module)
    return module


def _callable(module: Any, function: str) -> Call:
    import inspect

    found = module
    for part in function.split("."):
        if not hasattr(found, part):
            raise Misuse(f"{_name(module)} has no function {function}")
        found = getattr(found, part)
    if not callable(found):
        raise Misuse(f"{function} is {_kind(found)}, not a function")
    try:
        parameters = inspect.signature(found).parameters
    except ValueError:  # one written in C
        parameters = {}  # type: ignore[assignment]
    takes_seed = "seed" in parameters
    other = [
        p.name for p in parameters.values() if p.default is p.empty and p.kind < p.VAR_POSITIONAL
    ]
    if set(other) - {"seed"}:
        names = ", ".join(name for name in other if name != "seed")
        raise Misuse(f"{function} needs the arguments {names}, but envlock passes only `seed`")

    def call(seed: Optional[int]) -> Any:
        if takes_seed and seed is not None:
            return found(seed=seed)
        if "seed" in other:
            raise Misuse(f"{function} needs a seed: add `--seed`")
        return found()

    return call


def _name(module: Any) -> str:
    """Return what the user calls a module: its file, or its dotted name where it belongs to a package."""
    name: str = module.__name__
    return name if "." in name else os.path.basename(module.__file__)


def steps(result: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the named values of each step, as they come: a generator's step is over when the next one is asked for."""
    if _is_stream(result):
        for step in result:
            yield _quantities(step)
    else:
        yield _quantities(result)


def _is_stream(result: Any) -> bool:
    """Return whether a result gives a step after the other: a list of numbers is one value, a list of dicts is not."""
    if isinstance(result, (list, tuple)):
        return bool(result) and all(_is_mapping(each) for each in result)
    plain = (
        isinstance(result, (str, bytes))
        or hasattr(result, "shape")
        or hasattr(result, "get_weights")
    )
    return hasattr(result, "__iter__") and not plain and not _is_mapping(result)


def _quantities(value: Any) -> Mapping[str, Any]:
    """Return the named values of one step, of whatever a function returns: those of Keras say what is in them."""
    if _is_mapping(value):
        return value  # type: ignore[no-any-return]
    if _is_mapping(getattr(value, "history", None)):  # what `fit` returns
        return value.history  # type: ignore[no-any-return]
    if hasattr(value, "get_weights"):
        return {"weights": value.get_weights()}
    return {"result": value}


def is_model(result: Any) -> bool:
    """Return whether a function's result is `(model, data)` or `(model, data, fit_arguments)` of Keras."""
    return (
        isinstance(result, (tuple, list))
        and len(result) in (2, 3)
        and all(hasattr(result[0], name) for name in ("fit", "get_weights"))
    )


def named(values: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the quantities of a step, flat: lists and dicts become `name/0`, `name/key`; None is left out.

    What TensorFlow keeps as several tensors (a sparse gradient) becomes several quantities, too.
    """
    found: Dict[str, Any] = {}
    for name, value in values.items():
        _flatten(str(name), value, found)
    return found


def _flatten(name: str, value: Any, found: Dict[str, Any]) -> None:
    parts = _parts(value)
    if parts is not None:
        for key, part in parts.items():
            _flatten(f"{name}/{key}", part, found)
    elif value is not None:
        found[name] = value


def _parts(value: Any) -> Optional[Mapping[Any, Any]]:
    if _is_mapping(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, (list, tuple)) and not all(
        isinstance(each, (bool, int, float, complex)) for each in value
    ):
        return dict(enumerate(value))
    if hasattr(value, "values") and hasattr(value, "indices"):  # IndexedSlices, SparseTensor
        return {"indices": value.indices, "values": value.values}
    if hasattr(value, "flat_values") and hasattr(value, "nested_row_splits"):  # RaggedTensor
        return {"values": value.flat_values, "row_splits": list(value.nested_row_splits)}
    return None


def _is_mapping(value: Any) -> bool:
    return hasattr(value, "keys") and hasattr(value, "items") and not hasattr(value, "__array__")


def _kind(value: Any) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
