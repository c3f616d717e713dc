"""Rules on XLA_FLAGS and TF_XLA_FLAGS. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from envlock.data import determinism as tables
from envlock.data.determinism import resolve_citation
from envlock.diagnosis import variable_values
from envlock.diagnosis.diagnosed_environment import Environment
from envlock.diagnosis.doctor_table import make_finding
from envlock.diagnosis.remedies import Remedy
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
    for variable, numbers in _number_strange_flags(environment).items():
        if len(numbers) == 1:
            shown = f"a flag, number {numbers[0]}"
        else:
            shown = "flags, numbers " + " and ".join(map(str, numbers))
        fix = variable_values.make_number_removal_line(variable, numbers)
        yield _make_unknown_finding(environment, variable, shown, fix, _MEASURED)
    for variable, name in dict.fromkeys((flag[0], flag[1]) for flag in list_flags(environment)):
        row = rows.get((variable, name))
        if row is None or not (_is_gone(row, environment) or name in environment.strange_flags):
            continue
        source = resolve_citation(row.sources[0], tables.load_variable_table().evidence)
        fix = variable_values.make_removal_line(variable, name, row.instead or "")
        yield _make_unknown_finding(environment, variable, name, fix, source)


def _number_strange_flags(environment: Environment) -> dict[Variable, list[int]]:
    """Return the places of unknown flags among the words of each variable, from 1.

    A name that is in no table may be a secret, and is not shown.
    """
    rows = _load_rows()
    numbers: dict[Variable, list[int]] = {}
    for variable in VARIABLES:
        words = (environment.variables.get(variable) or "").split()
        for number, text in enumerate(words, 1):
            name = text.partition("=")[0]
            if name in environment.strange_flags and (variable, name) not in rows:
                numbers.setdefault(variable, []).append(number)
    return numbers


def _make_unknown_finding(
    environment: Environment, variable: Variable, shown: str, fix: str, source: str
) -> Finding:
    return make_finding(
        "flag-unknown",
        Remedy(fix, [fix]),
        variable=variable,
        shown=shown,
        tensorflow=environment.tensorflow,
        source=source,
    )


def _is_gone(row: tables.Flag, environment: Environment) -> bool:
    """Return whether a flag exists only in other versions of TensorFlow than the installed one."""
    if environment.tensorflow is None or not environment.stock:
        return False
    return not environment.has_tensorflow(row.tensorflow)


def check_flag_values(environment: Environment) -> Iterator[Finding]:
    """Yield flags with a value that is wrong if determinism is wanted."""
    rows = _load_rows()
    for variable, name, value in dict.fromkeys(list_flags(environment)):
        row = rows.get((variable, name))
        if row is None or value not in row.dangerous:
            continue
        if not environment.has_tensorflow(row.tensorflow):
            continue
        # The same flag may stand there once more, with a value that is right.
        fix = variable_values.make_removal_line(variable, name, value=value)
        text = f"{name}={value}" if value else name
        yield make_finding(
            "flag-dangerous",
            Remedy(fix, [fix]),
            severity=row.severity,
            variable=variable,
            text=text,
            why=row.why,
            source=resolve_citation(row.sources[0], tables.load_variable_table().evidence),
        )


def check_flag_file(environment: Environment) -> Iterator[Finding]:
    """Yield a finding if XLA_FLAGS names a file that does not exist."""
    if environment.missing_flag_file:
        line = variable_values.make_unset_line("XLA_FLAGS")
        yield make_finding("flag-file-missing", Remedy(line, [line]))
