"""Rules on variables: single ones, several together, and misspelt names. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from envlock.data import determinism, variables
from envlock.data import determinism as tables
from envlock.data.backends import backend_table
from envlock.data.determinism import cited
from envlock.diagnosis import values
from envlock.diagnosis.environment import CHOSEN, Environment
from envlock.runtime.report import Finding

_OTHERWISE: dict[str, tuple[str, str]] = {
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


def aborts(environment: Environment) -> Iterator[Finding]:
    """Yield variables with a value that their reader does not understand."""
    for row in tables.variable_table().variable:
        value = environment.variables.get(row.name)
        if (
            value is None
            or row.otherwise is None
            or not environment.reads(row)
            or values.is_understood(value, row)
        ):
            continue
        severity, why = _OTHERWISE[row.otherwise]
        takes = _TAKES.get(row.syntax) or f"one of {', '.join(row.accepts)}"
        evidence = f"{row.name} is {values.shown(value, row)}"
        meant = next((need.value for need in row.needed), None)
        yield _report_value(
            row, "variable-value", severity, evidence, why.format(takes=takes), meant
        )


def dangerous(environment: Environment) -> Iterator[Finding]:
    """Yield variables with a value that is wrong where determinism is wanted."""
    for row in tables.variable_table().variable:
        value = environment.variables.get(row.name)
        if value is None or not environment.reads(row):
            continue
        for each in row.dangerous:
            if _is_dangerous(each, value, row, environment):
                evidence = f"{row.name} is {values.shown(value, row)}"
                if row.name == "KERAS_BACKEND" and value == environment.locked_backend:
                    yield _accept_choice(row, f"{evidence}, as locked", each.why)
                    break
                meant = next(
                    (need.value for need in row.needed if _is_needed(need, environment)), None
                )
                yield _report_value(
                    row, "variable-dangerous", each.severity, evidence, each.why, meant
                )
                break


def _is_dangerous(
    each: tables.Dangerous, value: str, row: tables.VariableRules, environment: Environment
) -> bool:
    """Return whether a row about a value of a variable is about this one, in this environment."""
    if not each.set and values.canonical(value, row) not in each.values:
        return False
    return (
        environment.holds(each.tensorflow)
        and environment.has_keras(each.keras)
        and environment.is_such(each.when)
    )


def needed(environment: Environment) -> Iterator[Finding]:
    """Yield variables that are unset although this TensorFlow needs them."""
    for row in tables.variable_table().variable:
        if row.name not in environment.variables or environment.variables[row.name] is not None:
            continue
        for need in row.needed:
            if _is_needed(need, environment):
                evidence = f"{row.name} is unset"
                yield _report_value(
                    row, "variable-needed", need.severity, evidence, need.why, need.value
                )
                break


def _is_needed(need: tables.Needed, environment: Environment) -> bool:
    return (
        environment.holds(need.tensorflow)
        and environment.is_build(need.build)
        and environment.is_such(need.when)
    )


def not_read(environment: Environment) -> Iterator[Finding]:
    """Yield variables that are set and that nobody here reads."""
    for row in tables.variable_table().variable:
        if (
            environment.variables.get(row.name) is None
            or environment.tensorflow is None
            or environment.reads(row)
        ):
            continue
        severity = "info"
        if row.read_by == "nobody":
            severity = "warning"
            why = "No TensorFlow reads this name"
            if row.meant:
                why += f"; the right name is {row.meant}"
            why += ". The setting has no effect, and there is no message."
        elif row.read_by == "ngc":
            why = "Only NVIDIA's builds of TensorFlow read this name, so the setting has no effect here."
        else:
            why = f"TensorFlow {environment.tensorflow} does not read this name, so the setting has no effect."
        yield _report_value(row, "variable-not-read", severity, f"{row.name} is set", why, None)


def combined(environment: Environment) -> Iterator[Finding]:
    """Yield variables that are wrong together."""
    table = tables.variable_table()
    rows = {row.name: row for row in table.variable}
    for each in table.combination:
        if not environment.holds(each.tensorflow) or not all(
            name in environment.variables for name in each.values
        ):
            continue
        now = {name: environment.variables[name] for name in each.values}
        if all(_is_one(name, now, wanted, rows) for name, wanted in each.values.items()):
            evidence = " and ".join(
                f"{name} is {_show_value(name, value, rows)}" for name, value in now.items()
            )
            lines = values.commands(each.set, each.unset)
            source = cited(each.sources[0], table.evidence)
            fix = "; ".join(lines)
            yield Finding(
                "variables-contradict",
                each.severity,
                each.id,
                evidence,
                each.why,
                fix,
                source,
                commands=lines,
            )


def _is_one(
    name: str, now: dict[str, str | None], wanted: list[str], rows: dict[str, tables.VariableRules]
) -> bool:
    value = now[name]
    if value is None:
        return "<unset>" in wanted
    if "<set>" in wanted:
        return True
    if "<differs>" in wanted:
        return all(
            other is not None and (key == name or other != value) for key, other in now.items()
        )
    if name in rows:
        value = values.canonical(value, rows[name])
    return value in wanted


def _show_value(name: str, value: str | None, rows: dict[str, tables.VariableRules]) -> str:
    if value is None:
        return "unset"
    if name not in rows:  # nothing says which of its values are no secret
        return "set"
    return values.shown(value, rows[name])


def too_late(environment: Environment) -> Iterator[Finding]:
    """Yield variables that were changed after the process had started, with TensorFlow imported."""
    for path, entry in environment.unavailable.items():
        if entry.get("code") != "changed-after-start":
            continue
        name = path.rpartition(".")[2]
        row = next((row for row in tables.variable_table().variable if row.name == name), None)
        source = "envlock"
        if row is not None:
            source = cited(row.sources[0], tables.variable_table().evidence)
        yield Finding(
            "variable-too-late",
            "error",
            f"environ.{name}",
            f"{name} was changed after TensorFlow was imported",
            "TensorFlow reads a variable once, when it first needs it; a later change has no effect, and there is no "
            "message.",
            f"set {name} before the process starts, or above `import tensorflow`",
            source,
        )


def _report_value(
    row: tables.VariableRules, rule: str, severity: str, evidence: str, why: str, meant: str | None
) -> Finding:
    """Return a finding on a variable whose fix sets it to the value that is meant, or unsets it where none is."""
    source = cited(row.sources[0], tables.variable_table().evidence)
    if meant:
        lines = values.commands({row.name: meant}, ())
    else:
        lines = values.commands({}, (row.name,))
    return Finding(
        rule,
        severity,
        f"environ.{row.name}",
        evidence,
        why,
        "; ".join(lines),
        source,
        commands=lines,
    )


def _accept_choice(row: tables.VariableRules, evidence: str, why: str) -> Finding:
    """Return that a variable has the value that the lockfile has: nothing is to be done."""
    source = cited(row.sources[0], tables.variable_table().evidence)
    return Finding(
        "variable-dangerous", "info", f"environ.{row.name}", evidence, why, CHOSEN, source
    )


SHORTEST = 9  # letters of a known name: below, two changes make another word of it


def misspelt(environment: Environment) -> Iterator[Finding]:
    """Yield variables that are set under a name that is nearly a known one."""
    table = determinism.variable_table()
    known = {row.name for row in variables()} | {
        row.name for row in table.variable if row.read_by != "nobody"
    }
    real = {*table.real, *(row.name for row in backend_table().setting)}
    for name in sorted(environment.others or ()):
        meant = None if name in real else nearest(name, known)
        if meant is not None:
            yield Finding(
                "variable-misspelt",
                "warning",
                f"environ.{meant}",
                f"{name!r} is set, and nothing reads this name",
                f"{meant} is a known name; a name with one or two wrong letters, in another case or with a blank has "
                "no effect.",
                _fix(name, meant, environment),
                "comparison with the known names",
            )


def _fix(name: str, meant: str, environment: Environment) -> str:
    """Return a line that gives the value to the name that was meant, unless that has one; words for an odd name."""
    if not (name.isascii() and name.isidentifier()):
        return f"unset the misspelt name, and set {meant} if it was meant"
    unset = values.unset(name)
    if environment.variables.get(meant) is not None:
        return unset
    return f'export {meant}="${name}"; {unset}'


def nearest(name: str, known: set[str]) -> str | None:
    """Return the known name that was probably meant; None where none is near."""
    bare = _bare(name)
    same = sorted(each for each in known if _bare(each) == bare and each != name)
    if same:
        return same[0]
    near = [
        (distance(name, each), each)
        for each in known
        if len(each) >= SHORTEST and abs(len(each) - len(name)) <= 2
    ]
    best = min(near, default=(3, ""))
    return best[1] if 0 < best[0] <= 2 and _is_ours(name, best[1]) else None


def _is_ours(name: str, meant: str) -> bool:
    """Return whether the first word is the same: FT_ENABLE_X is somebody else's TF_ENABLE_X only by accident."""
    return name[:2] == meant[:2]


def _bare(name: str) -> str:
    return "".join(filter(str.isalnum, name)).upper()


def distance(one: str, other: str) -> int:
    """Return how many letters must be added, left out, replaced or swapped with their neighbour."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            cost = min(last[j] + 1, row[-1] + 1, last[j - 1] + (a != b))
            if before and i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]
