"""The fixtures of the bed, for every test: tests/conftest.py loads this file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NoReturn, Protocol

import pytest

from tests.image.bed import podman, session
from tests.image.bed.debian import BedError
from tests.image.bed.engine import Engine, unpacked
from tests.image.bed.engine import start as start_daemon


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the bed, so that `make fast` leaves it out although its author forgot to."""
    for item in items:
        if "bed" in getattr(item, "fixturenames", ()):
            item.add_marker("engine")


def absent(reason: BedError) -> NoReturn:
    """A bed that cannot be had is a failure in CI, a loud skip elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(f"no test bed: {reason}")
    pytest.skip(f"no test bed: {reason}")


@pytest.fixture(scope="session")
def bed() -> Iterator[session.Bed]:
    """Return the shared engine (Docker 26 with buildx) and its registry; mark the test `engine`."""
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(session.shared())
        except BedError as reason:
            absent(reason)
        yield found


@pytest.fixture(scope="module")
def store(bed: session.Bed) -> Iterator[podman.Podman]:
    """Return podman and buildah, with a store of images of their own."""
    try:
        made = podman.configured(podman.unpacked(session.CACHE))
    except BedError as reason:
        absent(reason)
    yield made
    made.remove()


@pytest.fixture
def docker(bed: session.Bed, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Return the bed's engine, which is also what `docker` and docker-py find from this test's process."""
    return use(bed.engine, monkeypatch)


def use(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Make an engine the one that `docker` and docker-py find from this process; return it."""
    for name, value in engine.environ.items():
        monkeypatch.setenv(name, value)
    return engine


class StartEngine(Protocol):
    """Starts an engine of the test's own."""

    def __call__(self, version: str = "26", *, gpus: bool = False, disk: str | None = None) -> Engine: ...


@pytest.fixture
def start_engine(bed: session.Bed) -> Iterator[StartEngine]:
    """Return what starts an engine of this test's own, to break it or to look at it alone; it ends with the test.

    Version "20" is Docker 20.10. The other arguments are those of `bed.engine.start`. It knows the bed's registry.
    """
    with starting(bed) as start:
        yield start


@contextlib.contextmanager
def starting(bed: session.Bed) -> Iterator[StartEngine]:
    """Yield what starts engines, and stop them at the end."""
    with contextlib.ExitStack() as running:

        def start(version: str = "26", *, gpus: bool = False, disk: str | None = None) -> Engine:
            try:
                root = unpacked(session.CACHE, version)
                etc = bed.engine.folder / "etc"
                engine = start_daemon(root, etc=etc, trust=bed.engine.trust, gpus=gpus, disk=disk)
            except BedError as reason:
                absent(reason)
            running.callback(engine.stop)
            return engine

        yield start
