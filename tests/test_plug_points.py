"""A contract for each table that others add to: what an entry has to do, and a wrong entry that is found.

Where the tables contradict each other or a module is not there, tests/test_ground.py says so first; that every rule
of the linter finds something, the examples of tests/linter.
"""

from __future__ import annotations

import inspect
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from envlock.diagnosis.checks import CHECKS, Check
from envlock.diagnosis.diagnosed_environment import Environment
from envlock.diagnosis.doctor_table import load_titles
from envlock.fleet.engines import ENGINES as LAUNCHERS
from envlock.fleet.engines import Launcher
from envlock.image.bases.candidate import Candidate
from envlock.image.bases.needs import collect_needs
from envlock.image.bases.sources import SOURCES, Source
from envlock.image.engines import ENGINES
from envlock.image.engines.engine import Order
from envlock.image.engines.engine_errors import Trail
from envlock.image.engines.find import list_commands
from envlock.reports import FORMATS, Render
from envlock.runtime.collectors import COLLECTORS
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.report import ERROR, Finding, Report
from tests.image.bases.asking import BUILDS, LABELLED, TABLES, cpu, gpu, nvidias
from tests.machines import complete

if TYPE_CHECKING:
    from envlock.runtime.collectors import Collector

PAGES = "docs/contributing"


def told(problems: Iterable[str]) -> None:
    """Fail with every problem of an entry."""
    found = list(problems)
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def cannot_be_called(name: str, function: object, parameters: int) -> Iterator[str]:
    """Yield that a function does not take this many arguments."""
    if not callable(function):
        yield f"{name} is no function"
        return
    try:
        inspect.signature(function).bind(*range(parameters))
    except TypeError:
        yield f"{name} has to take {parameters} arguments"


# --- collectors


ELSEWHERE = ("cuda_build", "frameworks", "gpu")
"""They need a driver, a CUDA build, JAX or PyTorch, which tests/collectors has."""


def wrong_collector(collect: Collector, full: Host, empty: Host) -> Iterator[str]:
    for host in (full, empty):
        found = collect(host)
        if not (found is None or isinstance(found, (dict, Unavailable))):
            yield f"{collect.__module__} returns {type(found).__name__}: see {PAGES}/fact.md"
        elif found != collect(host):
            yield f"{collect.__module__} finds something else the second time: see {PAGES}/fact.md"
    if not isinstance(collect(full), dict) and collect.__module__.rpartition(".")[2] not in ELSEWHERE:
        yield f"{collect.__module__} finds nothing on a machine that has everything: see {PAGES}/fact.md"


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Host, Host]:
    """Return a machine on which each collector finds something, and one without anything."""
    (tmp_path / "empty").mkdir()
    return complete(tmp_path / "full"), Host(root=str(tmp_path / "empty"), path=[], environ={})


@pytest.mark.parametrize("name", COLLECTORS)
def test_a_collector(name: str, machines: tuple[Host, Host]) -> None:
    told(wrong_collector(COLLECTORS[name], *machines))


def test_a_wrong_collector_is_found(machines: tuple[Host, Host]) -> None:
    numbers = iter(range(9))
    silent: Collector = lambda host: None  # noqa: E731
    moving: Collector = lambda host: {"x": next(numbers)}  # noqa: E731
    other: Any = lambda host: ["x"]  # noqa: E731
    assert [len(list(wrong_collector(each, *machines))) for each in (silent, moving, other)] == [1, 2, 3]


# --- image sources


def wrong_source(name: str, source: Source) -> Iterator[str]:
    builds = [build for build in BUILDS if not build.and_cuda][-1], BUILDS[-1]
    asked = [cpu("2.17.0", "3.11.13"), nvidias(LABELLED[-1].release, str(LABELLED[-1].tensorflow))]
    asked += [gpu(build, "3.11.13") for build in builds]
    offered: list[Candidate] = []
    for facts in asked:
        found = list(source(collect_needs(facts), TABLES))
        if found != list(source(collect_needs(facts), TABLES)):
            yield f"the source `{name}` offers something else the second time"
        offered += found
    if not offered:
        yield f"the source `{name}` offers nothing to anybody: see {PAGES}/image-release.md"
    if [each for each in offered if not each.lead]:
        yield f"the source `{name}` does not say what its images are"


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_of_images(name: str) -> None:
    told(wrong_source(name, SOURCES[name]))


def test_a_wrong_source_of_images_is_found() -> None:
    assert list(wrong_source("none", lambda needs, tables: [])) == [
        "the source `none` offers nothing to anybody: see docs/contributing/image-release.md"
    ]


# --- container engines


class Reached(BaseException):
    """The engine's own program, or its daemon, was asked to build."""


