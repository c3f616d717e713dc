"""Find what a build needs and its lockfile, its wheelhouse or its engine does not have yet.

What is already known is not asked for again. The lockfile is not written here: a build returns it
with everything that was found.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from envlock.diagnosis.examine import build_from_lock
from envlock.diagnosis.package_checks import check_companions, check_single_tensorflow
from envlock.image import inside
from envlock.image.base import Chosen, add_config, get_locked_base, resolve_offline
from envlock.image.bases.base_request import AUTO, BaseRequest
from envlock.image.bases.needs import collect_lock_needs
from envlock.image.container_settings import read_additions, read_apt_request
from envlock.image.debian import AptRequest, check_locked, get_locked_request
from envlock.image.engines.engine import Engine
from envlock.image.engines.engine_errors import EngineError
from envlock.image.foresight import find_differences, find_foreign_wheels, find_overwritten
from envlock.image.known_images import find_known
from envlock.image.payload import compute_inputs_digest, list_wheels
from envlock.image.pin import pin_packages, resolve_base
from envlock.image.plan import Base, BuildPlan, Unknown, plan, select_wheels
from envlock.lock.fact_models import PackageFacts
from envlock.lock.interpreter import find_environment
from envlock.lock.models import Lockfile
from envlock.lock.route import COMPLETE, Route
from envlock.packages import identity, wheel_cache
from envlock.packages.archives import fetch_debian, fetch_python
from envlock.packages.closure import is_held
from envlock.packages.folder_packages import list_folder_packages, renew_folders
from envlock.packages.hash import HashRequest, hash_packages
from envlock.packages.proofs import describe_proofs
from envlock.packages.vendor import fill_wheelhouse
from envlock.reports.progress import SILENT, Progress
from envlock.runtime import lockfile
from envlock.runtime.errors import (
    EnvironmentMismatch,
    FactError,
    ImageMismatch,
    OutsideError,
    UsageError,
)
from envlock.runtime.report import ERROR, count, join_first
from envlock.runtime.user_cache import require_cache

SHOWN = 6
"""Names in a sentence: the line should fit a terminal."""
WHEELHOUSE = Path("wheelhouse")
"""The folder for wheels that the pages name; a build uses it if it exists."""


@dataclass(frozen=True)
class ImageRequest:
    """The image that is wanted.

    Attributes:
        base: `auto`, a route (`ngc`, `cuda`, `wheels`), or the name of an image.
        platform: `linux/amd64` or `linux/arm64`; None for the lockfile's own.
        mirrors: where to take images from instead, such as `nvcr.io=harbor.example/nvcr`.
        deterministic: also set the variables that this TensorFlow needs for determinism.
    """

    base: str = AUTO
    platform: str | None = None
    mirrors: Sequence[str] = ()
    deterministic: bool = False

    def parse_base(self) -> BaseRequest:
        """Return the request for the base; UsageError if a platform or mirror is malformed."""
        return BaseRequest.parse(self.base, self.platform, self.mirrors)


@dataclass(frozen=True)
class BuildSources:
    """Where missing parts may come from.

    Attributes:
        wheelhouse: the folder that is filled; None for `./wheelhouse` if it exists, else one in
            the user's cache.
        python: the interpreter of the locked environment, which proves wheels; None finds it as all
            commands do.
        offline: use no network.
    """

    wheelhouse: Path | None = None
    python: Path | None = None
    offline: bool = False

    @property
    def folder(self) -> Path:
        """The wheelhouse."""
        own = self._own
        if own is not None:
            return own
        return Path(require_cache(os.environ, "wheelhouse"))

    @property
    def is_own(self) -> bool:
        """Whether it is the user's own: its wheels are then installed over a complete base."""
        return self._own is not None

    @property
    def _own(self) -> Path | None:
        if self.wheelhouse is not None:
            return self.wheelhouse
        if WHEELHOUSE.is_dir():
            return WHEELHOUSE
        return None


