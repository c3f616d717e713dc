"""Collect the facts inside an image: the runtime half is copied into a container, which is removed
afterwards.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import envlock
from envlock.guest import launch
from envlock.image.bases.reference import name_local_image, parse
from envlock.image.bases.sources import ngc
from envlock.image.engines.container_run import Finished, Start
from envlock.image.engines.engine import Engine, Inspected, Say
from envlock.image.engines.engine_errors import EngineError
from envlock.image.local_base import is_only_local
from envlock.lock.live_facts import parse_snapshot
from envlock.lock.models import BaseImage
from envlock.lock.route import Route
from envlock.lock.temporary import open_draft_folder
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import FactError

PLACE = "envlock-capture"
"""The folder in the container: neither on the import path nor in the image."""

ENTRYPOINTS: Sequence[tuple[str, ...] | None] = (None, ())
"""The image's own entrypoint, which may set variables, then none: not every entrypoint runs a given
command.
"""

PYTHONS = ("python3", "python")
TOO_OLD = "envlock-too-old:"
GUARD = (
    "import sys\n"
    f"if sys.version_info < (3, 8): sys.exit({TOO_OLD!r} + '.'.join(map(str, sys.version_info[:3])))\n"
)
"""The beginning of the code, which an old Python can parse, unlike the rest."""

NO_PROGRAM = "does not have the program"
"""The message that replaces the engine's own error (engines/engine_errors.py)."""


class Inside(NamedTuple):
    """The facts in an image, and its record as a base."""

    snapshot: Snapshot
    base: BaseImage


@dataclass(frozen=True)
class _Question:
    """The request to an image: the folder that its container gets, and whether it has GPUs."""

    folder: Path
    gpus: bool


def look_inside(
    engine: Engine,
    image: str,
    python: str | None = None,
    *,
    gpus: bool = False,
    say: Say = lambda line: None,
) -> Inside:
    """Return the facts of an image's environment, which its own entrypoint sets up.

    Args:
        engine: runs it.
        image: its name, digest or ID; pulled if the engine does not have it.
        python: the interpreter inside; the first `python3` or `python` on the image's PATH when not
            given.
        gpus: with this machine's GPUs.
        say: gets the lines that the engine prints while it pulls.

    Raises:
        EngineError: there is no such image, it is for another platform, or it cannot be run.
        FactError: it has no Python that can answer.
    """
    inspected = ensure_image(engine, image, say)
    with open_draft_folder(None) as draft:
        folder = draft / PLACE
        _write_runtime(folder)
        question = _Question(folder, gpus)
        snapshot = _ask(engine, image, inspected, python, question)
    return Inside(snapshot, _make_base(image, inspected))


def _ask(
    engine: Engine, image: str, inspected: Inspected, python: str | None, question: _Question
) -> Snapshot:
    """Return the facts from the first interpreter, and the first entrypoint, that answers."""
    has_own = bool((inspected.get("Config") or {}).get("Entrypoint"))
    entrypoints = ENTRYPOINTS if has_own else ENTRYPOINTS[:1]
    programs = PYTHONS if python is None else (python,)
    words = _make_arguments()
    last: Finished | None = None
    for program, entrypoint in itertools.product(programs, entrypoints):
        done = _run(engine, image, [program, "-B", *words], entrypoint, question)
        if done is None:
            continue
        answers = launch.Ended(done.exit_code, done.stdout.encode(), b"", 0).answers
        if answers:
            return parse_snapshot(answers[-1], image)
        # Of several failures the first is reported, except that a Python which is too old is the
        # most useful one.
        if last is None or TOO_OLD in done.stderr:
            last = done
    raise _explain_silence(image, python, last)


