"""A container engine and its builder: the order of a build, and what an engine can do."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TextIO, TypedDict

from envlock.containers.engines.container_run import PLAIN, Finished, Start
from envlock.containers.engines.engine_errors import EngineError, Trail, list_pull_lines
from envlock.runtime.errors import UsageError

Say = Callable[[str], None]
"""Takes a line of progress."""


@dataclass(frozen=True)
class Order:
    """A build: the folder with its Dockerfile, and the builder's other arguments.

    Attributes:
        context: the folder.
        epoch: the time of every file that the build writes, in seconds since 1970.
        labels: of the image.
        platform: of the image; the host's own when None.
        network: while a step runs: `none`, `host`, or `default` for the engine's own.
        no_cache: run every step anew.
    """

    context: Path
    epoch: int
    labels: Mapping[str, str] = field(default_factory=dict)
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
    """What an engine knows of an image, in Docker's words; an engine may have further keys."""

    Id: str
    Os: str
    Architecture: str
    Config: InspectedConfig | None
    RootFS: InspectedLayers | None
    RepoDigests: list[str] | None


class Host(Protocol):
    """A daemon or a command that keeps images and runs containers. Each method is as in `Daemon`."""

    version: str
    platform: str

    def list_images(self) -> set[str]: ...

    def inspect(self, image: str) -> Inspected: ...

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

    It notes in the trail at once what it creates on the host, for removal if the build ends early.

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
"""How many seconds the daemon is given to drop the container of a build that was broken off."""