def wrong_engine(name: str, module: Any, patch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield what an engine does not do; its command or daemon is not there, and says what reaches it."""
    order = Order(Path("/context/of/the/order"), 1234567890)
    page = f"see {PAGES}/engine.md"

    def start(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        words = f"{command} {options}"
        if str(order.context) in words and str(order.epoch) in words:
            raise Reached
        return subprocess.CompletedProcess(command, 0, "", "")

    patch.setattr(subprocess, "Popen", start)
    patch.setattr(subprocess, "run", start)
    host = Mock()
    host.build.side_effect = lambda *words, **options: start([repr(words)], **options)
    yield from cannot_be_called(f"build() of the engine `{name}`", module.build, 4)
    yield from cannot_be_called(f"connect() of the engine `{name}`", module.connect, 0)
    try:
        module.build(host, order, Mock(), Trail())
    except Reached:
        return
    except Exception as error:
        yield f"build() of the engine `{name}` reaches no builder, but {type(error).__name__}: {page}"
    else:
        yield f"build() of the engine `{name}` reaches no builder: {page}"


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told(wrong_engine(name, import_module(ENGINES[name]), monkeypatch))


def test_auto_knows_the_engines_that_need_no_daemon() -> None:
    assert {name: name in list_commands() for name in ("docker", "buildx", "podman", "buildah")} == {
        "docker": False,
        "buildx": False,
        "podman": True,
        "buildah": True,
    }


def test_a_wrong_engine_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one was: offered as `--engine kaniko`, and without a red test."""

    def build(host: object, order: object, say: object, trail: object) -> str:
        raise NotImplementedError

    kaniko = SimpleNamespace(connect=lambda socket: None, build=build)
    assert [each.partition(":")[0] for each in wrong_engine("kaniko", kaniko, monkeypatch)] == [
        "connect() of the engine `kaniko` has to take 0 arguments",
        "build() of the engine `kaniko` reaches no builder, but NotImplementedError",
    ]


# --- report formats


def wrong_format(name: str, render: Render) -> Iterator[str]:
    found = Finding("exact", ERROR, "python.version", message="MESSAGE", why="WHY", fix="FIX", source="SOURCE")
    refused, matching = render(Report([found])), render(Report([]))
    if "MESSAGE" not in refused:
        yield f"the format `{name}` leaves out a finding: see {PAGES}/format.md"
    if refused == matching:
        yield f"the format `{name}` does not say whether the answer is yes: see {PAGES}/format.md"
    if "\x1b" in refused:
        yield f"the format `{name}` has colours without a terminal: see {PAGES}/format.md"


@pytest.mark.parametrize("name", FORMATS)
def test_a_format(name: str) -> None:
    told(wrong_format(name, import_module(f"envlock.reports.{name}").render))


def test_a_wrong_format_is_found() -> None:
    def render(report: Report, *, color: bool = False) -> str:
        return "\x1b[1m"

    assert len(list(wrong_format("csv", render))) == 3


# --- the doctor's functions


def wrong_check(name: str, check: Check) -> Iterator[str]:
    """Yield what a function does on an environment of which nothing is known."""
    try:
        found = list(check(Environment({}, {}, {})))
    except Exception as error:
        yield f"`{name}` raises {type(error).__name__} where nothing is known: see {PAGES}/rule.md"
        return
    for each in found:
        if each.rule not in load_titles():
            yield f"`{name}` finds `{each.rule}`, which has no row in doctor.toml: see {PAGES}/rule.md"


@pytest.mark.parametrize("check", CHECKS)
def test_a_function_of_the_doctor(check: Check) -> None:
    told(wrong_check(check.__name__, check))


def test_a_wrong_function_of_the_doctor_is_found() -> None:
    def check(environment: Environment) -> Iterator[Finding]:
        yield Finding("unlisted", ERROR, "x", message="", why="", fix="", source="")

    def fail(environment: Environment) -> Iterator[Finding]:
        yield Finding(str(environment.facts["gone"]), ERROR, "x", message="", why="", fix="", source="")

    assert [each.partition(":")[0] for rule in (check, fail) for each in wrong_check("new", rule)] == [
        "`new` finds `unlisted`, which has no row in doctor.toml",
        "`new` raises KeyError where nothing is known",
    ]


# --- launchers of jobs


def wrong_launcher(name: str, launcher: Launcher, environs: Sequence[Mapping[str, str]]) -> Iterator[str]:
    yield from cannot_be_called(f"start() of the launcher `{name}`", launcher.start, 4)
    yield from cannot_be_called(f"is_meant() of the launcher `{name}`", launcher.is_meant, 2)
    if launcher.DRIVER and find_spec(f"envlock.guest.{launcher.DRIVER}") is None:
        yield f"the launcher `{name}` names no module of envlock/guest: {launcher.DRIVER}"
    command = ["python", "train.py", "--epochs=3"]
    program = next(iter(launcher.PROGRAMS), "")
    line = launcher.start(program, command, 4, ["--option"])
    if line[-len(command) :] != command or (program and line[0] != program):
        yield f"the launcher `{name}` does not start the command: {line}"
    if launcher.is_meant({}, None):
        yield f"`auto` takes the launcher `{name}` where nothing speaks for it"
    if not any(launcher.is_meant(environ, ranks) for environ in environs for ranks in (None, 4)):
        yield f"`auto` never takes the launcher `{name}`: add what speaks for it to {__name__}"


JOBS: Sequence[Mapping[str, str]] = ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"}, {"RAY_ADDRESS": "10.0.0.1:6379"}, {})
"""Variables of a process in which a job of each launcher is started."""


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_launcher(name: str) -> None:
    told(wrong_launcher(name, LAUNCHERS[name], JOBS))


def test_a_wrong_launcher_is_found() -> None:
    flux: Any = SimpleNamespace(
        PROGRAMS=("flux",),
        DRIVER="flux_nodes",
        is_meant=lambda environ, ranks: not environ and ranks is None,
        start=lambda program, command, ranks, options: [program],
    )
    assert [each.partition("`")[0] for each in wrong_launcher("flux", flux, JOBS[:2])] == [
        "the launcher ",
        "the launcher ",
        "",
        "",
    ]
