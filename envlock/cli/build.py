"""`envlock build`"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    QuietOption,
    find_source,
    name_interpreter,
    refuse_both,
)
from envlock.cli.output import Terminal, emit, talk
from envlock.cli.parser import Command, make_app, make_choice
from envlock.image.build import BuildEngine, BuiltImage
from envlock.image.engines import AUTO, ENGINES, NETWORKS
from envlock.image.pin import pin
from envlock.image.supply import BuildSources, ImageRequest
from envlock.lock.locks import get_name
from envlock.lock.models import Lockfile
from envlock.lock.route import ROUTES
from envlock.runtime.report import count
from envlock.workflows.model import read_lock

app = make_app()


@dataclass(frozen=True)
class Options:
    """The options of the command line, for the functions that each implement one way of building."""

    image: ImageRequest
    source: BuildSources
    engine: BuildEngine
    output: Path | None
    tag: str | None
    push: bool
    quiet: bool


@app.command(cls=Command)
def build(
    lock: Annotated[
        str | None,
        typer.Argument(
            metavar="LOCK",
            envvar="ENVLOCK_LOCK",
            help="Lockfile, stamped model, or - for stdin. [default: the project's nearest envlock.lock]",
        ),
    ] = None,
    base: Annotated[
        str,
        typer.Option(
            metavar="|".join((AUTO, *ROUTES, "IMAGE")), help="Base image, or how to choose it."
        ),
    ] = AUTO,
    platform: Annotated[
        str | None,
        typer.Option(
            "--platform",
            help="Platform: linux/amd64 or linux/arm64. [default: the lockfile's]",
            metavar="PLATFORM",
        ),
    ] = None,
    mirrors: Annotated[
        list[str] | None,
        typer.Option(
            "--mirror",
            help="Registry mirror (repeatable), e.g., nvcr.io=harbor.example/nvcr.",
            metavar="MIRROR",
        ),
    ] = None,
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic", help="Also set the variables this TensorFlow needs for determinism."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write Dockerfile and context to this folder; do not build.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the Dockerfile; use no network, write nothing.")
    ] = False,
    pin: Annotated[
        bool,
        typer.Option(
            "--pin", help="Record base and Debian packages in the lockfile; do not build."
        ),
    ] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Build again; exit 1 if the image differs.")
    ] = False,
    tag: Annotated[str | None, typer.Option("--tag", "-t", help="Name of the image.")] = None,
    push: Annotated[
        bool,
        typer.Option("--push", help="Push it to the registry of its tag, and record the digest."),
    ] = False,
    engine: Annotated[
        str, make_choice((AUTO, *ENGINES), "container engine", "--engine", help="Container engine.")
    ] = AUTO,
    network: Annotated[
        str, make_choice(NETWORKS, "network", "--network", help="Network during the build.")
    ] = NETWORKS[0],
    gpus: Annotated[
        bool, typer.Option("--gpus", help="Verify inside with this machine's GPUs.")
    ] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Build every step from scratch.")
    ] = False,
    wheelhouse: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the wheels. [default: ./wheelhouse if it exists, else one in your cache]",
        ),
    ] = None,
    python: Annotated[
        Path | None,
        typer.Option(
            "--python",
            envvar="ENVLOCK_PYTHON",
            callback=name_interpreter,
            help="Interpreter or folder of the locked environment, to prove wheels. [default: as `envlock capture "
            "--hashes` finds it]",
        ),
    ] = None,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="Use no network; say what is missing, and how to get it."),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Build a container that is the locked environment, and verify it inside.

    First, it finds what the lockfile does not have yet (wheels, as `envlock capture --hashes` does, and the
    digest of the base), and writes it into the lockfile at the end. Wheels are installed by hash
    without a network; a second build gives the same layers.

    \b
    Examples:
      envlock build --dry-run                 print the Dockerfile
      envlock build -t team/train:1           build, verify inside, and record the image in the lockfile
      envlock build -t ghcr.io/team/train:1 --push    record name and digest in the registry, for deployment
      envlock build --rebuild                 in CI: check that the image can be reproduced
      envlock build model.keras -t made:1     build what a stamped model was made in; the model stays as it is
    """
    options = Options(
        ImageRequest(base, platform, mirrors or (), deterministic),
        BuildSources(wheelhouse, python, offline=offline),
        BuildEngine(engine, network, gpus, no_cache),
        output,
        tag,
        push,
        quiet,
    )
    ways = {"--dry-run": dry_run, "--pin": pin, "--output": output, "--rebuild": rebuild}
    _check_options(ways, options)
    named = _find_source(lock)
    for name, value in ways.items():
        if value:
            WAYS[name](named, options)
            return
    _build(named, options)


def _find_source(name: str | None) -> str | bytes | Lockfile:
    """Return the lockfile to build: that in a stamped model, or a file."""
    if name is not None:
        lock = read_lock(name)
        if lock is not None:
            return lock
    return find_source(name)


