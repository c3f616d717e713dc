"""The facts inside an image: the runtime half is copied into a container, asked, and gone with the container."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import envlock
from envlock.containers.engines.container import Finished, Start
from envlock.containers.engines.engine import Engine, Say
from envlock.containers.engines.failures import EngineError
from envlock.guest import launch
from envlock.images.reference import parse
from envlock.images.sources import ngc
from envlock.lock.drafts import draft_folder
from envlock.lock.live import told
from envlock.lock.models import BaseImage
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import FactError

PLACE = "envlock-capture"
"""The folder in the container: on no import path, and in no image."""

ENTRYPOINTS: Sequence[tuple[str, ...] | None] = (None, ())
"""The image's own, which may set variables, then none: one that takes no command cannot be asked through."""

PYTHONS = ("python3", "python")
TOO_OLD = "envlock-too-old:"
GUARD = f"import sys\nif sys.version_info < (3, 8): sys.exit({TOO_OLD!r} + '.'.join(map(str, sys.version_info[:3])))\n"
"""Before the rest, which an older Python could not read."""

NO_PROGRAM = "does not have the program"
"""The message that stands for the engine's own error (engines/failures.py)."""


class Inside(NamedTuple):
    """What was found in an image, and what the lock keeps of it; None where no registry knows it."""

    snapshot: Snapshot
    base: BaseImage | None


def look_inside(
    engine: Engine,
    image: str,
    python: str | None = None,
    *,
    gpus: bool = False,
    say: Say = lambda line: None,
) -> Inside:
    """Return the facts of an image's environment, as its own entrypoint leaves it; the container is removed.

    Args:
        engine: runs it.
        image: its name, digest or ID; pulled if the engine does not have it.
        python: the interpreter inside; the first `python3` or `python` on the image's PATH when not given.
        gpus: with this machine's GPUs.
        say: gets what the engine prints while it pulls.

    Raises:
        EngineError: there is no such image, it is for another platform, or it cannot be run.
        FactError: it has no Python that can tell.
    """
    known = at_hand(engine, image, say)
    with draft_folder(None) as draft:
        brought = _written(draft / PLACE)
        return _asked(engine, image, known, python, brought, gpus=gpus)


def _asked(
    engine: Engine,
    image: str,
    known: dict[str, Any],
    python: str | None,
    brought: Path,
    *,
    gpus: bool,
) -> Inside:
    own = list((known.get("Config") or {}).get("Entrypoint") or [])
    last: Finished | None = None
    for program in PYTHONS if python is None else (python,):
        words = [program, "-B", *_words()]
        for entrypoint in ENTRYPOINTS if own else ENTRYPOINTS[:1]:
            done = _run(engine, image, words, entrypoint, brought, gpus=gpus)
            if done is None:
                continue
            answers = launch.Ended(done.exit_code, done.stdout.encode(), b"", 0).answers
            if answers:
                return Inside(told(answers[-1], image), _base(image, known))
            last = done if last is None or TOO_OLD in done.stderr else last
    raise _no_answer(image, python, last)


def at_hand(engine: Engine, image: str, say: Say) -> dict[str, Any]:
    """Return what the engine knows of an image, pulled where it does not have it.

    Raises:
        EngineError: there is no such image, or it is for another platform.
    """
    try:
        known = engine.inspect(image)
    except EngineError:
        engine.pull(image, say)
        known = engine.inspect(image)
    made_for = f"{known.get('Os')}/{known.get('Architecture')}"
    here = engine.platform
    if made_for != here:
        raise EngineError(
            f"{image} is for {made_for}, and the container engine runs {here}",
            hint=f"name the image for {here}, or an engine on such a machine in DOCKER_HOST",
        )
    return known


def _words() -> list[str]:
    option, code, _, asked = launch.module(
        "environment", {"question": "facts", "binding": f"/{PLACE}/binding"}
    )
    return [option, GUARD + code, f"/{PLACE}/envlock", asked]


def _run(
    engine: Engine,
    image: str,
    words: Sequence[str],
    entrypoint: Sequence[str] | None,
    brought: Path,
    *,
    gpus: bool,
) -> Finished | None:
    """Return how a program ended; None where the image does not have it."""
    try:
        return engine.run(image, words, Start(gpus, {"ENVLOCK_MODE": "off"}, entrypoint, brought))
    except EngineError as error:
        if NO_PROGRAM in error.message:
            return None
        raise


def _no_answer(image: str, python: str | None, last: Finished | None) -> FactError:
    hint = "name its interpreter with `--python`, such as /opt/conda/bin/python"
    if last is None or last.exit_code in (126, 127):
        return FactError(f"{image} has no {python or 'Python on its PATH'}", hint=hint)
    if TOO_OLD in last.stderr:
        version = last.stderr.rpartition(TOO_OLD)[2].split()[0]
        return FactError(
            f"the Python of {image} is {version}, and envlock needs 3.8 or newer", hint=hint
        )
    said = launch.last_words(last.stderr or last.stdout)
    return FactError(f"{image} gave no facts (exit code {last.exit_code}): {said}", hint=hint)


def _base(image: str, known: dict[str, Any]) -> BaseImage | None:
    """Return the image as a base that has every package already; None where no registry has given it a digest."""
    digests = known.get("RepoDigests") or []
    reference = parse(image) if "/" in image or ":" in image or digests else None
    mine = [parse(each) for each in digests]
    found = next(
        (each for each in mine if reference is not None and each.name == reference.name), None
    )
    if found is None or found.digest is None or reference is None:
        return None
    return BaseImage(
        name=found.name,
        tag=reference.tag,
        digest=found.digest,
        manifest=None,
        platform="linux/arm64" if known.get("Architecture") == "arm64" else "linux/amd64",
        route="ngc" if found.repository.endswith(ngc.REPOSITORY) else "captured",
        reason="The lockfile was captured in it.",
    )


def _written(place: Path) -> Path:
    """Return the folder, filled: the runtime half, and NVML's binding if it is here. Every user may read it."""
    package = Path(str(files(envlock)))
    runtime = [
        path for ending in ("*.py", "*.json") for path in (package / "runtime").rglob(ending)
    ]
    own = [
        package / "__init__.py",
        *runtime,
        package / "guest" / "__init__.py",
        package / "guest" / "environment.py",
    ]
    held = [(f"envlock/{path.relative_to(package).as_posix()}", path) for path in own]
    for name, path in [*held, *_binding()]:
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    for path in (place, *place.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return place


def _binding() -> Iterator[tuple[str, Path]]:
    spec = find_spec("pynvml")
    if spec is not None and spec.origin is not None and not spec.submodule_search_locations:
        yield "binding/pynvml.py", Path(spec.origin)
