"""The claims of the texts that this project began with (advice.toml explains the columns), as typed rows."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).with_name("advice.toml")
VERSIONS = ("2.15.1", "2.18.1", "2.21.0")
"""The TensorFlows with which every outcome in `shown` was seen, and is seen anew by tests/real/test_advice.py."""

Outcome = Literal["equal", "differs", "on", "off", "raises", "read", "unread"]


class Claim(BaseModel):
    """One thing that a text says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^[a-z-]+$")]
    text: str
    says: str
    holds: list[str]
    today: str
    envlock: str
    shown: dict[str, Outcome] = Field(default_factory=dict)
    source: str | None = None
    tensorflow: str = "2.21.0"
    lint: str | None = None
    code: str | None = None
    right: str | None = None
    doctor: str | None = None
    environ: dict[str, str] = Field(default_factory=dict)
    packages: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _whole(self) -> Claim:
        """Whatever is claimed is backed by a run or a source, and what fires has something to fire on."""
        assert self.shown or self.source, "neither shown nor known from anywhere"
        assert (self.lint is None) == (self.code is None), "a rule of the linter goes with code"
        assert self.right is None or self.code is not None, "what is right goes with what is not"
        return self


@cache
def claims() -> list[Claim]:
    """Return every claim."""
    return [Claim.model_validate(row) for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["claim"]]


@cache
def texts() -> dict[str, str]:
    """Return what each text is, in a few words."""
    found: dict[str, str] = tomllib.loads(TABLE.read_text(encoding="utf-8"))["texts"]
    return found
