"""Rules on XLA_FLAGS and TF_XLA_FLAGS. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from envlock.data import determinism as tables
from envlock.data.determinism import resolve_citation
from envlock.diagnosis import variable_values
from envlock.diagnosis.diagnosed_environment import Environment
from envlock.runtime.report import Finding

Variable = Literal["XLA_FLAGS", "TF_XLA_FLAGS"]
VARIABLES: tuple[Variable, ...] = ("XLA_FLAGS", "TF_XLA_FLAGS")
_MEASURED = "measured: TensorFlow 2.21 ends with `Unknown flag in XLA_FLAGS`"


def list_flags(environment: Environment) -> Iterator[tuple[Variable, str, str]]:
    """Yield (variable, flag, value) of every flag that is set."""
    for variable in VARIABLES:
        for text in (environment.variables.get(variable) or "").split():
            name, _, value = text.partition("=")
            if name.startswith("--"):
                yield variable, name, value.lower()


def _load_rows() -> dict[tuple[str, str], tables.Flag]:
    """Return the table's flags by variable and name."""
    return {(row.variable, row.name): row for row in tables.load_variable_table().flag}


def check_known(environment: Environment) -> Iterator[Finding]:
    """Yield flags that the installed TensorFlow does not know and therefore aborts on."""
    rows = _load_rows()
    for variable, name, _ in list_flags(environment):
        row = rows.get((variable, name))
        if not _is_gone(row, environment) and name not in environment.strange_flags:
            continue
        shown, fix, source = "a flag", f"remove that flag from {variable}", _MEASURED
        # A name that is in no table may be a secret, and may contain what a shell would execute.
        if row is not None or _is_plain(name):
            shown, fix = name, variable_values.make_removal_line(variable, name)
        if row is not None:
            source = resolve_citation(row.sources[0], tables.load_variable_table().evidence)
            if row.instead is not None:
                fix = variable_values.make_removal_line(variable, name, row.instead)
        yield Finding(
            "flag-unknown",
            "error",
            f"environ.{variable}",
            f"{variable} holds {shown}, which TensorFlow {environment.tensorflow} does not know",
            "An unknown flag aborts the process when XLA is first used.",
            fix,
            source,
        )


def _is_gone(row: tables.Flag | None, environment: Environment) -> bool:
    """Return whether a flag exists only in other versions of TensorFlow than the installed one."""
    if row is None or environment.tensorflow is None or not environment.stock:
        return False
    return not environment.has_tensorflow(row.tensorflow)


def _is_plain(name: str) -> bool:
    return len(name) <= 64 and name[2:].replace("_", "").isalnum() and name.isascii()


def check_flag_values(environment: Environment) -> Iterator[Finding]:
    """Yield flags with a value that is wrong if determinism is wanted."""
    rows = _load_rows()
    for variable, name, value in list_flags(environment):
        row = rows.get((variable, name))
        if row is None or value not in row.dangerous:
            continue
        if not environment.has_tensorflow(row.tensorflow):
            continue
        text = name
        if value:
            text = f"{name}={value}"
        yield Finding(
            "flag-dangerous",
            row.severity,
            f"environ.{variable}",
            f"{variable} holds {text}",
            row.why,
            variable_values.make_removal_line(variable, name),
            resolve_citation(row.sources[0], tables.load_variable_table().evidence),
        )


def check_flag_file(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if XLA_FLAGS names a file that does not exist."""
    if environment.missing_flag_file:
        line = variable_values.make_unset_line("XLA_FLAGS")
        yield Finding(
            "flag-file-missing",
            "error",
            "environ.XLA_FLAGS",
            "XLA_FLAGS does not start with --, and no file of that name exists",
            "A value that does not start with -- names a file with flags; a missing file aborts "
            "the process.",
            line,
            "measured: TensorFlow 2.21",
            commands=[line],
        )
