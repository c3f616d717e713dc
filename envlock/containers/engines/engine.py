"""A container engine, and what builds on it: what is asked of a builder, what an engine can, and how both fail."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TextIO

from envlock.containers.engines.container import PLAIN, Finished, Start
from envlock.containers.engines.failures import EngineError, Trail, pulled
from envlock.runtime.errors import UsageError

Say = Callable[[str], None]
"""Takes a line of progress."""


@dataclass(frozen=True)
class Order:
    """A build: the folder with its Dockerfile, and the builder's other arguments."""

    context: Path
    epoch: int
    labels: Mapping[str, str]
    platform: str | None = None
    network: str = "none"
    no_cache: bool = False


class Host(Protocol):
    """Where images are kept and containers run: a daemon, or a command. Each method is as in `Daemon`."""

    version: str
    platform: str

    def images(self) -> set[str]: ...

    def inspect(self, image: str) -> dict[str, Any]: ...

    def pull(self, reference: str) -> Iterator[dict[str, Any]]: ...

    def push(self, name: str) -> Iterator[dict[str, Any]]: ...

    def save(self, image: str, file: Path) -> None: ...

    def tag(self, image: str, name: str) -> None: ...

    def remove_image(self, image: str) -> None: ...

    def has_container(self, container: str) -> bool: ...

    def remove_container(self, container: str) -> None: ...

    def run(self, image: str, argv: Sequence[str], start: Start) -> Finished: ...


class Builder(Protocol):
    """Builds an order and returns the image's ID.

    What comes to be on the daemon is noted in the trail at once, so that it can be removed if the build ends early.

    Raises:
        EngineError: the build failed.
    """

    def __call__(self, daemon: Any, order: Order, say: Say, trail: Trail) -> str: ...


_WORD = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)(?::\d+)?|[A-Za-z0-9-]+:\d+"
_NAME = re.compile(
    rf"(?:(?:{_HOST})/)?{_WORD}(?:/{_WORD})*(?::[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}})?"
)
_PATIENCE = 10.0
"""Seconds within which the daemon drops the container of a build that was broken off."""


