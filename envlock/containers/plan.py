"""What an image will consist of, decided before anything is written. Pure: lock, base and file names in, plan out."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from envlock.containers.additions import Additions
from envlock.containers.layers import BINDING, OWN, Layer, Wheel, cut
from envlock.containers.quoting import safe
from envlock.data.images import RouteDefaults, image_table
from envlock.images.candidate import PythonArchive
from envlock.lock.document import dump
from envlock.lock.models import DebianPackage, DebianPackages, Lockfile, PackageIdentity
from envlock.lock.route import COMPLETE, Route
from envlock.packages.proven import unasked
from envlock.runtime.collectors.environ import record
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS
from envlock.runtime.errors import LockfileError, UsageError
from envlock.runtime.recipe import Recipe, always, nvidia_switch, recipe_for
from envlock.runtime.rules import release
from envlock.runtime.tables import table
from envlock.runtime.version import __version__

EPOCH = 315532800
"""1980-01-01, the time of everything that a build writes: zip files know none before it, and no base has one."""

NAMESPACE = "io.github.tf-envlock"
SEED = 42
NOT_AT_HAND = "its wheel is not in the wheelhouse"

_OLDEST_PYTHON = (0, 3, 8)


@dataclass(frozen=True)
class Base:
    """An image to start from, pinned.

    `entrypoint`, `command` and `environ` are of its config; None where it was not read. A base without a Python gets
    it from the image `python_from`, or from the build of python-build-standalone `python_archive`. `apt` are Debian
    packages that are installed in it first. A dry run may have no digest: then nothing is built.
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
    """What a build has still to find: packages whose wheel, and Debian packages whose file is not known yet."""

    wheels: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuildPlan:
    """Everything that rendering and payload need; nothing else is looked at.

    `environ` is set in the image. `unset` are variables that the base sets and the locked environment does not have:
    the entrypoint takes them away where they still have the base's value. `lock` is the document that the image
    verifies itself by, None for a base without one. `skipped` says of each package why it is not installed. `unknown`
    is what a build has still to find: such a plan is shown, and never built. `python` is the interpreter that runs the
    user's program.
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
    def user(self) -> str:
        """Whom the program runs as, in numbers."""
        return self.added.user

    @property
    def verified(self) -> bool:
        """Whether the runtime half can run in it: on Python 3.8 or newer."""
        return (
            self.python_version is None
            or (release(self.python_version) or _OLDEST_PYTHON) >= _OLDEST_PYTHON
        )

    @property
    def venv(self) -> Literal["none", "isolated", "system"]:
        """Where the wheels go: over the base's own packages where they are NVIDIA's, else beside them.

        A virtual environment, since replacing a package of the base would leave a mark of deletion with the time of
        the build in the layer, which no rebuild could repeat.
        """
        if self.base.route in COMPLETE:
            return "system" if self.wheels else "none"
        return "isolated"

    @property
    def debian(self) -> tuple[DebianPackage, ...]:
        """What is installed by apt."""
        return () if self.base.apt is None else tuple(self.base.apt.packages)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The wheels by the layers that they make."""
        return cut(self.wheels)

    @property
    def python(self) -> str:
        """The interpreter of the locked environment inside."""
        return "python3" if self.venv == "none" else "/opt/venv/bin/python"

    @property
    def entrypoint(self) -> tuple[str, ...]:
        """The base's own, then the one that verifies."""
        own = (
            self.base.entrypoint
            if self.base.entrypoint is not None
            else tuple(_defaults(self.base.route).entrypoint)
        )
        return (*own, self.python, "-B", "/opt/envlock/entrypoint.py") if self.verified else own

    @property
    def command(self) -> tuple[str, ...]:
        """The project's, else the base's own: an ENTRYPOINT takes it away."""
        if self.added.command:
            return self.added.command
        return (
            tuple(_defaults(self.base.route).command)
            if self.base.command is None
            else self.base.command
        )


def _defaults(route: Route) -> RouteDefaults:
    known = image_table()
    defaults: RouteDefaults = getattr(known, route)
    return defaults


def base_plan(base: Base) -> BuildPlan:
    """Return the plan of an image for teams to build on: a base that verifies whatever lock is put into it."""
    found = {**always(), **variables(None, _ngc_release(base))}
    return BuildPlan(
        base, environ=tuple(sorted(found.items())), labels=_labels(base, None, None, None)
    )


