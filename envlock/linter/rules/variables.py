"""Variables and switches of determinism: set too late, set in vain, or off."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from envlock.data.determinism import VariableRules, load_source_table, load_variable_table
from envlock.data.runtime_tables import load_variables
from envlock.data.specifiers import matches_version
from envlock.linter.environ import Setting, list_settings
from envlock.linter.module import Function, Hit, Module
from envlock.linter.names import (
    GONE_MODULES,
    OLD_PATCHES,
    SETTERS,
    STARTS_NOTHING,
    SWITCH,
    TENSORFLOW_1,
)
from envlock.runtime.recipe import find_recipe

HASH_SEED = "PYTHONHASHSEED"
AT_START = ("LD_LIBRARY_PATH", "LD_PRELOAD", "GLIBC_TUNABLES")
"""Variables of the loader and of glibc, read before Python starts: man 8 ld.so."""
STARTERS = ("os.exec", "os.popen", "os.spawn", "os.system", "subprocess.")
"""How the names of functions begin that start another program."""
READERS = (
    "tf",
    "keras",
    "tf_keras",
    "tensorflow_addons",
    "tensorflow_datasets",
    "tensorflow_probability",
    "tensorflow_hub",
)
SETTER_WORDS = frozenset(name.rpartition(".")[2] for name in SETTERS)
TRUE_AND_FALSE = ("0", "1", "true", "false")


@cache
def _load_rules() -> dict[str, VariableRules]:
    return {row.name: row for row in load_variable_table().variable}


@cache
def _list_read_once() -> dict[str, str]:
    """Return the variables that change bits and are read once, and when: at `import` or at
    `first-use`.
    """
    when = {row.name: row.read for row in load_variable_table().variable}
    bits = {row.name for row in load_variables() if row.bits in ("yes", "conditional", "unknown")}
    found: dict[str, str] = {}
    for name in bits:
        # They are read when several processes first meet, which no call of TensorFlow above shows.
        if name.startswith(("NCCL_", "HOROVOD_")):
            continue
        moment = when.get(name, "first-use")
        if moment in ("import", "first-use"):
            found[name] = moment
    return found


def find_late(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV103: `os.environ[...] = ...` after `import tensorflow`."""
    settings = list(list_settings(module))
    if not settings:  # most files: what is around their imports need not be looked up
        return
    top = [node for node in _list_imports(module) if module.find_function_around(node) is None]
    for setting in settings:
        if setting.name in AT_START:
            if _starts_programs(module):
                continue
            message = f"{setting.name} is read when the process starts: set here, it changes nothing in this process"
            yield Hit(
                setting.node, message, fix="Set it before the process starts (`envlock run` does)."
            )
        elif setting.name in _list_read_once():
            first = _import_before(module, setting, top)
            if first is not None:
                yield from _judge_moment(module, setting, first)


def _judge_moment(module: Module, setting: Setting, first: ast.stmt) -> Iterator[Hit]:
    """Yield a hit where the variable is read at import, or at first use and TensorFlow has worked
    before.
    """
    message = f"{setting.name} is set after the import in line {first.lineno}"
    if _list_read_once()[setting.name] == "import":
        yield Hit(setting.node, f"{message}, which has read it")
        return
    worked = _worked_before(module, setting)
    if worked is not None:
        yield Hit(
            setting.node, f"{message}, and TensorFlow can have read it in line {worked.lineno}"
        )


def _worked_before(module: Module, setting: Setting) -> ast.Call | None:
    """Return a call above, in the same function or outside of all, that makes TensorFlow work."""
    if not {"tf", "keras"} & module.packages:
        return None
    line = getattr(setting.node, "lineno", 0)
    places = (None, module.find_function_around(setting.node))
    for call, name in module.calls:
        works = name.startswith(("tf.", "keras.")) and not name.startswith(STARTS_NOTHING)
        if works and call.lineno < line and module.find_function_around(call) in places:
            return call
    return None


