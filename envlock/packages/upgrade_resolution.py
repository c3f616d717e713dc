"""Which versions an installer would change for an upgrade; it installs nothing."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envlock.guest import launch
from envlock.packages.installation import (
    Installation,
    collect_distributions,
    iter_requirements,
    read_field,
)
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS
from envlock.runtime.errors import OutsideError, UsageError

LIMIT = 1800.0  # seconds: pip downloads a wheel where the index does not show its metadata
_ADDED = re.compile(r"^ ?\+ ([A-Za-z0-9._-]+)==(\S+)$", re.MULTILINE)


def parse_wishes(texts: Sequence[str], installed: Collection[str]) -> list[Requirement]:
    """Return the wanted packages; a TensorFlow is the one that is installed, whatever its distribution is called.

    Raises:
        UsageError: a text is not a name with perhaps a version.
    """
    wishes = []
    for text in texts:
        refusal = UsageError(
            f"not a package with a version: {text}", hint="write `NAME`, `NAME==VERSION`, or `all`"
        )
        try:
            wish = Requirement(text)
        except InvalidRequirement:
            raise refusal from None
        if any((wish.url, wish.marker, wish.extras)):
            raise refusal
        wish.name = canonicalize_name(wish.name)
        if wish.name in DISTRIBUTIONS and wish.name not in installed:
            wish.name = next((name for name in DISTRIBUTIONS if name in installed), wish.name)
        wishes.append(wish)
    return wishes


def resolve_upgrade(wishes: Sequence[Requirement], python: Path | None) -> dict[str, str]:
    """Return the versions that the environment's pip, or uv without one, would install, by normalised name.

    Raises:
        OutsideError: there is no installer, or it finds no versions that fit together.
    """
    interpreter = python or Path(sys.executable)
    texts = list(map(str, wishes))
    # Wheels only: to learn what a source distribution requires, an installer runs its code.
    options = ("install", "--dry-run", "--only-binary", ":all:")
    # Without `--quiet`, pip's messages stand between the lines of the report.
    # https://pip.pypa.io/en/stable/cli/pip_install/#cmdoption-report
    words = ["-m", "pip", *options, "--upgrade", "--quiet", "--disable-pip-version-check"]
    # Words after `--` are no options, whatever a name begins with.
    done = launch.ask([*words, "--report", "-", "--", *texts], interpreter, timeout=LIMIT)
    if done.code == 0:
        return _read_report(done.output)
    uv = shutil.which("uv")
    if b"No module named pip" in done.errors and uv is not None:
        # uv's `--upgrade` would also upgrade what these packages need, whatever TensorFlow requires.
        named = [f"--upgrade-package={wish.name}" for wish in wishes]
        words = ["pip", *options, *named, "--python", str(interpreter), "--", *texts]
        done = launch.ask(words, Path(uv), timeout=LIMIT)
        if done.code == 0:
            found = _ADDED.findall(done.errors.decode("utf-8", "replace"))
            return {canonicalize_name(name): version for name, version in found}
    raise OutsideError(
        f"no versions fit {', '.join(texts)}: {done.last_words}",
        hint="check that the index has such wheels for this Python, and that pip 22.2 or uv is installed",
    )


def resolve_compatible(
    wishes: Sequence[Requirement], environment: Installation, python: Path | None
) -> dict[str, str]:
    """Return the versions that an installer would install, without taking a package along that breaks
    what another one in the environment requires, if there is such a choice.

    Raises:
        OutsideError: there is no installer, or it finds no versions that fit together.
    """
    versions = resolve_upgrade(wishes, python)
    wanted = {canonicalize_name(wish.name) for wish in wishes}
    limits = []
    for _, requirement in iter_unmet(environment, versions):
        if canonicalize_name(requirement.name) not in wanted:
            limits.append(Requirement(f"{requirement.name}{requirement.specifier}"))
    if not limits:
        return versions
    try:
        return resolve_upgrade([*wishes, *limits], python)
    except OutsideError:
        # No versions meet every requirement, and the report names those that are not met.
        return versions


def _read_report(output: bytes) -> dict[str, str]:
    """Return the versions in pip's report.

    Source of its form: https://pip.pypa.io/en/stable/reference/installation-report/

    Raises:
        OutsideError: it is not such a report.
    """
    try:
        metadata = [each["metadata"] for each in json.loads(output)["install"]]
        return {canonicalize_name(each["name"]): str(each["version"]) for each in metadata}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise OutsideError(
            "pip gave a report that cannot be read", hint="use pip 22.2 or newer"
        ) from None


def find_unmet(environment: Installation, versions: Mapping[str, str]) -> list[str]:
    """Return the requirements of installed packages that the new versions do not meet, a phrase each: pip installs
    them nevertheless.
    """
    return [
        f"{package} requires {requirement}"
        for package, requirement in iter_unmet(environment, versions)
    ]


def iter_unmet(
    environment: Installation, versions: Mapping[str, str]
) -> Iterator[tuple[str, Requirement]]:
    """Yield each installed package with a requirement that the new versions do not meet."""
    for name, distribution in sorted(collect_distributions(environment).items()):
        if name in versions:
            continue
        for requirement, extra in iter_requirements(distribution, environment.markers):
            version = versions.get(canonicalize_name(requirement.name))
            # Nothing records which extras were asked for.
            if extra or version is None:
                continue
            # A release candidate is judged by its number: before packaging 26, `>=` refused every one.
            if not requirement.specifier.contains(version, prereleases=True):
                yield f"{name} {read_field(distribution, 'Version')}", requirement
