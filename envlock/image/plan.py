"""The contents of an image, decided before anything is written. Pure: lockfile, base and file names
in, plan out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from envlock.data.image_tables import RouteDefaults, load_image_defaults
from envlock.image.additions import Additions
from envlock.image.bases.candidate import PythonArchive
from envlock.image.layers import BINDING, OWN, Layer, Wheel, cut
from envlock.image.quoting import safe
from envlock.lock.document import dump
from envlock.lock.models import DebianPackage, DebianPackages, Lockfile, PackageIdentity
from envlock.lock.route import COMPLETE, Route
from envlock.packages.identity import split_by_policy
from envlock.packages.proofs import LeftOut
from envlock.runtime.collectors.environment_variables import make_recordable
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS
from envlock.runtime.comparison_rules import parse_version
from envlock.runtime.errors import LockfileError, UsageError
from envlock.runtime.recipe import (
    Recipe,
    find_nvidia_switch,
    find_recipe,
    get_always_needed,
    warn_beyond_recipes,
)
from envlock.runtime.report import join_first
from envlock.runtime.tables import table
from envlock.runtime.version import __version__

EPOCH = 315532800
"""1980-01-01, the time of everything that a build writes: no zip file, and no base, has an earlier
one.
"""

NAMESPACE = "io.github.tf-envlock"
_VERIFYING = "/opt/envlock/entrypoint.py"
SEED = 42  # in the lines that a plan shows; the program chooses its own
IMPORTED_TOOL = "setuptools"
"""The one installer or development tool that `import tensorflow` loads, as pkg_resources: seen with 2.15.1, 2.18.1
and 2.21.0.
"""
NOT_AT_HAND = "its wheel is not in the wheelhouse"

# With the epoch of PEP 440 in front, as `parse_version` returns it.
_OLDEST_PYTHON = (0, 3, 8)


@dataclass(frozen=True)
class Base:
    """An image to start from.

    Attributes:
        reference: its name with its digest; a dry run may have a tag alone, and then nothing is
            built.
        route: the one by which it was chosen.
        entrypoint, command, environ: those of its config; None if that was not read.
        python_from: the image from which Python is copied into a base without one.
        python_archive: the build of python-build-standalone that such a base gets, if no image
            has it.
        apt: Debian packages that are installed in it first.
    """

    reference: str
    route: Route
    entrypoint: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    environ: tuple[tuple[str, str], ...] | None = None
    python_from: str | None = None
    python_archive: PythonArchive | None = None
    apt: DebianPackages | None = None


@dataclass(frozen=True)
class Unknown:
    """Packages whose wheel, and Debian packages whose file, a build has still to find."""

    wheels: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuildPlan:
    """Everything that rendering and payload need; they read nothing else.

    Attributes:
        tensorflow, python_version, policy: those of the lockfile, for comments and labels.
        environ: variables that are set in the image.
        unset: variables that the base sets and the locked environment does not have: the entrypoint
            removes them if they still have the base's value.
        wheels: the wheels to install.
        skipped: why a package is not installed, by package.
        unknown: what a build has still to find; such a plan is shown, but never built.
        notes: sentences for the user.
        code: lines that the user's program must have.
        lock: the lockfile with which the image verifies itself; None for a base without one.
        deterministic: whether the image sets the variables of the recipe for this TensorFlow.
        added: the additions of the project.
        epoch: the time of every file.
        labels: those of the image.
    """

    base: Base
    tensorflow: str | None = None
    python_version: str | None = None
    policy: str | None = None
    environ: tuple[tuple[str, str], ...] = ()
    unset: tuple[tuple[str, str], ...] = ()
    wheels: tuple[Wheel, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    unknown: Unknown = field(default=Unknown())
    notes: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    lock: bytes | None = None
    deterministic: bool = False
    added: Additions = field(default=Additions())
    epoch: int = EPOCH
    labels: tuple[tuple[str, str], ...] = field(default=())

    @property
    def document(self) -> dict[str, Any]:
        """The lockfile with which the image verifies itself, as JSON values; empty without one."""
        values: dict[str, Any] = json.loads(self.lock or b"{}")
        return values

    @property
    def user(self) -> str:
        """The user and group that the program runs as, as numbers."""
        return self.added.user

    @property
    def verified(self) -> bool:
        """Whether the image can verify itself: the runtime half needs Python 3.8 or newer."""
        if self.python_version is None:
            return True
        return (parse_version(self.python_version) or _OLDEST_PYTHON) >= _OLDEST_PYTHON

    @property
    def venv(self) -> Literal["none", "isolated", "system"]:
        """The kind of virtual environment: with access to the packages of a complete base, else
        without.

        A virtual environment is used because replacing a package of the base would leave a deletion
        marker with the time of the build in the layer, which no rebuild could repeat.
        """
        if self.base.route not in COMPLETE:
            return "isolated"
        if self.wheels:
            return "system"
        return "none"

    @property
    def debian(self) -> tuple[DebianPackage, ...]:
        """The packages that apt installs."""
        if self.base.apt is None:
            return ()
        return tuple(self.base.apt.packages)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The wheels, divided into layers."""
        return cut(self.wheels)

    @property
    def python(self) -> str:
        """The interpreter of the locked environment in the image, which runs the user's program."""
        return "python3" if self.venv == "none" else "/opt/venv/bin/python"

    @property
    def entrypoint(self) -> tuple[str, ...]:
        """The base's own entrypoint, then the one that verifies."""
        own = self.base.entrypoint
        if own is None:
            own = tuple(_get_defaults(self.base.route).entrypoint)
        if not self.verified:
            return own
        # A base that envlock made verifies already; once is enough.
        if own[-1:] == (_VERIFYING,):
            own = own[:-3]
        return (*own, self.python, "-B", _VERIFYING)

    @property
    def command(self) -> tuple[str, ...]:
        """The project's command, else the base's own, which our ENTRYPOINT would otherwise reset."""
        if self.added.command:
            return self.added.command
        if self.base.command is not None:
            return self.base.command
        return tuple(_get_defaults(self.base.route).command)