def find_hash_seeds(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV104: PYTHONHASHSEED set inside, unless the program starts Python again."""
    settings = [each for each in list_settings(module) if each.name == HASH_SEED]
    if not settings or _starts_programs(module):
        return
    for setting in settings:
        yield Hit(
            setting.node,
            "Python has read PYTHONHASHSEED already: set here, it changes nothing in this process",
        )


def _starts_programs(module: Module) -> bool:
    """Return whether a file starts other programs, which read variables of its own when they start."""
    names = set(module.call_names)
    # `pool.submit(subprocess.run, command)` calls it later.
    for each in module.list_nodes(ast.Attribute):
        names.add(module.resolve_name(each) or "")
    return any(name.startswith(STARTERS) for name in names)


def find_bad_values(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV105: a value outside the variable's syntax."""
    for setting in list_settings(module):
        row = _load_rules().get(setting.name)
        if row is None or not matches_version(row.tensorflow, tensorflow):
            continue
        if setting.value is ... or setting.value is None:
            continue
        problem = _describe_problem(row, setting.value)
        if problem is not None:
            yield Hit(setting.node, *problem)


def _describe_problem(row: VariableRules, found: object) -> tuple[str, str | None, str] | None:
    """Return message, severity and fix for a literal value that is not understood."""
    if not isinstance(found, str):
        meant = int(found) if isinstance(found, bool) else found
        return (
            f"{row.name} is set to {found!r}, which is not a string, so os.environ raises TypeError",
            None,
            f'Write "{meant}".',
        )
    accepted: tuple[str, ...] = TRUE_AND_FALSE if row.syntax == "bool" else row.accepts
    if row.syntax == "bool" and found.lower() in accepted:
        return None
    if row.syntax == "integer" and found.strip().lstrip("-").isdigit():
        return None
    if row.syntax == "any" or found in accepted:
        return None
    wanted = "a whole number" if row.syntax == "integer" else f"one of {', '.join(accepted)}"
    does = {
        "abort": "TensorFlow ends the process when it first reads it",
        "raise": "reading it raises an error",
        "ignored": "it is ignored, and the default counts",
        "off": "it counts as off",
    }.get(row.otherwise or "", "its effect was not measured")
    severity: str | None = "warning"
    if row.otherwise in ("abort", "raise"):
        severity = None  # that of the rule: the program ends
    return f"{row.name} is set to {found!r}: {does}", severity, f"Write {wanted}."


def _find_newest() -> str:
    return load_source_table().checked_through.rpartition(".")[0]


def find_unread(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV106: a name that no TensorFlow reads, or none of this version."""
    for setting in list_settings(module):
        row = _load_rules().get(setting.name)
        if row is not None and row.read_by == "nobody":
            fix = f"Write {row.meant}, if at all." if row.meant else None
            yield Hit(
                setting.node,
                f"no TensorFlow from 1.13 to {_find_newest()} reads {setting.name}",
                fix=fix,
            )
        elif setting.name not in _list_names():
            meant = _guess_name(setting.name)
            if meant is not None:
                yield Hit(setting.node, f"nothing reads {setting.name!r}", fix=f"Write {meant}.")


@cache
def _list_names() -> frozenset[str]:
    return frozenset({*_load_rules(), *(row.name for row in load_variables())})


def _guess_name(name: str) -> str | None:
    """Return the variable that a name differs from by blanks, case or punctuation only."""
    plain = name.strip().upper().replace("-", "_")
    return plain if plain in _list_names() else None


def _list_imports(module: Module) -> list[ast.Import | ast.ImportFrom]:
    """Return what imports TensorFlow or Keras."""
    every: list[ast.Import | ast.ImportFrom] = [
        *module.list_nodes(ast.Import),
        *module.list_nodes(ast.ImportFrom),
    ]
    return [node for node in every if _loads_tensorflow(node)]


def _loads_tensorflow(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Import):
        return any(_reads_variables(alias.name) for alias in node.names)
    return not node.level and _reads_variables(node.module or "")


def _reads_variables(module: str) -> bool:
    top = module.partition(".")[0]
    return top == "tensorflow" or top in READERS


def _import_before(
    module: Module, setting: Setting, top: list[ast.Import | ast.ImportFrom]
) -> ast.stmt | None:
    """Return an import that has run when the variable is set, or None."""
    line = getattr(setting.node, "lineno", 0)
    around = module.find_function_around(setting.node)
    inside = [
        node
        for node in _list_imports(module)
        if around is not None and module.find_function_around(node) is around
    ]
    earlier = [node for node in inside if node.lineno < line]
    if earlier:
        return earlier[0]
    first = min(top, key=lambda node: node.lineno, default=None)
    if first is None:
        return None
    if around is None:
        return first if first.lineno < line else None
    # A function may run long after all imports. It runs before them only where a call above them,
    # outside of all functions, names it.
    for call in module.list_nodes(ast.Call):
        if call.lineno < first.lineno and _calls_function(module, call, around):
            return None
    return first


def _calls_function(module: Module, call: ast.Call, function: Function) -> bool:
    """Return whether a call outside of all functions is of a function, by its name."""
    named = isinstance(call.func, ast.Name) and call.func.id == getattr(function, "name", "")
    return named and module.find_function_around(call) is None


def find_uncalled(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV101: `tf.config.experimental.enable_op_determinism` as a statement."""
    for statement in module.list_nodes(ast.Expr):
        name = module.resolve_name(statement.value)
        if name in SETTERS:
            yield Hit(statement, f"{name} is named but not called, so this does nothing")


def find_assigned(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV102: `tf.random.set_seed = 1`."""
    statements: list[tuple[ast.stmt, list[ast.expr], ast.expr | None]] = []
    statements += [(each, each.targets, each.value) for each in module.list_nodes(ast.Assign)]
    statements += [(each, [each.target], each.value) for each in module.list_nodes(ast.AugAssign)]
    statements += [(each, [each.target], each.value) for each in module.list_nodes(ast.AnnAssign)]
    for statement, targets, value in statements:
        for target in targets:
            if not isinstance(target, ast.Attribute) or target.attr not in SETTER_WORDS:
                continue
            name = module.resolve_name(target)
            if name in SETTERS and value is not None and not _is_function(module, value):
                yield Hit(statement, f"this replaces the function {name} and sets nothing")


def _is_function(module: Module, value: ast.expr) -> bool:
    """Return whether a function is put in another's place on purpose, as tests do."""
    if isinstance(value, ast.Call):
        return not (isinstance(value.func, ast.Name) and value.func.id in ("int", "str", "bool"))
    names = [each.name for each in module.list_nodes(ast.FunctionDef)]
    mine = isinstance(value, ast.Name) and value.id in names
    return mine or isinstance(value, ast.Lambda) or module.resolve_name(value) is not None


def find_other_recipes(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV107: the API before 2.8, NVIDIA's patch after 2.7, TF_CUDNN_DETERMINISTIC alone after 2.0."""
    fix = describe_recipe(tensorflow)
    for call, name in module.find_calls((SWITCH, *OLD_PATCHES)):
        if name == SWITCH and matches_version(["<2.8"], tensorflow):
            yield Hit(call, f"{SWITCH} came with TensorFlow 2.8; this is {tensorflow}", fix=fix)
        elif name in OLD_PATCHES and matches_version([">=2.8"], tensorflow):
            message = f"{name} was made for TensorFlow up to 2.7; this is {tensorflow}"
            # On TensorFlow 2.8 and later fwr13y's function calls the switch itself, so that it is
            # only superfluous: fwr13y/d9m/tensorflow/enable_determinism.py of
            # framework-reproducibility.
            severity = "warning" if name == OLD_PATCHES[0] else None
            yield Hit(call, message, severity, fix)
    if matches_version([">=2.1"], tensorflow):
        for setting in list_settings(module):
            if setting.name == "TF_CUDNN_DETERMINISTIC":
                message = (
                    f"in TensorFlow {tensorflow} TF_CUDNN_DETERMINISTIC alone affects only cuDNN"
                )
                yield Hit(setting.node, message, "warning", fix, unless_switched=True)


def find_fusion(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV110: HOROVOD_FUSION_THRESHOLD set to anything but 0."""
    for setting in list_settings(module):
        fuses = setting.value is ... or str(setting.value).strip() != "0"
        if setting.name == "HOROVOD_FUSION_THRESHOLD" and fuses and "horovod" in module.packages:
            message = "Horovod puts gradients into buffers in the order in which they are ready"
            yield Hit(setting.node, message)


def find_gone(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV111: a module of Keras that Keras 3 lacks, where the first one is imported or named."""
    places: dict[ast.stmt | ast.expr, str] = {}
    imports: list[ast.ImportFrom | ast.Import] = [
        *module.list_nodes(ast.ImportFrom),
        *module.list_nodes(ast.Import),
    ]
    for node in imports:
        gone = _find_gone_module(node)
        if gone is not None and not _has_another_way(module, node):
            places[node] = gone
    # `layers.experimental.preprocessing` after `from keras import layers`: no import names it.
    if "experimental" in module.attributes:
        for attribute in module.list_nodes(ast.Attribute):
            if (
                attribute.attr == "experimental"
                and module.resolve_name(attribute.value) == "keras.layers"
            ):
                places[attribute] = "keras.layers.experimental"
    for place in sorted(places, key=lambda each: each.lineno)[:1]:
        message = f"{places[place]} is gone with Keras 3"
        yield Hit(place, message, fix=f"Take its names from {GONE_MODULES[places[place]]}.")


def _find_gone_module(node: ast.ImportFrom | ast.Import) -> str | None:
    """Return the module of Keras that a statement imports, or imports from, and Keras 3 lacks."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        if node.level:
            return None
        names = [f"{node.module}.{name}" for name in names]
    for name in names:
        # Not by `canonical`: it writes tensorflow.python.keras alike, where the modules still are.
        within = name
        if name.startswith("tensorflow.keras."):
            within = name.removeprefix("tensorflow.")
        for gone in GONE_MODULES:
            if f"{within}.".startswith(f"{gone}."):
                return gone
    return None


def _has_another_way(module: Module, node: ast.AST) -> bool:
    """Return whether a program expects that something is absent, or asks for a version before it."""
    around = module.get_parent(node)
    while around is not None:
        if isinstance(around, ast.Try) and any(map(_catches_absence, around.handlers)):
            return True
        if isinstance(around, ast.If) and any(word in ast.unparse(around.test) for word in EITHER):
            return True
        around = module.get_parent(around)
    return False


def _catches_absence(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
    return not caught.isdisjoint(OF_ABSENCE)


OF_ABSENCE = ("AttributeError", "ImportError", "ModuleNotFoundError", "Exception", "BaseException")
EITHER = ("compat", "__version__", "hasattr(", "disable_v2", "VERSION")
"""What stands in a file that runs with TensorFlow 2 although it names what TensorFlow 1 had."""


def find_old_programs(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV109: `tf.placeholder`, `tf.Session`: once a file."""
    if "tensorflow" not in module.imports or any(word in module.text for word in EITHER):
        return
    # `from .ops import *` may give another `tf`: that of `tensorflow.compat.v1`.
    for each in module.starred:
        if "compat" in each.text:
            return
    gone = [
        name for name in module.call_names if name in TENSORFLOW_1 or name.startswith("tf.contrib.")
    ]
    for call, name in module.find_calls(gone):
        if not _has_another_way(module, call):
            yield Hit(
                call, f"{name} is not in TensorFlow {tensorflow}: this program cannot run with it"
            )
            return


@cache
def describe_recipe(version: str) -> str:
    """Return what turns op determinism on in a TensorFlow version, as one sentence."""
    row = find_recipe(version)
    if row is None:
        return f"The switch of TensorFlow {version} is unknown."
    sets = " ".join(f"{name}={value}" for name, value in row.set.items())
    steps: list[str] = []
    if sets:
        steps.append(f"set {sets} before the process starts")
    patches = [patch["call"] for patch in row.patches[:1]]
    steps += [f"call {call}" for call in (*row.calls, *patches)]
    if not steps:
        steps.append("there is no switch")
    return f"In TensorFlow {version}: {', and '.join(steps)}."