def plan(
    lock: Lockfile,
    base: Base,
    wheelhouse: Collection[str] | None,
    *,
    deterministic: bool = False,
    added: Additions = Additions(),  # noqa: B008 (frozen)
    unknown: Unknown = Unknown(),
) -> BuildPlan:
    """Return what the image of a lock consists of.

    Args:
        lock: what the image is of.
        base: what to start from.
        wheelhouse: the names of the wheels that are at hand; None where that does not matter yet.
        deterministic: set what the recipe of this TensorFlow wants, also in the lock that the image is held to.
        added: what the project adds to its packages.
        unknown: what has still to be found.

    Raises:
        LockfileError: something in the lock must not enter an image; the message names its path.
        UsageError: wheels are needed that are not at hand.
    """
    facts, locked = lock.facts, lock.facts.environ or {}
    tensorflow = facts.tensorflow.version if facts.tensorflow is not None else None
    ngc = _ngc_release(base)
    wanted = variables(tensorflow, ngc)
    environ, notes = _environ(locked, wanted, base, deterministic=deterministic)
    wheels, skipped = _wheels(lock, base.route, None if wheelhouse is None else set(wheelhouse))
    installed = {wheel.name for wheel in wheels}
    notes += [] if added.files else _without_program(lock, installed)
    notes += _without_patch(tensorflow, ngc, installed)
    inside = shipped(lock, wanted if deterministic else {})
    return BuildPlan(
        base,
        tensorflow=tensorflow,
        python_version=facts.python.version if facts.python is not None else None,
        policy=lock.policy.name,
        environ=tuple(sorted({**always(), **environ}.items())),
        unset=_unset(base, locked, environ),
        wheels=wheels,
        skipped=skipped,
        unknown=unknown,
        notes=tuple(notes),
        code=tuple(program(tensorflow, ngc, installed)),
        lock=inside,
        deterministic=deterministic,
        added=added,
        labels=_labels(
            base, inside, lock.policy.name, lock.project.name if lock.project is not None else None
        ),
    )


def _without_program(lock: Lockfile, installed: Collection[str]) -> list[str]:
    own = lock.project.name if lock.project is not None else None
    if own is None or own in installed:
        return []
    return [
        f"the project's own package, {own}, is not in the image; if installed, envlock hash --build records its wheel"
    ]


def _without_patch(
    tensorflow: str | None, ngc: str | None, installed: Collection[str]
) -> list[str]:
    missing = missing_patch(tensorflow, ngc, installed)
    if missing is None:
        return []
    return [f"{missing} is not locked; without its patch this TensorFlow is not deterministic"]


def _ngc_release(base: Base) -> str | None:
    """Return the tag of one of NVIDIA's images, such as 25.02-tf2-py3, which begins with its release."""
    name, _, tag = base.reference.partition("@")[0].rpartition(":")
    return tag if base.route == "ngc" and name.endswith("nvidia/tensorflow") else None


def _recipe(tensorflow: str | None) -> Recipe | None:
    """Return the recipe of the numbers that a version begins with: a lock may hold a text that is not a version."""
    found = release(tensorflow)
    return None if found is None else recipe_for(".".join(map(str, found[1:])))


def variables(tensorflow: str | None, ngc: str | None) -> dict[str, str]:
    """Return what makes a TensorFlow, or one of a release of NVIDIA's images, deterministic from outside."""
    if ngc is not None:
        return dict(nvidia_switch(ngc) or {})
    found = _recipe(tensorflow)
    return dict(found.from_outside) if found else {}


def missing_patch(tensorflow: str | None, ngc: str | None, packages: Collection[str]) -> str | None:
    """Return the package that this TensorFlow needs and the image has not; None where nothing is missing."""
    found = _recipe(tensorflow)
    patches = (
        [patch["package"] for patch in found.patches] if found is not None and ngc is None else []
    )
    return patches[0] if patches and not set(patches) & set(packages) else None


def program(tensorflow: str | None, ngc: str | None, packages: Collection[str]) -> list[str]:
    """Return the lines that the program itself must hold."""
    found = _recipe(tensorflow)
    if found is None:
        return []
    patches = found.patches if ngc is None else []
    calls = [patch["call"] for patch in patches if patch["package"] in packages] or [
        each["call"] for each in patches
    ]
    return [*calls[:1], *found.program(SEED)]


def _environ(
    locked: Mapping[str, Any], wanted: Mapping[str, str], base: Base, *, deterministic: bool
) -> tuple[dict[str, str], list[str]]:
    """Return the variables to set, and a note for each that is not set although a user may expect it."""
    has = None if base.environ is None else dict(base.environ)
    found: dict[str, str] = {}
    notes: list[str] = []
    rows = {row["name"]: row for row in table("environ")}
    for name, value in sorted(locked.items()):
        if value is None or name not in rows:
            continue
        is_hidden = isinstance(value, str) and ("sha256:" in value or value in ("uuid", "mig-uuid"))
        if not isinstance(value, str) or (not is_hidden and record(value, rows[name]) != value):
            raise LockfileError(
                f"`facts.environ.{name}` cannot go into an image: invalid value of {name}",
                hint="restore the lockfile from version control, or create it again with `envlock capture`",
            )
        if has is not None and record(has.get(name), rows[name]) == value:
            continue  # the base has it so
        if is_hidden:
            unread = (
                "whether the base has that value is unknown, as a dry run does not read its config"
            )
            missing = "so the image does not set it; set it when the container starts"
            notes.append(
                f"{name} is locked without its value, {missing if has is not None else unread}"
            )
        else:
            found[name] = safe(value, "value", f"facts.environ.{name}")
    for name, value in sorted(wanted.items()):
        if name not in locked or (deterministic and locked[name] != value):
            found[name] = value
        elif locked[name] != value:
            state = "unset" if locked[name] is None else locked[name]
            notes.append(
                f"{name}: locked {state}, but {value} would make this TensorFlow deterministic"
            )
    return found, notes


