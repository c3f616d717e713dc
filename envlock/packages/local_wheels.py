"""The wheel of a package that no index has: one on this machine, or one built from sources.

Both are put into the cache under their SHA-256, where a wheelhouse is filled from.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from envlock.guest import launch
from envlock.lock.temporary import open_draft_folder
from envlock.lock.writer import replace_file
from envlock.packages import wheel_cache
from envlock.packages.index import PIP, PackageIndex
from envlock.packages.installer import find_uv
from envlock.packages.source_tree import copy_sources, digest_tree, get_commit_time, list_tree
from envlock.packages.sources import Source
from envlock.runtime.errors import OutsideError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import PackageIdentity

TIMEOUT = 3600.0  # seconds for one wheel: a large extension module can take many minutes

WHEEL = ("wheel", "--quiet", "--no-deps", "--no-cache-dir")
"""The words with which pip builds a wheel, and none of its requirements."""

MASKED = ("-c", 'umask 022 && exec "$0" "$@"')
"""The shell command that starts a build with a fixed umask: the modes of the files that a backend
creates become part of the wheel.
"""


PRETENDED_VERSIONS = ("SETUPTOOLS_SCM_PRETEND_VERSION", "PDM_BUILD_SCM_VERSION")
"""Variables with which setuptools-scm (also for Hatch) and PDM take a version, and do not derive one
from Git: with a changed file it would be another than the installed one, with the date in it.
"""


class Made(NamedTuple):
    """A wheel that was made here; `tree` is the digest of the folder that it was built from."""

    path: Path
    tree: str | None = None


@dataclass(frozen=True)
class Workshop:
    """Wheels for packages that no index has.

    Attributes:
        python: the interpreter of the environment.
        cache: the folder of envlock's cache.
        named: wheels that the user names, by package.
        build: whether packages may be built from their sources, which runs their build backends.
        index: the indexes that have sources; None if none is asked.
        say: prints a line for every wheel that is built.
    """

    python: Path
    cache: Path
    named: Mapping[str, Path] = field(default_factory=dict)
    build: bool = False
    index: PackageIndex | None = None
    say: Callable[[str], None] = lambda _: None

    def wheel(self, name: str, source: Source | None, version: str | None = None) -> Made | None:
        """Return a package's wheel in the cache; None if no wheel was named or built.

        Args:
            name: the package.
            source: what it was installed from.
            version: the installed one.

        Raises:
            OutsideError: it cannot be built or read; the message is the reason.
        """
        named = self.named.get(name)
        if named is not None:
            return Made(into_cache(named, self.cache))
        if source is None:
            return None
        if source.kind == "wheel":
            if not Path(source.place).is_file():
                return None
            return Made(into_cache(Path(source.place), self.cache))
        if not self.build:
            return None
        with open_draft_folder(None) as folder:
            if source.kind == "requirement" and self.index is not None:
                built = Made(_build_requirement(source.place, self.python, folder, self.index))
            else:
                built = build_wheel(source, self.python, folder, version)
            self.say(f"built {built.path.name}")
            return built._replace(path=into_cache(built.path, self.cache))

    def is_current(self, source: Source | None, built: PackageIdentity) -> bool:
        """Return whether the cache has a wheel that was built here, and the folder that it was built
        from is the same.
        """
        if source is None or source.kind != "folder" or built.wheel is None or built.tree is None:
            return False
        wheel = wheel_cache.get_wheel_path(self.cache, built.wheel.sha256, built.wheel.name)
        try:
            return wheel.is_file() and digest_tree(list_tree(Path(source.place))) == built.tree
        except OSError:
            return False


def build_wheel(source: Source, python: Path, folder: Path, version: str | None = None) -> Made:
    """Build a wheel from sources for an interpreter, put it into a folder, and return it.

    The sources are copied first, and the build runs in an environment of its own.

    Args:
        source: the sources.
        python: the interpreter.
        folder: where the wheel is put.
        version: the one that is installed; a folder whose version Git derives keeps it.

    Raises:
        OutsideError: the sources were removed, there is no installer, or the build failed.
    """
    if source.kind == "archive":
        return Made(_build(Path(source.place), python, folder, os.environ))
    tree = digest = None
    variables = {}
    if source.kind == "folder":
        try:
            tree = list_tree(Path(source.place))
            digest = digest_tree(tree)
        except OSError as error:
            raise OutsideError(f"its sources cannot be read: {error.strerror}") from None
        if version is not None:
            variables = dict.fromkeys(PRETENDED_VERSIONS, version)
    with copy_sources(source, tree) as copied:
        # Files in a wheel have a time; that of the commit is the same in every build.
        variables["SOURCE_DATE_EPOCH"] = str(get_commit_time(copied))
        # The user's own values go first.
        return Made(_build(copied, python, folder, {**variables, **os.environ}), digest)


def _build(sources: Path, python: Path, folder: Path, environ: Mapping[str, str]) -> Path:
    if not sources.exists():
        raise OutsideError("its sources are not there any more")
    uv = find_uv()
    if uv is not None:
        words = ["build", "--wheel", "--quiet", "--python", str(python), "--out-dir", str(folder)]
        return _run_builder(uv, [*words, str(sources)], folder, environ)
    words = ["-c", PIP, "--python", str(python), *WHEEL, "--wheel-dir", str(folder), str(sources)]
    return _run_builder(Path(sys.executable), words, folder, environ)


def _build_requirement(line: str, python: Path, folder: Path, index: PackageIndex) -> Path:
    """Build a wheel from the sources that an index or a URL has."""
    with open_draft_folder(None) as draft:
        file = draft / "requirements.txt"
        file.write_text("\n".join([*index.list_options(), line, ""]), encoding="utf-8")
        words = ["-c", PIP, "--python", str(python), *WHEEL, "--no-binary", ":all:"]
        words += ["--wheel-dir", str(folder), "--requirement", str(file)]
        return _run_builder(Path(sys.executable), words, folder, index.make_environ())


def _run_builder(
    program: Path, words: Sequence[str], folder: Path, environ: Mapping[str, str]
) -> Path:
    # Backends that respect PYTHONHASHSEED and SOURCE_DATE_EPOCH give the same bytes again.
    variables = {"PYTHONHASHSEED": "0", "GIT_OPTIONAL_LOCKS": "0", **environ}
    try:
        ended = launch.ask(
            [*MASKED, str(program), *words], Path("/bin/sh"), timeout=TIMEOUT, environ=variables
        )
    except UsageError as error:
        raise OutsideError(f"it cannot be built: {error.message}") from None
    wheels = sorted(folder.glob("*.whl"))
    if ended.code != 0 or len(wheels) != 1:
        raise OutsideError(
            f"it cannot be built: {program.name} {ended.ending}: {_find_error(ended)}"
        )
    return wheels[0]


def _find_error(ended: launch.Ended) -> str:
    """Return the last line that names an error, else the last lines of the build."""
    # A backend's traceback and the hints of uv and pip surround that line.
    lines = [line.strip() for line in ended.errors.decode("utf-8", "replace").splitlines()]
    errors = [line for line in lines if "error:" in line.lower() and not line.startswith("hint")]
    if not errors:
        return ended.last_words
    return errors[-1][: launch.LONGEST]


def into_cache(wheel: Path, folder: Path) -> Path:
    """Copy a wheel into the cache, and return its path there.

    Raises:
        OutsideError: it cannot be read or copied.
        UsageError: the cache cannot be made.
        WriteError: it cannot be written.
    """
    try:
        sha256 = wheel_cache.hash_file(wheel).sha256
        target = wheel_cache.prepare(folder, sha256) / wheel.name
        if wheel_cache.find_intact(target, sha256) is None:
            with wheel.open("rb") as source, replace_file(target, "wheel") as stream:
                shutil.copyfileobj(source, stream)
    except OSError as error:
        raise OutsideError(f"its wheel cannot be read: {error.strerror}") from None
    return target


def find_named_wheels(paths: Sequence[Path]) -> dict[str, Path]:
    """Return wheels by the normalised name of their package; for a folder, those in it.

    Raises:
        UsageError: a path is neither a wheel nor a folder, or two wheels are for one package.
    """
    found: dict[str, Path] = {}
    for path in paths:
        wheels = sorted(path.glob("*.whl")) if path.is_dir() else [path]
        for wheel in wheels:
            name = _parse_package_name(wheel)
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


def _parse_package_name(wheel: Path) -> str | None:
    try:
        return canonicalize_name(parse_wheel_filename(wheel.name)[0])
    except InvalidWheelFilename:
        return None
