"""The section `program` of the format: digests of what TensorFlow really runs of the project's functions."""

from typing import Annotated, Literal

from pydantic import Field, ValidationError

from envlock.lock.fact_models import Count, Sha256, Strict, Text, Version, Word
from envlock.lock.numerics import TargetName

SourcePath = Annotated[str, Field(max_length=400, pattern=r"^[A-Za-z0-9_.,+=@%/-]+$")]
PartName = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z_<][A-Za-z0-9_<>.-]*$")]


class ProgramPart(Strict):
    """A function, or what runs eagerly beside all functions.

    `digest` is that of its canonical form: `xla`, the modules that XLA compiled; `graph`, the graph before it is
    rewritten; `eager`, the list of operations. `operations` says how many instructions, nodes or operations it has.
    """

    kind: Literal["xla", "graph", "eager"]
    digest: Sha256
    operations: Count


class TargetProgram(Strict):
    """The parts of one function of the project; of a Keras model `train`, `evaluate` and `predict`.

    `code` has the digests of the project's own files that it has imported: the parts compare while these are equal.
    """

    code: Annotated[dict[SourcePath, Sha256], Field(min_length=1, max_length=10_000)]
    parts: Annotated[dict[PartName, ProgramPart], Field(min_length=1, max_length=100)]


class Programs(Strict):
    """What runs, by the names of functions.

    It compares within one version of TensorFlow. `switches` decide how a graph is rewritten before it runs,
    and how XLA makes machine code of instructions.
    """

    tensorflow: Version
    switches: Annotated[dict[Word, Text], Field(max_length=100)]
    targets: Annotated[dict[TargetName, TargetProgram], Field(min_length=1, max_length=20)]


def parse_programs(section: dict[str, object]) -> Programs:
    """Return what was seen of programs, every field checked.

    Raises:
        ValueError: a field does not follow the format; the message names the first.
    """
    try:
        return Programs.model_validate(section)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"`{'.'.join(map(str, first['loc']))}`: {first['msg']}") from None
