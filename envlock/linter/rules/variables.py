"""Variables and switches of determinism: set too late, set in vain, or off."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from envlock.data.determinism import VariableRules, load_source_table, load_variable_table
from envlock.data.runtime_tables import load_variables
from envlock.data.specifiers import matches_version
from envlock.linter.environ import list_settings
from envlock.linter.module import Hit, Module
from envlock.linter.names import OLD_PATCHES, SETTERS, STARTS_NOTHING, SWITCH
from envlock.runtime.recipe import find_recipe

HASH_SEED = "PYTHONHASHSEED"
AT_START = ("LD_LIBRARY_PATH", "LD_PRELOAD", "GLIBC_TUNABLES")
"""Variables of the loader and of glibc, read before Python starts: man 8 ld.so."""
STARTERS = ("os.exec", "os.popen", "os.spawn", "os.system", "subprocess.")
"""How the names of functions begin that start another program."""
READERS = ("tensorflow", "tf", "keras", "tf_keras")
"""How the modules begin that read variables when they are imported: `tensorflow_hub`, too."""


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
    for setting in list_settings(module):
        if setting.name in AT_START and not _starts_programs(module):
            message = f"{setting.name} is read when the process starts: set here, it changes nothing in this process"
            fix = "Set it before the process starts (`envlock run` does)."
            yield Hit(setting.node, message, fix=fix)
        moment = _list_read_once().get(setting.name)
        first = _find_import_before(module, setting.node) if moment else None
        if first is None:
            continue
        message = f"{setting.name} is set after the import in line {first.lineno}"
        if moment == "import":
            yield Hit(setting.node, f"{message}, which has read it")
            continue
        worked = _find_work_before(module, setting.node)
        if worked is not None:
            message += f", and TensorFlow can have read it in line {worked.lineno}"
            yield Hit(setting.node, message)


def _find_import_before(module: Module, node: ast.stmt | ast.expr) -> ast.stmt | None:
    """Return an import of TensorFlow or Keras that has run when some code does, or None."""
    around = module.find_function_around(node)
    for statement in module.list_imports():
        if isinstance(statement, ast.ImportFrom):
            names = ["." * statement.level + (statement.module or "")]
        else:
            names = [alias.name for alias in statement.names]
        if not any(name.startswith(READERS) for name in names):
            continue
        where = module.find_function_around(statement)
        if where is around and statement.lineno < node.lineno:
            return statement
        # A function runs after all imports, unless it is called above them.
        if where is None and around is not None:
            name = getattr(around, "name", "")
            calls = [each for each in module.list_nodes(ast.Call) if each.lineno < statement.lineno]
            if not any(getattr(each.func, "id", "") == name for each in calls):
                return statement
    return None


def _find_work_before(module: Module, node: ast.stmt | ast.expr) -> ast.Call | None:
    """Return a call above, in the same function or outside of all, that makes TensorFlow work."""
    places = (None, module.find_function_around(node))
    for call, name in module.calls:
        works = name.startswith(("tf.", "keras.")) and not name.startswith(STARTS_NOTHING)
        if works and call.lineno < node.lineno and module.find_function_around(call) in places:
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


def find_unread(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV106: a name that no TensorFlow reads."""
    newest = load_source_table().horizon.through.rpartition(".")[0]
    for setting in list_settings(module):
        row = _load_rules().get(setting.name)
        if row is not None and row.read_by == "nobody":
            message = f"no TensorFlow from 1.13 to {newest} reads {setting.name}"
            yield Hit(
                setting.node, message, fix=f"Write {row.meant}, if at all." if row.meant else None
            )
        elif setting.name not in _list_names():
            # Another case of letters, a blank or a hyphen.
            meant = setting.name.strip().upper().replace("-", "_")
            if meant in _list_names():
                yield Hit(setting.node, f"nothing reads {setting.name!r}", fix=f"Write {meant}.")


@cache
def _list_names() -> frozenset[str]:
    return frozenset({*_load_rules(), *(row.name for row in load_variables())})


def find_uncalled(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV101: `tf.config.experimental.enable_op_determinism` as a statement."""
    for statement in module.list_nodes(ast.Expr):
        name = module.resolve_name(statement.value)
        if name in SETTERS:
            yield Hit(statement, f"{name} is named but not called, so this does nothing")


def find_assigned(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV102: `tf.random.set_seed = 1`."""
    for statement in module.list_nodes(ast.Assign):
        for target in statement.targets:
            # Tests put a function in another's place on purpose.
            if not isinstance(target, ast.Attribute) or type(statement.value) is not ast.Constant:
                continue
            name = module.resolve_name(target)
            if name in SETTERS:
                yield Hit(statement, f"this replaces the function {name} and sets nothing")


def find_other_recipes(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV107: the switch before 2.8, and NVIDIA's patches after 2.7."""
    fix = describe_recipe(tensorflow)
    is_new = matches_version([">=2.8"], tensorflow)
    for call, name in module.find_calls((SWITCH, *OLD_PATCHES)):
        if name == SWITCH and not is_new:
            yield Hit(call, f"{SWITCH} came with TensorFlow 2.8; this is {tensorflow}", fix=fix)
        elif name in OLD_PATCHES and is_new:
            message = f"{name} was made for TensorFlow up to 2.7; this is {tensorflow}"
            # That of fwr13y calls the switch itself on 2.8 and later, and is only superfluous:
            # fwr13y/d9m/tensorflow/enable_determinism.py of framework-reproducibility.
            yield Hit(call, message, "warning" if name == OLD_PATCHES[0] else None, fix)
    for setting in list_settings(module) if matches_version([">=2.1"], tensorflow) else ():
        if setting.name == "TF_CUDNN_DETERMINISTIC":
            message = f"in TensorFlow {tensorflow} {setting.name} alone affects only cuDNN"
            yield Hit(setting.node, message, "warning", fix, unless_switched=True)


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
