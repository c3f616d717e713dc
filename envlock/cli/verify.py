"""`envlock verify`"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

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
    lock: LockArgument = None,
    rules: RuleOptions = LOCKED_RULES,
    python: PythonOption = None,
    look: LookOptions = FACTS_ONLY,
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
