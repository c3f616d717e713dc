"""A container engine and its builder: the request for a build, and the operations of an engine."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TextIO, TypedDict

from envlock.image.engines.container_run import PLAIN, Finished, Start
from envlock.image.engines.engine_errors import EngineError, Trail, list_pull_lines
from envlock.runtime.errors import UsageError

Say = Callable[[str], None]
"""Receives a line of progress."""


@dataclass(frozen=True)
class Order:
    """A request for a build: the folder with its Dockerfile, and the builder's other arguments.

    Attributes:
        context: the folder.
        epoch: the time of every file that the build writes, in seconds since 1970.
        platform: that of the image; the host's own when None.
        network: the network of the steps: `none`, `host`, or `default` for the engine's own.
        no_cache: run every step again.
    """

    context: Path
    epoch: int
    platform: str | None = None
    network: str = "none"
    no_cache: bool = False


class InspectedConfig(TypedDict, total=False):
    """How an image runs."""

    Env: list[str] | None
    Entrypoint: list[str] | None
    Cmd: list[str] | None
    Labels: dict[str, str] | None


class InspectedLayers(TypedDict):
    """The digests of an image's layers, uncompressed."""

    Layers: list[str] | None


class Inspected(TypedDict, total=False):
    """An engine's description of an image, with Docker's keys; an engine may add others."""

    Id: str
    Os: str
    Architecture: str
    Config: InspectedConfig | None
    RootFS: InspectedLayers | None
    RepoDigests: list[str] | None


class Host(Protocol):
    """A daemon or a command that stores images and runs containers. `Daemon` documents each method."""

    version: str
    platform: str

    def list_images(self) -> set[str]: ...

    def inspect(self, image: str) -> Inspected: ...

    def pull(self, reference: str) -> Iterator[dict[str, Any]]: ...

    def push(self, name: str) -> Iterator[dict[str, Any]]: ...

    def tag(self, image: str, name: str) -> None: ...

    def remove_image(self, image: str) -> None: ...

    def has_container(self, container: str) -> bool: ...

    def remove_container(self, container: str) -> None: ...

    def run(self, image: str, argv: Sequence[str], start: Start) -> Finished: ...


class Builder(Protocol):
    """Builds an image and returns its ID.

    It records in the trail at once what it creates on the host, so that this can be removed if the
    build ends early.

    Raises:
        EngineError: the build failed.
    """

    def __call__(self, host: Any, order: Order, say: Say, trail: Trail) -> str: ...


_WORD = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)(?::\d+)?|[A-Za-z0-9-]+:\d+"
_NAME = re.compile(
    rf"(?:(?:{_HOST})/)?{_WORD}(?:/{_WORD})*(?::[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}})?"
)
_DROP_SECONDS = 10.0
"""How many seconds the daemon has to remove the container of an interrupted build."""


