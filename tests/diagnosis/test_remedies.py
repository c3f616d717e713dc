"""Commands that change what is installed: quoted, pinned, by the installer that made the environment."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement as Parsed
from packaging.specifiers import SpecifierSet

from envlock.data.installers import load_installers
from envlock.diagnosis.diagnosed_environment import Environment, Requirement
from envlock.diagnosis.examine import describe_installation
from envlock.diagnosis.remedies import Action, choose_installer, format_command, get_pinned_requirement
from envlock.diagnosis.requirements import find_common_requirement, is_satisfiable
from envlock.runtime.collectors import Snapshot
from tests.diagnosis.environments import changed, clean

PYTHON = "/srv/an env/bin/python"


@pytest.mark.parametrize(
    ("installer", "action", "line"),
    [
        ("pip", "install", "'/srv/an env/bin/python' -m pip install 'numpy<2,>=1.26' six==1.17.0"),
        ("pip", "install-alone", "'/srv/an env/bin/python' -m pip install --no-deps 'numpy<2,>=1.26' six==1.17.0"),
        ("pip-elsewhere", "install", "pip --python '/srv/an env/bin/python' install 'numpy<2,>=1.26' six==1.17.0"),
        ("uv", "install", "uv pip install --python '/srv/an env/bin/python' 'numpy<2,>=1.26' six==1.17.0"),
        (
            "uv",
            "install-alone",
            "uv pip install --python '/srv/an env/bin/python' --no-deps 'numpy<2,>=1.26' six==1.17.0",
        ),
    ],
)
def test_a_command(installer: str, action: Action, line: str) -> None:
    assert format_command(installer, PYTHON, action, ["numpy<2,>=1.26", "six==1.17.0"]) == line


def test_an_uninstallation_asks_nothing() -> None:
    lines = {name: format_command(name, "python", "uninstall", ["pynvml"]) for name in load_installers()}
    assert lines == {
        "pip": "python -m pip uninstall --yes pynvml",
        "pip-elsewhere": "pip --python python uninstall --yes pynvml",
        "uv": "uv pip uninstall --python python pynvml",
    }


@given(
    python=st.text(min_size=1).filter(lambda text: "\0" not in text), words=st.lists(st.text(min_size=1), min_size=1)
)
def test_whatever_is_named_is_one_word_for_the_shell(python: str, words: list[str]) -> None:
    for name in load_installers():
        parts = shlex.split(format_command(name, python, "install", words))
        assert parts[-len(words) :] == words
        assert parts.count(python) >= 1


COMMIT = "0a" * 20
ORIGINS: dict[str, tuple[dict[str, Any] | None, str | None]] = {
    "an index": (None, "thing==1.2+local"),
    "a repository": (
        {"url": "https://example.org/thing.git", "vcs": "git", "commit": COMMIT},
        f"thing @ git+https://example.org/thing.git@{COMMIT}",
    ),
    "an archive": (
        {"url": "https://example.org/thing.whl", "vcs": None, "sha256": "ab" * 32},
        f"thing @ https://example.org/thing.whl#sha256={'ab' * 32}",
    ),
    "this machine": ({"url": "file:thing.whl", "vcs": None}, None),
    "somewhere secret": ({"url": None, "vcs": "git", "commit": COMMIT}, None),
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_what_is_here_is_pinned_to_where_it_came_from(origin: str) -> None:
    facts, wanted = ORIGINS[origin]
    found = get_pinned_requirement(
        changed(clean(), ("packages.thing", {"version": "1.2+local", "origin": facts})), "thing"
    )
    assert found == wanted
    assert found is None or Parsed(found).name == "thing"


def made_by(**installed: str | None) -> Environment:
    """Return an environment with distributions and what installed each."""
    packages = {name: {"version": "1.0", "installer": by} for name, by in installed.items()}
    return changed(clean(), ("packages", packages))


@pytest.mark.parametrize(
    ("installed", "has_uv", "installer"),
    [
        ({"tensorflow": "uv", "six": "uv"}, True, "uv"),
        ({"tensorflow": "uv", "six": "uv"}, False, "uv"),
        ({"tensorflow": "uv", "pip": "uv"}, False, "pip"),
        ({"tensorflow": "pip", "pip": "pip", "six": "uv", "gast": "uv"}, True, "pip"),
        ({"tensorflow": "pip", "six": "pip"}, True, "uv"),
        ({"tensorflow": "pip", "six": "pip"}, False, "pip-elsewhere"),
        ({"tensorflow": None, "pip": "pip", "six": "uv", "gast": "uv"}, True, "uv"),
        ({}, True, "uv"),
        ({}, False, "pip-elsewhere"),
    ],
)
def test_the_installer_that_made_the_environment(installed: dict[str, Any], has_uv: bool, installer: str) -> None:
    assert choose_installer(made_by(**installed), has_uv=has_uv) == installer


def test_another_pythons_pip_is_not_for_what_uv_has_made(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    names = []
    for text in ("home = /usr/bin\nuv = 0.13.9\n", "home = /usr/bin\n"):
        (tmp_path / "pyvenv.cfg").write_text(text, encoding="utf-8")
        names.append(describe_installation(Snapshot({}, {}), python).installer)
    assert names[0] == "uv"
    assert names[1] in ("pip-elsewhere", "uv")  # uv where it can be started
    (tmp_path / "pyvenv.cfg").write_text("uv = 0.13.9\n", encoding="utf-8")
    found = Snapshot({"packages": {"pip": {"version": "25", "installer": "pip"}}}, {})
    assert describe_installation(found, python).installer == "pip"


@pytest.mark.parametrize(
    ("specifiers", "can"),
    [
        ("", True),
        ("<4.6,>=3.6.6", True),
        ("<4.6,>=4.6.1", False),
        ("==9.1.0.70,==9.3.0.75", False),
        ("==9.3.*,>=9.3.0.75,<10", True),
        ("==9.3.*,>=9.4", False),
        (">1.0,<1.1", True),
        (">1.0,<=1.0", False),
        ("~=1.19.2,<1.20", True),
        ("~=1.19.2,>=1.20", False),
        (">=1.0,!=1.0", True),
        ("==1.0,!=1.0", False),
        ("!=0", True),
        ("<0.5", True),
        (">=1.2,!=1.2.*,<2", True),
        (">1.2,!=1.2.*", True),
        (">=4.21.0,!=4.21.*,<6", True),
        (">=1.2,!=1.2.*,<1.3", False),
    ],
)
def test_whether_requirements_can_be_met_together(specifiers: str, can: bool) -> None:
    assert is_satisfiable(SpecifierSet(specifiers)) is can


def test_requirements_are_joined_without_what_another_implies() -> None:
    rows = [
        Requirement("a", "1", "numpy", "<3,>=1.21,!=1.25,!=1.27"),
        Requirement("b", "1", "numpy", "<2.2.0,>=1.26.0"),
        Requirement("c", "1", "numpy", "<2.2.0dev,>1.20,<=4,!=1.24,!=2.1.*"),
        Requirement("d", "1", "numpy", "==9", extra="never"),
        Requirement("e", "1", "coverage", ">=7", extras=("toml",)),
        Requirement("f", "1", "coverage", extras=("other",)),
    ]
    environment = changed(clean(), requirements=rows)
    assert find_common_requirement(environment, "numpy") == "numpy!=1.27,!=2.1.*,<2.2.0,>=1.26.0"
    assert find_common_requirement(environment, "numpy", ">=2.2") is None
    assert find_common_requirement(environment, "coverage") == "coverage[other,toml]>=7"
    assert find_common_requirement(environment, "unknown") == "unknown"
