"""What the installed distributions require of one another. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from envlock.diagnosis.environment import Environment, Requirement
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS


def violated(environment: Environment) -> Iterator[Requirement]:
    """Yield the requirements that what is installed does not meet, as `pip check` finds them.

    One kind less: a distribution of TensorFlow under another name (tensorflow-cpu for tensorflow) meets a requirement
    by its version, as the package `tensorflow` is what is imported.
    """
    for each in environment.requirements:
        if each.extra:
            continue
        versions = [environment.package(each.name)] if environment.installed(each.name) else []
        if each.name in DISTRIBUTIONS and not versions:
            versions = [
                environment.package(name) for name in DISTRIBUTIONS if environment.installed(name)
            ]
        if not any(version is None or _takes(each.takes, version) for version in versions):
            yield each


def requirers(environment: Environment, name: str, *, without: Iterable[str] = ()) -> list[str]:
    """Return the distributions that require another by its name, those in `without` left out."""
    gone = {name, *without}
    asking = (each.by for each in environment.requirements if each.name == name and not each.extra)
    return sorted({by for by in asking if by not in gone})


def joint(environment: Environment, name: str, wish: str = "") -> str | None:
    """Return the requirement on a distribution that all that is installed, and a wish, agree on; None without one.

    Each specifier that another implies is left out.
    """
    asking = [each for each in environment.requirements if each.name == name and not each.extra]
    urls = {each.url for each in asking if each.url}
    if urls:
        return f"{name} @ {urls.pop()}" if len(urls) == 1 else None
    specifiers = _together(asking, wish)
    extras = sorted({extra for each in asking for extra in each.extras})
    named = f"{name}[{','.join(extras)}]" if extras else name
    return f"{named}{','.join(_tightest(specifiers))}" if is_satisfiable(specifiers) else None


def joint_with_tensorflow(environment: Environment, name: str) -> str | None:
    """Return what `joint` does; where it can be, in the version that TensorFlow names, for whatever extra."""
    own = {
        each.takes
        for each in environment.requirements
        if each.name == name and each.by in DISTRIBUTIONS
    }
    best = joint(environment, name, own.pop()) if len(own) == 1 else None
    return best or joint(environment, name)


def conflict(environment: Environment, name: str, wish: str = "") -> list[Requirement]:
    """Return requirements on a distribution that no version meets together with a wish, and fewer of them would."""
    found = [each for each in environment.requirements if each.name == name and not each.extra]
    if any(each.url for each in found):
        return [each for each in found if each.url]
    for each in list(found):
        others = [other for other in found if other is not each]
        if not is_satisfiable(_together(others, wish)):
            found = others
    return found


def _together(requirements: Iterable[Requirement], wish: str) -> SpecifierSet:
    return SpecifierSet(",".join(filter(None, [wish, *(each.takes for each in requirements)])))


def is_satisfiable(specifiers: SpecifierSet) -> bool:
    """Return whether some version can meet all specifiers.

    If any does, one at a lower bound does or one just above it; where there is no lower bound, the lowest of all.
    """
    named = [
        version
        for each in specifiers
        if (version := _version(each.version.removesuffix(".*"))) is not None
    ]
    above = [Version(f"{version.base_version}{end}") for version in named for end in _ABOVE]
    candidates = [Version("0"), *named, *above]
    return any(specifiers.contains(candidate, prereleases=True) for candidate in candidates)


_ABOVE = (".0.0.0.1", ".0.0.1", ".1")


def _tightest(specifiers: SpecifierSet) -> Sequence[str]:
    """Return the specifiers without the lower and upper bounds that another one implies.

    `<6.0.0dev` becomes `<6.0.0`: no pre-release fits that either (PEP 440), and naming one lets pip take others.
    """
    each_once = {
        Specifier(f"<{Version(each.version).base_version}") if _is_below(each) else each
        for each in specifiers
    }
    lower = max((each for each in each_once if each.operator == ">="), key=_bound, default=None)
    upper = min((each for each in each_once if each.operator == "<"), key=_bound, default=None)
    return sorted(
        str(each)
        for each in each_once
        if each in (lower, upper) or not _is_implied(each, lower, upper)
    )


def _is_implied(specifier: Specifier, lower: Specifier | None, upper: Specifier | None) -> bool:
    """Return whether a bound or an exclusion says nothing beside a lower and an upper bound."""
    version = _version(specifier.version)
    below = version is not None and lower is not None and version < Version(lower.version)
    above = version is not None and upper is not None and version >= Version(upper.version)
    sided = {
        "<": upper is not None,
        ">=": lower is not None,
        ">": below,
        "<=": above,
        "!=": below or above,
    }
    return sided.get(specifier.operator, False)


def _is_below(specifier: Specifier) -> bool:
    return specifier.operator == "<" and Version(specifier.version).is_devrelease


def _bound(specifier: Specifier) -> tuple[Version, str]:
    return Version(specifier.version), specifier.version


def _takes(specifiers: str, version: str) -> bool:
    return SpecifierSet(specifiers).contains(version, prereleases=True)


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:  # of `===`, which takes any text
        return None
