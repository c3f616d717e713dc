"""The daemon of every engine, through Docker's SDK, which only this file imports."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import tarfile
import uuid
import weakref
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import docker
from docker.errors import DockerException
from docker.types import DeviceRequest, LogConfig
from docker.utils import parse_repository_tag
from urllib3.exceptions import HTTPError

from envlock.image.engines.container_run import Finished, Start
from envlock.image.engines.engine import Inspected
from envlock.image.engines.engine_errors import EngineError, explain
from envlock.runtime.report import clean

SECONDS = 120
"""The most seconds for an answer of the daemon. Builds, pulls and containers have no limit."""

OUTPUT_LIMIT = "64m"
"""How much of a container's output is kept on the daemon's machine: the last part."""


class Daemon:
    """A Docker daemon, or another one with the same API.

    Attributes:
        version: that of the daemon, such as "26.1.5".
        platform: the one that it runs, such as "linux/amd64".
        podman: whether it is podman, which has the same API but behaves differently.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._api = client.api
        # Its connections are kept for the next request, and nothing else closes them.
        weakref.finalize(self, client.close)
        with _explain_errors():
            about = self._api.version()
        self.version = str(about.get("Version") or "0").partition("+")[0]
        self.platform = f"{about.get('Os')}/{about.get('Arch')}"
        names = [str(component.get("Name", "")) for component in about.get("Components") or ()]
        self.podman = any("podman" in name.lower() for name in names)

    @classmethod
    def connect(cls) -> Daemon:
        """Return the daemon that the `docker` command uses: that of DOCKER_HOST, else of its
        current context.

        Raises:
            EngineError: there is no daemon, or it refuses.
        """
        environ = dict(os.environ)
        host = environ.get("DOCKER_HOST") or _find_context_host() or ""
        if host:
            environ["DOCKER_HOST"] = host
        try:
            # By the user's own `ssh`, with its settings and agent, as the `docker` command does.
            with _explain_errors():
                client = docker.from_env(environment=environ, timeout=SECONDS, use_ssh_client=True)
                return cls(client)
        except EngineError as error:
            if host.startswith("ssh://") and "ssh" not in error.message:
                # `ssh` itself has printed why on stderr.
                raise explain(f"{host} did not answer") from None
            if not host or host.rpartition("//")[2] in error.message:
                raise
            raise EngineError(f"{error.message}: {host}", hint=error.hint) from None

    def list_images(self) -> set[str]:
        """Return the IDs of all images, including the bases of other images."""
        with _explain_errors():
            return {str(image["Id"]) for image in self._api.images(all=True)}

    def inspect(self, image: str) -> Inspected:
        """Return the daemon's description of an image.

        Raises:
            EngineError: it has no such image.
        """
        with _explain_errors(image):
            return cast(Inspected, self._api.inspect_image(image))

    def pull(self, reference: str) -> Iterator[dict[str, Any]]:
        """Pull an image and yield the daemon's messages.

        Raises:
            EngineError: the registry could not be reached, refused, or does not have it.
        """
        repository, tag = parse_repository_tag(reference)
        if tag and tag.startswith("sha256:"):
            # A tag in addition to the digest would be read as a part of the name.
            repository = parse_repository_tag(repository)[0]
        about = f"pull of {reference}: "
        # Never without a tag: the API would pull all tags of the repository, and push all of them.
        # https://docs.docker.com/reference/api/engine/
        with _explain_errors(reference, about):
            for message in self._api.pull(
                repository, tag=tag or "latest", stream=True, decode=True
            ):
                if "error" in message:
                    raise explain(f"{about}{message['error']}", image=reference)
                yield message

    def push(self, name: str) -> Iterator[dict[str, Any]]:
        """Push an image by its name and yield messages; one of the last has its digest.

        Raises:
            EngineError: the registry could not be reached, or refused.
        """
        repository, tag = parse_repository_tag(name)
        about = f"push of {name}: "
        with _explain_errors(name, about):
            for message in self._api.push(
                repository, tag=tag or "latest", stream=True, decode=True
            ):
                if "error" in message:
                    raise explain(f"{about}{message['error']}", image=name)
                yield message

    def build(self, context: Path, **options: Any) -> Generator[dict[str, Any], None, None]:
        """Build a context with the classic builder, and yield messages; an error is one of them.

        Raises:
            EngineError: the daemon refuses, or the connection is lost.
        """
        with _explain_errors():
            yield from self._api.build(
                path=str(context),
                decode=True,
                rm=True,
                forcerm=True,
                timeout=None,  # a step may print nothing for a long time
                **options,
            )

    def tag(self, image: str, name: str) -> None:
        """Give an image a name.

        Raises:
            EngineError: the name is not valid.
        """
        repository, tag = parse_repository_tag(name)
        with _explain_errors(image):
            self._api.tag(image, repository, tag)

    def remove_image(self, image: str) -> None:
        """Remove an image that has no name and is not the base of another; leave any other image."""
        with contextlib.suppress(EngineError), _explain_errors():
            if not self._api.inspect_image(image).get("RepoTags"):
                # Its parents without a name stay: some are older than the build.
                self._api.remove_image(image, noprune=True)

    def has_container(self, container: str) -> bool:
        """Return whether the container exists, running or not."""
        try:
            with _explain_errors():
                self._api.inspect_container(container)
        except EngineError:
            return False
        return True

    def remove_container(self, container: str) -> None:
        """Remove a container, running or not, if it exists."""
        with contextlib.suppress(EngineError), _explain_errors():
            self._api.remove_container(container, v=True, force=True)

    def run(self, image: str, argv: Sequence[str], start: Start) -> Finished:
        """Run a container to its end and return what it printed; it is always removed.

        Raises:
            EngineError: it cannot be started.
        """
        # Its name is known before it exists, so that it can be removed at any time.
        name = f"envlock-{uuid.uuid4().hex}"
        # All of them, as `docker run --gpus all` asks.
        devices = [DeviceRequest(count=-1, capabilities=[["gpu"]])] if start.gpus else None
        # Named: the driver that is the daemon's default may be one whose logs cannot be read.
        # https://docs.docker.com/engine/logging/configure/
        logs = LogConfig(type="json-file", config={"max-size": OUTPUT_LIMIT, "max-file": "1"})
        settings = self._api.create_host_config(
            network_mode=start.network, log_config=logs, device_requests=devices
        )
        # `[""]` is the word of the API for "none".
        entrypoint = (list(start.entrypoint) or [""]) if start.entrypoint is not None else None
        try:
            with _explain_errors(image):
                self._api.create_container(
                    image,
                    list(argv),
                    name=name,
                    entrypoint=entrypoint,
                    environment=dict(start.env),
                    host_config=settings,
                    use_config_proxy=False,  # the facts are the image's variables, not this user's
                )
                if start.folder is not None:
                    # Copied instead of mounted: the daemon may be on another machine.
                    self._api.put_archive(name, "/", _pack(start.folder))
                self._api.start(name)
                code = int(self._api.wait(name, timeout=None)["StatusCode"])
                stdout = self._api.logs(name, stderr=False)
                stderr = self._api.logs(name, stdout=False)
        finally:
            self.remove_container(name)
        return Finished(code, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))


