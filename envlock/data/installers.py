"""The options of installers, as typed rows."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import Field

from envlock.data import Row, Text, read

Words = Annotated[list[Text], Field(min_length=1)]


class Installer(Row):
    """The commands of one installer (installers.toml explains the columns)."""

    name: Annotated[str, Field(pattern=r"^[a-z-]+$")]
    recorded: Text
    install: Words
    alone: Text
    fresh: Text
    uninstall: Words
    source: Text


class InstallerTable(Row):
    """installers.toml."""

    installer: list[Installer]
    evidence: dict[str, Text]


@cache
def load_installers() -> dict[str, Installer]:
    """Return the installers by name."""
    return {row.name: row for row in InstallerTable.model_validate(read("installers")).installer}
