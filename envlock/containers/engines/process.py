"""Engines that are commands: the lines of a build while it runs, its end whenever we leave it, pulls and pushes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from envlock.containers.engines.failures import EngineError, explain, plain
from envlock.lock.drafts import draft_folder

STOP_SECONDS = 15


def follow(
    command: Sequence[str], environ: Mapping[str, str], on_line: Callable[[str], None]
) -> list[str] | None:
    """Run a command and hand on each line it prints; return None when it worked, else its last lines.

    Raises:
        OSError: there is no such command.
    """
    last: deque[str] = deque(maxlen=1000)
    process = subprocess.Popen(
        command,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,  # the interrupt key reaches us alone, and we pass it on, once
    )
    try:
        assert process.stdout is not None  # noqa: S101 (for the type checker)
        for raw in process.stdout:
            line = plain(raw)
            last.append(line)
            on_line(line)
        code = process.wait()
    finally:
        _stop(process)
    return None if code == 0 else list(last)


def _stop(process: subprocess.Popen[str]) -> None:
    """End the client and its plugin, if they still run: the builder then ends the step it is at, and drops it."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=STOP_SECONDS)
    if process.stdout is not None:
        process.stdout.close()


def ask(program: str, *arguments: str) -> tuple[int, str, str]:
    """Run a command to its end; return its exit code, and what it printed on stdout and stderr.

    Raises:
        EngineError: it is not installed.
    """
    try:
        done = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise EngineError(
            f"cannot start {program}: {error.strerror}", hint=f"install {program}"
        ) from None
    return done.returncode, done.stdout, done.stderr


def call(program: str, *arguments: str, image: str | None = None, about: str = "") -> str:
    """Return what a command prints.

    Raises:
        EngineError: it is not installed, or failed; `about` stands before its last words (it may have tried more than
            once), and `image` is what it was about.
    """
    code, stdout, stderr = ask(program, *arguments)
    if code != 0:
        said = stderr.strip() or stdout.strip()
        if about:
            said = about + said.rpartition("\n")[2].removeprefix("Error: ")
        raise explain(said, image=image, hint=f"see `{program} info`")
    return stdout


def images(program: str) -> set[str]:
    """Return the IDs of all images of podman or buildah, which share them."""
    return set(call(program, "images", "--all", "--quiet", "--no-trunc").split())


def tag(program: str, image: str, name: str) -> None:
    """Give an image a name; podman and buildah put `localhost/` before one without a registry."""
    call(program, "tag", "--", image, name)


def pull(program: str, reference: str) -> Iterator[dict[str, Any]]:
    """Pull an image and yield messages as a daemon's; see `Daemon.pull`."""
    yield {"status": f"pulling {reference}"}
    call(
        program, "pull", "--quiet", "--", reference, image=reference, about=f"pull of {reference}: "
    )


def push(program: str, name: str) -> Iterator[dict[str, Any]]:
    """Push an image by its name and yield messages as a daemon's, the last with its digest; see `Daemon.push`."""
    yield {"status": f"pushing {name}"}
    with draft_folder(None) as folder:
        file = folder / "digest"
        call(
            program,
            "push",
            "--quiet",
            f"--digestfile={file}",
            "--",
            name,
            about=f"push of {name}: ",
        )
        yield {"aux": {"Digest": file.read_text(encoding="ascii").strip()}}
