"""`envlock verify`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import envlock
from envlock.cli.options import (
    AS_TEXT,
    LockArgument,
    PolicyOption,
    PythonOption,
    ReportOptions,
    VerboseOption,
    find_source,
    get_source,
    refuse_both,
    show,
)
from envlock.cli.output import Terminal
from envlock.cli.parser import Command, make_app, spread_groups

app = make_app()

DeepOption = Annotated[
    bool,
    typer.Option(
        "--deep",
        help="Also hash every installed file and all data, and ask TensorFlow which CUDA libraries it loads.",
    ),
]
NoOverridesOption = Annotated[
    bool,
    typer.Option(
        "--no-overrides", envvar="ENVLOCK_NO_OVERRIDES", help="Disregard the lockfile's own rules."
    ),
]
NumericsOption = Annotated[
    bool,
    typer.Option("--numerics", help="Also compute the lockfile's canary and compare the bits."),
]
StaticOption = Annotated[
    bool,
    typer.Option("--static", help="Only what files say: do not look at what TensorFlow loads."),
]

LineOption = Annotated[
    str | None,
    typer.Option(
        "--line",
        metavar="LINE",
        help="Without a lockfile: does this environment have the line that `envlock show --line` printed?",
        show_default=False,
    ),
]

EXCLUDED = {
    "lock": "LOCK",
    "policy": "--policy",
    "no_overrides": "--no-overrides",
    "deep": "--deep",
    "numerics": "--numerics",
    "static": "--static",
}
"""Options that need a lockfile, which `--line` does not use."""


@dataclass(frozen=True)
class RuleOptions:
    """Which rules the environment is compared under."""

    policy: PolicyOption = None
    no_overrides: NoOverridesOption = False


@dataclass(frozen=True)
class LookOptions:
    """What is looked at beside the facts."""

    deep: DeepOption = False
    numerics: NumericsOption = False
    static: StaticOption = False


LOCKED_RULES = RuleOptions()
FACTS_ONLY = LookOptions()


@app.command(cls=Command)
@spread_groups
def verify(
    context: typer.Context,
    lock: LockArgument = None,
    rules: RuleOptions = LOCKED_RULES,
    python: PythonOption = None,
    look: LookOptions = FACTS_ONLY,
    line: LineOption = None,
    verbose: VerboseOption = False,
    shown: ReportOptions = AS_TEXT,
) -> None:
    """Check that this environment is the locked one.

    Exit 0: it is. Exit 1: it is not. Exit 4: a required fact could not be collected.

    Every difference is listed with its reason and remedy, the most likely cause of different bits
    first.

    \b
    Examples:
      envlock verify                         the nearest lockfile under its own policy
      envlock verify gpu.lock -p same-arch   allow another machine of the same architecture
      envlock verify -p strict --no-overrides  in CI, where no rule of the lockfile may weaken the policy
      envlock verify --deep                  check every file against its RECORD, and CUDA against TensorFlow
      envlock verify --numerics              compare exact results of TensorFlow operations
      envlock verify -v                      list also what the policy allows, by its reason
      envlock verify -f json | jq .findings  for programs
      envlock verify -f github               annotations in a GitHub workflow
    """
    if line is not None:
        _verify_line(line, context, python, shown.format)
    report = envlock.verify(
        find_source(lock),
        rules.policy,
        overrides=not rules.no_overrides,
        python=python,
        deep=look.deep,
        numerics=look.numerics,
        static=look.static,
        progress=Terminal(shown.quiet),
    )
    show(report, shown.format, verbose=verbose)


def _verify_line(line: str, context: typer.Context, python: Path | None, format: str) -> NoReturn:  # noqa: A002
    """Compare with a line alone, which has no policy and no lockfile: variables that name those are
    ignored.
    """
    options = {}
    for name, word in EXCLUDED.items():
        options[word] = get_source(context, name) == "COMMANDLINE"
    refuse_both({"--line": True}, options)
    show(envlock.verify_line(line, python=python), format)