@dataclass(frozen=True)
class Built:
    """An image that was built.

    Attributes:
        image_id: the digest of its configuration.
        layers: the digests of its layers, uncompressed, the base's first.
        engine, engine_version: the builder; the version is that of its host.
        config: `Env`, `Entrypoint`, `Cmd`, `WorkingDir`, `User`, `Labels` and others, from the
            host.
        steps: the images of its steps that the builder keeps as a cache, the last one first.
    """

    image_id: str
    layers: tuple[str, ...]
    engine: str
    engine_version: str
    config: Mapping[str, Any]
    steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Engine:
    """A builder, and the host that it builds on.

    Attributes:
        name: one of `ENGINES`.
        reason: why this one was chosen, as a phrase for messages.
    """

    name: str
    host: Host
    builder: Builder
    reason: str

    def build(self, order: Order, *, on_line: Say = lambda line: None) -> Built:
        """Build an image without a name, and return it.

        A build that fails or is interrupted leaves nothing: no container, and no image without a
        name. One that succeeds leaves its image and the builder's cache, but no stage. When it
        fails, the full log is kept, and the error names it.

        Raises:
            EngineError: the build failed, or the image is not the requested one.
        """
        # What exists now is never removed, even if a step of the build uses it.
        before = self.host.list_images()
        trail = Trail()
        with _open_log() as log:
            try:
                image = self.builder(self.host, order, _tee(on_line, log), trail)
                built = self._describe_built(image, order)
                steps = self._remove_images(trail, before | {built.image_id})
                return replace(built, steps=steps)
            except OSError as error:
                self._clean(trail, before)
                raise EngineError(
                    f"cannot build: {error}", hint="solve that, and build again"
                ) from None
            except BaseException:  # also after an interrupt
                self._clean(trail, before)
                raise

    def run(self, image: str, argv: Sequence[str], start: Start = PLAIN) -> Finished:
        """Run a container to its end; it is always removed.

        Raises:
            EngineError: it cannot be started: there is no such image or program, or no GPU runtime.
        """
        return self.host.run(image, argv, start)

    @property
    def platform(self) -> str:
        """The platform that it runs, such as `linux/amd64`."""
        return self.host.platform

    def pull(self, reference: str, on_line: Say = lambda line: None) -> None:
        """Pull an image.

        Raises:
            EngineError: the registry could not be reached, refused, or does not have it.
        """
        for message in self.host.pull(reference):
            for line in list_pull_lines(message):
                on_line(line)

    def push(self, name: str, on_line: Say = lambda line: None) -> str | None:
        """Push an image by its name; return the digest of its manifest, or None if the engine does
        not report it.

        Raises:
            EngineError: the registry could not be reached, or refused.
        """
        digest = None
        for message in self.host.push(name):
            for line in list_pull_lines(message):
                on_line(line)
            digest = (message.get("aux") or {}).get("Digest") or digest
        return digest

    def inspect(self, image: str) -> Inspected:
        """Return the host's description of an image, by name or ID.

        Raises:
            EngineError: it has no such image.
        """
        return self.host.inspect(image)

    def find_built(self, image_id: str) -> Built | None:
        """Return an image that was built earlier, by its ID; None if the engine no longer has it."""
        try:
            inspected = self.host.inspect(image_id)
        except EngineError:
            return None
        return self._make_built(inspected)

    def tag(self, image: str, name: str) -> None:
        """Give an image a name.

        Raises:
            UsageError: it is not a valid name for an image.
            EngineError: there is no such image.
        """
        check_name(name)
        self.host.tag(image, name)

    def discard(self, built: Built) -> None:
        """Remove an image without a name, and those of its steps, unless another image is based on
        them.
        """
        for image in (built.image_id, *built.steps):
            self.host.remove_image(image)

    def _describe_built(self, image: str, order: Order) -> Built:
        """Return an image that was built.

        Raises:
            EngineError: it is for another platform.
        """
        inspected = self.host.inspect(image)
        platform = f"{inspected.get('Os')}/{inspected.get('Architecture')}"
        if order.platform is not None and not f"{order.platform}/".startswith(f"{platform}/"):
            raise EngineError(
                f"the image was built for {platform}, not for {order.platform}",
                hint="name another platform or base: the engine had no base for this one",
            )
        return self._make_built(inspected)

    def _make_built(self, inspected: Inspected) -> Built:
        rootfs = inspected.get("RootFS")
        layers = tuple(rootfs["Layers"] or ()) if rootfs is not None else ()
        config = dict(inspected.get("Config") or {})
        return Built(inspected["Id"], layers, self.name, self.host.version, config)

    def _clean(self, trail: Trail, before: set[str]) -> None:
        """Remove what a failed or interrupted build has left; images that existed before are kept."""
        with contextlib.suppress(EngineError):
            self._wait_for_host(trail)
            for container in trail.containers:
                self.host.remove_container(container)
            self._remove_images(trail, before)

    def _remove_images(self, trail: Trail, before: set[str]) -> tuple[str, ...]:
        """Remove the images of a build's steps on which no other image is based; return the others.

        Args:
            trail: the images, by ID or the beginning of an ID.
            before: images that are kept, even if a step has used them.
        """
        if not trail.images:
            return ()
        new = sorted(self.host.list_images() - before)
        steps: list[str] = []
        # The last first, because the others are its bases.
        for name in reversed(trail.images):
            for image in new:
                if image.removeprefix("sha256:").startswith(name.removeprefix("sha256:")):
                    self.host.remove_image(image)
                    steps.append(image)
        if not steps:
            return ()
        left = self.host.list_images()
        return tuple(image for image in steps if image in left)

    def _wait_for_host(self, trail: Trail) -> None:
        """Wait until the daemon has removed the container of an interrupted build."""
        # Only the classic builder, whose connection is closed by then, has containers in its trail.
        if not trail.containers:
            return
        limit = time.monotonic() + _DROP_SECONDS
        while time.monotonic() < limit and self.host.has_container(trail.containers[-1]):
            time.sleep(0.1)


def check_name(name: str) -> None:
    """Refuse a text that cannot be the name of an image.

    Raises:
        UsageError: it cannot.
    """
    # Docker's limit, there without the tag; and the time of the expression grows with the text.
    # https://pkg.go.dev/github.com/distribution/reference#pkg-constants
    if len(name) > 255 or not _NAME.fullmatch(name):
        raise UsageError(
            f"invalid image name `{name}`", hint="use a name in lower case, such as team/train:1"
        )


def _tee(on_line: Say, log: TextIO) -> Say:
    """Return a function that passes a line on and also writes it to a log."""

    def write_line(line: str) -> None:
        # A full disk here is not a reason to abandon a build there.
        with contextlib.suppress(OSError):
            log.write(f"{line}\n")
        on_line(line)

    return write_line


@contextlib.contextmanager
def _open_log() -> Iterator[TextIO]:
    """Yield a file for the lines of a build; if the build fails, it is kept, and the error names
    it.
    """
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
        log = f"the whole log is in {path}"
        hint = f"{error.hint}; {log}" if error.hint else log
        raise EngineError(error.message, hint=hint) from None
    finally:
        if not keep:
            path.unlink()
