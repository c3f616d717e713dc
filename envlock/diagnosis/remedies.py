"""Fixes that change the installed packages: pinned commands of the environment's installer. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from envlock.data.installers import load_installers
from envlock.diagnosis.diagnosed_environment import Environment
from envlock.runtime.distributions import normalise
from envlock.runtime.report import FILE_RULE, Finding

DAMAGED = FILE_RULE + "damaged-record"
REINSTALLED = (FILE_RULE + "modified", FILE_RULE + "missing", DAMAGED)
"""Rules on files whose problems end when the package of the file is reinstalled."""

Action = Literal["install", "install-alone", "install-fresh", "uninstall"]


@dataclass(frozen=True)
class Remedy:
    """A fix: a sentence, or the commands in its text."""

    text: str
    commands: Sequence[str] = ()


def format_command(installer: str, python: str, action: Action, requirements: Sequence[str]) -> str:
    """Return the shell command with which an installer changes an environment.

    Args:
        installer: a name of installers.toml.
        python: the interpreter of the environment.
        action: install with requirements, install without them, without them and without the cache,
            or uninstall.
        requirements: PEP 508 requirements to install, or names to remove.
    """
    row = load_installers()[installer]
    words = list(row.install)
    if action == "uninstall":
        words = list(row.uninstall)
    elif action == "install-alone":
        words.append(row.alone)
    elif action == "install-fresh":
        words += [row.alone, row.fresh]
    words = [word.replace("{python}", python) for word in words]
    return shlex.join([*words, *requirements])


def change(
    environment: Environment,
    *,
    remove: Sequence[str] = (),
    add: Mapping[str, str],
    alone: bool = False,
    fresh: bool = False,
) -> Remedy:
    """Return a remedy that removes some distributions and then installs others.

    Args:
        environment: the environment to change.
        remove: names of the removed ones.
        add: name -> requirement.
        alone: do not install requirements of the added ones.
        fresh: neither install requirements nor use the installer's cache.
    """
    for name in (*remove, *add):
        other = _find_other_installer(environment, name)
        if other is not None:
            steps = []
            if remove:
                steps.append(f"remove {' and '.join(remove)}")
            if add:
                steps.append(f"install {' and '.join(add.values())}")
            return Remedy(f"{', then '.join(steps)}, with {other}, which installed {name}")
    lines = []
    if remove:
        lines.append(format_command(environment.installer, environment.python, "uninstall", remove))
    if add:
        action: Action = "install"
        if fresh:
            action = "install-fresh"
        elif alone:
            action = "install-alone"
        lines.append(
            format_command(environment.installer, environment.python, action, list(add.values()))
        )
    text = " && ".join(lines)
    return Remedy(text, [text])


def _find_other_installer(environment: Environment, name: str) -> str | None:
    """Return a distribution's installer if it is not in installers.toml, such as conda."""
    installer = _get_installer(environment, name)
    if installer in [row.recorded for row in load_installers().values()]:
        return None
    return installer


def install_again(
    environment: Environment, name: str, *, without: Sequence[str] = (), fresh: bool = False
) -> Remedy:
    """Return a remedy that reinstalls a distribution in its present version, and removes others.

    It is removed first: files that it shares with the others are removed with them.
    """
    remove = [name, *(other for other in without if other != name)]
    requirement = get_pinned_requirement(environment, name)
    if requirement is None:
        return Remedy(
            f"remove {' and '.join(remove)}, and install {name} again from where it came from"
        )
    return change(environment, remove=remove, add={name: requirement}, alone=True, fresh=fresh)


def add_commands(findings: Iterable[Finding], environment: Environment) -> Iterator[Finding]:
    """Yield findings on files, with the command if reinstalling one package is the fix."""
    for finding in findings:
        owners: Sequence[str] = (
            finding.expected.get("packages", []) if isinstance(finding.expected, Mapping) else ()
        )
        if finding.rule in REINSTALLED and len(owners) == 1:
            (owner,) = owners
            if environment.installer == "uv" and finding.rule == DAMAGED:
                # uv cannot remove a package without a RECORD.
                requirement = owner.replace(" ", "==")
                fix = change(environment, add={owner: requirement}, fresh=True)
                fix = Remedy(f"remove the folder of its metadata, and run {fix.text}")
            else:
                fix = install_again(environment, normalise(owner.partition(" ")[0]), fresh=True)
            finding.fix, finding.commands = f"Reinstall the package: {fix.text}", list(fix.commands)
        yield finding


def get_pinned_requirement(environment: Environment, name: str) -> str | None:
    """Return the requirement that only the installed version meets; None for a local version."""
    origin = (environment.packages.get(name) or {}).get("origin")
    if not isinstance(origin, Mapping):
        version = environment.get_version(name)
        if version is None:
            return None
        return f"{name}=={version}"
    url = origin.get("url")
    if not isinstance(url, str) or url.startswith("file:"):
        return None
    vcs, commit, digest = origin.get("vcs"), origin.get("commit"), origin.get("sha256")
    if vcs and not commit:
        return None
    if vcs:
        return f"{name} @ {vcs}+{url}@{commit}"
    if digest:
        return f"{name} @ {url}#sha256={digest}"
    return f"{name} @ {url}"


def choose_installer(environment: Environment, *, has_uv: bool, is_of_uv: bool = False) -> str:
    """Return the installer for this environment: the one that created it, if it can be started.

    Args:
        environment: the environment; the installer of its TensorFlow counts most, then that of
            most distributions.
        has_uv: whether the program uv can be started.
        is_of_uv: whether uv has made the environment. Another Python's pip is not for it.
    """
    has_pip = environment.is_installed("pip")
    if is_of_uv and not has_pip:
        return "uv"
    if _find_maker(environment) == "uv" and (has_uv or not has_pip):
        return "uv"
    if has_pip:
        return "pip"
    if has_uv:
        return "uv"
    return "pip-elsewhere"


def _find_maker(environment: Environment) -> str:
    """Return the installer, pip or uv, of TensorFlow, else of most distributions, else pip."""
    counts: Counter[str] = Counter()
    for name in environment.packages:
        installer = _get_installer(environment, name)
        if installer in ("pip", "uv"):
            counts[installer] += 1
    for name in environment.get("tensorflow.distributions") or []:
        installer = _get_installer(environment, name)
        if installer is not None and installer in counts:
            return installer
    # For equal numbers pip is used: every environment with pip can run it.
    if counts["uv"] > counts["pip"]:
        return "uv"
    return "pip"


def _get_installer(environment: Environment, name: str) -> str | None:
    """Return the installer that a distribution's metadata names."""
    package = environment.packages.get(name)
    if not isinstance(package, Mapping):
        return None
    installer = package.get("installer")
    if not isinstance(installer, str):
        return None
    return installer
