"""`envlock build`

What the other commands do not need (templates, tables, HTTP, an engine's library) is imported when it is used.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from envlock.cli import config as settings
from envlock.cli.options import LockArgument, QuietOption, one_of, read_document
from envlock.cli.output import emit, say, talk
from envlock.lock.document import dump, validate
from envlock.lock.models import Lockfile
from envlock.lock.writer import write_atomically
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.containers.base import Chosen
    from envlock.containers.engines import Engine
    from envlock.containers.engines.builder import Say
    from envlock.containers.plan import BuildPlan

ENGINES = ("auto", "buildx", "docker")
NETWORKS = ("none", "host", "default")


@dataclass(frozen=True)
class Order:
    """The command line, understood."""

    name: str
    lock: Lockfile
    base: str
    platform: str | None
    mirrors: tuple[str, ...]
    wheelhouse: Path
    deterministic: bool
    quiet: bool


BaseOption = Annotated[str, typer.Option(help="auto, ngc, cuda, wheels, or the name of an image.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write Dockerfile and context there; build nothing.", show_default=False),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the Dockerfile; ask nobody, write nothing.")]
TagOption = Annotated[str | None, typer.Option("--tag", "-t", help="Name for the image.", show_default=False)]
EngineOption = Annotated[str, typer.Option(help="auto, buildx or docker.")]
WheelhouseOption = Annotated[Path, typer.Option(help="Where `envlock vendor` has put the wheels.")]
PlatformOption = Annotated[
    str | None, typer.Option(help="linux/amd64 or linux/arm64. Default: the lock's own.", show_default=False)
]
MirrorOption = Annotated[
    list[str] | None,
    typer.Option(help="Where to take images from instead: nvcr.io=harbor.example/nvcr. Repeatable."),
]
DeterministicOption = Annotated[
    bool, typer.Option("--deterministic", help="Set what makes this TensorFlow deterministic where the lock has not.")
]
NetworkOption = Annotated[str, typer.Option(help="Of the build: none, host or default.")]
CheckOption = Annotated[bool, typer.Option("--check", help="Build again; exit 1 if the image is another one.")]
GpusOption = Annotated[bool, typer.Option("--gpus", help="Verify inside with this machine's GPUs.")]
NoCacheOption = Annotated[bool, typer.Option("--no-cache", help="Build every step anew.")]


def build(
    lock: LockArgument = None,
    base: BaseOption = "auto",
    output: OutputOption = None,
    dry_run: DryRunOption = False,
    tag: TagOption = None,
    engine: EngineOption = "auto",
    wheelhouse: WheelhouseOption = Path("wheelhouse"),
    platform: PlatformOption = None,
    mirror: MirrorOption = None,
    deterministic: DeterministicOption = False,
    network: NetworkOption = "none",
    check: CheckOption = False,
    gpus: GpusOption = False,
    no_cache: NoCacheOption = False,
    quiet: QuietOption = False,
) -> None:
    """Build a container that is the locked environment, and verify it inside.

    The base is pinned by digest, wheels are installed by hash and without a network, and building again gives the
    same layers. The image refuses to start where it is not the locked environment.

    \b
    Examples:
      envlock build --dry-run                 the Dockerfile, on stdout
      envlock build --output context          Dockerfile and context, which build without envlock
      envlock build -t team/train:1           build, verify inside, and record the image in the lock
      envlock build --check                   in CI: does it still come out the same?
    """
    one_of(engine, list(ENGINES), "engine")
    one_of(network, list(NETWORKS), "network")
    name, document = read_document(lock, settings.load(Path.cwd()))
    order = Order(name, validate(document, name), base, platform, tuple(mirror or ()), wheelhouse, deterministic, quiet)
    if dry_run:
        _show(order)
    elif output is not None:
        _write(order, output)
    elif check:
        _check(order, engine, network)
    else:
        _build(order, engine, network, tag=tag, gpus=gpus, no_cache=no_cache)


def _show(order: Order) -> None:
    from envlock.containers.base import unasked
    from envlock.containers.render import dockerfile

    chosen = unasked(order.lock, order.base, _platform(order))
    _warn(order, chosen)
    emit(dockerfile(_plan(order, chosen, wheels=None)).removesuffix("\n"))


def _write(order: Order, folder: Path) -> None:
    from envlock.containers.payload import wheels_in, write_context

    chosen = _asked(order)
    made = _plan(order, chosen, wheels=wheels_in(order.wheelhouse))
    write_context(made, order.wheelhouse, folder)
    _warn(order, chosen, made)
    talk(f"wrote {folder}: Dockerfile, .dockerignore and payload.tar with {len(made.wheels)} wheels", quiet=order.quiet)


def _build(order: Order, engine: str, network: str, *, tag: str | None, gpus: bool, no_cache: bool) -> None:
    from envlock.containers.build import Wish, recorded
    from envlock.containers.build import build as make
    from envlock.containers.payload import wheels_in
    from envlock.containers.verification import sentence

    builder = _engine(engine)
    chosen = _asked(order)
    made = _plan(order, chosen, wheels=wheels_in(order.wheelhouse))
    _warn(order, chosen, made)
    wish = Wish(tag, network, gpus, no_cache, order.wheelhouse)
    outcome = make(made, chosen, builder, wish, _progress(order))
    called = tag or outcome.built.image_id
    if outcome.verdict is None:
        talk(f"built {called}; envlock verifies on Python 3.8 or newer only, so it is NOT verified", quiet=order.quiet)
    elif not outcome.verdict.image.match:
        talk(f"{called} is built, and is not the environment of {order.name}:\n{outcome.verdict.image.to_text()}")
        raise typer.Exit(outcome.verdict.image.exit_code)
    else:
        talk(sentence(outcome.verdict, called), quiet=order.quiet)
        if gpus and not outcome.verdict.machine.match:
            talk(outcome.verdict.machine.to_text())
            raise typer.Exit(outcome.verdict.machine.exit_code)
    if not Path(order.name).is_file():
        return
    write_atomically(Path(order.name), dump(recorded(order.lock.to_document(), chosen, outcome.section)))
    talk(f"wrote base and image into {order.name}", quiet=order.quiet)


def _check(order: Order, engine: str, network: str) -> None:
    from envlock.containers.build import Wish
    from envlock.containers.build import check as again
    from envlock.containers.payload import wheels_in

    old = order.lock.image
    if old is None:
        raise UsageError(f"{order.name} has no image to compare with", hint="`envlock build` builds and records one")
    chosen = _asked(order)
    made = _plan(order, chosen, wheels=wheels_in(order.wheelhouse), deterministic=old.deterministic)
    wish = Wish(None, network, no_cache=True, wheelhouse=order.wheelhouse)
    new, lines = again(made, chosen, _engine(engine), wish, _progress(order), old)
    if lines:
        talk(f"the image is another one than {order.name} has:\n" + "\n".join(f"  {line}" for line in lines))
        raise typer.Exit(1)
    kind = "identical: the same image ID" if new.id == old.id else "identical in layers and configuration"
    by = "" if new.id == old.id else f" (its ID is another: {new.engine} {new.engine_version} stamps its own times)"
    talk(f"{kind}{by}", quiet=order.quiet)


def _plan(order: Order, chosen: Chosen, *, wheels: list[str] | None, deterministic: bool = False) -> BuildPlan:
    from envlock.containers.plan import plan

    wanted = order.deterministic or deterministic
    return plan(order.lock.to_document(), chosen.base, wheels, deterministic=wanted)


def _asked(order: Order) -> Chosen:
    """Return the base by what its registry says; HTTP costs a tenth of a second, which a dry run need not pay."""
    from envlock.containers.base import asked_for
    from envlock.images.reference import parse_mirror
    from envlock.images.registry import Registry
    from envlock.web.client import Client

    mirrors = [parse_mirror(text) for text in order.mirrors]
    return asked_for(order.lock, Registry(Client()).find, order.base, _platform(order), mirrors)


def _platform(order: Order) -> str | None:
    from envlock.images.reference import parse_platform

    return None if order.platform is None else parse_platform(order.platform)


def _warn(order: Order, chosen: Chosen, made: BuildPlan | None = None) -> None:
    notes = made.notes if made is not None else ()
    for text in (*chosen.warnings, *notes):
        talk(f"warning: {text}", quiet=order.quiet)


def _progress(order: Order) -> Say:
    """Return what shows a line of the builder's: on a terminal only."""
    shown = sys.stderr is not None and sys.stderr.isatty() and not order.quiet

    def show(line: str) -> None:
        if shown:
            say(f"{clean(line)}\n")

    return show


def _engine(name: str) -> Engine:
    """Return the engine; imported now, as its library costs a tenth of a second that a dry run does not need."""
    from envlock.containers.engines import find

    return find(name)
