"""What a lock proves, in the formats that installers read. Pure: values in, text out.

Sources: https://packaging.python.org/en/latest/specifications/pylock-toml/ and
https://pip.pypa.io/en/stable/reference/requirements-file-format/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from envlock.packages.proven import Checkout, LeftOut, Proven, checkout, held, proven
from envlock.runtime.errors import LockfileError
from envlock.runtime.release import minor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.facts import Facts
    from envlock.lock.models import Lockfile

PYLOCK_NAME = re.compile(r"pylock\.([^.]+\.)?toml")
"""What such a file must be called."""

NOT_VENDORED = "its wheel is not in the wheelhouse (`envlock vendor` fetches it)"
ON_A_DISK = "its wheel is known from a disk, not from a URL (`envlock vendor` and `--wheelhouse` may have it)"
UNHASHED = "pip takes no checkout with --require-hashes (`--format pylock` has it)"


class Wheelhouse(NamedTuple):
    """A folder of wheels: its path as the file that is written will name it, and the size of each wheel in it."""

    path: str
    sizes: Mapping[str, int]


class Written(NamedTuple):
    """The text of a file, and what is not in it: `not_held` are packages that no policy compares, such as pip."""

    text: str
    left_out: list[LeftOut]
    not_held: list[LeftOut]


class Format(NamedTuple):
    """How one format is written; `missing` and `unhashed` say why it cannot hold a wheel or a checkout, or None."""

    missing: Callable[[Proven], str | None]
    unhashed: str | None
    render: Callable[[Sequence[Proven | Checkout], Facts, Wheelhouse | None], str]


def export(lock: Lockfile, shown: str, to: str, house: Wheelhouse | None = None) -> Written:
    """Return what the lock proves in the format `to` (a key of FORMATS), from the web or from a wheelhouse.

    Raises:
        UsageError: the lock has no identities, or those of other packages than it has now.
        LockfileError: what it holds cannot be written in this format.
    """
    known, unproven = proven(lock, shown)
    form = FORMATS[to]
    kept: list[Proven | Checkout] = []
    missing = []
    for package in known:
        reason = form.missing(package) if house is None else _not_in(house, package)
        if reason is None:
            kept.append(package)
        else:
            unproven.append(LeftOut(package.name, package.version, reason))
    for each in unproven:
        commit = checkout(lock, each.name) if house is None else None
        if commit is None:
            missing.append(each)
        elif form.unhashed is None:
            kept.append(commit)
        else:
            missing.append(each._replace(reason=f"{each.reason}; {form.unhashed}"))
    kept.sort(key=lambda package: package.name)
    left_out, not_held = held(lock, sorted(missing))
    try:
        body = form.render(kept, lock.facts, house)
    except ValueError as error:
        raise LockfileError(
            f"lockfile {shown} cannot be exported: {error}", hint="run `envlock hash` again"
        ) from None
    return Written(
        "\n".join([*_header(to, kept, left_out, not_held, house), body]), left_out, not_held
    )


def _not_in(house: Wheelhouse, package: Proven) -> str | None:
    return None if house.sizes.get(package.wheel.name) == package.wheel.size else NOT_VENDORED


def _header(
    to: str,
    kept: Sequence[Proven | Checkout],
    left_out: Sequence[LeftOut],
    not_held: Sequence[LeftOut],
    house: Wheelhouse | None,
) -> list[str]:
    lines = ["# Written by `envlock export`: the proven wheels of an environment."]
    if to == "pylock":
        lines.append("# Install them into an empty environment: uv pip install -r FILE")
    else:
        uv = " --index-strategy unsafe-best-match" if house is None and _more_indexes(kept) else ""
        lines.append(
            "# Install them into an empty environment: pip install --no-deps --require-hashes -r FILE"
        )
        lines.append(f"# or: uv pip install --no-deps --require-hashes{uv} -r FILE")
    number = len(kept) + len(left_out) + len(not_held)
    for title, packages in (
        ("Left out", left_out),
        ("Left out because no policy compares them", not_held),
    ):
        if packages:
            lines += [
                f"# {title}, {len(packages)} of {number}:",
                *(f"#   {each}" for each in packages),
            ]
    return lines


def _pylock(kept: Sequence[Proven | Checkout], facts: Facts, house: Wheelhouse | None) -> str:
    import tomli_w  # here: most commands need none of it

    document: dict[str, Any] = {"lock-version": "1.0"}
    if marker := _marker(facts):
        document["environments"] = [marker]
    if python := minor((facts.python and facts.python.version) or ""):
        document["requires-python"] = f"=={python}.*"
    document["created-by"] = "envlock"
    document["packages"] = [_package(each, house) for each in kept]
    _check(document)
    return tomli_w.dumps(document)


def _marker(facts: Facts) -> str:
    """Return the marker of the locked platform, from what is known of it."""
    python, system = facts.python, facts.system
    known = {
        "implementation_name": python and python.implementation,
        "platform_system": system and system.kernel,
        "platform_machine": system and system.machine,
    }
    return " and ".join(f"{name} == '{value}'" for name, value in known.items() if value)


def _package(package: Proven | Checkout, house: Wheelhouse | None) -> dict[str, Any]:
    """Return one entry of `packages`; what was installed by its URL is written so, that it is recorded so again.

    A checkout has no version here: the specification wants none where the build decides it.
    """
    if isinstance(package, Checkout):
        folder = {} if package.folder is None else {"subdirectory": package.folder}
        commit = {"type": "git", "url": package.url, "commit-id": package.commit}
        return {"name": package.name, "vcs": {**commit, **folder}}
    wheel = package.wheel
    place = {"url": wheel.url} if house is None else {"path": f"{house.path}/{wheel.name}"}
    file = {**place, "size": wheel.size, "hashes": {"sha256": wheel.sha256}}
    head = {"name": package.name, "version": package.version}
    if package.origin is not None and package.origin == (
        wheel.url if house is None else f"file:{wheel.name}"
    ):
        return {**head, "archive": file}
    index = {"index": wheel.index} if wheel.index is not None else {}
    return {**head, **index, "wheels": [{"name": wheel.name, **file}]}


def _check(document: Mapping[str, Any]) -> None:
    """Let `packaging` judge the document, where it is new enough to know the format (26.0).

    Raises:
        ValueError: it is not what the specification says.
    """
    try:
        from packaging.pylock import Pylock, PylockValidationError
    except ImportError:
        return
    try:
        Pylock.from_dict(document)
    except PylockValidationError as error:
        raise ValueError(str(error)) from None


def _requirements(kept: Sequence[Proven | Checkout], facts: Facts, house: Wheelhouse | None) -> str:
    if house is not None:
        options = ["--no-index", f"--find-links {house.path}"]
    else:
        options = [f"--extra-index-url {index}" for index in _more_indexes(kept)]
    return "\n".join([*options, *(_requirement(each, house) for each in _wheels(kept)), ""])


def _requirement(package: Proven, house: Wheelhouse | None) -> str:
    wheel = package.wheel
    direct = house is None and package.origin is not None and package.origin == wheel.url
    which = f"{package.name} @ {wheel.url}" if direct else f"{package.name}=={package.version}"
    return f"{which} --hash=sha256:{wheel.sha256}"


def _wheels(kept: Sequence[Proven | Checkout]) -> list[Proven]:
    return [each for each in kept if isinstance(each, Proven)]


def _more_indexes(kept: Sequence[Proven | Checkout]) -> list[str]:
    """Return the indexes that installers do not ask by themselves; a quote would end there what they read."""
    from pypi_simple import PYPI_SIMPLE_ENDPOINT  # here: it takes a quarter of a second

    found = {
        package.wheel.index.rstrip("/")
        for package in _wheels(kept)
        if package.wheel.index is not None
    }
    return sorted(
        f"{index}/".replace("'", "%27") for index in found - {PYPI_SIMPLE_ENDPOINT.rstrip("/")}
    )


def _anywhere(package: Proven) -> str | None:
    return None  # installers look for the hash in whatever index or folder they are given


def _on_the_web(package: Proven) -> str | None:
    return ON_A_DISK if package.wheel.url is None else None


FORMATS = {
    "pylock": Format(_on_the_web, None, _pylock),
    "requirements": Format(_anywhere, UNHASHED, _requirements),
}
"""What can be written, by the name on the command line."""