def _get_defaults(route: Route) -> RouteDefaults:
    defaults: RouteDefaults = getattr(load_image_defaults(), route)
    return defaults


def base_plan(base: Base) -> BuildPlan:
    """Return the plan of a base image for teams, which verifies itself with the lockfile that is
    put into it.
    """
    environ = {**get_always_needed(), **find_variables(None, _get_ngc_release(base))}
    labels = _make_labels(base, None, None)
    return BuildPlan(base, environ=tuple(sorted(environ.items())), labels=labels)


def plan(
    lock: Lockfile,
    base: Base,
    wheelhouse: Collection[str] | None,
    *,
    deterministic: bool = False,
    added: Additions = Additions(),  # noqa: B008 (frozen)
    unknown: Unknown = Unknown(),
) -> BuildPlan:
    """Return the plan of the image of a lockfile.

    Args:
        lock: the lockfile.
        base: the image to start from.
        wheelhouse: the names of the available wheels; None if they do not matter yet.
        deterministic: set the variables of the recipe for this TensorFlow, also in the image's own
            lockfile.
        added: the additions of the project.
        unknown: what has still to be found.

    Raises:
        LockfileError: something in the lockfile must not enter an image; the message names its
            path.
        UsageError: required wheels are not available.
    """
    facts = lock.facts
    tensorflow = facts.tensorflow.version if facts.tensorflow is not None else None
    python_version = facts.python.version if facts.python is not None else None
    ngc = _get_ngc_release(base)
    recipe = _find_recipe(tensorflow)
    variables = find_variables(recipe, ngc)
    environ = _choose_environ(lock, base, variables, deterministic=deterministic)
    selection = select_wheels(lock, base.route, wheelhouse)
    installed = {wheel.name for wheel in selection.wheels}
    notes = [*warn_beyond_recipes(tensorflow), *environ.notes]
    if not added.files:
        notes += _warn_of_missing_program(lock, installed)
    missing = find_missing_patch(recipe, ngc, installed)
    if missing is not None:
        notes.append(
            f"{missing} is not locked; without its patch this TensorFlow is not deterministic"
        )
    amended = variables if deterministic else {}
    inside = dump_shipped_lock(lock, amended)
    return BuildPlan(
        base,
        tensorflow=tensorflow,
        python_version=python_version,
        policy=lock.policy.name,
        environ=tuple(sorted({**get_always_needed(), **environ.variables}.items())),
        unset=_list_unset(lock, base, environ.variables),
        wheels=tuple(selection.wheels),
        skipped=tuple(selection.skipped),
        unknown=unknown,
        notes=tuple(notes),
        code=tuple(list_program_lines(recipe, ngc, installed)),
        lock=inside,
        deterministic=deterministic,
        added=added,
        labels=_make_labels(base, lock, inside),
    )


