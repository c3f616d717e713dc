"""The output of engines, and their errors as sentences. Pure; the tests have real texts.

Engines have no error codes for these, and the wording differs between versions. So the stable part
is matched, and an unknown text is passed on unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from envlock.runtime.errors import OutsideError
from envlock.runtime.installing import explain_installation


class EngineError(OutsideError):
    """An engine cannot be reached, refuses or lacks something, or a build failed."""


class Failure(NamedTuple):
    """A kind of failure.

    Attributes:
        pattern: found in the engine's own text; its groups fill `message`.
        message, hint: how it is reported.
        in_log: whether the output of the build's programs is searched for it, too.
    """

    pattern: str
    message: str
    hint: str
    in_log: bool = False


_SEE_DAEMON = "start Docker (`docker version` shows its state), or name another host in DOCKER_HOST"
_LOGIN = (
    "run `docker login {host}` with a key that can pull it (for nvcr.io the user is $oauthtoken)"
)
_REF = r"(?P<what>[^\s\"']+?)"

FAILURES = [
    Failure(
        r"Invalid bind address protocol: (?P<what>\S+)",
        "the address of the container engine has an unknown scheme: {what}",
        "set DOCKER_HOST to unix:///path, tcp://host:port or ssh://user@host",
    ),
    Failure(
        r"Install paramiko package to enable ssh",
        "this envlock cannot reach a container engine by ssh",
        f"install its extra `ssh`, {explain_installation('cli', 'ssh')}; "
        "or forward the socket with `ssh -nNL`",
    ),
    Failure(
        r"^ssh://(?P<what>\S+) did not answer",
        "no container engine answers on {what}",
        "check that `ssh {what} docker version` works and asks for no password",
    ),
    Failure(
        r"(?i)no space left on device|disk quota exceeded",
        "the disk of the container engine is full",
        "free disk space (`docker system df` shows its use)",
        in_log=True,
    ),
    Failure(
        r"DO NOT MATCH THE HASHES",
        "a wheel differs from the locked one: its hash does not match",
        "run `envlock export --wheelhouse wheelhouse` to download the wheels again",
        in_log=True,
    ),
    Failure(
        r"(?i)Connection aborted.*PermissionError|permission denied while trying to connect",
        "no permission to use the container engine",
        "join the group of its socket (often `docker`), or run as another user",
    ),
    Failure(
        r"(?i)Error while fetching server API version|cannot connect to the docker daemon"
        r"|is the docker daemon running",
        "the container engine does not respond",
        _SEE_DAEMON,
    ),
    Failure(
        r"(?i)code = Unavailable|Connection broken|error reading from server|Remote end closed connection"
        r"|RemoteDisconnected|Connection aborted|code = Canceled",
        "the connection to the container engine was lost",
        "check that it runs (`docker version`), and build again",
    ),
    Failure(
        r"(?i)could not select device driver|(unknown|invalid) runtime (specified|name).*nvidia"
        r"|CDI device injection failed|nvidia-container-cli",
        "the container engine cannot give a GPU to a container",
        "install the NVIDIA container toolkit on the machine of the engine, or leave out `--gpus`",
    ),
    Failure(
        rf"(?i)^push of {_REF}: .*(?:denied|unauthorized|no basic auth credentials|authentication required"
        r"|403 \(?Forbidden)",
        "the registry denies a push to {what}",
        "run `docker login {host}` with a key that can push, or name another repository with `--tag`",
    ),
    Failure(
        rf"(?i)^push of {_REF}: .*(?:name unknown|repository .*(?:not found|does not exist)|NAME_UNKNOWN)",
        "the registry has no repository for {what}",
        "create it there, or name another repository with `--tag`",
    ),
    Failure(
        rf"(?i)^push of {_REF}: .*(?:too large|\b413\b)",
        "the registry of {what}, or a proxy before it, does not take a layer of this size",
        "raise its limit (nginx: `client_max_body_size`), or name another repository with `--tag`",
    ),
    Failure(
        rf"(?i)^pull of {_REF}: .*(?:unauthorized|no basic auth credentials|authentication required)",
        "the registry rejects the login for {what}",
        _LOGIN,
    ),
    Failure(
        rf"(?i)^pull of {_REF}: (?!pull access denied for).*(?:\bdenied|403 \(?Forbidden)",
        "the registry denies access to {what}",
        _LOGIN,
    ),
    Failure(
        rf"(?i)^pull of {_REF}: .*(?:(?:name|manifest)[ _]unknown|not found)",
        "the registry does not have {what}",
        "choose another tag: the publisher may have removed this one",
    ),
    Failure(
        rf"(?i)^(?:push|pull) of {_REF}: .*(?:toomanyrequests|too many requests)",
        "too many requests to the registry of {what}",
        "run `docker login {host}`, or try again later",
    ),
    Failure(
        r"(?i)toomanyrequests|429 Too Many Requests",
        "too many requests to the registry",
        "log in, or try again later",
    ),
    Failure(
        rf"(?i)(?:source metadata for {_REF}: (?:.*)|Get \"https?://{_REF.replace('what', 'host')}/v2.*)"
        r"(?:401 unauthorized|unauthorized$|unauthorized:|no basic auth credentials)",
        "the registry rejects the login for {what}",
        _LOGIN,
    ),
    Failure(
        rf"(?i)source metadata for {_REF}: .*(?:insufficient_scope|access denied|denied:|403 Forbidden)"
        rf"|pull access denied for {_REF.replace('what', 'name')},",
        "the registry denies access to {what}",
        _LOGIN,
    ),
    Failure(
        rf"(?i)image with reference {_REF} was found but does not match the specified platform"
        rf"|source metadata for {_REF.replace('what', 'name')}: no match for platform in manifest"
        r"|no matching manifest for",
        "{what} does not exist for this platform",
        "name another platform, or another base",
    ),
    Failure(
        rf"(?i)(?:manifest for {_REF} not found|source metadata for {_REF.replace('what', 'name')}: .*not found)",
        "the registry does not have {what}",
        "choose another tag: the publisher may have removed this one",
    ),
    Failure(
        r"(?i)https?://(?P<what>[^/\s\"]+)/.*(?:x509: |certificate)",
        "the certificate of {what} is not trusted by the container engine",
        "install its CA certificate: /etc/docker/certs.d/{what}/ca.crt on the machine of the engine",
    ),
    Failure(
        r"(?i)https?://(?P<what>[^/\s\"]+)/.*(?:connection refused|no such host|i/o timeout|handshake timeout"
        r"|network is unreachable|connection reset|deadline exceeded|Client\.Timeout|bad gateway|service unavailable"
        r"|server misbehaving|: EOF)",
        "the container engine cannot reach the registry {what}",
        "check its network and proxy, or name a mirror",
    ),
    Failure(
        r"OCI runtime error: (?P<what>.{1,300})",
        "the container runtime failed: {what}",
        "see `podman info`; `runtime` in containers.conf names another runtime",
    ),
    Failure(
        r"network bridge not found",
        "the container engine has no network for a build",
        "build without a network (the default), or configure one for the engine",
    ),
    Failure(
        r"exec: \\?\"(?P<what>[^\"\\]+)\\?\": (?:executable file not found|stat .*no such file)",
        "the image does not have the program {what}",
        "name a program of the image",
    ),
    Failure(
        r"No such image: (?P<what>\S+)",
        "the container engine does not have the image {what}",
        "build or pull it first",
    ),
    Failure(
        r"(?i)dockerfile parse error (?:on )?(?P<what>line \d+): (?P<said>.*)$",
        "invalid Dockerfile, {what}: {said}",
        "correct it, or let envlock write it again",
    ),
    Failure(
        rf"^(?P<verb>push|pull) of {_REF}: (?P<said>.{{1,300}})",
        "the {verb} of {what} failed: {said}",
        "check the name and the state of its registry, or try again later",
    ),
]

_STEP = re.compile(
    r"process \"(?P<program>.*)\" did not complete successfully: exit code: (?P<code>\d+)"
    r"|The command '(?P<classic>.*)' returned a non-zero code: (?P<classic_code>\d+)"
    r"|building at STEP \"(?P<step>.*)\": while running runtime: exit status (?P<step_code>\d+)",
    flags=re.DOTALL,
)
_STATUS = re.compile(r"[: ]*exit status \d+")
"""The last line of podman after a step that failed; the reason is in an earlier line."""

OURS = "envlock: "
"""The beginning of an error of a program of envlock; a builder may repeat earlier lines after it."""

_TAIL = 400
"""How many of the last lines are searched: after an error, pip prints how to solve it."""


def explain(
    text: str, log: Sequence[str] = (), *, image: str | None = None, program: str = "docker"
) -> EngineError:
    """Return the error for the last lines of an engine.

    Args:
        text: its last lines.
        log: the lines of the build before them.
        image: the requested image, if the text does not name it.
        program: the engine's command, which an unknown text is to be looked into with.
    """
    whole = "\n".join([*log[-_TAIL:], text])
    for failure in FAILURES:
        searched = whole if failure.in_log else text
        match = re.search(failure.pattern, searched, flags=re.MULTILINE)
        if match:
            names = _fill_names(match, image)
            return EngineError(
                failure.message.format_map(names), hint=failure.hint.format_map(names)
            )
    step = _STEP.search(text)
    if step:
        code = step["code"] or step["classic_code"] or step["step_code"]
        message = f"a step of the Dockerfile failed with exit code {code}"
        line = _find_last_line(log)
        if line:
            message += f": {line[:200]}"
        return EngineError(message)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines:
        reason = re.sub("^error: ", "", lines[-1], flags=re.IGNORECASE)[:400]
    else:
        reason = "it gave no reason"
    hint = _SEE_DAEMON if program == "docker" else f"see `{program} info`"
    return EngineError(f"the container engine failed: {reason}", hint=hint)


def _find_last_line(log: Sequence[str]) -> str:
    """Return the last line of a program of envlock, else the last line of any program; "" without
    lines.
    """
    last = ""
    for line in map(str.strip, reversed(log)):
        if line.startswith(OURS):
            return line
        if not last and line and not _STATUS.fullmatch(line):
            last = line
    return last


def _fill_names(match: re.Match[str], image: str | None) -> dict[str, str]:
    """Return the names in a text, with the image and the registry that it is about."""
    names = {"said": "", **{name: value for name, value in match.groupdict().items() if value}}
    subjects = (names.get("what"), names.get("name"), image, names.get("host"), "the image")
    what = next(filter(None, subjects))
    if "host" not in names:
        first, slash, _ = what.partition("/")
        # Docker's rule: a first part without a dot and a colon is a repository of Docker Hub.
        names["host"] = first if slash and ("." in first or ":" in first) else "docker.io"
    names["what"] = what
    return names


_COLOR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_WRITTEN = re.compile(
    r"#\d+ (?:writing image|exporting config|exporting manifest) (sha256:[0-9a-f]{64})"
)
_SPOKEN = re.compile(r"#\d+ \d+\.\d+ (.*)")
_BUILDER = re.compile(
    r"#\d+ |Step \d+/\d+ :| ---> |Removing intermediate|Removed intermediate|---+$| > \[|Dockerfile:|ERROR: |\d+\.\d+ "
    r"|\s*\d+ \||(\[\d+/\d+\] )?STEP \d+/\d+: |--> |Error: |error building "
)
"""The beginning of a line of the builder itself: of BuildKit, the classic builder or podman."""

_RUNNING = re.compile(r" ---> Running in ([0-9a-f]{12})\s*$")
_IMAGE_LINE = re.compile(r" ---> ([0-9a-f]{12})\s*$")


@dataclass
class Trail:
    """What a build creates on its host, in the order of creation."""

    images: list[str] = field(default_factory=list)
    containers: list[str] = field(default_factory=list)


def strip_colors(line: str) -> str:
    """Return a line without colours and line end."""
    return _COLOR.sub("", line).rstrip("\r\n")


def follow_buildx(line: str, trail: Trail) -> None:
    """Record the image that a line of `docker buildx build --progress=plain` reports as written."""
    found = _WRITTEN.match(line)
    if found and found[1] not in trail.images:
        trail.images.append(found[1])


def follow_classic(message: Mapping[str, Any], trail: Trail) -> list[str]:
    """Return the lines of a message of the classic builder; record the images and containers in
    them.
    """
    if "stream" in message:
        lines = [strip_colors(line) for line in str(message["stream"]).splitlines()]
        for line in lines:
            container, image = _RUNNING.match(line), _IMAGE_LINE.match(line)
            if container:
                trail.containers.append(container[1])
            elif image:
                trail.images.append(image[1])
        return [line for line in lines if line]
    if "aux" in message:
        name = (message["aux"] or {}).get("ID")
        if name:
            trail.images.append(str(name))
        return []
    if "error" in message:
        return [strip_colors(str(message["error"]))]
    return list_pull_lines(message)


def list_pull_lines(message: Mapping[str, Any]) -> list[str]:
    """Return the line of a message of a pull; empty for a message that only counts bytes."""
    status = message.get("status")
    if not status or message.get("progressDetail"):
        return []
    text = f"{message['id']}: {status}" if message.get("id") else str(status)
    return [strip_colors(text)]


def select_output(lines: Iterable[str]) -> list[str]:
    """Return the lines that the programs of a build printed, from the output of its builder."""
    output = []
    for line in lines:
        of_program = _SPOKEN.match(line)
        if of_program:
            output.append(of_program[1])
        elif not _BUILDER.match(line):
            output.append(line)
    return output
