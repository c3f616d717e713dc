"""What every test stands on: no test leaves a trace, and none reaches the world unless it says so."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from tests import forking, neutral

neutral.drop_pythonpath()

SLOW_IS_FINE = [HealthCheck.too_slow]  # a loaded machine fails no property
settings.register_profile("tests", max_examples=40, deadline=None, suppress_health_check=SLOW_IS_FINE)
settings.load_profile("tests")

pytest_plugins = ["tests.image.bed.fixtures"]

TENSORFLOW_PYTHON = "ENVLOCK_TEST_TENSORFLOW"
"""Names the interpreter of an environment with a real TensorFlow and envlock; `make test` makes and sets it."""

WITHOUT = ("ENVLOCK_WITHOUT_TENSORFLOW", "1")
"""The environment of the tests has no TensorFlow, and is captured all the same."""

BEGAN = time.monotonic()

OLDER_PYTHONS = "ENVLOCK_TEST_OLDER_PYTHONS"
"""Names the interpreters of environments with older TensorFlows, joined by colons; their folders end in the version."""


def pytest_configure() -> None:
    """Where a shell has started the tests in the background SIGINT is ignored, by every child process, too; so is
    SIGHUP under nohup.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """What is made when the tests are imported stands on the same ground as the tests; workers have started by now."""
    neutral.neutralise()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what uses the command line, and what Hypothesis draws examples for: `make fast` leaves both out."""
    if "envlock" in getattr(item, "fixturenames", ()):
        item.add_marker("processes")
    if getattr(getattr(item, "function", None), "is_hypothesis_test", False):
        item.add_marker("longer")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where tables, models and programs do not agree, only the test that says so is run."""
    from tests.ground import problems

    first = [item for item in items if item.path.name == "test_ground.py"]
    if first and problems():
        config.hook.pytest_deselected(items=[item for item in items if item not in first])
        items[:] = first


def pytest_collection_finish() -> None:
    """Nothing collected is garbage before the end: looking for it again and again takes a tenth of the time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Neutralise the machine before the first fixture, of whatever scope."""
    neutral.neutralise(item)
    skip_when_late(item)


def skip_when_late(item: pytest.Item) -> None:
    """Leave out what is exhaustive once the minutes are over that `.ci/run` gives: its machine may be half as fast."""
    minutes = os.environ.get("ENVLOCK_TEST_MINUTES")
    if minutes and item.get_closest_marker("exhaustive") and time.monotonic() > BEGAN + 60 * float(minutes):
        pytest.skip(f"exhaustive, and {minutes} minutes are over (ENVLOCK_TEST_MINUTES)")


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's own ENVLOCK_* settings change a test."""
    for name in list(os.environ):
        if name.startswith("ENVLOCK_") and not name.startswith("ENVLOCK_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv(*WITHOUT)


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    """A refused rank handles SIGTERM for the rest of its process, which here is that of the next tests."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if signal.getsignal(signal.SIGTERM) != before:
        signal.signal(signal.SIGTERM, before)


@pytest.fixture(autouse=True)
def _world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test starts a process or opens a connection unless it says so by a marker."""
    marks = {mark.name for mark in request.node.iter_markers()}
    if marks & neutral.WORLD:
        return
    if "processes" not in marks:
        for owner, name in ((subprocess, "Popen"), (os, "posix_spawn"), (os, "fork"), (os, "execve"), (os, "system")):
            monkeypatch.setattr(owner, name, _forbidden(f"{owner.__name__}.{name}", "processes"))
    if "network" not in marks:
        for name in ("connect", "connect_ex", "sendto"):
            monkeypatch.setattr(socket.socket, name, _forbidden("a connection", "network"))


def _forbidden(what: str, mark: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        pytest.fail(f"{what} in a test that is not marked `{mark}`")

    return refuse


@pytest.fixture
def tensorflow_python() -> Path:
    """Return the interpreter with the real TensorFlow; its absence is a failure in CI, a loud skip elsewhere."""
    named = os.environ.get(TENSORFLOW_PYTHON)
    if named and Path(named).exists():
        return Path(named)
    return absent(f"no environment with TensorFlow: `make test` makes one and names it in {TENSORFLOW_PYTHON}")


@pytest.fixture(scope="session")
def older_tensorflow() -> Callable[[str], Path]:
    """Return what gives the interpreter with the TensorFlow of a version (2.15.1, 2.16.2, 2.18.1 or 2.20.0)."""
    named = [Path(python) for python in os.environ.get(OLDER_PYTHONS, "").split(":")]

    def python_of(version: str) -> Path:
        for python in named:
            if python.parent.parent.name.endswith(version) and python.exists():
                return python
        return absent(f"no TensorFlow {version}: `make testolder` makes one and names it in {OLDER_PYTHONS}")

    return python_of


def absent(reason: str) -> NoReturn:
    """Fail in CI, where everything a test needs has to be there; skip loudly elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def envlock(tmp_path: Path) -> Command:
    """Return the command line of this checkout, run in an empty folder."""
    return Command([sys.executable, "-m", "envlock"], tmp_path)


@cache
def _server() -> forking.Server:
    server = forking.Server({**_plain(), "PYTHONSAFEPATH": "1"})
    atexit.register(server.close)
    return server


def _plain() -> dict[str, str]:
    kept = ("PATH", "HOME", "LANG", "CI", "COVERAGE_PROCESS_CONFIG")  # the last: of `make coverage`
    plain = {name: os.environ[name] for name in kept if name in os.environ}
    return {**plain, WITHOUT[0]: WITHOUT[1]}


class Command:
    """A command line in a folder; every call is a process of its own, forked from a warm one where that is as good."""

    def __init__(self, argv: list[str], folder: Path, environ: dict[str, str] | None = None) -> None:
        self.argv = argv
        self.folder = folder
        self.environ = environ or {}

    def __call__(
        self, *args: str, environ: dict[str, str] | None = None, stdin: bytes = b"", timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run it; `environ` is added to a plain environment."""
        more = {**self.environ, **(environ or {})}
        whole = {**_plain(), "PYTHONSAFEPATH": "1", **more}
        if forking.can_fork(self.argv, more):
            code, output, errors = _server().run(args, self.folder, whole, stdin, timeout)
        else:
            done = subprocess.run(
                [*self.argv, *args],
                cwd=self.folder,
                env=whole,
                input=stdin,
                capture_output=True,
                timeout=timeout,
                check=False,
            )
            code, output, errors = done.returncode, done.stdout, done.stderr
        return subprocess.CompletedProcess([*self.argv, *args], code, output.decode("utf-8"), errors.decode("utf-8"))


def activate(python: Path, folder: Path) -> Command:
    """Return the command line of this checkout, run in a folder where the environment of an interpreter is active."""
    return Command([sys.executable, "-m", "envlock"], folder, {"VIRTUAL_ENV": str(python.parents[1])})
