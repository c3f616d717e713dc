"""docs/reference/determinism.md, from the tables: recipes, sources of noise, variables and the doctor's rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envlock.data import determinism as tables

INTRODUCTION = """\
<!-- written by tools/generate.py from envlock/data/determinism_*.toml -->
# Determinism

Every row has its source in `envlock/data/determinism_sources.toml`, `determinism_variables.toml` and
`determinism_recipes.toml`. Checked through TensorFlow {through}. {measured}
"""
TWO_DRAWS = """\
## Why do two draws in one run differ although I set a seed?

A seed repeats *runs*, not *calls*. It fixes where the generator begins; each draw moves it on, so the second draw of a run
differs from the first, and equals the second draw of every other run with that seed. Printed by TensorFlow 2.21.0, in two
processes alike:

```python
tf.keras.utils.set_random_seed(7)
a = tf.random.normal([3])
b = tf.random.normal([3])  # other numbers than a, the same in every run
tf.keras.utils.set_random_seed(7)
c = tf.random.normal([3])  # the numbers of a: the generator begins again
s = tf.random.stateless_normal([3], seed=(7, 0))
t = tf.random.stateless_normal([3], seed=(7, 0))  # the numbers of s: it has no memory
```

A seed of the operation (`tf.random.normal([3], seed=1)`, called twice) changes nothing about that. Two *runs* that differ are
another matter: the seed comes after a draw, does not reach a generator, or an operation has no fixed order. `envlock repeat`
shows whether they do, and `envlock diverge` in which line.
"""
LATEST = {
    "silent": "Op determinism leaves them as they are, without an error",
    "raises": "Op determinism raises an error instead of different results",
    "outside": "Op determinism does not affect them",
    "fixed": "Op determinism makes them deterministic",
    "n/a": "They are only in older versions",
}
"""What a source does in the newest version with op determinism, in the order of the page."""
SWITCH = "tf.config.experimental.enable_op_determinism()"


def page() -> str:
    """Return the page."""
    through = tables.load_source_table().horizon.through
    parts = [
        INTRODUCTION.format(through=through, measured=_measured()),
        TWO_DRAWS,
        _recipes(),
        _variables(),
        _sources(through),
    ]
    return "\n".join(parts)


def _measured() -> str:
    """Return what the statements about GPUs rest on."""
    machines = dict.fromkeys(
        each.on for row in tables.load_source_table().source for each in row.measured
    )
    if not machines:
        return "Statements about GPUs are from sources, not measured: `make testgpu` measures them."
    return f"Statements about GPUs are from sources, not measured, except where a row says so (on {'; '.join(machines)})."


def _measurement(row: tables.Measured) -> str:
    return f"measured on {row.on}, TensorFlow {row.tensorflow}: {row.off}; with op determinism {row.deterministic}"


def _recipes() -> str:
    always, patch = tables.load_recipe_table().always, tables.load_recipe_table().patch[0].call
    rows = [
        (
            ", ".join(row.tensorflow),
            _code(f"{name}={value}" for name, value in row.set.items()) or "nothing",
            _code([*row.seeds, *row.calls, *([patch] if row.patched else [])]),
            " ".join(row.remarks),
        )
        for row in tables.load_recipe_table().recipe
    ]
    before = _code(f"{name}={value}" for name, value in always.set.items())
    return (
        "## The recipe for a version\n\n"
        f"In every version, also set {before} before the interpreter starts, and {_code(always.pinned)} as locked, since "
        "all three change bits between machines.\n\n"
        + _table(("TensorFlow", "before the start", "in the program", "remarks"), rows)
    )


def _variables() -> str:
    rows: list[tuple[str, str]] = []
    for row in tables.load_variable_table().variable:
        for bad in row.dangerous:
            told = "any value" if bad.set else _code(bad.values)
            where = _where(bad.tensorflow, bad.keras, bad.when)
            rows.append((bad.severity, f"`{row.name}`, {told}{where}: {bad.why}"))
        for need in row.needed:
            where = _where(need.tensorflow, need.build, need.when)
            rows.append(
                (need.severity, f"`{row.name}`, unset, `{need.value}` is needed{where}: {need.why}")
            )
    lists = "".join(
        f"### By severity: {severity}\n\n"
        + "".join(f"- {told}\n" for each, told in rows if each == severity)
        + "\n"
        for severity in ("error", "warning", "info")
    )
    return f"## Variables and values to avoid\n\n{lists}{_unread()}{_invalid()}"


def _unread() -> str:
    """Return the names that look like variables of TensorFlow, with what is meant."""
    names = [
        f"`{row.name}`{f' (`{row.meant}` is meant)' if row.meant else ''}"
        for row in tables.load_variable_table().variable
        if row.meant is not None
    ]
    return f"A warning, as no TensorFlow reads these names: {', '.join(names)}.\n"


def _invalid() -> str:
    """Return the variables that end a program if they have an invalid value."""
    rows = tables.load_variable_table().variable
    aborting = _code(row.name for row in rows if row.otherwise == "abort")
    raising = _code(row.name for row in rows if row.otherwise == "raise")
    return (
        f"\nAn invalid value aborts the process: {aborting}. It is an error at import: {raising}.\n"
    )


def _sources(through: str) -> str:
    rows = tables.load_source_table().source
    parts = [
        "## Sources of nondeterminism\n\n"
        f"By what op determinism does in TensorFlow {through}; affected versions, from 1.15 on, in brackets.\n"
    ]
    for latest, meaning in LATEST.items():
        sources = "".join(
            _source(row)
            for row in rows
            if row.latest == latest and (not row.affected or any(map(_is_shown, row.affected)))
        )
        switch = f"From 2.8 on by `{SWITCH}`, unless a row says otherwise.\n\n"
        parts.append(f"### {meaning}\n\n{switch if latest == 'fixed' else ''}{sources}")
    return "\n".join(parts)


def _source(row: tables.Source) -> str:
    affected = ", ".join(row.affected) or "where switched on"
    told = [
        _solution(each, row.affected)
        for each in row.solutions
        if _is_shown(each.tensorflow) and not _is_switch(row, each)
    ]
    told += [_measurement(each) for each in row.measured]
    return f"- `{row.id}`: {row.component} ({affected}). {'; '.join(told)}.\n"


def _is_switch(row: tables.Source, solution: tables.Solution) -> bool:
    """Return whether the head of the section says this solution once for all its rows."""
    return row.latest == "fixed" and solution.api == SWITCH and solution.tensorflow == ">=2.8"


def _is_shown(versions: str) -> bool:
    """Return whether a range reaches TensorFlow 1.15, the oldest on a Python on which envlock runs."""
    ends = (each.version for each in SpecifierSet(versions) if each.operator == "<")
    return all(Version(end) > Version("1.15") for end in ends)


def _solution(row: tables.Solution, affected: Sequence[str]) -> str:
    settings = [f"{name}={value}" for name, value in row.set.items()] + [
        f"{name} unset" for name in row.unset
    ]
    told = _code(settings) or (f"`{row.api}`" if row.api else (row.note or row.kind).rstrip("."))
    if [row.tensorflow] == list(affected) and not row.ngc:
        return told
    return f"{row.tensorflow}{f' (NVIDIA {row.ngc})' if row.ngc else ''}: {told}"


def _where(tensorflow: Sequence[str], more: str | None, condition: str | None) -> str:
    words = [", ".join(tensorflow) if tensorflow != ["*"] else "", more or "", condition or ""]
    told = ", ".join(word for word in words if word)
    return f" ({told})" if told else ""


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"
