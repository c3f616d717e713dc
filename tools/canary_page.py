"""The reference page of the canary: its operations, and the causes of other bits that it knows."""

from __future__ import annotations

from envlock.data.canary import Cause, OperationRow, canary_table
from envlock.numerics.canary.compare import ALWAYS, NEVER, OFTEN

HEAD = """\
<!-- written by tools/generate.py from envlock/data/canary.toml -->
# The canary's operations and causes

What it is for, what it pins and what was measured: [the canary](../canary.md).

## Operations

| operation | what | measured in |
|---|---|---|
"""
SIGNS = f"""
## Causes

A sign is an operation whose bits differ; `ended:` a group that ends the process on one side; `coarse:` a difference of
1000 eps or more in a group; `version:` another version on the other side. Causes are ranked by naive Bayes, none
likelier beforehand: a cause shows what it shows always with the probability {ALWAYS}, what it shows often with {OFTEN},
anything else with {NEVER}. The shares are among these causes only.

| cause | always | often | known from |
|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    table = canary_table()
    known = [f"\n- `{key}`: {text}" for key, text in table.evidence.items()]
    parts = [HEAD, *map(_operation, table.operation), SIGNS, *map(_cause, table.cause), *known]
    return "".join(parts) + "\n" + "".join(map(_section, table.cause))


def _operation(row: OperationRow) -> str:
    return f"| {row.name} | {row.what} | {row.precision} |\n"


def _cause(row: Cause) -> str:
    return f"| {row.title} | {', '.join(row.always)} | {', '.join(row.often)} | {', '.join(row.sources)} |\n"


def _section(row: Cause) -> str:
    return f"\n### {row.id}: {row.title}\n\n{row.why}\n\nTo do: {row.fix}\n"