@dataclass(frozen=True)
class Supplied:
    """Everything that a build needs: the complete lockfile, the base, and the contents of the
    image.
    """

    lock: Lockfile
    chosen: Chosen
    plan: BuildPlan

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings, as sentences."""
        return (*self.chosen.warnings, *self.plan.notes, *self.plan.added.warnings)


def prepare_build(
    lock: Lockfile,
    wanted: ImageRequest,
    sources: BuildSources,
    engine: Engine | None,
    *,
    network: str = "none",
    again: bool = False,
    reuse: bool = False,
    progress: Progress = SILENT,
) -> Supplied:
    """Return what a build needs, with all files in the wheelhouse.

    Args:
        lock: the lockfile of the image.
        wanted: the image.
        sources: where missing parts may come from.
        engine: builds it; None if only its context is written.
        network: that of the build; apt uses this machine's if it is `host`.
        again: the same image as before is wanted.
        reuse: no wheels are needed for an image that this engine has built from the same inputs.
        progress: shows what is being done.

    Raises:
        EnvironmentMismatch: wheels are still to be proven, and the environment here is not the
            locked one.
        ImageMismatch: no base image can be the locked environment, or the tag of a release names
            another image.
        LockfileError: something in the lockfile must not enter an image.
        OutsideError: a registry, an index, a wheel or the engine failed.
        UsageError: something is missing that must not be downloaded, or does not exist.
    """
    base = wanted.parse_base()
    # An image with old code would be useless, so this comes before a registry is asked. The same
    # image as before has the recorded wheels.
    if not again:
        lock = renew_folders(lock, sources.python, progress, offline=sources.offline)
    # In the order of their costs: files of the project, a registry, the engine, indexes, wheels.
    additions = read_additions(lock.image, sources.folder, again=again)
    if additions.files:
        progress.say(f"copying {additions.summary}")
    if sources.offline:
        chosen = _resolve_offline(lock, base, sources, engine)
    else:
        needs = collect_lock_needs(lock, base.platform)
        name = engine.name if engine is not None else AUTO
        chosen = resolve_base(needs, lock.base_image, base, progress, name)
        if not again:
            wanted_packages = read_apt_request(lock.base_image)
            chosen = _pin_packages(chosen, wanted_packages, engine, network, progress)
    # Which wheels there are, is not known yet, and takes the most time to find out.
    unproven = plan(lock.model_copy(update={"identity": None}), chosen.base, None, added=additions)
    check_environment(lock, chosen.base.route)
    check_plan(unproven)
    candidates = {*list_folder_packages(lock), lock.own_name}
    names = _list_wanted(lock, chosen.base, sources, candidates, again=again)
    if names is None:
        names = _find_missing_in_base(lock.facts.packages or {}, chosen.base, engine, progress)
    # Most often the project's own, which no base has.
    of_folders = {
        name
        for name, each in lock.identities.items()
        if name in candidates and each.wheel is not None
    }
    missing = sorted(set(names) & set(identity.list_unhashed(lock)))
    if missing:
        lock = _prove(lock, missing, sources, progress)
        if chosen.base.route not in COMPLETE:
            names = _list_packages(lock)
    make_plan = partial(
        plan, lock, chosen.base, deterministic=wanted.deterministic, added=additions
    )
    made = make_plan(None)
    # To read a gigabyte of wheels takes longer than all the rest.
    if reuse and _is_known(made, engine):
        return Supplied(lock, chosen, made)
    files = _fill(lock, made, names, of_folders, sources, progress)
    if chosen.base.route in COMPLETE or lock.identity is None:
        # What is at hand decides what is installed; any other base needs all of the wheels.
        made = make_plan(files)
    check_plan(made, sources.folder)
    _fetch_archives(made, sources.folder)
    return Supplied(lock, chosen, made)


def _is_known(made: BuildPlan, engine: Engine | None) -> bool:
    """Return whether the engine has built an image from the same inputs; False if the wheels at hand
    decide what is installed over the base.
    """
    if engine is None or made.base.route in COMPLETE:
        return False
    return find_known(engine, compute_inputs_digest(made), os.environ) is not None


def check_environment(lock: Lockfile, route: Route) -> None:
    """Check that the locked environment works, if an image over this base has its packages.

    Raises:
        ImageMismatch: it does not; the message says why, the hint what helps.
    """
    if route in COMPLETE:
        return
    environment = build_from_lock(lock)
    for twice in check_single_tensorflow(environment):
        raise ImageMismatch(f"the image cannot match: {twice.message}", hint=DEFECT)
    for broken in check_companions(environment):
        if broken.severity == ERROR:
            raise ImageMismatch(
                f"the locked environment does not work: {broken.message}",
                lines=[f"  {broken.why}"],
                hint=DEFECT,
            )


def check_plan(made: BuildPlan, folder: Path | None = None) -> None:
    """Check that the planned image can be the locked environment, as far as that is known before it
    is built.

    Args:
        made: the plan of the image.
        folder: the wheelhouse; None if it is not filled yet.

    Raises:
        ImageMismatch: it cannot; the message says why, the hint what helps.
    """
    foreign = find_foreign_wheels(made)
    if foreign:
        raise ImageMismatch(
            f"the locked Python cannot use {count(len(foreign), 'locked wheel')}:",
            lines=[f"  {wheel}" for wheel in foreign],
            hint="capture the environment again, and prove its wheels with `envlock capture --hashes`",
        )
    differences = find_differences(made, folder)
    if differences:
        path = differences[0].where.fact
        raise ImageMismatch(
            f"the image cannot match under policy {made.policy}:",
            lines=[f"  {finding.message}" for finding in differences],
            hint=next(hint for start, hint in BEFORE.items() if path.startswith(start)),
        )
    if folder is not None:
        overwritten = list(find_overwritten(made.wheels, folder))
        if overwritten:
            raise ImageMismatch(
                "the image cannot match, as packages overwrite each other's files:",
                lines=[f"  {pair}" for pair in overwritten],
                hint="uninstall one of each pair, install the other again, and capture",
            )


DEFECT = "`envlock doctor` has the command that corrects it; then run `envlock capture`"
"""What helps where the locked environment itself has a defect: its interpreter may be elsewhere."""

BEFORE = {
    "environ.": "the lockfile does not show its value: unset the variable, and capture again",
    "keras.config": "an image has no keras.json: remove it, set this in the program, and capture again",
    "python.startup": "no locked wheel brings it: remove it, or install it from a wheel, and capture again",
    "packages.": "run `envlock capture --hashes --build`, which builds wheels from sources",
    "": "name an image with this Python with `--base IMAGE`",
}
"""What helps where a fact cannot be as locked in an image, by the beginning of its path."""


def find_unknown(lock: Lockfile, base: Base) -> tuple[Base, Unknown]:
    """Return a base without Debian packages other than those of the project, and what a build has
    still to find.

    Raises:
        UsageError: the project names a package or an archive that is malformed.
    """
    wheels = () if base.route in COMPLETE else tuple(identity.list_unhashed(lock))
    wanted = read_apt_request(lock.base_image)
    if get_locked_request(base.apt) == wanted:
        return base, Unknown(wheels)
    return replace(base, apt=None), Unknown(wheels, wanted.packages)


def _pin_packages(
    chosen: Chosen, wanted: AptRequest, engine: Engine | None, network: str, progress: Progress
) -> Chosen:
    """Return the base with the Debian packages that the project needs."""
    if get_locked_request(chosen.base.apt) == wanted:
        return chosen
    if engine is None:
        # Only apt inside the base can resolve their current versions.
        check_locked(chosen.base, wanted)
        return chosen
    progress.say("locking the Debian packages of `apt`")
    return pin_packages(chosen, wanted, engine.name, network, progress)


def _list_wanted(
    lock: Lockfile,
    base: Base,
    sources: BuildSources,
    of_folders: Collection[str | None],
    *,
    again: bool,
) -> list[str] | None:
    """Return the names of the locked packages whose wheels a build needs; None if only the contents
    of the base decide that.

    The wheels of the packages `of_folders` are made by the build, so they say nothing of what a user
    has put into a wheelhouse.
    """
    if base.route not in COMPLETE:
        return _list_packages(lock)
    if sources.is_own and lock.identities.keys() - of_folders:
        # The wheels that users have put into their own wheelhouse are those that are installed.
        return []
    if again and lock.image is not None:
        return sorted(lock.image.wheels or ())
    return None


def _list_packages(lock: Lockfile) -> list[str]:
    """Return the names of the locked packages, with the project's own if its wheel is known."""
    return sorted({*(lock.facts.packages or {}), *lock.identities})


