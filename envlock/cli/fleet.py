"""`envlock fleet`"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    FormatOption,
    LockArgument,
    LockOption,
    PolicyOption,
    PythonOption,
    find_near,
    show,
)
from envlock.cli.output import emit, talk
from envlock.cli.parser import Command, Group, make_app, make_choice
from envlock.fleet.digest import digest
from envlock.fleet.engines import AUTO, CHOICES
from envlock.reports import render
from envlock.runtime.errors import UsageError
from envlock.runtime.report import Report
from envlock.workflows.fleet import FleetLaunch, write_vetted

app = make_app(
    cls=Group,
    no_args_is_help=True,
    help="Check that all ranks of a job have the same environment, and that it is the locked one.",
)

ToOption = Annotated[
    str,
    typer.Option(
        "--to", metavar="DIR", envvar="ENVLOCK_FLEET_DIR", help="Folder that all nodes share."
    ),
]
RanksOption = Annotated[
    int | None,
    typer.Option(
        "--ranks",
        "-n",
        min=1,
        help="Number of ranks. [default: as the launcher says]",
    ),
]
WHOLE = "`--format json`"
"""The option that shows what a text leaves out."""


@app.command(cls=Command)
def report(
    lock: LockArgument = None,
    to: ToOption = ".envlock-fleet",
    python: PythonOption = None,
) -> None:
    """Write the report of one rank to a shared folder, for `envlock fleet check`.

    The launcher starts it on every rank of the job. The rank, the node and the job come from the
    launcher's variables, or from ENVLOCK_FLEET_RANK, ENVLOCK_FLEET_SIZE, ENVLOCK_FLEET_NODE and
    ENVLOCK_FLEET_JOB.

    \b
    Examples:
      srun envlock fleet report --to reports         as each task of a Slurm job
      mpirun -n 8 envlock fleet report --to reports  as each process of an MPI job
    """
    envlock.report_rank(to, find_near(lock), python=python)


@app.command(cls=Command)
def check(
    dir: Annotated[  # noqa: A002 (the argument's name)
        str, typer.Argument(metavar="DIR", help="Folder of the reports.")
    ],
    lock: LockArgument = None,
    policy: PolicyOption = None,
    ranks: RanksOption = None,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="Wait for missing reports.")
    ] = 10,
    vetted: Annotated[
        Path | None,
        typer.Option(
            "--vetted", metavar="FILE", help="Also write the nodes that can be used, one per line."
        ),
    ] = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Compare the reports of all ranks of a job, with one another and with a lockfile.

    Exit 0: all are alike, and as locked. Exit 1: a rank differs. Exit 4: a rank did not report.

    Ranks with the same environment are a group. Each difference is listed once per group, with its
    nodes and ranks. Without a lockfile, groups are compared with the one that most ranks are in.

    \b
    Examples:
      envlock fleet check reports                     the job of this batch script
      envlock fleet check reports --vetted nodes.txt  and write which nodes can be used
    """
    # The list is written whatever happens: an older one must not outlive a check that fails.
    nodes: list[str] = []
    try:
        found = envlock.check_fleet(
            dir,
            find_near(lock),
            policy,
            ranks=ranks,
            wait=wait,
        )
        nodes = found.evidence.vetted or []
    finally:
        if vetted is not None:
            talk(write_vetted(vetted, nodes))
    if format == "text":
        show(digest(found, WHOLE), format)
    show(found, format)


def _split_options(options: str) -> list[str]:
    """Return the words of a text, split as a shell does.

    Raises:
        UsageError: a quotation is not closed.
    """
    try:
        return shlex.split(options)
    except ValueError as error:
        hint = 'quote the whole text once: --options "-N 4 -n 8"'
        raise UsageError(f"cannot split `--options`: {error}", hint=hint) from None


def _print_report(report: Report, form: str) -> None:
    """Print the report before a job: text on stderr, as stdout is the job's; another form on
    stdout, before the job's.

    Raises:
        UsageError: this process has no report, and one was requested.
    """
    if form != "text" and not report.headline:
        raise UsageError(
            f"the ranks of engine `files` print no {form}",
            hint="use `envlock fleet check --format`",
        )
    if form != "text":
        emit(render(report, form))
    elif report.headline:
        talk(digest(report, WHOLE).to_text())


@app.command(cls=Command)
def run(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD", help="Command of a rank.")],
    lock: LockOption = None,
    policy: PolicyOption = None,
    engine: Annotated[
        str, make_choice(CHOICES, "launcher", "--launcher", help="What starts the ranks.")
    ] = AUTO,
    ranks: RanksOption = None,
    options: Annotated[
        str,
        typer.Option(
            "--options",
            metavar="TEXT",
            help="Options for srun or mpirun, as one word.",
        ),
    ] = "",
    to: ToOption = ".envlock-fleet",
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="Give up after this long.")
    ] = 120,
    python: PythonOption = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Start a job on all ranks, or on none if an environment differs.

    Exit 1: a rank differs. Exit 4: a rank did not report. Exit 5: the launcher failed.
    Otherwise: the exit code of CMD.

    The launcher starts a check on each rank first, and CMD only if all of them are alike, and as
    locked. With `--launcher files`, nothing is started: the launcher has started this command on each
    rank, and all become CMD, or none does. The report is text on stderr; with another `--format` it
    is on stdout, before the output of CMD.

    \b
    Examples:
      envlock fleet run -- python train.py         in a batch script of Slurm: srun python train.py
      envlock fleet run --launcher mpi -n 8 -- python train.py
                                                   mpirun -n 8 python train.py
      srun envlock fleet run --launcher files -- python train.py
                                                   as each rank, started by any launcher
    """
    launch = FleetLaunch(engine, ranks, _split_options(options), to, timeout)
    prepared = envlock.prepare_fleet(command, find_near(lock), policy, launch, python=python)
    _print_report(prepared.report, format)
    if not prepared.report.match:
        raise typer.Exit(prepared.report.exit_code)
    prepared.execute()
