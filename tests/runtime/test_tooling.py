"""What only envlock itself requires in an environment is recorded and not held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envlock.runtime.collectors import Snapshot, take_snapshot
from envlock.runtime.collectors.packages import collect
from envlock.runtime.host import Host
from envlock.runtime.judgement import judge, verify
from envlock.runtime.policies import TOOLING
from envlock.runtime.tooling import add_tooling, find_required, find_tooling
from tests.machines import write

OURS = """Provides-Extra: cli
Requires-Dist: typer>=0.19; extra == 'cli'
Requires-Dist: Pydantic>=2; extra == "cli"
Requires-Dist: rich; extra == 'cli'
Requires-Dist: docker; extra == 'cli'
Requires-Dist: tomli; python_version < '3.11' and extra == 'cli'
Requires-Dist: tensorflow>=2.12; extra == 'tensorflow'

Requires-Dist: numpy
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    required = {
        "tf_envlock": OURS,
        "typer": "Requires-Dist: shellingham>=1\nRequires-Dist: mock; extra == 'test'\n",
        "shellingham": "",
        "mock": "",
        "pydantic": "",
        "fastapi": "Requires-Dist: pydantic!=2.0; extra == 'all'\n",
        "rich": "Requires-Dist: markdown-it-py\n",
        "markdown_it_py": "",
        "tensorflow": "Requires-Dist: numpy<3,>=1\n",
        "numpy": "",
        "docker": "",
    }
    for name, lines in required.items():
        put(tmp_path, name, lines)
    write(
        tmp_path,
        {
            "docker-1.0.dist-info/REQUESTED": "",
            "docker-1.0.dist-info/METADATA": "Name: docker\n",
            "old-1.0.egg-info/requires.txt": "rich>=1\n\n[x]\nsix\n",
        },
    )
    return tmp_path


def put(site: Path, name: str, lines: str = "", version: str = "1.0") -> None:
    """Install a distribution of nothing but metadata."""
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}"
    write(site / f"{name}-{version}.dist-info", {"METADATA": text})


def found(site: Path) -> list[str]:
    """Return what is found there."""
    return find_tooling(Host(path=[str(site)]))


def test_others_keep_what_they_require(site: Path) -> None:
    assert found(site) == ["shellingham", "typer"]
    put(site, "mytool", "Requires-Dist: Typer[all] (>=0.1) ; python_version > '3'\n")
    assert found(site) == []


def test_what_an_egg_requires_is_kept(site: Path) -> None:
    put(site, "tf_envlock", f"Requires-Dist: s-tui; extra == 'gpu'\n{OURS}")
    put(site, "s_tui")
    assert found(site) == ["s-tui", "shellingham", "typer"]
    write(site, {"older-1.0.egg-info/requires.txt": "s-tui>=1\n"})
    assert found(site) == ["shellingham", "typer"]
    write(site, {"newer-1.0.egg-info/PKG-INFO": "Name: newer\nRequires-Dist: typer\n\nA description.\n"})
    assert found(site) == []


def test_what_a_description_says_is_no_requirement(site: Path) -> None:
    put(site, "mytool", "\nIn your metadata, write:\nRequires-Dist: typer\n")
    assert found(site) == ["shellingham", "typer"]


def test_without_envlock_there_is_none(site: Path) -> None:
    (site / "tf_envlock-1.0.dist-info").rename(site / "other_thing-1.0.dist-info")
    assert found(site) == []


def test_they_may_differ_and_the_report_says_why(site: Path) -> None:
    host = Host(path=[str(site)])
    facts: Any = {"packages": collect(host)}
    facts["packages"]["typer"] = {**facts["packages"]["typer"], "version": "0.9"}
    del facts["packages"]["shellingham"]
    lock = {
        "facts": {**take_snapshot(host).facts, **facts},
        "unavailable": {},
        "policy": {"name": "strict", "overrides": {}},
    }
    lock["unavailable"] = take_snapshot(host).unavailable
    for policy in ("strict", "bits", "same-arch"):
        findings = [each for each in verify(lock, policy, host=host).findings if "packages" in each.message]
        assert sorted((each.severity, each.where.fact, each.why) for each in findings) == [
            ("info", "packages.shellingham", TOOLING),
            ("info", "packages.typer.version", TOOLING),
        ]
    held = {**lock, "project": {"entry": ["train.py"], "held": {"typer": "imported by train.py"}}}
    assert [each.where.fact for each in verify(held, host=host).of("error")] == ["packages.typer.version"]


def test_where_all_packages_are_as_locked_nothing_is_read() -> None:
    live = Snapshot({"packages": {"numpy": {"version": "1"}}}, {})
    assert add_tooling({"facts": {"packages": live.facts["packages"]}}, live, pytest.fail) is live


def test_those_where_the_lock_was_captured_count_as_its_own_rule(site: Path) -> None:
    live = take_snapshot(Host(path=[str(site)]))
    packages = {**live.facts["packages"], "typing-inspection": {"version": "1"}}
    lock = {
        "facts": {**live.facts, "packages": packages},
        "unavailable": live.unavailable,
        "policy": {"name": "strict", "overrides": {}},
        "project": {"tooling": ["typing-inspection"]},
    }
    assert judge(lock, live).match
    assert not judge(lock, live, overrides=False).match


def test_an_envlock_without_extras_requires_nothing(tmp_path: Path) -> None:
    put(tmp_path, "tf_envlock")
    put(tmp_path, "numpy")
    assert found(tmp_path) == []


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        ("Requires-Dist: pygments<3,>=2\n", ["packages.pygments"]),
        ("Requires-Dist: Pygments\n", ["packages.pygments"]),
        ("Requires-Dist: pygments; python_version < '3.8'\n", []),
        ("Requires-Dist: pygments; extra == 'code'\n", []),
        ("", []),
    ],
)
def test_a_package_that_keras_requires_cannot_be_forgotten(lines: str, refused: list[str], tmp_path: Path) -> None:
    """Development tools require it, too, so a policy lets it be added: not where it must have been there before."""
    put(tmp_path, "keras", "Requires-Dist: rich\n")
    put(tmp_path, "rich", lines)
    put(tmp_path, "pygments")
    put(tmp_path, "click")
    host = Host(path=[str(tmp_path)])
    live = take_snapshot(host)
    packages = {name: fact for name, fact in live.facts["packages"].items() if name not in ("pygments", "click")}
    lock = {
        "facts": {**live.facts, "packages": packages},
        "unavailable": live.unavailable,
        "policy": {"name": "strict", "overrides": {}},
    }
    for policy in ("strict", "bits", "same-arch"):
        found = verify(lock, policy, host=host).of("error")
        assert [str(each.where.fact) for each in found if "packages" in each.message] == refused
    assert "pygments" in find_required(host) or not refused