def _find_missing_in_base(
    locked: Mapping[str, PackageFacts], base: Base, engine: Engine | None, progress: Progress
) -> list[str]:
    """Return the locked packages that a complete base lacks or has in another version; none without
    an engine that could tell.
    """
    if engine is None:
        return []
    try:
        found = inside.look_inside(engine, base.reference, say=progress.line)
    except FactError as error:
        progress.say(f"warning: {error.message}; only the base's own packages are in the image")
        return []
    packages = found.snapshot.facts.get("packages") or {}
    names = []
    for name, fact in locked.items():
        version = (packages.get(name) or {}).get("version")
        if version != fact.version and is_held(name):
            names.append(name)
    return sorted(names)


def _prove(
    lock: Lockfile, missing: Sequence[str], sources: BuildSources, progress: Progress
) -> Lockfile:
    """Return the lockfile with the wheel of every package, or the reason why it is unknown."""
    if sources.offline:
        raise _make_offline_error([f"{_describe_wheels(missing)}: run `envlock capture --hashes`"])
    python = sources.python
    if python is None:
        found = find_environment(os.environ, Path.cwd())
        python = found.python
        if found.origin:
            progress.say(f"environment: {found.shown} ({found.origin})")
    progress.say(f"proving the wheels of {count(len(missing), 'package')}")
    try:
        # What no index has as a wheel was built here when it was installed, and is built again.
        request = HashRequest(build=True)
        new = hash_packages(lock, request, python=python, progress=progress)
    except EnvironmentMismatch as error:
        raise EnvironmentMismatch(
            error.message,
            error.report,
            hint="wheels are proven in the locked environment: activate it, name its interpreter "
            "with `--python`, or run `envlock capture --hashes` where it is",
        ) from None
    for line in describe_proofs(new):
        progress.say(line)
    return new