@dataclass(frozen=True)
class Built:
    """An image that was built.

    Attributes:
        image_id: the digest of its configuration.
        layers: the digests of its layers, uncompressed, the base's first.
        engine, engine_version: who built it; the version is the daemon's, which holds the builder.
        config: `Env`, `Entrypoint`, `Cmd`, `WorkingDir`, `User`, `Labels` and others, as the daemon has them.
        seconds: how long the builder took.
        steps: the images of its steps that the builder keeps, to be faster the next time; the last step's first.
    """

    image_id: str
    layers: tuple[str, ...]
    engine: str
    engine_version: str
    config: Mapping[str, Any]
    seconds: float
    steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Engine:
    """What builds and runs.

    Attributes:
        name: one of `ENGINES`.
        reason: why this one was chosen, for people.
    """

    name: str
    daemon: Host
    builder: Builder
    reason: str

    def build(
        self,
        context: Path,
        *,
        tag: str | None = None,
        labels: Mapping[str, str] | None = None,
        epoch: int,
        platform: str | None = None,
        network: str = "none",
        on_line: Say = lambda line: None,
        no_cache: bool = False,
    ) -> Built:
        """Build the context and return the image, which gets its tag, if any, only when it is whole.

        Nothing is left behind by a build that fails or is interrupted: no container, and no image without a name. One
        that succeeds leaves its image, and what the builder keeps to be faster the next time, but no stage of it.
        When it fails, the full log is kept, and the error names it.

        Raises:
            UsageError: `tag` is no name for an image.
            EngineError: the build failed, or the image is not what was asked for.
        """
        if tag is not None:
            check_name(tag)
        order = Order(context, epoch, dict(labels or {}), platform, network, no_cache)
        before = self.daemon.images()
        trail = Trail()
        started = time.monotonic()
        with _log() as log:
            try:
                image = self.builder(self.daemon, order, _both(on_line, log), trail)
                seconds = time.monotonic() - started
                built = self._looked_at(image, order, seconds)
                if tag is not None:
                    self.daemon.tag(image, tag)
                built = replace(built, steps=self._remove(trail, before | {built.image_id}))
            except OSError as error:
                self._clean(trail, before)
                raise EngineError(
                    f"cannot build: {error}", hint="solve that, and build again"
                ) from None
            except BaseException:
                self._clean(trail, before)
                raise
        return built

    def run(self, image: str, argv: Sequence[str], start: Start = PLAIN) -> Finished:
        """Run a container to its end; it is removed in every case.

        Raises:
            EngineError: it cannot be started: no such image or program, no GPU runtime.
        """
        return self.daemon.run(image, argv, start)

    @property
    def platform(self) -> str:
        """The platform that it runs, such as `linux/amd64`."""
        return self.daemon.platform

    def pull(self, reference: str, on_line: Say = lambda line: None) -> None:
        """Pull an image.

        Raises:
            EngineError: the registry was not reached, refused, or does not have it.
        """
        for message in self.daemon.pull(reference):
            for line in pulled(message):
                on_line(line)

    def push(self, name: str, on_line: Say = lambda line: None) -> str | None:
        """Push an image by its name and return the digest of its manifest; None where the engine does not tell it.

        Raises:
            EngineError: the registry was not reached, or refused.
        """
        digest = None
        for message in self.daemon.push(name):
            for line in pulled(message):
                on_line(line)
            digest = (message.get("aux") or {}).get("Digest") or digest
        return digest

    def save(self, image: str, file: Path) -> None:
        """Write an image to a file: an OCI layout, or what Docker before 25 writes, in a tar.

        Raises:
            EngineError: the engine failed.
            OSError: the file cannot be written.
        """
        self.daemon.save(image, file)

    def inspect(self, image: str) -> dict[str, Any]:
        """Return what the daemon knows of an image, by name or ID.

        Raises:
            EngineError: it has no such image.
        """
        return self.daemon.inspect(image)

    def tag(self, image: str, name: str) -> None:
        """Give an image a name.

        Raises:
            UsageError: it is no name for an image.
            EngineError: there is no such image.
        """
        check_name(name)
        self.daemon.tag(image, name)

    def discard(self, built: Built) -> None:
        """Remove an image that has no name, and those of its steps; what another is made of stays."""
        for image in (built.image_id, *built.steps):
            self.daemon.remove_image(image)

    def _looked_at(self, image: str, order: Order, seconds: float) -> Built:
        found = self.daemon.inspect(image)
        config = dict(found.get("Config") or {})
        made_for = f"{found.get('Os')}/{found.get('Architecture')}"
        if order.platform is not None and not f"{order.platform}/".startswith(f"{made_for}/"):
            raise EngineError(
                f"the image was built for {made_for}, not for {order.platform}",
                hint="name another platform or base: the engine had no base for this one",
            )
        labels = config.get("Labels") or {}
        if any(labels.get(name) != value for name, value in order.labels.items()):
            raise EngineError(
                "the image lacks labels of its Dockerfile",
                hint="use another engine: this one dropped them",
            )
        layers = tuple(str(layer) for layer in (found.get("RootFS") or {}).get("Layers") or ())
        return Built(str(found["Id"]), layers, self.name, self.daemon.version, config, seconds)

    def _clean(self, trail: Trail, before: set[str]) -> None:
        """Remove what a build left that did not end well: the last first, since the others are below it.

        Images that were there before are somebody else's, also where a step has used them.
        """
        with contextlib.suppress(EngineError):
            self._wait_for_daemon(trail)
            for container in trail.containers:
                self.daemon.remove_container(container)
            self._remove(trail, before)

    def _remove(self, trail: Trail, kept: set[str]) -> tuple[str, ...]:
        """Remove the images of a build's steps, such as those of a stage, that nothing is made of; return the rest."""
        there = self.daemon.images() if trail.images else set()
        steps: list[str] = []
        for name in reversed(trail.images):
            for image in sorted(there - kept):
                if image.removeprefix("sha256:").startswith(name.removeprefix("sha256:")):
                    self.daemon.remove_image(image)
                    steps.append(image)
        left = self.daemon.images() if steps else set()
        return tuple(image for image in steps if image in left)

    def _wait_for_daemon(self, trail: Trail) -> None:
        """Return when the classic builder, whose connection is gone, has taken note and let go of its container."""
        limit = time.monotonic() + _PATIENCE
        while (
            trail.containers
            and time.monotonic() < limit
            and self.daemon.has_container(trail.containers[-1])
        ):
            time.sleep(0.1)


def check_name(name: str) -> None:
    """Refuse what no image can be called.

    Raises:
        UsageError: it is no name of an image.
    """
    if len(name) > 255 or not _NAME.fullmatch(name):
        raise UsageError(
            f"invalid image name `{name}`", hint="use a name in lower case, such as team/train:1"
        )


def _both(on_line: Say, log: TextIO) -> Say:
    def say(line: str) -> None:
        with contextlib.suppress(OSError):  # a full disk here is no reason to give up a build there
            log.write(f"{line}\n")
        on_line(line)

    return say


@contextlib.contextmanager
def _log() -> Iterator[TextIO]:
    """Yield a file for the build's lines; it is kept where the build fails, and the error says where it is."""
    try:
        handle, name = tempfile.mkstemp(prefix="envlock-build-", suffix=".log")
    except OSError as error:
        raise EngineError(
            f"cannot keep the log of the build: {error}", hint="set TMPDIR to another folder"
        ) from None
    path = Path(name)
    keep = False
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
            yield stream
    except EngineError as error:
        keep = path.stat().st_size > 0
        if not keep:
            raise
        hint = (
            f"{error.hint}; the whole log is in {path}"
            if error.hint
            else f"the whole log is in {path}"
        )
        raise EngineError(error.message, hint=hint) from None
    finally:
        if not keep:
            path.unlink()
