"""`envlock images`"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from envlock.cli import config as settings
from envlock.cli.options import FormatOption, QuietOption, one_of, read_document
from envlock.cli.output import color, emit, talk
from envlock.data.images import image_tables
from envlock.images.candidate import wanted
from envlock.images.choose import Find, Pinned, candidates, look_up, pin
from envlock.images.listing import everything, ranking
from envlock.images.reference import Reference, parse_mirror, parse_platform
from envlock.lock.document import validate
from envlock.reports.images import render_everything, render_ranking
from envlock.runtime.errors import UsageError

SHOWN = 5


def images(
    for_lock: Annotated[
        str | None, typer.Option("--for", metavar="<lock>", help="Rank them for this lockfile; - is stdin.")
    ] = None,
    resolve: Annotated[
        bool, typer.Option("--resolve", help="Ask the registries for digests, and for what the best images hold.")
    ] = False,
    platform: Annotated[
        str | None, typer.Option(help="linux/amd64 or linux/arm64. Default: the lock's own.", show_default=False)
    ] = None,
    mirror: Annotated[
        list[str] | None,
        typer.Option(help="Where to take images from instead: nvcr.io=harbor.example/nvcr. Repeatable."),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Show every candidate, not the best five.")] = False,  # noqa: A002
    format: FormatOption = "text",  # noqa: A002 (the option's name)
    quiet: QuietOption = False,
) -> None:
    """List base images, and which fits a lock best, and why.

    Without --for, everything that is known is listed. Nothing is downloaded but, with --resolve, a few KB a registry
    says of an image.

    \b
    Examples:
      envlock images                                 every known image
      envlock images --for envlock.lock              ranked for this lock, with reasons
      envlock images --for envlock.lock --resolve    with digests, and what the registry says now
      envlock images --for - -f json < envlock.lock  for programs
    """
    one_of(format, ["text", "json"], "format")
    if for_lock is None:
        emit(_listing(format, resolve or mirror or platform))
        return
    name, document = read_document(for_lock, settings.load(Path.cwd()))
    asked = wanted(validate(document, name).facts, None if platform is None else parse_platform(platform))
    found = candidates(asked, image_tables())
    pinned: dict[Reference, Pinned] = {}
    if resolve:
        mirrors = [parse_mirror(text) for text in mirror or []]
        talk("asking the registries", quiet=quiet)
        find = partial(pin, _registry(), platform=asked.platform, mirrors=mirrors)
        found, pinned = look_up(found, asked, image_tables(), find)
    told = ranking(found, asked, pinned)
    limit = len(found) if all else SHOWN
    emit(_json(told) if format == "json" else render_ranking(told, limit=limit, color=color()))


def _listing(format: str, narrowed: object) -> str:  # noqa: A002 (the option's name)
    if narrowed:
        raise UsageError(
            "--resolve, --mirror and --platform are about the images for a lock", hint="name it: --for envlock.lock"
        )
    told = everything(image_tables())
    return _json(told) if format == "json" else render_everything(told, color=color())


def _registry() -> Find:
    """Return what asks registries; imported only now, as HTTP costs every other command a tenth of a second."""
    from envlock.images.registry import Registry
    from envlock.web.client import Client

    return Registry(Client()).find


def _json(told: dict[str, Any]) -> str:
    return json.dumps(told, indent=2, sort_keys=True)
