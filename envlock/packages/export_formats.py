"""The proven wheels of a lockfile in the formats that installers read. Pure: values in, text out.

Sources: https://packaging.python.org/en/latest/specifications/pylock-toml/ and
https://pip.pypa.io/en/stable/reference/requirements-file-format/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import tomli_w

from envlock.packages.identity import (
    Checkout,
    Proven,
    find_checkout,
    list_proven,
    split_left_out,
)
from envlock.packages.pins import list_pins, render_pins
from envlock.packages.proofs import LeftOut
from envlock.packages.public_index import PUBLIC_INDEX
from envlock.runtime.release import minor

try:
    from packaging.pylock import Pylock
except ImportError:  # a `packaging` before 26.0
    Pylock = None  # type: ignore[assignment, misc]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.fact_models import Facts
    from envlock.lock.models import Lockfile

PYLOCK_NAME = re.compile(r"pylock\.([^.]+\.)?toml")
"""The name that such a file must have."""

NOT_VENDORED = "its wheel is not in the wheelhouse (`envlock export --wheelhouse` fetches it)"
ON_A_DISK = (
    "its wheel is known from a disk, not from a URL (`envlock export --wheelhouse` may have it)"
)
ON_ONE_MACHINE = "it was installed from a folder or a file (`envlock sync` looks for it)"
UNHASHED = "pip takes no checkout with --require-hashes (`--format pylock` has it)"


class Wheelhouse(NamedTuple):
    """A folder of wheels.

    Attributes:
        path: the path that the written file has for it.
        sizes: the size of each wheel in it, in bytes, by name.
    """

    path: str
    sizes: Mapping[str, int]


class Written(NamedTuple):
    """An exported file, and the packages that it leaves out.

    Attributes:
        text: the content of the file.
        left_out: packages that are not in the file.
        not_held: packages that are not in the file and that no policy compares, such as pip.
    """

    text: str
    left_out: list[LeftOut]
    not_held: list[LeftOut]


class Format(NamedTuple):
    """A format to export to.

    Attributes:
        explain_missing: returns why the format cannot contain a wheel, or None.
        unhashed: why it cannot contain a checkout, or None.
        render: returns the packages as text.
    """

    explain_missing: Callable[[Proven], str | None]
    unhashed: str | None
    render: Callable[[Sequence[Proven | Checkout], Facts, Wheelhouse | None], str]


def export(lock: Lockfile, shown: str, to: str, house: Wheelhouse | None = None) -> Written:
    """Return the proven wheels of a lockfile in the format `to` (a key of FORMATS).

    The wheels are those of a wheelhouse, or else those on the web. `shown` is the lockfile's name
    in messages.

    Raises:
        UsageError: the lockfile has no identities, or those of packages that it no longer has.
    """
    proven_packages, unproven = list_proven(lock, shown)
    form = FORMATS[to]
    entries: list[Proven | Checkout] = []
    missing = []
    for package in proven_packages:
        if house is None:
            reason = form.explain_missing(package)
        else:
            reason = _explain_not_vendored(house, package)
        if reason is None:
            entries.append(package)
        else:
            unproven.append(LeftOut(package.name, package.version, reason))
    for other in unproven:
        commit = find_checkout(lock, other.name) if house is None else None
        if commit is None:
            missing.append(other)
        elif form.unhashed is None:
            entries.append(commit)
        else:
            missing.append(other._replace(reason=f"{other.reason}; {form.unhashed}"))
    entries.sort(key=lambda entry: entry.name)
    left_out, not_held = split_left_out(lock, sorted(missing))
    body = form.render(entries, lock.facts, house)
    head = _render_install_command(to, entries, house)
    number = len(entries) + len(left_out) + len(not_held)
    head += _render_left_out("Left out", left_out, number)
    head += _render_left_out("Left out because no policy compares them", not_held, number)
    return Written("\n".join([*head, body]), left_out, not_held)


def export_versions(lock: Lockfile) -> Written:
    """Return a requirements file of all packages by version, URL or commit, without any hash."""
    pins, missing = list_pins(lock)
    written = [pin for pin in pins if pin.line]
    placeless = [LeftOut(pin.name, pin.version, ON_ONE_MACHINE) for pin in pins if not pin.line]
    left_out = sorted([*missing, *placeless])
    lines = [
        "# Written by `envlock export --no-hashes`: the packages of an environment without proofs.",
        "# An index can have other files of the same versions; `envlock verify` compares what it can.",
        "# Install them into an empty environment: pip install --no-deps -r FILE",
        "# or: uv pip install --no-deps -r FILE",
        *_render_left_out("Left out", left_out, len(written) + len(left_out)),
        render_pins(written, hashes=False),
    ]
    return Written("\n".join(lines), left_out, [])


def _explain_not_vendored(house: Wheelhouse, package: Proven) -> str | None:
    if house.sizes.get(package.wheel.name) == package.wheel.size:
        return None
    return NOT_VENDORED


def _render_install_command(
    to: str, entries: Sequence[Proven | Checkout], house: Wheelhouse | None
) -> list[str]:
    """Return comment lines with the command that installs from the file."""
    start = "# Install them into an empty environment:"
    lines = ["# Written by `envlock export`: the proven wheels of an environment."]
    if to == "pylock":
        return [*lines, f"{start} uv pip install -r FILE"]
    options = "--no-deps --require-hashes"
    lines.append(f"{start} pip install {options} -r FILE")
    # By default, uv takes a package from the first index that has any version.
    if house is None and _list_extra_indexes(entries):
        options += " --index-strategy unsafe-best-match"
    return [*lines, f"# or: uv pip install {options} -r FILE"]


def _render_left_out(title: str, packages: Sequence[LeftOut], number: int) -> list[str]:
    if not packages:
        return []
    lines = [f"# {title}, {len(packages)} of {number}:"]
    return lines + [f"#   {package}" for package in packages]


def _render_pylock(
    entries: Sequence[Proven | Checkout], facts: Facts, house: Wheelhouse | None
) -> str:
    document: dict[str, object] = {"lock-version": "1.0"}
    marker = _make_marker(facts)
    if marker:
        document["environments"] = [marker]
    if facts.python is not None:
        python = minor(facts.python.version or "")
        if python:
            document["requires-python"] = f"=={python}.*"
    document["created-by"] = "envlock"
    document["packages"] = [_make_entry(entry, house) for entry in entries]
    _check(document)
    return tomli_w.dumps(document)


def _make_marker(facts: Facts) -> str:
    """Return the marker of the locked platform, as far as it is known."""
    terms = []
    if facts.python is not None and facts.python.implementation:
        terms.append(f"implementation_name == '{facts.python.implementation}'")
    if facts.system is not None and facts.system.kernel:
        terms.append(f"platform_system == '{facts.system.kernel}'")
    if facts.system is not None and facts.system.machine:
        terms.append(f"platform_machine == '{facts.system.machine}'")
    return " and ".join(terms)


def _make_entry(entry: Proven | Checkout, house: Wheelhouse | None) -> dict[str, object]:
    """Return an item of `packages`."""
    if isinstance(entry, Checkout):
        # Without a version: the specification requires that if the build determines it.
        vcs: dict[str, object] = {"type": "git", "url": entry.url, "commit-id": entry.commit}
        if entry.folder is not None:
            vcs["subdirectory"] = entry.folder
        return {"name": entry.name, "vcs": vcs}
    wheel = entry.wheel
    if house is None:
        file: dict[str, object] = {"url": wheel.url}
        direct = wheel.url
    else:
        file = {"path": f"{house.path}/{wheel.name}"}
        direct = f"file:{wheel.name}"
    file["size"] = wheel.size
    file["hashes"] = {"sha256": wheel.sha256}
    item: dict[str, object] = {"name": entry.name, "version": entry.version}
    # A package that was installed by URL is written with its URL, so that installers record that
    # again.
    if entry.origin is not None and entry.origin == direct:
        item["archive"] = file
        return item
    if wheel.index is not None:
        item["index"] = wheel.index
    item["wheels"] = [{"name": wheel.name, **file}]
    return item


def _check(document: Mapping[str, object]) -> None:
    """Validate the document with `packaging`, if it is new enough for the format (26.0).

    No valid lockfile gives one that it refuses: that is a defect of envlock.
    """
    if Pylock is not None:
        Pylock.from_dict(document)


def _render_requirements(
    entries: Sequence[Proven | Checkout], facts: Facts, house: Wheelhouse | None
) -> str:
    if house is not None:
        lines = ["--no-index", f"--find-links {house.path}"]
    else:
        lines = [f"--extra-index-url {index}" for index in _list_extra_indexes(entries)]
    lines += [_render_requirement(package, house) for package in _select_wheels(entries)]
    return "\n".join([*lines, ""])


def _render_requirement(package: Proven, house: Wheelhouse | None) -> str:
    wheel = package.wheel
    if house is None and package.origin is not None and package.origin == wheel.url:
        requirement = f"{package.name} @ {wheel.url}"
    else:
        requirement = f"{package.name}=={package.version}"
    return f"{requirement} --hash=sha256:{wheel.sha256}"


def _select_wheels(entries: Sequence[Proven | Checkout]) -> list[Proven]:
    return [entry for entry in entries if isinstance(entry, Proven)]


def _list_extra_indexes(entries: Sequence[Proven | Checkout]) -> list[str]:
    """Return the indexes that installers do not ask by default."""
    found = set()
    for package in _select_wheels(entries):
        if package.wheel.index is not None:
            found.add(package.wheel.index.rstrip("/"))
    found.discard(PUBLIC_INDEX.rstrip("/"))
    # A quote would end the option for the installers.
    return sorted(f"{index}/".replace("'", "%27") for index in found)


def _accept_any(package: Proven) -> str | None:
    # Installers search for the hash in every index and folder that they are given.
    return None


def _explain_not_on_web(package: Proven) -> str | None:
    if package.wheel.url is None:
        return ON_A_DISK
    return None


FORMATS = {
    "pylock": Format(_explain_not_on_web, None, _render_pylock),
    "requirements": Format(_accept_any, UNHASHED, _render_requirements),
}
"""The formats, by their names on the command line."""
