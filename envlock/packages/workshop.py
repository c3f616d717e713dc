"""The wheel of a package that no index has: one that lies on this machine, or is built from the package's sources.

A wheel that is built goes into the cache, under its SHA-256: `vendor` takes it from there.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from envlock.guest import launch
from envlock.lock.drafts import draft_folder
from envlock.lock.writer import replacing
from envlock.packages import cache
from envlock.packages.source_tree import copied, epoch
from envlock.packages.sources import Source
from envlock.runtime.errors import OutsideError, UsageError

TIMEOUT = 3600.0  # seconds for one wheel: a large extension module takes many minutes

MASKED = ("-c", 'umask 022 && exec "$0" "$@"')
"""How a shell starts a program: modes of the files that a backend makes go into the wheel."""


@dataclass(frozen=True)
class Workshop:
    """Where wheels come from that no index has.

    Attributes:
        python: the interpreter of the environment.
        cache: the folder of envlock's cache.
        given: wheels that the user names, by package.
        build: whether packages may be built from their sources, which runs their build backends.
        say: told of every wheel that is built.
    """

    python: Path
    cache: Path
    given: Mapping[str, Path] = field(default_factory=dict)
    build: bool = False
    say: Callable[[str], None] = lambda _: None

    def wheel(self, name: str, source: Source | None) -> Path | None:
        """Return a wheel of a package, in the cache; None where there is none.

        Raises:
            OutsideError: it cannot be built or read; the message is a reason, to follow the package's name.
        """
        lying = self.given.get(name)
        if (
            lying is None
            and source is not None
            and source.kind == "wheel"
            and Path(source.place).is_file()
        ):
            lying = Path(source.place)
        if lying is not None:
            return into_cache(lying, self.cache)
        if source is None or source.kind == "wheel" or not self.build:
            return None
        with draft_folder(None) as folder:
            built = build_wheel(source, self.python, folder)
            self.say(f"built {built.name}")
            return into_cache(built, self.cache)


def build_wheel(source: Source, python: Path, folder: Path) -> Path:
    """Build a wheel from sources for an interpreter, put it into a folder, and return its path.

    The sources are copied first. The build runs in an environment of its own, with SOURCE_DATE_EPOCH (the time of the
    commit) and PYTHONHASHSEED set, so that backends that honour them give the same bytes again.

    Raises:
        OutsideError: the sources are gone, no installer is there, or the build failed.
    """
    if source.kind == "archive":
        return _build(Path(source.place), python, folder, {})
    with copied(source) as tree:
        return _build(tree, python, folder, {"SOURCE_DATE_EPOCH": str(epoch(tree))})


def _build(sources: Path, python: Path, folder: Path, environ: Mapping[str, str]) -> Path:
    if not sources.exists():
        raise OutsideError("its sources are not there any more")
    program, words = _builder(python, folder, sources)
    variables = {**environ, "PYTHONHASHSEED": "0", "GIT_OPTIONAL_LOCKS": "0", **os.environ}
    try:
        done = launch.ask(
            [*MASKED, str(program), *words], Path("/bin/sh"), timeout=TIMEOUT, environ=variables
        )
    except UsageError as error:
        raise OutsideError(f"it cannot be built: {error.message}") from None
    wheels = sorted(folder.glob("*.whl"))
    if done.code != 0 or len(wheels) != 1:
        raise OutsideError(f"it cannot be built: {program.name} {done.ending}: {_why(done)}")
    return wheels[0]


def _why(done: launch.Ended) -> str:
    """Return the last line that names an error; a backend's traceback, uv's and pip's hints stand around it."""
    lines = [line.strip() for line in done.errors.decode("utf-8", "replace").splitlines()]
    errors = [line for line in lines if "error:" in line.lower() and not line.startswith("hint")]
    return errors[-1][: launch.LONGEST] if errors else done.last_words


def _builder(python: Path, folder: Path, sources: Path) -> tuple[Path, Sequence[str]]:
    """Return the program that builds a wheel, and its arguments: uv where there is one, else a pip."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is not None:
        return Path(uv), [
            "build",
            "--wheel",
            "--quiet",
            "--python",
            str(python),
            "--out-dir",
            str(folder),
            str(sources),
        ]
    wheel = [
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-cache-dir",
        "--wheel-dir",
        str(folder),
        str(sources),
    ]
    if find_spec("pip") is not None:
        return Path(sys.executable), ["-m", "pip", "--python", str(python), *wheel]
    return python, ["-m", "pip", *wheel]


def into_cache(wheel: Path, folder: Path) -> Path:
    """Return where a wheel is in the cache, after it was copied there.

    Raises:
        OutsideError: it cannot be read or copied.
        UsageError: the cache cannot be made.
        WriteError: it cannot be written.
    """
    try:
        sha256 = cache.kept(wheel).sha256
        place = cache.wheel(folder, sha256, wheel.name)
        cache.prepare(place)
        if cache.sound(place, sha256, None) is None:
            with wheel.open("rb") as source, replacing(place, "wheel") as stream:
                shutil.copyfileobj(source, stream)
    except OSError as error:
        raise OutsideError(f"its wheel cannot be read: {error.strerror}") from None
    return place


def given(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the wheels that are named, or lie in the folders that are, by the normalised name of their package.

    Raises:
        UsageError: a path is neither, or two wheels are of one package.
    """
    found: dict[str, Path] = {}
    for path in paths:
        wheels = sorted(path.glob("*.whl")) if path.is_dir() else [path]
        for wheel in wheels:
            name = _name(wheel)
            if name is None or not wheel.is_file():
                raise UsageError(
                    f"no wheel: {wheel}", hint="name a .whl file, or a folder with some"
                )
            if name in found:
                raise UsageError(
                    f"two wheels of {name}: {found[name]} and {wheel}", hint="name one of them"
                )
            found[name] = wheel
    return found


def _name(wheel: Path) -> str | None:
    try:
        return canonicalize_name(parse_wheel_filename(wheel.name)[0])
    except InvalidWheelFilename:
        return None