def _check_options(ways: Mapping[str, object], options: Options) -> None:
    """Refuse two ways at once, and options that a way does not use."""
    refuse_both(
        {"--offline": options.source.offline},
        {"--pin": ways["--pin"], "--push": options.push},
    )
    of_image = {
        "--tag": options.tag,
        "--push": options.push,
        "--gpus": options.engine.gpus,
        "--no-cache": options.engine.no_cache and not ways["--rebuild"],
    }
    refuse_both(ways, of_image)
    if ways["--dry-run"]:
        refuse_both(ways, {"--mirror": options.image.mirrors})


def _render(source: str | bytes | Lockfile, options: Options) -> None:
    rendered = envlock.dockerfile(
        source,
        options.image,
        wheelhouse=options.source.wheelhouse,
    )
    _warn(rendered.warnings, options)
    emit(rendered.text.removesuffix("\n"))


def _pin(source: str | bytes | Lockfile, options: Options) -> None:
    before = _load(source)
    made = pin(
        source,
        options.image.parse_base(),
        engine=options.engine.name,
        network=options.engine.network,
        progress=Terminal(options.quiet),
    )
    _warn(made.warnings, options)
    if not isinstance(source, str):
        emit(made.lock.to_bytes())
        return
    envlock.save(made.lock, source, before)
    parts = f"base image {made.base}"
    if made.lock.base_image is not None and made.lock.base_image.apt is not None:
        parts += f", {count(len(made.lock.base_image.apt.packages), 'Debian package')}"
    talk(f"wrote {source}: {parts}", quiet=options.quiet)


def _write(source: str | bytes | Lockfile, options: Options) -> None:
    before = _load(source)
    made = envlock.context(
        source,
        options.output or Path(),
        options.image,
        options.source,
        progress=Terminal(options.quiet),
    )
    _warn(made.warnings, options)
    wheels = count(made.wheels, "wheel")
    talk(
        f"wrote {made.folder}: Dockerfile, .dockerignore and tars with {wheels}",
        quiet=options.quiet,
    )
    if not isinstance(source, str) or before is None:
        return
    # A lockfile changes only if this has found other wheels.
    if before.identity != made.lock.identity:
        envlock.save(made.lock, source, before)
        talk(f"wrote {source}: base and wheels", quiet=options.quiet)


def _build(source: str | bytes | Lockfile, options: Options) -> None:
    before = _load(source)
    made = envlock.build(
        source,
        options.image,
        options.source,
        options.engine,
        tag=options.tag,
        push=options.push,
        progress=Terminal(options.quiet),
    )
    _print_verdict(made, source, options)
    if isinstance(source, str):
        parts = "base and image"
        if before is not None and made.lock.identity != before.identity:
            parts = f"wheels, {parts}"
        envlock.save(made.lock, source, before)
        talk(f"wrote {source}: {parts}", quiet=options.quiet)
    if made.pushed is not None:
        talk(
            f"pushed {made.pushed}, with its bill of materials and provenance", quiet=options.quiet
        )


def _print_verdict(made: BuiltImage, source: str | bytes | Lockfile, options: Options) -> None:
    """Print whether an image is the locked environment, and exit if it is not."""
    quiet = options.quiet
    verdict = made.verdict
    if verdict is None:
        talk(f"warning: {made.describe()}", quiet=quiet)
        return
    if not verdict.image.match:
        untagged = f", and {made.name} is not tagged" if options.tag is not None else ""
        name = get_name(source)
        talk(f"the image is not the environment of {name}{untagged}:\n{verdict.image.to_text()}")
        if made.lock.image is not None:
            talk(
                f"the image is kept without a name, to look inside: {made.lock.image.id}",
                quiet=quiet,
            )
        raise typer.Exit(verdict.image.exit_code)
    talk(made.describe(), quiet=quiet)
    # Without the GPUs of this machine, nothing was checked on them.
    if options.engine.gpus and not verdict.machine.match:
        talk(verdict.machine.to_text())
        raise typer.Exit(verdict.machine.exit_code)


def _rebuild(source: str | bytes | Lockfile, options: Options) -> None:
    made = envlock.rebuild(
        source,
        options.image,
        replace(options.source, python=None),
        options.engine,
        progress=Terminal(options.quiet),
    )
    if made.differences:
        lines = [f"  {line}" for line in made.differences]
        talk("\n".join(["the image differs from the locked one:", *lines]))
        raise typer.Exit(1)
    if made.new.id == made.old.id:
        talk("identical: the same image ID", quiet=options.quiet)
        return
    by = f"{made.new.engine} {made.new.engine_version} writes its own timestamps"
    talk(f"identical in layers and configuration (its ID differs: {by})", quiet=options.quiet)


def _load(source: str | bytes | Lockfile) -> Lockfile | None:
    """Return the lockfile as it is before it is written; None if it is not a file, and is not
    written.
    """
    if not isinstance(source, str):
        return None
    return envlock.load(source)


def _warn(warnings: tuple[str, ...], options: Options) -> None:
    for text in warnings:
        talk(f"warning: {text}", quiet=options.quiet)


WAYS = {"--dry-run": _render, "--pin": _pin, "--output": _write, "--rebuild": _rebuild}
"""The options that do something else instead of building."""
