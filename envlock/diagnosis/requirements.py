"""The requirements of the installed distributions on one another. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import Version

from envlock.data.specifiers import parse_version
from envlock.diagnosis.diagnosed_environment import Environment, Requirement
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS


def find_violated(environment: Environment) -> Iterator[Requirement]:
    """Yield the requirements that the installed distributions do not meet, as `pip check` finds
    them.

    There is one exception: a distribution of TensorFlow under another name (tensorflow-cpu for
    tensorflow) meets a requirement with its version, because the package `tensorflow` is what is
    imported.
    """
    for requirement in environment.requirements:
        if requirement.extra:
            continue
        is_absent = not environment.is_installed(requirement.name)
        is_any = is_absent and requirement.name in DISTRIBUTIONS
        names = DISTRIBUTIONS if is_any else (requirement.name,)
        if not any(_is_met(environment, requirement, name) for name in names):
            yield requirement


def _is_met(environment: Environment, requirement: Requirement, name: str) -> bool:
    """Return whether the distribution `name` meets a requirement; one of unknown version counts as
    meeting it.
    """
    if not environment.is_installed(name):
        return False
    version = environment.get_version(name)
    if version is None:
        return True
    return SpecifierSet(requirement.takes).contains(version, prereleases=True)


def list_requirers(
    environment: Environment, name: str, *, without: Iterable[str] = ()
) -> list[str]:
    """Return the distributions that require another by its name, except those in `without`."""
    owners = {requirement.by for requirement in _list_requirements_on(environment, name)}
    return sorted(owners - {name, *without})


def _list_requirements_on(environment: Environment, name: str) -> list[Requirement]:
    """Return the requirements on a distribution that apply without any extra."""
    return [each for each in environment.requirements if each.name == name and not each.extra]


def find_common_requirement(environment: Environment, name: str, wish: str = "") -> str | None:
    """Return the requirement on a distribution on which all requirers and a wish agree, or None.

    A specifier that another one implies is left out.
    """
    requirements = _list_requirements_on(environment, name)
    urls = {requirement.url for requirement in requirements if requirement.url}
    if len(urls) == 1:
        return f"{name} @ {urls.pop()}"
    if urls:
        return None
    specifiers = _join_specifiers(requirements, wish)
    if not is_satisfiable(specifiers):
        return None
    extras: set[str] = set()
    for requirement in requirements:
        extras.update(requirement.extras)
    if extras:
        name = f"{name}[{','.join(sorted(extras))}]"
    return f"{name}{','.join(_reduce_specifiers(specifiers))}"


def find_preferred_requirement(environment: Environment, name: str) -> str | None:
    """Return the common requirement, with TensorFlow's own version of the distribution if possible."""
    specifiers = list_tensorflow_specifiers(environment, name)
    if len(specifiers) == 1:
        requirement = find_common_requirement(environment, name, specifiers[0])
        if requirement is not None:
            return requirement
    return find_common_requirement(environment, name)


def list_tensorflow_specifiers(environment: Environment, name: str) -> list[str]:
    """Return the specifiers of a distribution in TensorFlow's own metadata, for any extra."""
    specifiers = set()
    for requirement in environment.requirements:
        if requirement.name == name and requirement.by in DISTRIBUTIONS:
            specifiers.add(requirement.takes)
    return sorted(specifiers)


def find_conflict(environment: Environment, name: str, wish: str = "") -> list[Requirement]:
    """Return the smallest set of requirements that no version meets together with a wish."""
    requirements = _list_requirements_on(environment, name)
    of_urls = [requirement for requirement in requirements if requirement.url]
    if of_urls:
        return of_urls
    # A requirement is not part of the conflict if the conflict remains without it.
    conflicting = requirements
    for requirement in requirements:
        others = [other for other in conflicting if other is not requirement]
        if not is_satisfiable(_join_specifiers(others, wish)):
            conflicting = others
    return conflicting


def _join_specifiers(requirements: Iterable[Requirement], wish: str) -> SpecifierSet:
    texts = [wish, *(requirement.takes for requirement in requirements)]
    return SpecifierSet(",".join(filter(None, texts)))


def is_satisfiable(specifiers: SpecifierSet) -> bool:
    """Return whether some version can meet all specifiers.

    If any version does, then one at a lower bound does, or one just above it or above a series that
    is excluded; without a lower bound, the lowest of all.
    """
    candidates = [Version("0")]
    for specifier in specifiers:
        version = parse_version(specifier.version.removesuffix(".*"))
        if version is not None:
            candidates.append(version)
            candidates += [Version(f"{version.base_version}{end}") for end in _ABOVE]
            *series, last = version.release
            candidates.append(Version(".".join(map(str, (*series, last + 1)))))
    return any(specifiers.contains(candidate, prereleases=True) for candidate in candidates)


_ABOVE = (".0.0.0.1", ".0.0.1", ".1")
"""Ends that make versions just above a bound: where one of them is excluded, another may not be."""


def _reduce_specifiers(specifiers: SpecifierSet) -> Sequence[str]:
    """Return the specifiers without the lower and upper bounds that another one implies.

    `<6.0.0dev` becomes `<6.0.0`: no pre-release fits that either (PEP 440), and naming one lets pip
    take others.
    """
    simplified = set()
    for specifier in specifiers:
        if specifier.operator == "<" and Version(specifier.version).is_devrelease:
            specifier = Specifier(f"<{Version(specifier.version).base_version}")
        simplified.add(specifier)
    lower = max(
        (specifier for specifier in simplified if specifier.operator == ">="),
        key=_get_bound,
        default=None,
    )
    upper = min(
        (specifier for specifier in simplified if specifier.operator == "<"),
        key=_get_bound,
        default=None,
    )
    return sorted(
        str(specifier)
        for specifier in simplified
        if specifier in (lower, upper) or not _is_implied(specifier, lower, upper)
    )


def _is_implied(specifier: Specifier, lower: Specifier | None, upper: Specifier | None) -> bool:
    """Return whether a bound or an exclusion is implied by a lower and an upper bound."""
    version = parse_version(specifier.version)
    is_below = version is not None and lower is not None and version < Version(lower.version)
    is_above = version is not None and upper is not None and version >= Version(upper.version)
    implied = {
        "<": upper is not None,
        ">=": lower is not None,
        ">": is_below,
        "<=": is_above,
        "!=": is_below or is_above,
    }
    return implied.get(specifier.operator, False)


def _get_bound(specifier: Specifier) -> tuple[Version, str]:
    return Version(specifier.version), specifier.version
