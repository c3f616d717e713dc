"""The section `numerics` of the format: the exact results of the canary and of programs."""

import struct
from math import isnan, prod
from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationError, model_validator

from envlock.data.replay_table import load_replay_table
from envlock.lock.fact_models import Count, Sha256, Strict, Version, Word

SAMPLES = 64  # values of a result that a lockfile keeps beside its digest, to say how far results are apart
# A number with a larger or smaller exponent does not exist in float64.
_EXPONENT = r"(\+([0-9]{1,3}|10[01][0-9]|102[0-3])|-([0-9]{1,3}|10[01][0-9]|102[0-2]))"
_NUMBER = rf"(nan|-?inf|-?0x[01](\.[0-9a-f]{{1,13}})?p{_EXPONENT})"

Sample = Annotated[
    str, Field(max_length=26 * SAMPLES, pattern=rf"^{_NUMBER}( {_NUMBER}){{0,{SAMPLES - 1}}}$")
]
"""Values as hexadecimal numbers, which are exact, separated by spaces."""
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
    """The settings that the canary applies itself, and those that it leaves to the environment
    (`environment`).

    Results can be compared only if all of these are equal. The settings that are left to the
    environment are what the comparison is about.
    """

    device: DeviceName
    execution: Literal["eager", "graph", "xla", "library"]
    intra_op_threads: Threads
    inter_op_threads: Threads
    determinism: Literal["on", "off", "environment"]
    onednn: Literal["environment"] = "environment"
    xla: Literal["environment"] = "environment"


class Operation(Strict):
    """The result of an operation: the digest of its type, shape and bytes, and a sample of its
    values.

    Instead, an operation has `unstable` if two results within one process differed, or `failed`,
    the type of the error. The sample is up to 64 values, evenly spaced.
    """

    dtype: Literal["<f4", "<f8"] | None = None
    shape: Annotated[list[Annotated[int, Field(ge=1, le=2**40)]], Field(max_length=8)] | None = None
    sha256: Sha256 | None = None
    sample: Sample | None = None
    unstable: Literal[True] | None = None
    failed: Word | None = None
    most: ClassVar[int] = SAMPLES

    @model_validator(mode="after")
    def _check_result(self) -> "Operation":
        is_computed = self.sha256 is not None and self.sample is not None
        states = [is_computed, self.unstable is not None, self.failed is not None]
        if (self.sha256 is None) != (self.sample is None) or states.count(True) != 1:
            raise ValueError("it must have a digest and a sample, or be unstable, or have failed")
        if self.failed is None and (self.dtype is None or self.shape is None):
            raise ValueError("it must have a type and a shape")
        if self.sample is not None and len(self.values) != min(self.size, self.most):
            raise ValueError(f"its sample must have {min(self.size, self.most)} values")
        if self.dtype == "<f4" and not all(map(_is_float32, self.values)):
            raise ValueError("its sample must consist of float32")
        return self

    @property
    def size(self) -> int:
        """The number of values in the whole result; 0 without a result."""
        if self.shape is None:
            return 0
        return prod(self.shape)

    @property
    def values(self) -> list[float]:
        """The sample as numbers."""
        if self.sample is None:
            return []
        return [float.fromhex(text) for text in self.sample.split(" ")]


def _is_float32(value: float) -> bool:
    try:
        return isnan(value) or bool(struct.unpack("<f", struct.pack("<f", value))[0] == value)
    except OverflowError:
        return False


class Group(Strict):
    """Operations that were computed under the same conditions.

    `ended` says how the process that computed them crashed, if it did, such as `signal 11
    (SIGSEGV)`.
    """

    conditions: Conditions
    operations: Annotated[dict[OperationName, Operation], Field(max_length=200)]
    ended: Ending | None = None