def _unset(
    base: Base, locked: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    names = {name for name, value in locked.items() if value is None and name not in environ}
    return tuple(sorted((name, value) for name, value in base.environ or () if name in names))


def _wheels(
    lock: Lockfile, route: Route, wheelhouse: Collection[str] | None
) -> tuple[tuple[Wheel, ...], tuple[tuple[str, str], ...]]:
    """Return the wheels to install, and why the other packages are not; both sorted by name."""
    if lock.identity is None:
        if route not in COMPLETE and wheelhouse is not None and unasked(lock):
            raise UsageError(
                "the lockfile does not name the wheels of its packages",
                hint="run `envlock hash`, and then `envlock vendor`",
            )
        if route not in COMPLETE:
            return (), ()
        unknown = "the lockfile does not name its wheel; the base must have it"
        return (), tuple((name, unknown) for name in sorted(lock.facts.packages or {}))
    wheels: list[Wheel] = []
    skipped: list[tuple[str, str]] = []
    missing: list[str] = []
    for name, entry in sorted(lock.identity.packages.items()):
        reason, wheel = _left_to_the_base(name, route), entry.wheel
        if (
            reason is None
            and wheel is not None
            and (wheelhouse is None or wheel.name in wheelhouse)
        ):
            where = f"identity.packages.{name}"
            file = safe(wheel.name, "file", f"{where}.wheel.name")
            digest = safe(wheel.sha256, "digest", f"{where}.wheel.sha256")
            version = safe(entry.version, "version", f"{where}.version")
            wheels.append(Wheel(name, version, file, digest, wheel.size, entry.origin in OWN))
            continue
        if reason is None:
            missing.append(name)
            reason = f"its wheel is unknown: {entry.reason}" if wheel is None else NOT_AT_HAND
        skipped.append((name, reason))
    if route in COMPLETE:
        missing = [name for name in missing if _is_only_here(lock.identity.packages[name])]
    if missing:
        raise _no_wheels(missing, dict(skipped))
    return tuple(wheels), tuple(skipped)


def _left_to_the_base(name: str, route: Route) -> str | None:
    """Return why a package is never installed over a base, whatever is at hand."""
    if name in DISTRIBUTIONS and route in COMPLETE:
        return (
            "NVIDIA's own build in the base is never replaced"
            if route == "ngc"
            else "the base has it"
        )
    if name.startswith("nvidia-") and name != BINDING and route != "wheels":
        return "the base has NVIDIA's libraries"
    return None


def _is_only_here(package: PackageIdentity) -> bool:
    """Return whether no base can have a package: it is a project's checkout, or a wheel was built of it."""
    return package.origin == "editable" or (package.origin in OWN and package.wheel is not None)


def _no_wheels(missing: list[str], reasons: Mapping[str, str]) -> UsageError:
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    hint = "run `envlock vendor`, or name another folder with `--wheelhouse`"
    if reasons[missing[0]] != NOT_AT_HAND:
        hint = "run `envlock hash --build` to build its wheel from its sources, or install it from an index's wheel"
    return UsageError(f"{missing[0]}{more} cannot be installed: {reasons[missing[0]]}", hint=hint)


def shipped(lock: Lockfile, amended: Mapping[str, str]) -> bytes:
    """Return the lock that goes into the image: without what a build adds to it, or no rebuild could be the same."""
    kept = {
        key: value
        for key, value in lock.to_document().items()
        if key not in ("base_image", "image")
    }
    if amended:
        kept["facts"]["environ"] = {**(lock.facts.environ or {}), **amended}
    return dump(Lockfile.model_validate(kept))


def _labels(
    base: Base, lock: bytes | None, policy: str | None, project: str | None
) -> tuple[tuple[str, str], ...]:
    """Return the labels that follow from lock and base: with a time or a commit, no rebuild would be the same image."""
    name, _, digest = base.reference.partition("@")
    labels = {
        "org.opencontainers.image.base.name": name,
        **({"org.opencontainers.image.base.digest": digest} if digest else {}),
        f"{NAMESPACE}.route": base.route,
        f"{NAMESPACE}.version": __version__,
    }
    licenses = _defaults(base.route).licenses
    if licenses is not None:
        labels["org.opencontainers.image.licenses"] = licenses
    if project is not None:
        labels["org.opencontainers.image.title"] = project
    if lock is not None:
        labels[f"{NAMESPACE}.lock"] = f"sha256:{hashlib.sha256(lock).hexdigest()}"
    if policy is not None:
        labels[f"{NAMESPACE}.policy"] = policy
    return tuple(sorted(labels.items()))
