"""docs/reference/python.md: the public names, with their signatures and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import envlock
from envlock.runtime.errors import EnvlockError

HEAD = """\
<!-- written by tools/generate.py from the docstrings of the public names in envlock/__init__.py -->
# Python

Every command is a function of the package, with the same options. Functions return values and print nothing; those
that judge return a `Report`, whose JSON is described in [formats](formats.md#the-report). A public name is imported when
it is first used, so `import envlock` costs nothing else.

A `lock` argument is a `Lockfile`, the path of one, or its content as `bytes`; without it the functions take the
lockfile that `assert_locked()` finds. `progress` is an object with the methods of `envlock.Progress`, which shows the
progress of a call; the default shows nothing. `help(envlock.verify)` in Python says what each argument is.

`assert_loaded`, `assert_locked`, `activate`, `cite`, `load_ipython_extension`, `locate`, `record`, `recorded`, `stamp` and
`unload_ipython_extension` need only the standard library of Python 3.8 or newer. The others need Python 3.10 and the
dependencies of the distribution.
"""


def page() -> str:
    """Return the page: functions first, then classes and errors."""
    public = {name: getattr(envlock, name) for name in envlock.__all__ if not name.startswith("__")}
    functions = {name: each for name, each in public.items() if inspect.isfunction(each)}
    errors = {
        name: each
        for name, each in public.items()
        if isinstance(each, type) and issubclass(each, EnvlockError)
    }
    others = {name: each for name, each in public.items() if name not in {*functions, *errors}}
    return (
        f"{HEAD}\n## Functions\n"
        + "".join(_section(name, _signature(name, each), each) for name, each in functions.items())
        + "\n## Classes\n\n"
        + "".join(f"- `{name}`: {_summary(each)}.\n" for name, each in others.items())
        + "\n## Errors\n\nAll are an `EnvlockError`, and have a `message`, a `hint` (or None) and an `exit_code`.\n\n"
        + "| error | raised for | exit code |\n|---|---|---|\n"
        + "".join(
            f"| `{name}` | {_summary(each)} | {getattr(each, 'exit_code', '')} |\n"
            for name, each in errors.items()
        )
    )


def _section(name: str, code: str, each: Any) -> str:
    return f"\n### {name}\n\n```text\n{code}\n```\n\n{_summary(each)}.\n"


def _summary(each: Any) -> str:
    return " ".join((inspect.getdoc(each) or "").partition("\n\n")[0].split()).rstrip(".")


def _signature(name: str, function: Callable[..., Any]) -> str:
    """Return a call with the arguments and their defaults, without types: an object as default is three dots."""
    words: list[str] = []
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        stars = "**" if each.kind is each.VAR_KEYWORD else ""
        words.append(
            f"{stars}{each.name}"
            + ("" if each.default is each.empty else f"={_shown(each.default)}")
        )
    return f"envlock.{name}({', '.join(words)})"


def _shown(value: object) -> str:
    if isinstance(value, Path):
        return repr(str(value))
    kind: Any = type(value)
    if dataclasses.is_dataclass(value) and value == kind():
        return f"{kind.__name__}()"
    return "..." if repr(value).startswith("<") else repr(value)
