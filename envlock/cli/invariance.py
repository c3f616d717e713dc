"""`envlock invariance`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import FormatOption, PythonOption
from envlock.cli.output import Terminal, emit, get_width, has_color
from envlock.cli.parser import Command, make_app, spread_groups
from envlock.numerics.invariance import LARGEST, MODES
from envlock.reports import render

app = make_app()

ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="MODEL.keras, the folder of a SavedModel, SCRIPT.py:FUNCTION or PACKAGE.MODULE:FUNCTION.",
    ),
]
ModeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mode",
        metavar="|".join(MODES),
        help="How to call the model (repeatable). [default: every mode that it has]",
        show_default=False,
    ),
]
LargestOption = Annotated[
    int, typer.Option(metavar="ROWS", help="Rows of the largest batch.", min=2, max=4096)
]
InputsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Inputs, as numpy.save or numpy.savez wrote them. [default: made up]",
        show_default=False,
    ),
]


@app.command(cls=Command)
@spread_groups
def invariance(
    model: ModelArgument,
    mode: ModeOption = None,
    largest: LargestOption = LARGEST,
    inputs: InputsOption = None,
    python: PythonOption = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Measure whether a result depends on the batch that its sample is in.

    Exit 0: the same bits in every batch. Exit 1: different bits in some. Exit 2: cannot be called. Exit 4: not comparable.

    The first row of the inputs is computed in batches of every size, in other places of a batch, and beside other rows.
    FUNCTION returns a Keras model, or (model or function, inputs). Remedies are measured, not guessed.

    \b
    Examples:
      envlock invariance model.keras                 a model of Keras, in every mode
      envlock invariance serving/ --mode graph       the function that a SavedModel serves
      envlock invariance train.py:build --largest 8  a function that returns a model
      envlock invariance model.keras --inputs x.npy  with inputs of yours
    """
    report = envlock.invariance(
        model,
        modes=mode or (),
        largest=largest,
        inputs=inputs,
        python=python,
        progress=Terminal(),
    )
    emit(render(report, format, color=has_color(), width=get_width()))
    raise typer.Exit(report.exit_code)