def _warn_of_missing_program(lock: Lockfile, installed: Collection[str]) -> list[str]:
    if lock.project is None or lock.project.name is None or lock.project.name in installed:
        return []
    return [
        f"the project's own package, {lock.project.name}, is not in the image; "
        "a build takes it from its folder where it is installed"
    ]


# --- determinism


def _get_ngc_release(base: Base) -> str | None:
    """Return the tag of one of NVIDIA's images, such as 25.02-tf2-py3; it begins with its release."""
    name, _, tag = base.reference.partition("@")[0].rpartition(":")
    if base.route == "ngc" and name.endswith("nvidia/tensorflow"):
        return tag
    return None


def _find_recipe(tensorflow: str | None) -> Recipe | None:
    """Return the recipe for the numbers at the start of a version; None if there are none."""
    numbers = parse_version(tensorflow)
    if numbers is None:
        return None
    return find_recipe(".".join(map(str, numbers[1:])))


def find_variables(recipe: Recipe | None, ngc: str | None) -> dict[str, str]:
    """Return the variables that make the TensorFlow of a recipe, or that of a release of NVIDIA's
    image, deterministic.
    """
    if ngc is not None:
        return dict(find_nvidia_switch(ngc) or {})
    if recipe is None:
        return {}
    return dict(recipe.from_outside)


def find_missing_patch(
    recipe: Recipe | None, ngc: str | None, packages: Collection[str]
) -> str | None:
    """Return the patch that the TensorFlow of a recipe needs and the image does not have, or None."""
    if recipe is None or ngc is not None:  # NVIDIA's releases have a switch instead
        return None
    patches = [patch["package"] for patch in recipe.patches]
    if not patches or set(patches) & set(packages):
        return None
    return patches[0]


def list_program_lines(
    recipe: Recipe | None, ngc: str | None, packages: Collection[str]
) -> list[str]:
    """Return the lines that the user's program must have."""
    if recipe is None:
        return []
    seeds = recipe.format_program(SEED)
    if ngc is not None or not recipe.patches:
        return list(seeds)
    for patch in recipe.patches:
        if patch["package"] in packages:
            return [patch["call"], *seeds]
    return [recipe.patches[0]["call"], *seeds]


# --- variables


class _Environ(NamedTuple):
    """The variables to set, and a note for each that is not set although a user may expect it."""

    variables: dict[str, str]
    notes: list[str]


