"""`envlock verify`"""

from __future__ import annotations

from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    FormatOption,
    LockArgument,
    PolicyOption,
    PythonOption,
    QuietOption,
    VerboseOption,
    find_source,
    show,
)
from envlock.cli.output import Terminal
from envlock.cli.parser import Command, make_app

app = make_app()


@app.command(cls=Command)
def verify(
    lock: LockArgument = None,
    policy: PolicyOption = None,
    no_overrides: Annotated[
        bool,
        typer.Option(
            "--no-overrides",
            envvar="ENVLOCK_NO_OVERRIDES",
            help="Disregard the lockfile's own rules.",
        ),
    ] = False,
    python: PythonOption = None,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also hash every installed file and all data, and ask TensorFlow which CUDA libraries it loads.",
        ),
    ] = False,
    numerics: Annotated[
        bool,
        typer.Option("--numerics", help="Also compute the lockfile's canary and compare the bits."),
    ] = False,
    static: Annotated[
        bool,
        typer.Option("--static", help="Only what files say: do not look at what TensorFlow loads."),
    ] = False,
    verbose: VerboseOption = False,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
    quiet: QuietOption = False,
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
        policy,
        overrides=not no_overrides,
        python=python,
        deep=deep,
        numerics=numerics,
        static=static,
        progress=Terminal(quiet),
    )
    show(report, format, verbose=verbose)
