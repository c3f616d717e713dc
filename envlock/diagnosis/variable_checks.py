"""Rules on variables: on single ones, on combinations, and on misspelt names. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envlock.data import determinism as tables
from envlock.data.backends import load_backend_table
from envlock.data.determinism import resolve_citation
from envlock.data.runtime_tables import load_variables
from envlock.diagnosis import variable_values
from envlock.diagnosis.diagnosed_environment import Environment
from envlock.diagnosis.doctor_table import make_finding
from envlock.diagnosis.remedies import Remedy
from envlock.runtime.report import Finding, Severity

_OTHERWISE: dict[str, tuple[Severity, str]] = {
    "abort": (
        "error",
        "The process aborts when this variable is first read with a value that is not {takes}.",
    ),
    "raise": ("error", "A value that is not {takes} is an error at import."),
    "ignored": ("warning", "A value that is not {takes} is ignored, and the default counts."),
    "off": ("warning", "A value that is not {takes} counts as off, without a message."),
    "unknown": (
        "warning",
        "The variable takes {takes}; the effect of other values was not measured.",
    ),
}
_TAKES = {"bool": "0, 1, true or false", "integer": "a number"}


def check_values(environment: Environment) -> Iterator[Finding]:
    """Yield variables with a value that their reader does not understand."""
    for row in tables.load_variable_table().variable:
        value = environment.variables.get(row.name)
        if value is None or row.otherwise is None or not environment.is_read(row):
            continue
        if variable_values.is_understood(value, row):
            continue
        severity, why = _OTHERWISE[row.otherwise]
        takes = _TAKES.get(row.syntax) or f"one of {', '.join(row.accepts)}"
        shown = variable_values.show_value(value, row)
        right = row.needed[0].value if row.needed else _guess_right(row, value, environment)
        remedy = _set_or_unset(row, right)
        yield _report(
            "variable-value", row, remedy, severity, value=shown, why=why.format(takes=takes)
        )


def _guess_right(row: tables.VariableRules, value: str, environment: Environment) -> str | None:
    """Return the value that was meant, unless it is one that is wrong for determinism."""
    meant = variable_values.guess_value(value, row)
    if meant is None or _find_danger(row, meant, environment) is not None:
        return None
    return meant


def check_dangerous_values(environment: Environment) -> Iterator[Finding]:
    """Yield variables with a value that is wrong if determinism is wanted."""
    for row in tables.load_variable_table().variable:
        value = environment.variables.get(row.name)
        if value is None or not environment.is_read(row):
            continue
        rule = _find_danger(row, value, environment)
        if rule is None:
            continue
        shown = variable_values.show_value(value, row)
        if row.name == "KERAS_BACKEND" and value == environment.locked_backend:
            yield _report("variable-locked", row, value=shown, why=rule.why)
            continue
        need = _find_need(row, environment)
        remedy = _set_or_unset(row, None if need is None else need.value)
        yield _report("variable-dangerous", row, remedy, rule.severity, value=shown, why=rule.why)


def _find_danger(
    row: tables.VariableRules, value: str, environment: Environment
) -> tables.Dangerous | None:
    """Return the first rule against a value of a variable that applies in this environment."""
    for rule in row.dangerous:
        if not rule.set and variable_values.normalize_value(value, row) not in rule.values:
            continue
        if (
            environment.has_tensorflow(rule.tensorflow)
            and environment.has_keras(rule.keras)
            and environment.is_true(rule.when)
        ):
            return rule
    return None


def check_needed(environment: Environment) -> Iterator[Finding]:
    """Yield variables that are unset although this TensorFlow needs them."""
    for row in tables.load_variable_table().variable:
        # A variable whose state is unknown, as for a lockfile, is not an unset one.
        if row.name not in environment.variables or environment.variables[row.name] is not None:
            continue
        need = _find_need(row, environment)
        if need is not None:
            remedy = _set_or_unset(row, need.value)
            yield _report("variable-needed", row, remedy, need.severity, why=need.why)


def _find_need(row: tables.VariableRules, environment: Environment) -> tables.Needed | None:
    """Return the first reason why this environment needs a variable."""
    for need in row.needed:
        if (
            environment.has_tensorflow(need.tensorflow)
            and environment.is_build(need.build)
            and environment.is_true(need.when)
        ):
            return need
    return None


def check_read(environment: Environment) -> Iterator[Finding]:
    """Yield variables that are set and that nothing here reads."""
    if environment.tensorflow is None:
        return
    for row in tables.load_variable_table().variable:
        if environment.variables.get(row.name) is None or environment.is_read(row):
            continue
        name = {"nobody": "variable-of-nobody", "ngc": "variable-of-nvidia"}.get(
            row.read_by, "variable-not-read"
        )
        meant = f"; the right name is {row.meant}" if row.meant else ""
        remedy = _set_or_unset(row, None)
        yield _report(name, row, remedy, tensorflow=environment.tensorflow, meant=meant)


def _load_rows() -> dict[str, tables.VariableRules]:
    """Return the table's variables by name."""
    return {row.name: row for row in tables.load_variable_table().variable}