@dataclass(frozen=True)
class Built:
    """An image that was built.

    Attributes:
        image_id: the digest of its configuration.
        layers: the digests of its layers, uncompressed, the base's first.
        engine, engine_version: who built it; the version is the host's, which holds the builder.
        config: `Env`, `Entrypoint`, `Cmd`, `WorkingDir`, `User`, `Labels` and others, as the host
            has them.
        seconds: how long the builder took.
        steps: the images of its steps that the builder keeps as a cache; the last step's first.
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
    """A builder, and the host that it builds on.

    Attributes:
        name: one of `ENGINES`.
        reason: why this one was chosen, for people.
    """

    name: str
    host: Host
    builder: Builder
    reason: str

    def build(
        self, order: Order, *, tag: str | None = None, on_line: Say = lambda line: None
    ) -> Built:
        """Build an order and return the image, which gets its tag, if any, only when it is whole.

        A build that fails or is interrupted leaves nothing: no container, and no image without a
        name. One that succeeds leaves its image and the builder's cache, but no stage. When it
        fails, the full log is kept, and the error names it.

        Raises:
            UsageError: `tag` is no name for an image.
            EngineError: the build failed, or the image is not what was asked for.
        """
        if tag is not None:
            check_name(tag)
        before = self.host.list_images()
        trail = Trail()
        started = time.monotonic()
        with _open_log() as log:
            try:
                image = self.builder(self.host, order, _tee(on_line, log), trail)
                seconds = time.monotonic() - started
                built = self._describe_built(image, order, seconds)
                if tag is not None:
                    self.host.tag(image, tag)
                steps = self._remove_images(trail, before | {built.image_id})
                return replace(built, steps=steps)
            except OSError as error:
                self._clean(trail, before)
                raise EngineError(
                    f"cannot build: {error}", hint="solve that, and build again"
                ) from None
            except BaseException:  # an interrupt, too
                self._clean(trail, before)
                raise

    def run(self, image: str, argv: Sequence[str], start: Start = PLAIN) -> Finished:
        """Run a container to its end; it is removed in every case.

        Raises:
            EngineError: it cannot be started: no such image or program, no GPU runtime.
        """
        return self.host.run(image, argv, start)

    @property
    def platform(self) -> str:
        """The platform that it runs, such as `linux/amd64`."""
        return self.host.platform

    def pull(self, reference: str, on_line: Say = lambda line: None) -> None:
        """Pull an image.

        Raises:
            EngineError: the registry was not reached, refused, or does not have it.
        """
        for message in self.host.pull(reference):
            for line in list_pull_lines(message):
                on_line(line)

    def push(self, name: str, on_line: Say = lambda line: None) -> str | None:
        """Push an image by its name; return the digest of its manifest, None where the engine has none.

        Raises:
            EngineError: the registry was not reached, or refused.
        """
        digest = None
        for message in self.host.push(name):
            for line in list_pull_lines(message):
                on_line(line)
            digest = (message.get("aux") or {}).get("Digest") or digest
        return digest

    def save(self, image: str, file: Path) -> None:
        """Write an image to a file: an OCI layout, or what Docker before 25 writes, in a tar.

        Raises:
            EngineError: the engine failed.
            OSError: the file cannot be written.
        """
        self.host.save(image, file)

    def inspect(self, image: str) -> Inspected:
        """Return what the host knows of an image, by name or ID.

        Raises:
            EngineError: it has no such image.
        """
        return self.host.inspect(image)

    def tag(self, image: str, name: str) -> None:
        """Give an image a name.

        Raises:
            UsageError: it is no name for an image.
            EngineError: there is no such image.
        """
        check_name(name)
        self.host.tag(image, name)

    def discard(self, built: Built) -> None:
        """Remove an image without a name, and those of its steps, unless another is made of them."""
        for image in (built.image_id, *built.steps):
            self.host.remove_image(image)

    def _describe_built(self, image: str, order: Order, seconds: float) -> Built:
        """Return an image that was built.

        Raises:
            EngineError: it is for another platform, or lacks labels of the order.
        """
        inspected = self.host.inspect(image)
        platform = f"{inspected.get('Os')}/{inspected.get('Architecture')}"
        if order.platform is not None and not f"{order.platform}/".startswith(f"{platform}/"):
            raise EngineError(
                f"the image was built for {platform}, not for {order.platform}",
                hint="name another platform or base: the engine had no base for this one",
            )
        config = inspected.get("Config") or {}
        labels = config.get("Labels") or {}
        if any(labels.get(name) != value for name, value in order.labels.items()):
            raise EngineError(
                "the image lacks labels of its Dockerfile",
                hint="use another engine: this one dropped them",
            )
        rootfs = inspected.get("RootFS")
        layers: tuple[str, ...] = ()
        if rootfs is not None:
            layers = tuple(rootfs["Layers"] or ())
        version = self.host.version
        return Built(inspected["Id"], layers, self.name, version, dict(config), seconds)

    def _clean(self, trail: Trail, before: set[str]) -> None:
        """Remove what a build left that did not end well; images that were there before stay."""
        with contextlib.suppress(EngineError):
            self._wait_for_host(trail)
            for container in trail.containers:
                self.host.remove_container(container)
            self._remove_images(trail, before)

    def _remove_images(self, trail: Trail, before: set[str]) -> tuple[str, ...]:
        """Remove the images of a build's steps that nothing is made of; return the rest.

        Args:
            trail: names the images, by their IDs or the beginning of these.
            before: images that stay, also where a step has used them.
        """
        if not trail.images:
            return ()
        new = sorted(self.host.list_images() - before)
        steps: list[str] = []
        # The last first, since the others are below it.
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
        """Wait until the daemon has dropped the container of a build that was broken off."""
        # Only the classic builder, whose connection is gone then, has containers in its trail.
        if not trail.containers:
            return
        limit = time.monotonic() + _DROP_SECONDS
        while time.monotonic() < limit and self.host.has_container(trail.containers[-1]):
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


def _tee(on_line: Say, log: TextIO) -> Say:
    """Return a function that hands a line on and writes it into a log."""

    def write_line(line: str) -> None:
        with contextlib.suppress(OSError):  # a full disk here is no reason to give up a build there
            log.write(f"{line}\n")
        on_line(line)

    return write_line


@contextlib.contextmanager
def _open_log() -> Iterator[TextIO]:
    """Yield a file for a build's lines, which is kept, and named by the error, where it fails."""
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
        hint = f"the whole log is in {path}"
        if error.hint:
            hint = f"{error.hint}; {hint}"
        raise EngineError(error.message, hint=hint) from None
    finally:
        if not keep:
            path.unlink()