def _pack(folder: Path) -> bytes:
    """Return a folder as a tar in which root owns everything."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        tar.add(folder, folder.name, filter=_give_to_root)
    return stream.getvalue()


def _give_to_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    # Not with TarInfo.replace, which Debian 12's Python 3.11.2 does not have.
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


@contextlib.contextmanager
def _explain_errors(image: str | None = None, about: str = "") -> Iterator[None]:
    """Raise an EngineError for an exception of the SDK, or of the connection under it.

    Args:
        image: the image of the call, for the message.
        about: the beginning of the message, before the text of the error.
    """
    try:
        yield
    # The SDK passes on exceptions of requests, which are OSErrors, and of urllib3, which are not.
    except (DockerException, OSError, HTTPError) as error:
        text = str(getattr(error, "explanation", None) or error)
        raise explain(f"{about}{text}", image=image) from None


def _check_named_context(error: str) -> None:
    """Check that the context exists that DOCKER_CONTEXT names, if it names one.

    Raises:
        EngineError: `docker` does not know it.
    """
    name = os.environ.get("DOCKER_CONTEXT")
    if name and "not found" in error:
        raise EngineError(
            f"there is no Docker context {clean(name)}, which DOCKER_CONTEXT names",
            hint="run `docker context ls` for a list, or unset DOCKER_CONTEXT",
        )


def _find_context_host() -> str | None:
    """Return the endpoint of the `docker` command's current context; None if that command is not
    installed.

    Raises:
        EngineError: there is no such context.
    """
    command = ["docker", "context", "inspect", "--format", "{{json .Endpoints.docker.Host}}"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != 0:
            _check_named_context(done.stderr)
            return None
        host = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if isinstance(host, str) and host:
        return host
    return None
