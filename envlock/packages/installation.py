"""The folders of an environment and the distributions in them; only this module reads what is
installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PathDistribution, distributions
from pathlib import Path
from typing import cast

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement

from envlock.guest.environment import collect_markers
from envlock.lock.live_facts import ask
from envlock.runtime.distributions import get_import_path, normalise
from envlock.runtime.errors import FactError
from envlock.runtime.host import Host


@dataclass(frozen=True)
class Installation:
    """Where an interpreter's packages are installed.

    Attributes:
        prefix: its `sys.prefix`.
        folders: those on its import path, in order.
        markers: the values with which it evaluates environment markers.
    """

    prefix: Path
    folders: tuple[Path, ...]
    markers: Mapping[str, str] = field(default_factory=collect_markers)


def find_installation(python: Path | None = None) -> Installation:
    """Return this environment, or that of another interpreter, which has to be started.

    Raises:
        UsageError: the interpreter cannot be run.
        FactError: it did not answer.
    """
    if python is None:
        return _collect_folders(sys.prefix, get_import_path(Host()), collect_markers())
    answer = ask(python, "paths")
    return _collect_folders(answer["prefix"], answer["folders"], answer["markers"])


def _collect_folders(
    prefix: str, import_folders: Sequence[str], values: Mapping[str, str]
) -> Installation:
    # Two entries of an import path can be the same folder because of a link.
    unique = dict.fromkeys(Path(folder).resolve() for folder in import_folders)
    folders = tuple(folder for folder in unique if folder.is_dir())
    return Installation(Path(prefix), folders, values)


def collect_distributions(environment: Installation) -> dict[str, Distribution]:
    """Return the distribution that `import` would use, by normalised name."""
    found: dict[str, Distribution] = {}
    for distribution in distributions(path=[str(folder) for folder in environment.folders]):
        if isinstance(distribution, PathDistribution):
            distribution = _ForgivingDistribution(distribution._path)
        name = read_field(distribution, "Name")
        if name:
            found.setdefault(normalise(name), distribution)
    return found


def iter_requirements(
    distribution: Distribution, values: Mapping[str, str], extras: Sequence[str] | None = None
) -> Iterator[tuple[Requirement, str]]:
    """Yield the requirements of a distribution, each with its extra; "" for no extra.

    A requirement that does not follow the specification is skipped.

    Args:
        distribution: the one whose metadata are read.
        values: those of the environment markers.
        extras: the extras to include; all when not given.
    """
    # Parsed once: `metadata` parses it on every access, and `requires` does it again.
    metadata = distribution.metadata
    if extras is None:
        extras = ("", *(metadata.get_all("Provides-Extra") or ()))
    # An egg has no such field, but a file that `requires` reads.
    for line in metadata.get_all("Requires-Dist") or distribution.requires or ():
        try:
            requirement = Requirement(line)
        except InvalidRequirement:  # metadata older than PEP 508
            continue
        for extra in extras:
            if _is_required(requirement, {**values, "extra": extra}):
                yield requirement, extra
                break


def _is_required(requirement: Requirement, values: Mapping[str, str]) -> bool:
    try:
        return requirement.marker is None or requirement.marker.evaluate(values)
    except (UndefinedComparison, UndefinedEnvironmentName):  # for example `platform_release ~= "x"`
        return False


def read_field(distribution: Distribution, name: str) -> str | None:
    """Return a field of a distribution's METADATA; None if it is missing.

    `distribution.version` and `metadata[name]` warn about a missing field.
    """
    values: list[str] = distribution.metadata.get_all(name) or []
    if not values:
        return None
    return values[0]


def read_record(distribution: Distribution) -> str | None:
    """Return the text of a distribution's RECORD, or None if it has none.

    Raises:
        FactError: it cannot be read as text.
    """
    try:
        return distribution.read_text("RECORD")
    except (UnicodeDecodeError, OSError) as error:
        raise FactError(f"its RECORD cannot be read: {error}") from None


class _ForgivingDistribution(PathDistribution):
    """A distribution whose METADATA may contain bytes that are not UTF-8, as old ones do."""

    def read_text(self, filename: str | os.PathLike[str]) -> str | None:
        path = cast("Path", self._path.joinpath(filename))
        # Only a regular file is opened: a FIFO would block, and links can form a cycle.
        if not path.is_file():
            return None
        try:
            return super().read_text(filename)
        except UnicodeDecodeError:
            if filename not in ("METADATA", "PKG-INFO"):
                raise
            return path.read_text("utf-8", "replace")