def _choose_environ(
    lock: Lockfile, base: Base, recipe: Mapping[str, str], *, deterministic: bool
) -> _Environ:
    """Return the locked variables that the base does not set, and those of the recipe."""
    locked: Mapping[str, object] = lock.facts.environ or {}
    environ = _Environ({}, [])
    known = {row["name"]: row for row in table("environ")}
    for name, value in sorted(locked.items()):
        if value is None or name not in known:
            continue
        # The words of a lockfile for what it does not show, such as the identity of a GPU.
        is_hidden = isinstance(value, str) and ("sha256:" in value or value in ("uuid", "mig-uuid"))
        if not is_hidden and not _is_recorded(value, known[name]):
            raise LockfileError(
                f"`facts.environ.{name}` cannot go into an image: invalid value of {name}",
                hint="restore the lockfile from version control, "
                "or create it again with `envlock capture`",
            )
        of_base = dict(base.environ or ()).get(name)
        if of_base is not None and make_recordable(of_base, known[name]) == value:
            continue  # the base sets it already
        if not is_hidden:
            environ.variables[name] = safe(value, "value", f"facts.environ.{name}")
        elif base.environ is not None:
            environ.notes.append(
                f"{name} is locked without its value, so the image does not set it; "
                "set it when the container starts"
            )
        else:
            environ.notes.append(
                f"{name} is locked without its value, whether the base has that value is unknown, "
                "as a dry run does not read its config"
            )
    for name, value in sorted(recipe.items()):
        if name not in locked or (deterministic and locked[name] != value):
            environ.variables[name] = value
        elif locked[name] != value:
            state = "unset" if locked[name] is None else locked[name]
            environ.notes.append(
                f"{name}: locked {state}, but {value} would make this TensorFlow deterministic"
            )
    return environ


def _is_recorded(value: object, row: dict[str, Any]) -> bool:
    """Return whether a value is one that a capture records; any other was written by hand."""
    return isinstance(value, str) and make_recordable(value, row) == value


