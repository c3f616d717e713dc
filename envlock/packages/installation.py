"""The folders of an environment and the distributions in them: the one adapter to what is installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PathDistribution, distributions
from pathlib import Path
from typing import Any

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement

from envlock.guest.environment import markers
from envlock.lock.live import ask
from envlock.runtime.distributions import import_path, normalise
from envlock.runtime.errors import FactError
from envlock.runtime.host import Host


@dataclass(frozen=True)
class Installation:
    """Where an interpreter's packages lie: its prefix, and the folders on its import path, in order.

    `markers` are the values that it evaluates environment markers with.
    """

    prefix: Path
    folders: tuple[Path, ...]
    markers: Mapping[str, str] = field(default_factory=markers)


def installation(python: Path | None = None) -> Installation:
    """Return this environment, or that of the interpreter named.

    Raises:
        UsageError: that interpreter cannot be run.
        FactError: it did not answer.
    """
    here: dict[str, Any] = {
        "prefix": sys.prefix,
        "folders": import_path(Host()),
        "markers": markers(),
    }
    found = here if python is None else ask(python, "paths")
    unique = dict.fromkeys(Path(folder).resolve() for folder in found["folders"])
    return Installation(
        Path(found["prefix"]),
        tuple(folder for folder in unique if folder.is_dir()),
        found["markers"],
    )


def by_name(place: Installation) -> dict[str, Distribution]:
    """Return the distribution that `import` would take for each normalised name."""
    found: dict[str, Distribution] = {}
    for name, each in _named(place):
        found.setdefault(normalise(name), each)
    return found


def required(
    found: Distribution, values: Mapping[str, str], extras: Sequence[str] | None = None
) -> Iterator[tuple[Requirement, str]]:
    """Yield what a distribution requires where markers have these values, each with the extra that asks for it.

    The extra is empty for what is always needed; `extras` are those that count, all when not given. A line that no
    specification of requirements fits is left out.
    """
    metadata = found.metadata  # parsed anew whenever it is asked for, and again by `requires`
    if extras is None:
        extras = ("", *(metadata.get_all("Provides-Extra") or ()))
    for line in metadata.get_all("Requires-Dist") or found.requires or ():
        try:
            requirement = Requirement(line)
        except InvalidRequirement:  # metadata of before PEP 508
            continue
        extra = next(
            (extra for extra in extras if _applies(requirement, {**values, "extra": extra})), None
        )
        if extra is not None:
            yield requirement, extra


def _applies(requirement: Requirement, values: Mapping[str, str]) -> bool:
    try:
        return requirement.marker is None or requirement.marker.evaluate(values)
    except (UndefinedComparison, UndefinedEnvironmentName):  # `platform_release ~= "x"`, say
        return False


def header(found: Distribution, name: str) -> str | None:
    """Return a field of its METADATA, or None: `found.version` and `[]` warn of a field that is missing."""
    values: list[str] = found.metadata.get_all(name) or []
    return values[0] if values else None


def record_of(found: Distribution) -> str | None:
    """Return the text of its RECORD, or None when it has none.

    Raises:
        FactError: it cannot be read as text.
    """
    try:
        return found.read_text("RECORD")
    except (UnicodeDecodeError, OSError) as error:
        raise FactError(f"its RECORD cannot be read: {error}") from None


class _Installed(PathDistribution):
    """A distribution of whose METADATA bytes that are not UTF-8 are replaced, as others wrote it long ago."""

    def read_text(self, filename: str | os.PathLike[str]) -> str | None:
        path: Any = self._path.joinpath(filename)
        if not path.is_file():  # nor is a FIFO waited for, or a circle of links followed
            return None
        try:
            return super().read_text(filename)
        except UnicodeDecodeError:
            if filename not in ("METADATA", "PKG-INFO"):
                raise
            return str(path.read_text("utf-8", "replace"))


def _named(place: Installation) -> Iterator[tuple[str, Distribution]]:
    for each in distributions(path=[str(folder) for folder in place.folders]):
        found = _Installed(each._path) if isinstance(each, PathDistribution) else each
        name = header(found, "Name")
        if name:
            yield name, found