def check_combinations(environment: Environment) -> Iterator[Finding]:
    """Yield variables whose values are wrong in combination."""
    table, rows = tables.load_variable_table(), _load_rows()
    for combination in table.combination:
        if not environment.has_tensorflow(combination.tensorflow):
            continue
        if not combination.values.keys() <= environment.variables.keys():
            continue
        current = {name: environment.variables[name] for name in combination.values}
        if not _is_combination(combination.values, current, rows):
            continue
        evidence = []
        for name, value in current.items():
            shown = _show_current(name, value, rows)
            evidence.append(f"{name} is {shown}")
        lines = variable_values.make_lines(combination.set, combination.unset)
        yield make_finding(
            "variables-contradict",
            Remedy("; ".join(lines), lines),
            severity=combination.severity,
            where=combination.id,
            message=" and ".join(evidence),
            why=combination.why,
            source=resolve_citation(combination.sources[0], table.evidence),
        )


def _is_combination(
    wanted: Mapping[str, list[str]],
    current: dict[str, str | None],
    rows: dict[str, tables.VariableRules],
) -> bool:
    """Return whether each variable has one of the values of a combination."""
    return all(_has_wanted_value(name, wanted[name], current, rows) for name in wanted)


def _has_wanted_value(
    name: str,
    wanted: list[str],
    current: dict[str, str | None],
    rows: dict[str, tables.VariableRules],
) -> bool:
    value = current[name]
    if value is None:
        return "<unset>" in wanted
    if "<set>" in wanted:
        return True
    if "<differs>" in wanted:
        others = [other for key, other in current.items() if key != name]
        return None not in others and value not in others
    if name in rows:
        value = variable_values.normalize_value(value, rows[name])
    return value in wanted


def _show_current(name: str, value: str | None, rows: dict[str, tables.VariableRules]) -> str:
    if value is None:
        return "unset"
    if name not in rows:  # no table says which of its values are not secret
        return "set"
    return variable_values.show_value(value, rows[name])


def check_late_changes(environment: Environment) -> Iterator[Finding]:
    """Yield variables that were changed after the process had started, with TensorFlow imported."""
    table, rows = tables.load_variable_table(), _load_rows()
    for path, entry in environment.unavailable.items():
        if entry.get("code") != "changed-after-start":
            continue
        name = path.rpartition(".")[2]
        source = (
            resolve_citation(rows[name].sources[0], table.evidence) if name in rows else "envlock"
        )
        yield make_finding("variable-too-late", name=name, source=source)


def _set_or_unset(row: tables.VariableRules, right: str | None) -> Remedy:
    """Return a remedy that sets a variable to the right value, or unsets it without one."""
    if right:
        lines = variable_values.make_lines({row.name: right}, ())
    else:
        lines = variable_values.make_lines({}, (row.name,))
    return Remedy("; ".join(lines), lines)


def _report(
    name: str,
    row: tables.VariableRules,
    remedy: Remedy | None = None,
    severity: Severity | None = None,
    **values: object,
) -> Finding:
    """Return a finding on a variable, with the source of its row."""
    source = resolve_citation(row.sources[0], tables.load_variable_table().evidence)
    return make_finding(name, remedy, severity=severity, name=row.name, source=source, **values)


SHORTEST = 9
"""Letters of a known name: a shorter one would become another word with two changes."""


def check_spelling(environment: Environment) -> Iterator[Finding]:
    """Yield variables with a name that is nearly a known one."""
    table = tables.load_variable_table()
    known = {row.name for row in load_variables()}
    for row in table.variable:
        if row.read_by != "nobody":
            known.add(row.name)
    real = set(table.real)
    for setting in load_backend_table().setting:
        real.add(setting.name)
    for name in sorted(environment.others or ()):
        if name in real:
            continue
        meant = find_nearest(name, known)
        if meant is not None:
            remedy = _rename(name, meant, environment)
            yield make_finding("variable-misspelt", remedy, name=repr(name), meant=meant)


def _rename(name: str, meant: str, environment: Environment) -> Remedy:
    """Return a remedy by which the intended name gets the value, unless it is set.

    If a shell cannot write the name, it is a sentence.
    """
    if not (name.isascii() and name.isidentifier()):
        return Remedy(f"unset the misspelt name, and set {meant} if it was meant")
    line = variable_values.make_unset_line(name)
    if environment.variables.get(meant) is None:
        line = f'export {meant}="${name}"; {line}'
    return Remedy(line, [line])


def find_nearest(name: str, known: set[str]) -> str | None:
    """Return the known name that was probably intended; None if none is similar."""
    normalized = _normalize_name(name)
    same = [other for other in known if other != name and _normalize_name(other) == normalized]
    if same:
        return min(same)
    near = []
    for other in known:
        # The number of letters may differ only by the number of changes.
        if len(other) >= SHORTEST and abs(len(other) - len(name)) <= 2:
            changes = measure_distance(name, other)
            near.append((changes, other))
    if not near:
        return None
    changes, best = min(near)
    # Without a change it is the known name itself.
    if 0 < changes <= 2 and _is_ours(name, best):
        return best
    return None


def _is_ours(name: str, meant: str) -> bool:
    """Return whether two names begin alike: FT_ENABLE_X resembles TF_ENABLE_X only by accident."""
    return name[:2] == meant[:2]


def _normalize_name(name: str) -> str:
    """Return the letters and digits of a name, in upper case."""
    return "".join(filter(str.isalnum, name)).upper()


def measure_distance(one: str, other: str) -> int:
    """Return how many letters must be added, removed, replaced or swapped with their neighbour.

    This is the optimal string alignment distance, computed row by row.
    """
    before_last: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, other_letter in enumerate(other, 1):
            replaced = last[j - 1] + (letter != other_letter)
            cost = min(last[j] + 1, row[-1] + 1, replaced)
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == other_letter:
                cost = min(cost, before_last[j - 2] + 1)
            row.append(cost)
        before_last, last = last, row
    return last[-1]