def _list_unset(
    lock: Lockfile, base: Base, environ: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return the variables that the base sets and that are locked as unset, with their values."""
    locked = lock.facts.environ or {}
    unset = {name for name, value in locked.items() if value is None and name not in environ}
    return tuple(sorted(pair for pair in base.environ or () if pair[0] in unset))


# --- wheels


class _Selection(NamedTuple):
    """The wheels to install, and why each other package is not installed; both sorted by name."""

    wheels: list[Wheel]
    skipped: list[tuple[str, str]]


def select_wheels(lock: Lockfile, route: Route, wheelhouse: Collection[str] | None) -> _Selection:
    """Return the wheels to install.

    Raises:
        LockfileError: a name, a version or a digest must not enter an image.
        UsageError: required wheels are not available.
    """
    if lock.identity is None:
        return _select_unnamed(lock.facts.packages or {}, route, wheelhouse)
    selection = _Selection([], [])
    missing: list[str] = []
    uncompared = _find_uncompared(lock)
    for name, entry in sorted(lock.identity.packages.items()):
        reason = _explain_base_package(name, route)
        if reason is None:
            wheel = entry.wheel
            if wheel is not None and (wheelhouse is None or wheel.name in wheelhouse):
                selection.wheels.append(_make_wheel(name, entry))
                continue
            reason = NOT_AT_HAND if wheel is not None else f"its wheel is unknown: {entry.reason}"
            if name in uncompared:
                reason = f"no policy compares it, and {reason}"
            elif route not in COMPLETE or _is_only_here(entry):
                missing.append(name)
        selection.skipped.append((name, reason))
    if missing:
        raise _make_missing_error(missing, dict(selection.skipped))
    return selection


def _select_unnamed(
    packages: Collection[str], route: Route, wheelhouse: Collection[str] | None
) -> _Selection:
    """Return why the packages of a lockfile that names no wheels are not installed.

    Raises:
        UsageError: the base has not all of them, and wheels are required.
    """
    selection = _Selection([], [])
    if route in COMPLETE:
        unnamed = "the lockfile does not name its wheel; the base must have it"
        selection.skipped.extend((name, unnamed) for name in sorted(packages))
    elif wheelhouse is not None and packages:
        raise UsageError(
            "the lockfile does not name the wheels of its packages",
            hint="run `envlock capture --hashes`, and then `envlock export --wheelhouse wheelhouse`",
        )
    return selection


def _find_uncompared(lock: Lockfile) -> set[str]:
    """Return the packages without a wheel that no policy compares and nothing needs at runtime,
    such as the distribution's own pip in a virtual environment.

    Raises:
        LockfileError: the lockfile has a rule that does not exist.
    """
    unknown = [
        LeftOut(name, entry.version, entry.reason or "")
        for name, entry in lock.identities.items()
        if entry.wheel is None and name != IMPORTED_TOOL and not _is_only_here(entry)
    ]
    _, others = split_by_policy(lock, unknown)
    return {package.name for package in others}


def _make_wheel(name: str, entry: PackageIdentity) -> Wheel:
    assert entry.wheel is not None  # noqa: S101 (for the type checker)
    path = f"identity.packages.{name}"
    return Wheel(
        name,
        safe(entry.version, "version", f"{path}.version"),
        safe(entry.wheel.name, "file", f"{path}.wheel.name"),
        safe(entry.wheel.sha256, "digest", f"{path}.wheel.sha256"),
        entry.wheel.size,
        entry.origin in OWN,
        tuple(sorted((entry.overwritten or {}).items())),
    )


def _explain_base_package(name: str, route: Route) -> str | None:
    """Return why a package is never installed over the base's; None if it is installed."""
    if name in DISTRIBUTIONS and route in COMPLETE:
        if route == "ngc":
            return "NVIDIA's own build in the base is never replaced"
        return "the base has it"
    if name.startswith("nvidia-") and name != BINDING and route != "wheels":
        return "the base has NVIDIA's libraries"
    return None


def _is_only_here(package: PackageIdentity) -> bool:
    """Return whether no base can have a package: it is a checkout, or its wheel was built here."""
    return package.origin == "editable" or (package.origin in OWN and package.wheel is not None)


def _make_missing_error(missing: list[str], reasons: Mapping[str, str]) -> UsageError:
    names = join_first(missing, 1)
    reason = reasons[missing[0]]
    hint = (
        "run `envlock export --wheelhouse wheelhouse`, or name another folder with `--wheelhouse`"
    )
    if "the installed files are not those of" in reason:
        hint = (
            "`envlock doctor` names packages that overwrite each other's files; else `envlock verify --deep` "
            "prints the command that installs it again"
        )
    elif reason != NOT_AT_HAND:
        hint = (
            "run `envlock capture --hashes --build` to build its wheel from its sources, "
            "or install it from an index's wheel"
        )
    return UsageError(f"{names} cannot be installed: {reason}", hint=hint)


# --- what identifies the image


def dump_shipped_lock(lock: Lockfile, amended: Mapping[str, str]) -> bytes:
    """Return the lockfile that goes into the image, with these variables changed."""
    document = lock.to_document()
    # It does not have what a build adds to a lockfile, or a rebuild would differ.
    document.pop("base_image", None)
    document.pop("image", None)
    if amended:
        document["facts"]["environ"] = {**(lock.facts.environ or {}), **amended}
    return dump(Lockfile.model_validate(document))


def _make_labels(
    base: Base, lock: Lockfile | None, document: bytes | None
) -> tuple[tuple[str, str], ...]:
    """Return the labels of an image, from the lockfile and from the document that goes into the
    image.
    """
    # No label has a time or a commit: with one, no rebuild would be the same image.
    name, _, digest = base.reference.partition("@")
    labels = {
        "org.opencontainers.image.base.name": name,
        f"{NAMESPACE}.route": base.route,
        f"{NAMESPACE}.version": __version__,
    }
    if digest:
        labels["org.opencontainers.image.base.digest"] = digest
    licenses = _get_defaults(base.route).licenses
    if licenses is not None:
        labels["org.opencontainers.image.licenses"] = licenses
    if lock is not None:
        labels[f"{NAMESPACE}.policy"] = lock.policy.name
        if lock.project is not None and lock.project.name is not None:
            labels["org.opencontainers.image.title"] = lock.project.name
    if document is not None:
        labels[f"{NAMESPACE}.lock"] = f"sha256:{hashlib.sha256(document).hexdigest()}"
    return tuple(sorted(labels.items()))
