"""`envlock repeat`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envlock.cli.options import FormatOption, QuietOption, one_of

ScriptArgument = Annotated[
    str | None,
    typer.Argument(metavar="SCRIPT[:FUNCTION]", help="What to run: a script, or a function of it.", show_default=False),
]
ArgsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="ARGS...", help="For the script; options after --.", show_default=False)
]
RunsOption = Annotated[int, typer.Option("--runs", "-n", help="How often.", min=1)]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Each run in a process of its own.")]
SeedOption = Annotated[
    int | None,
    typer.Option(
        help="Set all seeds to this before each run: Python, NumPy, TensorFlow, Keras.",
        min=0,
        max=2**32 - 1,
        show_default=False,
    ),
]
RunsPythonOption = Annotated[
    Path | None,
    typer.Option(
        "--python",
        envvar="ENVLOCK_PYTHON",
        help="Run with this interpreter; envlock need not be installed there.",
        show_default=False,
    ),
]
SaveOption = Annotated[
    Path | None, typer.Option(help="Keep the results in this new folder, to compare.", show_default=False)
]
CompareOption = Annotated[
    tuple[Path, Path] | None,
    typer.Option(metavar="A B", help="Run nothing: compare two folders that --save wrote.", show_default=False),
]
StepOption = Annotated[
    list[int] | None,
    typer.Option(help="Show this step (may be repeated). Default: the first that differs, and the last."),
]
HtmlOption = Annotated[Path | None, typer.Option(help="Write the matrices as a page.", show_default=False)]
PngOption = Annotated[
    Path | None, typer.Option(help="Write them as a picture (needs tf-envlock[plots]).", show_default=False)
]
DiskOption = Annotated[
    float, typer.Option(metavar="GB", help="Keep at most so much; of what comes then only hashes.", min=0)
]
OutputOption = Annotated[bool, typer.Option("--output", help="Let the script's own output through, on stderr.")]


def repeat(
    script: ScriptArgument = None,
    args: ArgsArgument = None,
    runs: RunsOption = 7,
    fresh: FreshOption = False,
    seed: SeedOption = None,
    python: RunsPythonOption = None,
    save: SaveOption = None,
    compare: CompareOption = None,
    step: StepOption = None,
    html: HtmlOption = None,
    png: PngOption = None,
    disk: DiskOption = 8.0,
    output: OutputOption = False,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
    quiet: QuietOption = False,
) -> None:
    """Do runs give the same bits? Run a training several times, and print how far every run is from every other.

    Exit 0: the same bits in all runs, 1: not, or a run failed, 4: too few came to an end, 130: Ctrl-C.

    FUNCTION returns a dict of named arrays, or yields one each step, or returns a Keras (model, data) or
    (model, data, fit_arguments). A SCRIPT alone calls envlock.record(loss=..., weights=...) at every step.

    \b
    Examples:
      envlock repeat train.py:step                  7 runs of a function, in one process
      envlock repeat train.py --fresh -- --epochs 2 7 runs of a script, each in a process of its own
      envlock repeat train.py:step --seed 1         the same seeds before each run
      envlock repeat train.py:step --save cpu       on each of two machines, or in two environments; then:
      envlock repeat --compare cpu gpu
    """
    from envlock.cli import repeating
    from envlock.numerics.repeat import Plan
    from envlock.numerics.target import target

    one_of(format, ["text", "json"], "format")
    repeating.check(script, runs=runs, save=save, compare=compare, html=html, png=png)
    if compare is not None:
        found = repeating.saved(*compare)
    else:
        what = target(script or "", tuple(args or ()))
        found = repeating.run(Plan(what, runs, fresh, seed, python, int(disk * 1e9), output), save, quiet=quiet)
    with found as made:
        told = repeating.tell(made, step or [], python, quiet=quiet)
    repeating.write(told, html, png)
    repeating.show(told, format)
    raise typer.Exit(repeating.code(told))