def _fill(
    lock: Lockfile,
    made: BuildPlan,
    names: Sequence[str],
    of_folders: Collection[str],
    sources: BuildSources,
    progress: Progress,
) -> Collection[str]:
    """Put the wheels that are to be installed into the wheelhouse, and return the names of all
    wheels there.

    `made` has every wheel that could be installed, `names` are the packages whose wheels are, and
    `of_folders` those whose wheels are installed in addition.
    """
    at_hand = list_wheels(sources.folder)
    # Over a complete base, a wheelhouse of the user's own is installed as it is.
    is_filled_by_user = made.base.route in COMPLETE and sources.is_own and not names
    if lock.identity is None or (is_filled_by_user and not of_folders):
        return at_hand
    wanted = {*names, *of_folders}
    wheels = [wheel for wheel in made.wheels if wheel.name in wanted]
    files = [wheel.file for wheel in wheels]
    if is_filled_by_user:
        files = sorted({*files, *at_hand})
    if not wheels:
        return files
    if set(files) - set(at_hand):
        progress.say(f"filling {sources.folder}: {count(len(wheels), 'wheel')}")
    wanted = {wheel.name for wheel in wheels}
    proven, _ = identity.list_proven(lock, lockfile.NAME)
    done = fill_wheelhouse(
        lock,
        [package for package in proven if package.name in wanted],
        sources.folder,
        offline=sources.offline,
        progress=progress,
    )
    if done.missing:
        raise OutsideError(
            f"{len(done.missing)} of {count(len(wheels), 'wheel')} could not be had:",
            lines=[f"  {package}" for package in done.missing],
            hint="run it again: finished files are kept",
        )
    return files


