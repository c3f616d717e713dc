"""The reference page of the canary: its operations, and the causes of other bits that it knows."""

from __future__ import annotations

from envlock.data.canary_tables import Cause, OperationRow, load_canary_table
from envlock.numerics.canary.canary_comparison import ALWAYS, NEVER, OFTEN

HEAD = """\
<!-- written by tools/generate.py from envlock/data/canary.toml -->
# The canary's operations and causes

[The canary](../concepts/evidence.md#the-canary) describes its purpose, what it pins and what was measured.

## Operations

| operation | what | measured in |
|---|---|---|
"""
SIGNS = f"""
## Causes

A sign is an operation whose bits differ; `ended:`, a group that ends the process on one side; `coarse:`, a difference
of 1000 eps or more in a group; `version:`, different versions. Causes are ranked by naive Bayes with equal prior
probabilities: a cause shows its `always` signs with probability {ALWAYS}, its `often` signs with {OFTEN}, and any other
sign with {NEVER}. The shares are among these causes only.

| cause | always | often | source |
|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    table = load_canary_table()
    known = [f"\n- `{key}`: {text}" for key, text in table.evidence.items()]
    parts = [HEAD, *map(_operation, table.operation), SIGNS, *map(_cause, table.cause), *known]
    return "".join(parts) + "\n" + "".join(map(_section, table.cause))


def _operation(row: OperationRow) -> str:
    return f"| {row.name} | {row.what} | {row.precision} |\n"


def _cause(row: Cause) -> str:
    return f"| {row.title} | {', '.join(row.always)} | {', '.join(row.often)} | {', '.join(row.sources)} |\n"


def _section(row: Cause) -> str:
    return f"\n### {row.id}: {row.title}\n\n{row.why}\n\nFix: {row.fix}\n"
