"""The models of `numerics`: the exact results of the canary's operations, and under which conditions they came."""

import struct
from math import isnan, prod
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from envlock.lock.fields import Count, Sha256, Strict, Version, Word

SAMPLES = 64
_EXPONENT = r"(\+([0-9]{1,3}|10[01][0-9]|102[0-3])|-([0-9]{1,3}|10[01][0-9]|102[0-2]))"  # else no float64 holds it
_NUMBER = rf"(nan|-?inf|-?0x[01](\.[0-9a-f]{{1,13}})?p{_EXPONENT})"

Sample = Annotated[str, Field(max_length=26 * SAMPLES, pattern=rf"^{_NUMBER}( {_NUMBER}){{0,{SAMPLES - 1}}}$")]
"""Values as hexadecimal numbers, which are exact, with a blank between them."""
OperationName = Annotated[str, Field(max_length=64, pattern=r"^[a-z0-9]+(_[a-z0-9]+)*$")]
GroupName = Annotated[str, Field(max_length=64, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
DeviceName = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.()/+-]*$")]
Ending = Annotated[
    str,
    Field(
        max_length=64,
        pattern=r"^(signal [0-9]{1,3}( \(SIG[A-Z0-9+]+\))?|exit code [0-9]{1,3}|no answer within [0-9.]{1,8} s)$",
    ),
]
Threads = Annotated[int, Field(ge=1, le=4096)] | Literal["environment"]


class Conditions(Strict):
    """What the canary itself sets, and what it leaves as the environment has it (`environment`).

    Results compare only where all of this is equal. What is left to the environment is what is being compared.
    """

    device: DeviceName
    execution: Literal["eager", "graph", "xla", "library"]
    intra_op_threads: Threads
    inter_op_threads: Threads
    determinism: Literal["on", "off", "environment"]
    onednn: Literal["environment"] = "environment"
    xla: Literal["environment"] = "environment"


class Operation(Strict):
    """The result of an operation: its digest and a sample of its values.

    In their place stands `unstable` where it differed from itself within one process, or `failed`, the kind of error.
    The digest is that of type, shape and bytes. The sample is up to 64 values, evenly spaced.
    """

    dtype: Literal["<f4", "<f8"] | None = None
    shape: Annotated[list[Annotated[int, Field(ge=1, le=2**40)]], Field(max_length=8)] | None = None
    sha256: Sha256 | None = None
    sample: Sample | None = None
    unstable: Literal[True] | None = None
    failed: Word | None = None

    @model_validator(mode="after")
    def _one_of_three(self) -> "Operation":
        computed = self.sha256 is not None and self.sample is not None
        if (self.sha256 is None) != (self.sample is None) or [
            computed,
            self.unstable is not None,
            self.failed is not None,
        ].count(True) != 1:
            raise ValueError("it must have a digest and a sample, or be unstable, or have failed")
        if self.failed is None and (self.dtype is None or self.shape is None):
            raise ValueError("it must have a type and a shape")
        if self.sample is not None and len(self.values) != min(self.size, SAMPLES):
            raise ValueError(f"its sample must have {min(self.size, SAMPLES)} values")
        if self.dtype == "<f4" and not all(map(_is_float32, self.values)):
            raise ValueError("its sample must consist of float32")
        return self

    @property
    def size(self) -> int:
        """The number of values of the whole result; 0 where there is none."""
        return 0 if self.shape is None else prod(self.shape)

    @property
    def values(self) -> list[float]:
        """The sample as numbers."""
        return [] if self.sample is None else [float.fromhex(text) for text in self.sample.split(" ")]


def _is_float32(value: float) -> bool:
    try:
        return isnan(value) or bool(struct.unpack("<f", struct.pack("<f", value))[0] == value)
    except OverflowError:
        return False


class Group(Strict):
    """Operations that were computed under the same conditions.

    `ended` says how the process ended that computed them, where it did not live: such as `signal 11 (SIGSEGV)`.
    """

    conditions: Conditions
    operations: Annotated[dict[OperationName, Operation], Field(max_length=200)]
    ended: Ending | None = None


class Numerics(Strict):
    """The canary: a fixed battery of operations, with the versions that computed it.

    `battery` is raised with every change of an operation; results of different batteries do not compare.
    """

    battery: Count
    tensorflow: Version
    numpy: Version
    groups: Annotated[dict[GroupName, Group], Field(max_length=100)]


def answered(answer: dict[str, Any]) -> Numerics:
    """Return what a child process has computed, every field checked.

    Raises:
        ValueError: a field is not what the format says; the message names the first.
    """
    try:
        return Numerics.model_validate(answer)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"`{'.'.join(map(str, first['loc']))}`: {first['msg']}") from None
