"""What builders print, as lines for people and names of what they made. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_COLOR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_WRITTEN = re.compile(r"#\d+ (?:writing image|exporting config|exporting manifest) (sha256:[0-9a-f]{64})")
_SPOKEN = re.compile(r"#\d+ \d+\.\d+ (.*)")
_BUILDER = re.compile(
    r"#\d+ |Step \d+/\d+ :| ---> |Removing intermediate|Removed intermediate|---+$| > \[|Dockerfile:|ERROR: |\d+\.\d+ "
    r"|\s*\d+ \|"
)
"""Lines of the builder's own, old and new."""

_RUNNING = re.compile(r" ---> Running in ([0-9a-f]{12})\s*$")
_STEP = re.compile(r" ---> ([0-9a-f]{12})\s*$")


@dataclass
class Trail:
    """What a build leaves on the engine, in the order in which it came to be."""

    images: list[str] = field(default_factory=list)
    containers: list[str] = field(default_factory=list)


def plain(line: str) -> str:
    """Return a line without colours and without the end of the line."""
    return _COLOR.sub("", line).rstrip("\r\n")


def follow_buildx(line: str, trail: Trail) -> None:
    """Note the image that a line of `docker buildx build --progress=plain` names as written."""
    found = _WRITTEN.match(line)
    if found and found[1] not in trail.images:
        trail.images.append(found[1])


def follow_classic(message: Mapping[str, Any], trail: Trail) -> list[str]:
    """Return the lines of a message of the classic builder, and note the images and containers that it names."""
    if "stream" in message:
        lines = [plain(line) for line in str(message["stream"]).splitlines()]
        for line in lines:
            if container := _RUNNING.match(line):
                trail.containers.append(container[1])
            elif image := _STEP.match(line):
                trail.images.append(image[1])
        return [line for line in lines if line]
    if "aux" in message:
        name = (message["aux"] or {}).get("ID")
        if name:
            trail.images.append(str(name))
        return []
    if "error" in message:
        return [plain(str(message["error"]))]
    return pulled(message)


def pulled(message: Mapping[str, Any]) -> list[str]:
    """Return the line of a message of a pull; what only counts bytes is left out."""
    status = message.get("status")
    if not status or message.get("progressDetail"):
        return []
    return [plain(f"{message['id']}: {status}" if message.get("id") else str(status))]


def words(lines: Iterable[str]) -> list[str]:
    """Return what the programs of a build printed, of all that its builder printed."""
    found = []
    for line in lines:
        if spoken := _SPOKEN.match(line):
            found.append(spoken[1])
        elif not _BUILDER.match(line):
            found.append(line)
    return found
