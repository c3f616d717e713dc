"""The result file of `make testgpu`: its models, which are its schema, and what must never stand in it."""

from __future__ import annotations

import getpass
import re
import socket
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
PATH = re.compile(r"(?<![\w.])/(?:[\w.+@-]+/)+[\w.+@-]*")
PRIVATE = re.compile(
    r"\b(?:GPU|MIG)-(?!00000000-0000-4000-8000-)[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.\d\b",
    re.IGNORECASE,
)
"""A UUID of a GPU that no profile has made up, or a bus id."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CaseResult(_Model):
    """What a case gave: how often each result came, and the errors."""

    name: str
    program: str
    rows: tuple[str, ...]
    environ: dict[str, str | None]
    determinism: bool
    device: Literal["GPU", "CPU"]
    processes: int
    calls: int
    digests: dict[Digest, int]
    errors: tuple[str, ...]
    told: dict[str, str] = {}


class Experiment(_Model):
    """The cases of one of the eleven experiments, and why some could not be run here."""

    number: Annotated[int, Field(ge=1, le=11)]
    title: str
    cases: tuple[CaseResult, ...]
    not_run: tuple[str, ...] = ()


class Verdict(_Model):
    """What a command of envlock said of a program."""

    program: str
    verdict: str
    culprit: str | None
    line: int | None
    mark: str


class Machine(_Model):
    """What was measured on: no host name, no user, no serial number."""

    tensorflow: str
    keras: str | None
    python: str
    system: str
    processor: str
    gpus: tuple[str, ...]
    driver: str | None
    cuda: str | None
    cudnn: str | None


class Result(_Model):
    """A result file."""

    version: Literal[1] = 1
    stand_in: bool
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    machine: Machine
    nvml: dict[str, Any] | None
    experiments: tuple[Experiment, ...]
    canary: dict[str, dict[str, str]]
    repeat: dict[str, str]
    zoo: tuple[Verdict, ...]
    cpu_against_gpu: dict[str, str]
    failures: tuple[str, ...] = ()


def redacted(text: str) -> str:
    """Return a text without paths, and without the names of this machine and of its user."""
    for name in {socket.gethostname(), getpass.getuser()}:
        if len(name) > 3:  # the users `root` and `vm` do not identify anyone
            text = text.replace(name, "<redacted>")
    return PRIVATE.sub("<redacted>", PATH.sub("<path>", text))


def private(text: str) -> list[str]:
    """Return what a result file holds that it must not: paths of the user, names, UUIDs, bus ids."""
    names = [name for name in {socket.gethostname(), getpass.getuser()} if len(name) > 4]
    found = [f"the name {name}" for name in names if re.search(rf"\b{re.escape(name)}\b", text)]
    found += (
        [f"the folder {Path.home()}"]
        if str(Path.home()) != "/root" and str(Path.home()) in text
        else []
    )
    return found + [f"an identity {each}" for each in PRIVATE.findall(text)]