def ensure_image(engine: Engine, image: str, say: Say) -> Inspected:
    """Return the engine's description of an image, which is pulled if necessary.

    Raises:
        EngineError: there is no such image, or it is for another platform.
    """
    try:
        inspected = engine.inspect(image)
    except EngineError:
        engine.pull(image, say)
        inspected = engine.inspect(image)
    platform = f"{inspected.get('Os')}/{inspected.get('Architecture')}"
    if platform != engine.platform:
        raise EngineError(
            f"{image} is for {platform}, and the container engine runs {engine.platform}",
            hint=f"name the image for {engine.platform}, "
            "or an engine on such a machine in DOCKER_HOST",
        )
    return inspected


def _make_arguments() -> list[str]:
    """Return the arguments of an interpreter that make it collect the facts."""
    option, code, _, request = launch.build_module_arguments(
        "environment", {"question": "facts", "binding": f"/{PLACE}/binding"}
    )
    return [option, GUARD + code, f"/{PLACE}/envlock", request]


def _run(
    engine: Engine,
    image: str,
    argv: Sequence[str],
    entrypoint: Sequence[str] | None,
    question: _Question,
) -> Finished | None:
    """Return how a program ended; None if the image does not have it."""
    start = Start(question.gpus, {"ENVLOCK_MODE": "off"}, entrypoint, question.folder)
    try:
        return engine.run(image, argv, start)
    except EngineError as error:
        if NO_PROGRAM in error.message:
            return None
        raise


def _explain_silence(image: str, python: str | None, last: Finished | None) -> FactError:
    hint = "name its interpreter with `--python`, such as /opt/conda/bin/python"
    # A shell exits with 126 if a program cannot be run, and with 127 if it does not exist.
    if last is None or last.exit_code in (126, 127):
        return FactError(f"{image} has no {python or 'Python on its PATH'}", hint=hint)
    if TOO_OLD in last.stderr:
        version = last.stderr.rpartition(TOO_OLD)[2].split()[0]
        return FactError(
            f"the Python of {image} is {version}, and envlock needs 3.8 or newer", hint=hint
        )
    error = launch.pick_error_line(last.stderr or last.stdout)
    return FactError(f"{image} gave no facts (exit code {last.exit_code}): {error}", hint=hint)


def _make_base(image: str, inspected: Inspected) -> BaseImage:
    """Return the image as a base that has every package, by the digest that a registry gave it, or
    by its ID.
    """
    reason = "The lockfile was captured in it."
    if is_only_local(image, inspected):
        reference = name_local_image(str(inspected["Id"]))
        reason = f"The lockfile was captured in it: {image}, which only a container engine has."
    else:
        reference = parse(image)
        for digest in map(parse, inspected.get("RepoDigests") or []):
            if digest.name == reference.name and digest.digest is not None:
                reference = reference.at(digest.digest)
                break
    route: Route = "ngc" if reference.repository.endswith(ngc.REPOSITORY) else "captured"
    return BaseImage(
        name=reference.name,
        tag=reference.tag,
        digest=reference.digest or "",
        manifest=None,
        platform="linux/arm64" if inspected.get("Architecture") == "arm64" else "linux/amd64",
        route=route,
        reason=reason[:500],
    )


def _write_runtime(folder: Path) -> None:
    """Put the runtime half into the folder, and NVML's binding if it is installed here; readable by
    all users.
    """
    package = Path(str(files(envlock)))
    runtime = package / "runtime"
    guest = package / "guest"
    sources = [
        package / "__init__.py",
        *runtime.rglob("*.py"),
        *runtime.rglob("*.json"),
        guest / "__init__.py",
        guest / "environment.py",
    ]
    for source in sources:
        _copy(source, folder / "envlock" / source.relative_to(package))
    binding = find_spec("pynvml")
    # Only a module that is a single file can be copied; a package with this name is a different
    # one.
    if binding is not None and binding.origin and not binding.submodule_search_locations:
        _copy(Path(binding.origin), folder / "binding" / "pynvml.py")
    # The program in the image can run as any user, and a draft is only its owner's.
    for path in (folder, *folder.rglob("*")):
        mode = 0o755 if path.is_dir() else 0o644
        path.chmod(mode)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())