LeftOut = Literal[
    "state",
    "text",
    "random",
    "control",
    "unlisted",
    "large",
    "shape",
    "empty",
    "failed",
    "unstable",
    "ended",
    "time",
    "room",
]
Size = Annotated[int, Field(ge=0, le=2**31)]
Number = int | float
AttributeText = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9_.,>() +*/-]*$")]
Attribute = bool | Number | AttributeText | Annotated[list[Number], Field(max_length=100)]
TypeName = Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z_][A-Za-z0-9_>]*$")]
FieldName = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
TargetName = Annotated[
    str, Field(max_length=300, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./-]*:[A-Za-z_][A-Za-z0-9_.]*$")
]
MOST_VALUES, MOST_INPUTS, MOST_PROGRAM = 64, 200, 500
MOST_NUMBERS = 2**29
"""Numbers in the inputs of an operation; 512 MiB in all are computed."""


DType = Literal[
    "bool",
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


class Input(Strict):
    """An input of an operation: a tensor of this type and shape.

    It has values only if they determine a shape.
    """

    dtype: DType
    shape: Annotated[list[Size], Field(max_length=8)]
    values: Annotated[list[bool | Number], Field(max_length=MOST_VALUES)] | None = None

    @model_validator(mode="after")
    def _check_values(self) -> "Input":
        if self.values is not None and len(self.values) != prod(self.shape):
            raise ValueError("it must have as many values as its shape says")
        return self

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class Noted(Strict):
    """An operation of a program, with everything that determines its result.

    replay.toml lists the types of operations.
    """

    type: TypeName
    inputs: Annotated[list[Input], Field(max_length=MOST_INPUTS)]
    attributes: Annotated[dict[FieldName, Attribute], Field(max_length=30)]

    @model_validator(mode="after")
    def _check_limits(self) -> "Noted":
        if self.type not in load_replay_table().operations:
            raise ValueError("no operation of this type is run from a lockfile")
        if sum(prod(each.shape) for each in self.inputs) > MOST_NUMBERS:
            raise ValueError("its inputs are too large")
        return self

    def __str__(self) -> str:
        return f"{self.type} of {', '.join(map(str, self.inputs))}"


class Alone(Operation):
    """The result of a program's operation: a digest of all its tensors, and 8 of their numbers."""

    most: ClassVar[int] = 8


class Replayed(Noted):
    """An operation of a program, and its result for inputs that are generated from a counter."""

    result: Alone


class Coverage(Strict):
    """How many different operations a program ran, and how many of them are computed again.

    `left_out` says why the others are not.
    """

    distinct: Count
    covered: Count
    left_out: dict[LeftOut, dict[TypeName, Count]]
    cut: Literal[True] | None = None

    @model_validator(mode="after")
    def _check_sum(self) -> "Coverage":
        left_out = sum(sum(counts.values()) for counts in self.left_out.values())
        if self.covered + left_out != self.distinct:
            raise ValueError("what is covered and what is left out must be all operations")
        return self


class Program(Strict):
    """The operations that programs of the project run, each computed on its own."""

    conditions: Conditions
    targets: Annotated[dict[TargetName, Coverage], Field(min_length=1, max_length=20)]
    operations: Annotated[dict[OperationName, Replayed], Field(max_length=MOST_PROGRAM)]


class Numerics(Strict):
    """The results of the canary, a fixed battery of operations, and those of a program's
    operations.

    `battery` is increased with every change of an operation: results of different batteries cannot
    be compared.
    """

    battery: Count
    tensorflow: Version
    numpy: Version
    groups: Annotated[dict[GroupName, Group], Field(max_length=100)]
    program: Program | None = None


def parse_numerics(answer: dict[str, object]) -> Numerics:
    """Return the results of a child process after checking every field.

    Raises:
        ValueError: a field does not follow the format; the message names the first.
    """
    try:
        return Numerics.model_validate(answer)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"`{'.'.join(map(str, first['loc']))}`: {first['msg']}") from None


def is_noted(operation: dict[str, object]) -> bool:
    """Return whether the format can represent an operation of a program."""
    try:
        Noted.model_validate(operation)
    except ValidationError:
        return False
    return True