def _fetch_archives(made: BuildPlan, folder: Path) -> None:
    """Download the Python and the Debian packages of a plan into the wheelhouse."""
    archive = made.base.python_archive
    if archive is not None:
        fetch_python(archive.file, archive.sha256, folder, os.environ)
    for package in made.debian:
        fetch_debian(package, folder)


# --- without a network


def _resolve_offline(
    lock: Lockfile, request: BaseRequest, sources: BuildSources, engine: Engine | None
) -> Chosen:
    """Return the base as far as it is known without a network.

    Raises:
        UsageError: something is missing; the message lists everything that is missing, and how to
            get it.
    """
    base, warnings = resolve_offline(lock, request)
    base_image = get_locked_base(lock.base_image, request.choice)
    missing = list(_find_missing(lock, base, sources, is_pinned=base_image is not None))
    if base_image is not None and engine is not None:
        missing += _find_missing_images(base, engine)
    if not missing and engine is not None and base.entrypoint is None:
        base = _add_config(base, engine)
    if base.entrypoint is None and not missing:
        missing.append(
            f"the configuration of {base.reference}: run `envlock build` once, which records it"
        )
    if missing or base_image is None:
        raise _make_offline_error(missing)
    return Chosen(base, base_image, warnings)


def _add_config(base: Base, engine: Engine) -> Base:
    """Return a base with the settings of its config for running it; the engine has the image."""
    config = engine.inspect(base.reference).get("Config") or {}
    environ = {}
    for text in config.get("Env") or ():
        name, _, value = text.partition("=")
        environ[name] = value
    return add_config(base, config.get("Entrypoint") or (), config.get("Cmd") or (), environ)


def _make_offline_error(missing: Sequence[str]) -> UsageError:
    subject = "this is" if len(missing) == 1 else "these are"
    return UsageError(
        f"`--offline` forbids the network, and {subject} missing:",
        lines=[f"  {text}" for text in missing],
        hint="run the commands above, or `envlock build` once without `--offline`",
    )


def _find_missing(
    lock: Lockfile, base: Base, sources: BuildSources, *, is_pinned: bool
) -> Iterator[str]:
    """Yield what neither the lockfile nor the wheelhouse has, and how to get it."""
    folder = sources.folder
    if not is_pinned:
        name, _, _ = base.reference.partition("@")
        yield f"the digest of the base image {name}: run `envlock build --pin`"
    if get_locked_request(base.apt) != read_apt_request(lock.base_image):
        yield "the Debian packages of `apt` in [tool.envlock.container]: run `envlock build --pin`"
    if base.route not in COMPLETE:
        unknown = identity.list_unhashed(lock)
        if unknown:
            yield f"{_describe_wheels(unknown)}: run `envlock capture --hashes`"
        yield from _find_missing_wheels(lock, base, folder)
    files = []
    if base.python_archive is not None:
        files.append(base.python_archive.file)
    if base.apt is not None:
        files += [package.file for package in base.apt.packages]
    for file in files:
        if not (folder / file).is_file():
            yield f"{folder / file}: run `envlock build --output FOLDER`"


def _find_missing_wheels(lock: Lockfile, base: Base, folder: Path) -> Iterator[str]:
    """Yield a sentence on the wheels that are neither in the wheelhouse nor in the cache."""
    cached = Path(require_cache(os.environ))
    missing = []
    for wheel in select_wheels(lock, base.route, None).wheels:
        in_cache = wheel_cache.get_wheel_path(cached, wheel.sha256, wheel.file)
        if not (folder / wheel.file).is_file() and not in_cache.is_file():
            missing.append(wheel.file)
    if missing:
        yield f"{join_first(missing, SHOWN)} in {folder}: run `envlock export --wheelhouse {folder}`"


def _find_missing_images(base: Base, engine: Engine) -> Iterator[str]:
    """Yield the images that the engine does not have."""
    for image in filter(None, (base.reference, base.python_from)):
        with contextlib.suppress(EngineError):
            engine.inspect(image)
            continue
        yield f"the image {image} in the engine: pull it"


def _describe_wheels(names: Sequence[str]) -> str:
    return f"the proven wheels of {join_first(names, SHOWN)}"
