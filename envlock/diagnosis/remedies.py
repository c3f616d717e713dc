"""Fixes that change what is installed: commands of the environment's own installer, pinned. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from envlock.data.installers import installers
from envlock.diagnosis.environment import Environment
from envlock.runtime.distributions import normalise
from envlock.runtime.report import FILE_RULE, Finding

DAMAGED = FILE_RULE + "record"
REINSTALLED = (FILE_RULE + "modified", FILE_RULE + "missing", DAMAGED)
"""Rules on files whose faults are gone when the package of the file is installed anew."""

Action = Literal["install", "install-alone", "install-fresh", "uninstall"]


@dataclass(frozen=True)
class Remedy:
    """What to do: a sentence, or the commands that the text consists of."""

    text: str
    commands: Sequence[str] = ()


def command(installer: str, python: str, action: Action, requirements: Sequence[str]) -> str:
    """Return the line for a shell by which an installer changes an environment.

    Args:
        installer: a name of installers.toml.
        python: the interpreter of the environment.
        action: install with all that it needs, install alone, alone and from no cache, or uninstall.
        requirements: what is installed, as PEP 508 has it, or the names of what is removed.
    """
    row = installers()[installer]
    words = list(row.install)
    if action == "uninstall":
        words = list(row.uninstall)
    elif action == "install-alone":
        words.append(row.alone)
    elif action == "install-fresh":
        words += [row.alone, row.fresh]
    return shlex.join([*(word.replace("{python}", python) for word in words), *requirements])


def change(
    environment: Environment,
    *,
    remove: Sequence[str] = (),
    add: Mapping[str, str],
    alone: bool = False,
    fresh: bool = False,
) -> Remedy:
    """Return what removes some distributions and then installs others.

    Args:
        environment: where.
        remove: their names.
        add: name -> requirement.
        alone: install nothing that the added ones need.
        fresh: do that, and use no files of the installer's cache.
    """
    for name in (*remove, *add):
        other = _recorded(environment, name)
        if other not in (None, *(row.recorded for row in installers().values())):
            steps = []
            if remove:
                steps.append(f"remove {' and '.join(remove)}")
            if add:
                steps.append(f"install {' and '.join(add.values())}")
            return Remedy(f"{', then '.join(steps)}, with {other}, which installed {name}")
    lines = []
    if remove:
        lines.append(command(environment.installer, environment.python, "uninstall", remove))
    if add:
        action: Action = "install"
        if fresh:
            action = "install-fresh"
        elif alone:
            action = "install-alone"
        lines.append(command(environment.installer, environment.python, action, list(add.values())))
    text = " && ".join(lines)
    return Remedy(text, [text])


def reinstall(
    environment: Environment, name: str, *, without: Sequence[str] = (), fresh: bool = False
) -> Remedy:
    """Return what installs a distribution anew at the version that it has, and removes others.

    It is removed first: files that it shares with the others are gone with them.
    """
    remove = [name, *(each for each in without if each != name)]
    requirement = pinned(environment, name)
    if requirement is None:
        return Remedy(
            f"remove {' and '.join(remove)}, and install {name} again from where it came from"
        )
    return change(environment, remove=remove, add={name: requirement}, alone=True, fresh=fresh)


def with_commands(findings: Iterable[Finding], environment: Environment) -> Iterator[Finding]:
    """Yield findings on files; those that end when one package is reinstalled have the command that does it."""
    for finding in findings:
        owners = []
        if isinstance(finding.expected, Mapping):
            owners = finding.expected.get("packages", [])
        if finding.rule in REINSTALLED and len(owners) == 1:
            fix = reinstall(environment, normalise(owners[0].partition(" ")[0]), fresh=True)
            if (
                environment.installer == "uv" and finding.rule == DAMAGED
            ):  # uv removes nothing without a RECORD
                fix = change(environment, add={owners[0]: owners[0].replace(" ", "==")}, fresh=True)
                fix = Remedy(f"remove the folder of its metadata, and run {fix.text}")
            finding.fix, finding.commands = f"Reinstall the package: {fix.text}", list(fix.commands)
        yield finding


def pinned(environment: Environment, name: str) -> str | None:
    """Return the requirement that only the installed version of a distribution meets; None for a local one."""
    package = environment.get("packages").get(name) or {}
    origin: Any = package.get("origin")
    if not isinstance(origin, Mapping):
        version = environment.package(name)
        if version is None:
            return None
        return f"{name}=={version}"
    url = origin.get("url")
    if not isinstance(url, str) or url.startswith("file:"):
        return None
    vcs, commit, digest = (origin.get(key) for key in ("vcs", "commit", "sha256"))
    if vcs and not commit:
        return None
    if vcs:
        return f"{name} @ {vcs}+{url}@{commit}"
    if digest:
        return f"{name} @ {url}#sha256={digest}"
    return f"{name} @ {url}"


def installer_of(environment: Environment, *, has_uv: bool) -> str:
    """Return the installer that changes this environment: the one that made it, where it can be started.

    Args:
        environment: where; the installer of its TensorFlow counts most, then that of most distributions.
        has_uv: whether the program uv can be started.
    """
    packages = environment.get("packages") or {}
    made = _find_maker(environment)
    if made == "uv" and (has_uv or "pip" not in packages):
        return "uv"
    if "pip" in packages:
        return "pip"
    if has_uv:
        return "uv"
    return "pip-elsewhere"


def _find_maker(environment: Environment) -> str:
    """Return which of pip and uv has installed TensorFlow, else most distributions; pip where none is recorded."""
    counts: Counter[str] = Counter()
    for name in environment.get("packages") or {}:
        recorded = _recorded(environment, name)
        if recorded in ("pip", "uv"):
            counts[recorded] += 1
    for name in environment.get("tensorflow.distributions") or []:
        recorded = _recorded(environment, name)
        if recorded is not None and recorded in counts:
            return recorded
    # Of equal numbers pip's counts: each environment that has pip can use it.
    if counts["uv"] > counts["pip"]:
        return "uv"
    return "pip"


def _recorded(environment: Environment, name: str) -> str | None:
    package = (environment.get("packages") or {}).get(name)
    if not isinstance(package, Mapping):
        return None
    recorded = package.get("installer")
    if not isinstance(recorded, str):
        return None
    return recorded
