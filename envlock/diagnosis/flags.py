"""Rules on XLA_FLAGS and TF_XLA_FLAGS. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from envlock.data import determinism as tables
from envlock.data.determinism import cited
from envlock.diagnosis import values
from envlock.diagnosis.environment import Environment
from envlock.runtime.report import Finding

Variable = Literal["XLA_FLAGS", "TF_XLA_FLAGS"]
VARIABLES: tuple[Variable, ...] = ("XLA_FLAGS", "TF_XLA_FLAGS")
_MEASURED = "measured: TensorFlow 2.21 ends with `Unknown flag in XLA_FLAGS`"


def flags(environment: Environment) -> Iterator[tuple[Variable, str, str]]:
    """Yield (variable, flag, value) of every flag that is set."""
    for variable in VARIABLES:
        for text in (environment.variables.get(variable) or "").split():
            name, _, value = text.partition("=")
            if name.startswith("--"):
                yield variable, name, value.lower()


def unknown(environment: Environment) -> Iterator[Finding]:
    """Yield flags that the installed TensorFlow does not know: it aborts."""
    rows = {(row.variable, row.name): row for row in tables.variable_table().flag}
    for variable, name, _ in flags(environment):
        row = rows.get((variable, name))
        gone = (
            row is not None
            and environment.tensorflow is not None
            and environment.stock
            and not environment.holds(row.tensorflow)
        )
        if gone or name in environment.strange_flags:
            fix = f"remove that flag from {variable}"
            if row is not None or _is_plain(name):
                fix = values.without(
                    variable, name, "" if row is None or row.instead is None else row.instead
                )
            yield Finding(
                "flag-unknown",
                "error",
                f"environ.{variable}",
                f"{variable} holds {_name(name, row)}, which TensorFlow {environment.tensorflow} does not know",
                "An unknown flag aborts the process when XLA is first used.",
                fix,
                _MEASURED
                if row is None
                else cited(row.sources[0], tables.variable_table().evidence),
            )


def _name(name: str, row: tables.Flag | None) -> str:
    return name if row is not None or _is_plain(name) else "a flag"


def _is_plain(name: str) -> bool:
    return len(name) <= 64 and name[2:].replace("_", "").isalnum() and name.isascii()


def dangerous(environment: Environment) -> Iterator[Finding]:
    """Yield flags with a value that is wrong where determinism is wanted."""
    rows = {(row.variable, row.name): row for row in tables.variable_table().flag}
    for variable, name, value in flags(environment):
        row = rows.get((variable, name))
        if row is not None and value in row.dangerous and environment.holds(row.tensorflow):
            source = cited(row.sources[0], tables.variable_table().evidence)
            text = f"{name}={value}" if value else name
            where, fix = f"environ.{variable}", values.without(variable, name)
            yield Finding(
                "flag-dangerous",
                row.severity,
                where,
                f"{variable} holds {text}",
                row.why,
                fix,
                source,
            )


def missing_file(environment: Environment) -> Iterator[Finding]:
    """Yield that XLA_FLAGS names a file which is not there."""
    if environment.missing_flag_file:
        yield Finding(
            "flag-file",
            "error",
            "environ.XLA_FLAGS",
            "XLA_FLAGS does not start with --, and no file of that name exists",
            "A value that does not start with -- names a file with flags; a missing file aborts the process.",
            values.unset("XLA_FLAGS"),
            "measured: TensorFlow 2.21",
            commands=[values.unset("XLA_FLAGS")],
        )
