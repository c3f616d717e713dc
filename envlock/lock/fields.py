"""The kinds of text and number a lockfile may hold, and the model all others are made from.

Texts are constrained here, so that nothing from a lockfile can reach a shell or a Dockerfile unseen.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f]*$")]
Word = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")]
Version = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9.!+_-]*$")]
PackageName = Annotated[str, Field(max_length=128, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
VariableName = Annotated[str, Field(max_length=128, pattern=r"^[A-Z][A-Z0-9_]*$")]
WheelTag = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9_.]+-[A-Za-z0-9_.]+-[A-Za-z0-9_.]+$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Hex = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
FactPath = Annotated[str, Field(max_length=300, pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")]
PathPattern = Annotated[str, Field(max_length=300, pattern=r"^[A-Za-z0-9_*-]+(\.[A-Za-z0-9_*-]+)*$")]
PciId = Annotated[str, Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{4}$")]
DeviceIndex = Annotated[str, Field(pattern=r"^[0-9]{1,3}$")]
Count = Annotated[int, Field(ge=0)]


class Strict(BaseModel):
    """No unknown fields, no conversions, no changes afterwards."""

    # no namespace is protected: a processor has a `model_name`, and pydantic before 2.10 would warn of it
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True, protected_namespaces=())
