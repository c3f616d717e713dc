"""`envlock images`"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from envlock.cli.options import (
    DATA_FORMATS,
    AcceptOption,
    DataFormatOption,
    MirrorOption,
    PlatformOption,
    QuietOption,
    exclusive,
    source,
)
from envlock.cli.output import Terminal, color, emit
from envlock.cli.parser import Command, new_app
from envlock.runtime.errors import UsageError

app = new_app()
SHOWN = 5

RankedLockArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="LOCK", help="Rank the images for this lockfile; - for stdin.", show_default=False
    ),
]
ResolveOption = Annotated[
    bool,
    typer.Option(
        "--resolve", help="Ask the registries for digests, and for the contents of the best images."
    ),
]
GpuOption = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        metavar="GPU",
        help="List what runs on this GPU: sm_120, 12.0, or a name such as H100.",
        show_default=False,
    ),
]
AllOption = Annotated[
    bool, typer.Option("--all", help="Show every candidate, not only the best five.")
]


@app.command(cls=Command)
def images(
    lock: RankedLockArgument = None,
    gpu: GpuOption = None,
    resolve: ResolveOption = False,
    platform: PlatformOption = None,
    mirror: MirrorOption = None,
    accept: AcceptOption = None,
    all: AllOption = False,  # noqa: A002 (the option's name)
    format: DataFormatOption = DATA_FORMATS[0],  # noqa: A002 (the option's name)
    quiet: QuietOption = False,
) -> None:
    """List base images, ranked for a lockfile.

    Without LOCK, every known image is listed. With --resolve, a few KB about each image are downloaded. With --gpu,
    NVIDIA's images and TensorFlow's wheels are listed by whether they run on a GPU, and why not.

    \b
    Examples:
      envlock images                           every known image
      envlock images envlock.lock              ranked for a lockfile, with reasons
      envlock images envlock.lock --resolve    with current digests from the registry
      envlock images --gpu sm_120              what runs on this card, and what does not
      envlock images - -f json < envlock.lock  for programs
    """
    from envlock.reports.json import dump
    from envlock.workflows.images import base_images, what_runs_on

    if gpu is not None:
        others = {
            "LOCK": lock,
            "--resolve": resolve,
            "--platform": platform,
            "--mirror": mirror,
            "--accept": accept,
        }
        exclusive({"--gpu": gpu}, others)
        answers = what_runs_on(gpu)
        emit(dump(answers) if format == "json" else _answers(answers, every=all))
        return
    if lock is None and (resolve or mirror or platform or accept):
        raise UsageError(
            "`--resolve`, `--mirror`, `--accept`, `--platform` need a lockfile",
            hint="name one: `envlock images envlock.lock`",
        )
    meant = None if lock is None else source(lock)
    places: dict[str, Any] = {"platform": platform, "mirrors": mirror or (), "accept": accept}
    found = base_images(meant, resolve=resolve, **places, progress=Terminal(quiet))
    emit(dump(found) if format == "json" else _text(found, ranked=meant is not None, every=all))


def _answers(found: dict[str, Any], *, every: bool) -> str:
    from envlock.reports.images import render_answers

    return render_answers(found, every=every, color=color())


def _text(found: dict[str, Any], *, ranked: bool, every: bool) -> str:
    from envlock.reports.images import render_everything, render_ranking

    if not ranked:
        return render_everything(found, color=color())
    limit = len(found["candidates"]) if every else SHOWN
    return render_ranking(found, limit=limit, color=color())
