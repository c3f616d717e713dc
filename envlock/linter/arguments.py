"""What a call is given."""

from __future__ import annotations

import ast

from envlock.linter.module import read_literal
from envlock.linter.project import Function

SEED_WORDS = frozenset(
    {"seed", "random_state", "op_seed", "rng", "random_seed", "rstate", "shuffle_seed"}
)


def get_keyword(call: ast.Call, *words: str) -> ast.expr | None:
    """Return what is given under one of some names."""
    return next((each.value for each in call.keywords if each.arg in words), None)


def is_none(given: ast.expr | None) -> bool:
    """Return whether nothing is given, or None."""
    return given is None or (isinstance(given, ast.Constant) and given.value is None)


def find_seed(call: ast.Call, at: int = -1) -> ast.expr | None:
    """Return the seed that a call is given by a name or at a place, or None."""
    given = get_keyword(call, *SEED_WORDS)
    if given is None and at >= 0:
        # What is unpacked may hold one.
        starred = [each for each in call.args if isinstance(each, ast.Starred)]
        return next(iter([*starred, *call.args[at : at + 1]]), None)
    return given


def has_seed(call: ast.Call, at: int = -1) -> bool:
    """Return whether a call is given a seed of its own, which may be any expression but None."""
    return not is_none(find_seed(call, at))


def is_shuffled(call: ast.Call, *, default: bool) -> bool:
    """Return whether a call may shuffle."""
    given = get_keyword(call, "shuffle")
    return default if given is None else read_literal(given) is not False


def find_default(function: Function, name: str) -> ast.expr | None:
    """Return the default of a parameter, or None where it has none."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(plain[::-1], arguments.defaults[::-1], strict=False)]
    pairs += [
        (each, default)
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    ]
    return next((default for each, default in pairs if each.arg == name), None)


def has_parameter(function: Function, name: str) -> bool:
    """Return whether a function takes an argument of a name."""
    arguments = function.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return any(each.arg == name for each in every)
