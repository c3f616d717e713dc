"""What code is for, as the names around it say: a training never sees what only evaluates, reports or shows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

from envlock.linter.defaults import is_never_asked_for
from envlock.linter.module import DEPTH, Definition, Module, constant
from envlock.linter.names import ASIDE_WORDS, KEEPERS, TRAINING_WORDS

FITS = ("fit", "fit_generator", "train_on_batch")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
NO_DATA = re.compile(
    r"(^|_|\.)(uu)?id$|(^|_)(port|token|key|nonce|suffix|hostname)$|sleep|delay|backoff|jitter_s|^colou?rs?$",
    re.IGNORECASE,
)


def words(name: str) -> Iterator[str]:
    """Yield the words of a name in lower case: of `logDir_2` they are `log` and `dir`."""
    return (word.lower() for word in WORD.findall(name))


RECORDS = ("tf.io.TFRecordWriter", "tf.python_io.TFRecordWriter")
"""What writes data for a training: there, a video is no picture of how well it went."""


def is_aside(module: Module, node: ast.AST) -> bool:
    """Return whether the names in the statement and of the functions around a node say that no training sees it.

    The name of the file decides where those say nothing; what is made of it and trained on is seen, whatever they say.
    """
    near = {word for name in _names_around(module, node) for word in words(name)}
    near -= set() if module.named.keys().isdisjoint(RECORDS) else {"video"}
    told = (
        near
        if near & (ASIDE_WORDS | TRAINING_WORDS)
        else set(words(PurePath(module.path).stem)) - {"model"}
    )
    return (
        bool(told & ASIDE_WORDS) and not told & TRAINING_WORDS and not _is_trained_on(module, node)
    )


def _is_trained_on(module: Module, node: ast.AST) -> bool:
    """Return whether a model in this file is fitted to what is made of a node, by whatever names it passes through."""
    stack: list[ast.AST] = [
        given for call, _ in module.methods(FITS) for given in (*call.args, *_data(call))
    ]
    seen: set[ast.AST] = set()
    while stack and len(seen) < DEPTH * 32:
        part = stack.pop()
        if part is node:
            return True
        if part in seen:
            continue
        seen.add(part)
        if isinstance(part, ast.Name):
            stack.extend(
                each.node
                for each in module.bindings(part) or []
                if each.kind in ("value", "element")
            )
            stack.extend(_put_into(module, part))
            continue
        function = module.definition(part.func) if isinstance(part, ast.Call) else None
        returned = ast.walk(function) if isinstance(function, Definition) else ()
        stack.extend(
            each.value
            for each in returned
            if isinstance(each, ast.Return) and each.value is not None
        )
        stack.extend(ast.iter_child_nodes(part))
    return False


def _data(call: ast.Call) -> Iterator[ast.expr]:
    return (each.value for each in call.keywords if each.arg in ("x", "y", "generator"))


def _put_into(module: Module, name: ast.Name) -> Iterator[ast.AST]:
    """Yield what a list or an array of this name is filled with."""
    bound = module.bindings(name)
    for call, method in module.methods(KEEPERS):
        if isinstance(method.value, ast.Name) and module.bindings(method.value) is bound:
            yield from call.args
    for assign in module.nodes(ast.Assign):
        owner = assign.targets[0].value if isinstance(assign.targets[0], ast.Subscript) else None
        if isinstance(owner, ast.Name) and module.bindings(owner) is bound:
            yield assign.value


def is_no_data(module: Module, call: ast.Call) -> bool:
    """Return whether no number is computed from what is drawn: it is a text, an id, a wait, or never asked for."""
    return (
        _is_text(module, call)
        or _is_named_so(module, call)
        or is_never_asked_for(module, call)
        or is_dummy(module, call)
    )


def is_dummy(module: Module, call: ast.Call) -> bool:
    """Return whether what is drawn only builds a model, which is called on it and returns it to nobody."""
    around = module.parent(call)
    if (
        not isinstance(around, ast.Call)
        or around.args != [call]
        or not isinstance(module.parent(around), ast.Expr)
    ):
        return False
    made = module.values(around.func)
    return bool(made) and all(isinstance(each, ast.Call) for each in made)


def _is_text(module: Module, call: ast.Call) -> bool:
    """Return whether what is drawn becomes a part of a text, as the name of a file does."""
    around = module.parent(call)
    written = isinstance(around, ast.Call) and module.is_builtin(around.func, "str")
    while isinstance(around, ast.GeneratorExp | ast.ListComp):
        around = module.parent(around)
        written = isinstance(around, ast.Call) and getattr(around.func, "attr", "") == "join"
    filled = (
        isinstance(around, ast.BinOp)
        and isinstance(around.op, ast.Mod)
        and isinstance(constant(around.left), str)
    )
    return written or filled or isinstance(around, ast.FormattedValue)


def _is_called(around: ast.AST | None, function: ast.AST) -> bool:
    return isinstance(around, ast.Call) and around.func is function


def _is_named_so(module: Module, call: ast.Call) -> bool:
    """Return whether what is drawn gets the name of an id, a port or a time to wait."""
    inside: ast.AST = call
    around = module.parent(call)
    while isinstance(around, ast.BinOp | ast.Attribute | ast.ListComp) or _is_called(
        around, inside
    ):
        inside, around = around or inside, module.parent(around or inside)
    if isinstance(around, ast.keyword):
        name: object = around.arg
    elif isinstance(around, ast.Assign | ast.AugAssign):
        name = ast.unparse(around.targets[0] if isinstance(around, ast.Assign) else around.target)
    elif isinstance(around, ast.Dict):
        pairs = zip(around.keys, around.values, strict=True)
        name = next((constant(key) for key, value in pairs if value is inside), "")
    else:
        name = (
            ast.unparse(around.func)
            if isinstance(around, ast.Call) and inside is not around.func
            else ""
        )
    return NO_DATA.search(str(name)) is not None


def _names_around(module: Module, node: ast.AST) -> Iterator[str]:
    """Yield the names and texts in the statement of a node, less the body of a loop, and of what is around it."""
    statement = node if isinstance(node, ast.stmt) else None
    for around in module.ancestors(node):
        if isinstance(around, Definition | ast.ClassDef):
            yield around.name
        elif isinstance(around, ast.stmt) and statement is None:
            statement = around
    head = (
        [statement.target, statement.iter]
        if isinstance(statement, ast.For | ast.AsyncFor)
        else [statement or node]
    )
    for part in head:
        for each in ast.walk(part):
            if isinstance(each, ast.Name):
                yield each.id
            elif isinstance(each, ast.Attribute):
                yield each.attr
            elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value
