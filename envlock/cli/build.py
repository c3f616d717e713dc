"""`envlock build`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from envlock.cli.options import (
    AcceptOption,
    IndexOption,
    LockArgument,
    MirrorOption,
    PlatformOption,
    QuietOption,
    exclusive,
    source,
)
from envlock.cli.output import Terminal, emit, talk
from envlock.cli.parser import Command, choice, new_app
from envlock.containers.engines import AUTO, ENGINES, NETWORKS
from envlock.lock.route import ROUTES
from envlock.runtime.errors import UsageError
from envlock.runtime.report import count

app = new_app()

BaseOption = Annotated[
    str,
    typer.Option(
        metavar="|".join((AUTO, *ROUTES, "IMAGE")), help="Base image, or how to choose it."
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Write Dockerfile and context to this folder; do not build.",
        show_default=False,
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print the Dockerfile; use no network, write nothing.")
]
ResolveOption = Annotated[
    bool, typer.Option("--resolve", help="With --dry-run: ask the registry for the digest.")
]
PinOption = Annotated[
    bool,
    typer.Option("--pin", help="Record base and Debian packages in the lockfile; do not build."),
]
TagOption = Annotated[
    str | None, typer.Option("--tag", "-t", help="Name of the image.", show_default=False)
]
EngineOption = Annotated[
    str, choice((AUTO, *ENGINES), "container engine", "--engine", help="Container engine.")
]
WheelhouseOption = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the wheels. [default: ./wheelhouse if it exists, else one in your cache]",
        show_default=False,
    ),
]
InterpreterOption = Annotated[
    Path | None,
    typer.Option(
        "--python",
        envvar="ENVLOCK_PYTHON",
        help="Interpreter of the locked environment, to prove wheels. [default: as `envlock hash` finds it]",
        show_default=False,
    ),
]
OfflineOption = Annotated[
    bool, typer.Option("--offline", help="Use no network; say what is missing, and how to get it.")
]
DeterministicOption = Annotated[
    bool,
    typer.Option(
        "--deterministic", help="Also set the variables this TensorFlow needs for determinism."
    ),
]
NetworkOption = Annotated[
    str, choice(NETWORKS, "network", "--network", help="Network during the build.")
]
UserOption = Annotated[
    str | None,
    typer.Option(
        metavar="UID[:GID]", help="User of the container [default: 1000:1000].", show_default=False
    ),
]
RebuildOption = Annotated[
    bool, typer.Option("--rebuild", help="Build again; exit 1 if the image differs.")
]
GpusOption = Annotated[bool, typer.Option("--gpus", help="Verify inside with this machine's GPUs.")]
NoCacheOption = Annotated[bool, typer.Option("--no-cache", help="Build every step from scratch.")]
PushOption = Annotated[
    bool, typer.Option("--push", help="Push it to the registry of its tag, and record the digest.")
]

ArchiveOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write the image to this file, as an OCI archive.", show_default=False
    ),
]


@app.command(cls=Command)
def build(
    lock: LockArgument = None,
    base: BaseOption = AUTO,
    output: OutputOption = None,
    dry_run: DryRunOption = False,
    resolve: ResolveOption = False,
    pin: PinOption = False,
    tag: TagOption = None,
    engine: EngineOption = AUTO,
    wheelhouse: WheelhouseOption = None,
    python: InterpreterOption = None,
    index_url: IndexOption = None,
    offline: OfflineOption = False,
    platform: PlatformOption = None,
    mirror: MirrorOption = None,
    accept: AcceptOption = None,
    deterministic: DeterministicOption = False,
    user: UserOption = None,
    network: NetworkOption = NETWORKS[0],
    rebuild: RebuildOption = False,
    gpus: GpusOption = False,
    no_cache: NoCacheOption = False,
    push: PushOption = False,
    archive: ArchiveOption = None,
    quiet: QuietOption = False,
) -> None:
    """Build a container that is the locked environment, and verify it inside.

    What the lockfile does not have yet is found first, and written into it at the end: wheels as by `envlock hash`, the
    digest of the base. Wheels are installed by hash without a network; a second build gives the same layers.

    \b
    Examples:
      envlock build --dry-run                 print the Dockerfile
      envlock build -t team/train:1           build, verify inside, and record the image in the lockfile
      envlock build -t ghcr.io/team/train:1 --push    record name and digest in the registry, for deployment
      envlock build --rebuild                 in CI: check that the image can be reproduced
    """
    made = {"tag": tag, "push": push, "gpus": gpus, "archive": archive, "no_cache": no_cache}
    ways = {"--dry-run": dry_run, "--pin": pin, "--output": output, "--rebuild": rebuild}
    _one_way(ways, made, {"--mirror": mirror, "--accept": accept}, offline=offline, resolve=resolve)
    what: dict[str, Any] = {
        "base": base,
        "platform": platform,
        "mirrors": mirror or (),
        "accept": accept,
    }
    how: dict[str, Any] = {
        **what,
        "deterministic": deterministic,
        "user": user,
        "wheelhouse": wheelhouse,
    }
    runs: dict[str, Any] = {"engine": engine, "network": network}
    found: dict[str, Any] = {
        **how,
        "indexes": index_url or (),
        "offline": offline,
        "progress": Terminal(quiet),
    }
    way = next((name for name, value in ways.items() if value), "")
    options = {
        "--dry-run": {**how, "resolve": resolve},
        "--pin": {**what, **runs},
        "--rebuild": {**found, **runs},
    }
    options["--output"] = {**found, "folder": output, "python": python}
    WAYS[way](
        source(lock), options.get(way, {**found, **runs, **made, "python": python}), quiet=quiet
    )


def _one_way(
    ways: dict[str, Any],
    made: dict[str, Any],
    places: dict[str, Any],
    *,
    offline: bool,
    resolve: bool,
) -> None:
    """Refuse two ways at once, options that a way cannot use, and `--resolve` where the registry is asked anyway."""
    exclusive(
        {"--offline": offline},
        {"--resolve": resolve, "--pin": ways["--pin"], "--push": made["push"]},
    )
    given = {f"--{name.replace('_', '-')}": value for name, value in made.items()}
    given["--no-cache"] = made["no_cache"] and not ways["--rebuild"]
    exclusive(ways, given)
    if resolve and not ways["--dry-run"]:
        raise UsageError(
            "`--resolve` needs `--dry-run`: all else asks the registry anyway",
            hint="remove `--resolve`",
        )
    if ways["--dry-run"] and not resolve:
        exclusive(ways, places)


def _render(lock: str | bytes, what: dict[str, Any], *, quiet: bool) -> None:
    from envlock.workflows import build as workflow

    rendered = workflow.dockerfile(lock, **what)
    _warn(rendered.warnings, quiet=quiet)
    emit(rendered.text.removesuffix("\n"))


def _pin(lock: str | bytes, what: dict[str, Any], *, quiet: bool) -> None:
    from envlock.lock.document import dump, load, save
    from envlock.workflows.pin import pin

    read = None if isinstance(lock, bytes) else load(lock)
    made = pin(lock, **what, progress=Terminal(quiet))
    _warn(made.warnings, quiet=quiet)
    if isinstance(lock, bytes):
        emit(dump(made.lock).decode("utf-8").removesuffix("\n"))
    else:
        save(made.lock, lock, read)
        apt = made.lock.base_image.apt if made.lock.base_image is not None else None
        more = "" if apt is None else f", {count(len(apt.packages), 'Debian package')}"
        talk(f"wrote {lock}: base image {made.base}{more}", quiet=quiet)


def _write(lock: str | bytes, how: dict[str, Any], *, quiet: bool) -> None:
    from envlock.lock.document import load, save
    from envlock.packages.proven import unasked
    from envlock.workflows import build as workflow

    read = load(lock) if isinstance(lock, str) else None
    made = workflow.context(lock, **how)
    _warn(made.warnings, quiet=quiet)
    talk(
        f"wrote {made.folder}: Dockerfile, .dockerignore and tars with {count(made.wheels, 'wheel')}",
        quiet=quiet,
    )
    if isinstance(lock, str) and read is not None and len(unasked(read)) > len(unasked(made.lock)):
        save(made.lock, lock, read)
        talk(f"wrote {lock}: base and wheels", quiet=quiet)


def _build(lock: str | bytes, how: dict[str, Any], *, quiet: bool) -> None:
    from envlock.workflows import build as workflow

    file = how.pop("archive")
    if file is not None:
        from envlock.workflows.archive import writable

        writable(file)
    from envlock.lock.document import load, save

    read = load(lock) if isinstance(lock, str) else None
    made = workflow.build(lock, **how)
    from envlock.containers.verification import sentence
    from envlock.workflows.locks import name_of

    verdict = made.verdict
    if verdict is None:
        talk(
            f"warning: built {made.name} without verification, which needs Python 3.8 or newer in the image",
            quiet=quiet,
        )
    elif not verdict.image.match:
        untagged = "" if how["tag"] is None else f", and {made.name} is not tagged"
        talk(
            f"the image is not the environment of {name_of(lock)}{untagged}:\n{verdict.image.to_text()}"
        )
        if made.lock.image is not None:
            talk(
                f"the image is kept without a name, to look inside: {made.lock.image.id}",
                quiet=quiet,
            )
        raise typer.Exit(verdict.image.exit_code)
    else:
        talk(sentence(verdict, made.name), quiet=quiet)
        if how["gpus"] and not verdict.machine.match:
            talk(verdict.machine.to_text())
            raise typer.Exit(verdict.machine.exit_code)
    if isinstance(lock, str):
        is_new = read is not None and made.lock.identity != read.identity
        save(made.lock, lock, read)
        talk(f"wrote {lock}: {'wheels, ' if is_new else ''}base and image", quiet=quiet)
    if file is not None:
        from envlock.workflows.archive import archive

        talk(
            f"wrote {file}: OCI archive, manifest {archive(made, file, how['engine'])}", quiet=quiet
        )
    if made.pushed is not None:
        talk(f"pushed {made.pushed}, with its bill of materials and provenance", quiet=quiet)


def _rebuild(lock: str | bytes, how: dict[str, Any], *, quiet: bool) -> None:
    from envlock.workflows import build as workflow

    made = workflow.rebuild(lock, **how)
    if made.differences:
        talk(
            "the image differs from the locked one:\n"
            + "\n".join(f"  {line}" for line in made.differences)
        )
        raise typer.Exit(1)
    if made.new.id == made.old.id:
        talk("identical: the same image ID", quiet=quiet)
        return
    by = f"{made.new.engine} {made.new.engine_version} writes its own timestamps"
    talk(f"identical in layers and configuration (its ID differs: {by})", quiet=quiet)


def _warn(warnings: tuple[str, ...], *, quiet: bool) -> None:
    for text in warnings:
        talk(f"warning: {text}", quiet=quiet)


WAYS = {"": _build, "--dry-run": _render, "--pin": _pin, "--output": _write, "--rebuild": _rebuild}
"""What each option does in the place of building."""
