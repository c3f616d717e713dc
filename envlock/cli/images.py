"""`envlock images`"""

from __future__ import annotations

from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    DATA_FORMATS,
    DataFormatOption,
    find_source,
    refuse_both,
)
from envlock.cli.output import emit, has_color
from envlock.cli.parser import Command, make_app
from envlock.image.image_text import list_answers, list_ranking
from envlock.image.images import find_gpu_support
from envlock.reports.json import dump
from envlock.reports.text import paint

app = make_app()
SHOWN = 5  # the others are mostly older releases of the same; `--format json` lists them


@app.command(cls=Command)
def images(
    lock: Annotated[
        str | None,
        typer.Argument(
            metavar="LOCK",
            help="Lockfile; - for stdin. [default: the project's nearest envlock.lock]",
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu",
            metavar="GPU",
            help="List what runs on this GPU (sm_120, H100), with this driver (535.104.05), or on both: "
            "'H100, 535.104.05'.",
        ),
    ] = None,
    format: DataFormatOption = DATA_FORMATS[0],  # noqa: A002 (the option's name)
) -> None:
    """List base images, ranked for a lockfile.

    With --gpu, it lists instead whether NVIDIA's images and
    TensorFlow's wheels run on a GPU or with a driver, and why not. No registry is asked: `envlock
    build --pin` does that, and records the digest of the best image.

    \b
    Examples:
      envlock images                           ranked for the nearest lockfile, with reasons
      envlock images --gpu sm_120              what runs on this card, and what does not
      envlock images - -f json < envlock.lock  for programs
    """
    if gpu is not None:
        refuse_both({"--gpu": gpu}, {"LOCK": lock})
        found = find_gpu_support(gpu)
        lines = list_answers(found)
    else:
        found = envlock.base_images(find_source(lock))
        lines = list_ranking(found, SHOWN)
    emit(dump(found) if format == "json" else paint(lines, color=has_color()))
