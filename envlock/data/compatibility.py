"""The versions that each TensorFlow supports, as typed rows; for the authoring half."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from envlock.data import Horizon, Minor, Row, Sentence, Text, read
from envlock.data.specifiers import Specifiers, matches_version
from envlock.runtime.release import parse_release

BINDING = "nvidia-ml-py"
PATCH = "framework-reproducibility"


class Needs(Row):
    """The requirements of a TensorFlow (compatibility.toml explains the columns)."""

    tensorflow: Minor
    package: Literal["numpy", "protobuf", "keras", "keras-nightly"]
    takes: Text
    source: Text


class Breaks(Row):
    """A combination that was run and failed."""

    tensorflow: Specifiers
    package: Literal["numpy", "protobuf", "keras"]
    versions: Text
    what: Sentence
    source: Text


class Ptx(Row):
    """The CUDA that a driver needs for the PTX of a TensorFlow."""

    tensorflow: Specifiers
    cuda: Minor
    source: Text


class Fails(Row):
    """GPUs on which the official wheels of a TensorFlow fail, and what runs on them."""

    tensorflow: Specifiers
    capabilities: Annotated[list[Minor], Field(min_length=1)]
    why: Sentence
    works: Text
    source: Text


class Follows(Row):
    """An add-on whose minor version is that of its TensorFlow."""

    package: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    source: Text


class Added(Row):
    """The versions of a distribution that a fix installs."""

    package: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    takes: Text
    source: Text


class CompatibilityTable(Row):
    """compatibility.toml."""

    horizon: Horizon
    evidence: dict[str, Text]
    needs: list[Needs]
    breaks: list[Breaks]
    ptx: list[Ptx]
    fails: list[Fails]
    follows: list[Follows]
    added: list[Added]


@cache
def load_compatibility_table() -> CompatibilityTable:
    """Return the versions that each TensorFlow supports."""
    return CompatibilityTable.model_validate(read("compatibility"))


def is_of_an_index(tensorflow: str) -> bool:
    """Return whether a version of TensorFlow can be that of a wheel of the package index.

    Indexes take no local versions, such as the `+selfbuilt` of a wheel that somebody compiled, or
    the `+nv25.2` of NVIDIA's; source: PEP 440, Local version identifiers.
    """
    return "+" not in tensorflow


def find_ptx_cuda(tensorflow: str) -> str | None:
    """Return the CUDA that a driver needs for the PTX of a TensorFlow; None where it is unknown.

    The table is about the wheels of the package index.
    """
    if not is_of_an_index(tensorflow):
        return None
    for row in load_compatibility_table().ptx:
        if matches_version(row.tensorflow, tensorflow):
            return row.cuda
    return None


def find_failure(tensorflow: str, capability: str) -> Fails | None:
    """Return how official wheels of a TensorFlow fail on a GPU for which they have no machine code.

    It is None where there are no reports, and of any other wheel.
    """
    if not is_of_an_index(tensorflow):
        return None
    for row in load_compatibility_table().fails:
        if capability in row.capabilities and matches_version(row.tensorflow, tensorflow):
            return row
    return None


def find_series(package: str, tensorflow: str) -> str | None:
    """Return the versions of an add-on that go with a TensorFlow; None if it has its own numbers."""
    release = parse_release(tensorflow)
    if len(release) < 2 or package not in [
        row.package for row in load_compatibility_table().follows
    ]:
        return None
    major, minor = release[:2]
    return f">={major}.{minor},<{major}.{minor + 1}"


def get_fixed_versions(package: str) -> str:
    """Return the specifier for the versions of a distribution that a fix installs."""
    return next(row.takes for row in load_compatibility_table().added if row.package == package)
