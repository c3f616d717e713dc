"""The tables that the runtime half has in part, as JSON: facts, variables, GPUs, CUDA, files,
launchers.

These rows are for the authoring half, and for the generator that writes the JSON.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from envlock.data import Horizon, Minor, Row, Sentence, Table, Text, VariableName, Version, read

Rule = Literal[
    "exact",
    "exact_where_asked",
    "exact_where_locked",
    "exact_or_unset",
    "same_minor",
    "at_least",
    "superset",
    "within_3_percent",
    "proven",
    "ignore",
]
PROVEN = "proven"
"""The rule under which a fact may differ if the canary has given the locked bits."""
ABOUT_BITS = {"yes": 92, "unknown": 70, "conditional": 75, "hardware": 78, "memory": 50}
"""How likely a changed variable explains changed bits (0 to 100), depending on what is known about
it.

policy.toml explains the scale.
"""
NOT_ABOUT_BITS = 30
"""The same for a variable that changes no bits."""


UNSET = "unset"
"""A variable without a value, among its values."""


class Variable(Row):
    """An environment variable that can change bits (environ.toml explains the columns)."""

    name: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
    component: Text
    read_by: Text
    tensorflow: list[Text]
    read_at: Literal["process-start", "any-time"]
    records: Literal["bool", "integer", "word", "flags", "devices", "digest"]
    words: list[Annotated[str, Field(pattern=r"^([A-Za-z][A-Za-z0-9_]*|#)$")]] = Field(default=[])
    flags: list[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]] = Field(default=[])
    as_unset: list[str] = Field(default=[])
    same: list[Annotated[list[str], Field(min_length=2)]] = Field(default=[])
    as_written: bool = False
    names: Literal["file", "flags", "folder", "libraries", "search", "tunables"] | None = None
    packages: list[Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]] = Field(default=[])
    computing: list[Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9_+.-]*$")]] = Field(default=[])
    harmless: list[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.]*$")]] = Field(default=[])
    effect: Annotated[str, Field(pattern=r"^[a-z_]+(\.[a-z_]+)+$")] | None = None
    bits: Literal["yes", "conditional", "hardware", "memory", "unknown", "no"]
    strict: Literal["exact", "exact_where_asked", "exact_where_locked", "ignore"] = "exact"
    functional: Literal["exact", "ignore"]
    why: Sentence
    sources: Annotated[list[Text], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_words(self) -> Variable:
        if bool(self.words) != (self.records in ("word", "flags")):
            raise ValueError(
                f"{self.name}: words belong to the kinds word and flags, and to no other"
            )
        if bool(self.flags) != (self.records == "flags"):
            raise ValueError(f"{self.name}: flags belong to the kind flags, and to no other")
        return self

    @model_validator(mode="after")
    def _check_same(self) -> Variable:
        values = [value for group in self.same for value in group]
        if len(set(values)) != len(values) or UNSET in [
            v for group in self.same for v in group[1:]
        ]:
            raise ValueError(f"{self.name}: a value stands in one group, and {UNSET} is its first")
        return self

    @property
    def weight(self) -> int:
        """How likely a different value of this variable explains different bits (0 to 100)."""
        return ABOUT_BITS.get(self.bits, NOT_ABOUT_BITS)

    @property
    def fix(self) -> str:
        """A remedy for a difference, as a sentence."""
        return (
            f"Set or unset {self.name} as locked, before the process starts (`envlock run` does)."
        )


class Fact(Row):
    """A path pattern, its rules and its reason (policy.toml explains the columns)."""

    path: Annotated[str, Field(pattern=r"^[A-Za-z0-9_*.-]+$")]
    why: Sentence
    fix: Sentence
    source: Text
    weight: Annotated[int, Field(ge=0, le=100)]
    strict: Rule
    same_arch: Rule
    bits: Rule
    functional: Rule
    witness: list[Text] = Field(default=[])

    @model_validator(mode="after")
    def _check_witness(self) -> Fact:
        is_proven = PROVEN in (self.strict, self.same_arch, self.bits, self.functional)
        if is_proven != bool(self.witness):
            raise ValueError(
                f"{self.path}: a row with the rule {PROVEN} names what witnesses it, and no other"
            )
        operations = {row["name"] for row in read("canary")["operation"]}
        unknown = sorted(set(self.witness) - operations)
        if unknown or len(set(self.witness)) != len(self.witness):
            raise ValueError(f"{self.path}: no operations of the canary, or twice: {unknown}")
        return self


class ExemptionRow(Row):
    """Who can let a difference pass (policy.toml explains the columns)."""

    owner: Annotated[str, Field(pattern=r"^[a-z]+(\.[a-z]+)*$")]
    noun: Text
    after: str = ""
    forbidden: bool
    headline: bool
    why: Sentence
    source: Text


class PolicyTable(Row):
    """policy.toml."""

    evidence: dict[str, Text]
    machine: Annotated[list[Text], Field(min_length=1)]
    protected: Annotated[list[Text], Field(min_length=1)]
    policies: dict[str, Text]
    exemption: list[ExemptionRow]
    fact: list[Fact]

    @field_validator("fact", mode="before")
    @classmethod
    def _expand_paths(cls, rows: list[Table]) -> list[Table]:
        """Return a row for each of the `paths` that share a reason."""
        expanded = []
        for row in rows:
            common = {"bits": row["same_arch"], **row}
            paths = common.pop("paths", [row.get("path")])
            if not isinstance(paths, list):
                raise ValueError("`paths` must be a list")
            expanded += [{**common, "path": path} for path in paths]
        return expanded


@cache
def load_policy_table() -> PolicyTable:
    """Return the paths, their rules and their reasons."""
    return PolicyTable.model_validate(read("policy"))


@cache
def load_variables() -> tuple[Variable, ...]:
    """Return the determinism variables, sorted by name."""
    return tuple(Variable.model_validate(row) for row in read("environ")["variable"])


@cache
def load_cpu_flags() -> list[str]:
    """Return the CPU flags that choose kernels, sorted."""
    flags: set[str] = set()
    for row in read("cpu_flags")["group"]:
        flags.update(FlagGroup.model_validate(row).flags)
    return sorted(flags)


class FlagGroup(Row):
    """CPU flags that share a reason (cpu_flags.toml)."""

    machine: Literal["x86-64", "aarch64"]
    flags: list[Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]]
    why: Sentence
    sources: Annotated[list[Text], Field(min_length=1)]


class NvmlNumber(Row):
    """The meaning of one of NVML's numbers (gpu.toml)."""

    number: Annotated[int, Field(ge=0)]
    name: Text
    source: Text


class CoresPerSm(Row):
    """CUDA cores of one multiprocessor, and the GPUs that this holds for (gpu.toml)."""

    cores: Annotated[int, Field(ge=1)]
    compute_capabilities: Annotated[list[Minor], Field(min_length=1)]
    source: Text


class GpuTable(Row):
    """gpu.toml."""

    evidence: dict[str, Text]
    architecture: list[NvmlNumber]
    virtualization: list[NvmlNumber]
    compute_mode: list[NvmlNumber]
    cores_per_sm: list[CoresPerSm]


@cache
def load_gpu_table() -> GpuTable:
    """Return the meanings of NVML's numbers."""
    return GpuTable.model_validate(read("gpu"))


class CudnnPart(Row):
    """A library that cuDNN opens by itself (cuda.toml explains the columns)."""

    cudnn: Annotated[str, Field(pattern=r"^\d+$")]
    name: Annotated[str, Field(pattern=r"^[a-z_]+$")]
    asker: Annotated[str, Field(pattern=r"^cudnn(_[a-z_]+)?$")]
    optional: bool = False
    source: Text


class TensorrtNumber(Row):
    """The TensorRT that a TensorFlow loads."""

    tensorflow: Minor
    number: Version
    source: Text


class PtxIsa(Row):
    """The first CUDA whose driver compiles a version of PTX."""

    isa: Minor
    cuda: Minor
    source: Text


class OtherUser(Row):
    """An importable package that loads CUDA libraries of its own."""

    package: Annotated[str, Field(pattern=r"^[a-z_]+$")]
    source: Text


class SourcedVersion(Row):
    """A version with its source."""

    version: Version
    source: Text

    @property
    def numbers(self) -> list[int]:
        """The version as numbers, which can be compared."""
        return [int(number) for number in self.version.split(".")]


class PtxasRules(Row):
    """The rules by which XLA selects a ptxas."""

    cuda_home_since: SourcedVersion
    oldest: SourcedVersion
    refused: list[SourcedVersion]


class CudaTable(Row):
    """cuda.toml."""

    horizon: Horizon
    evidence: dict[str, Text]
    cudnn_part: list[CudnnPart]
    tensorrt: list[TensorrtNumber]
    ptx_isa: list[PtxIsa]
    other_user: list[OtherUser]
    ptxas: PtxasRules


@cache
def load_cuda_table() -> CudaTable:
    """Return the versions and names that determine which CUDA libraries are loaded."""
    return CudaTable.model_validate(read("cuda"))


class FileKind(Row):
    """A way in which a file is not as recorded (files.toml explains the columns)."""

    name: Annotated[str, Field(pattern=r"^[a-z]+(-[a-z]+)*$")]
    title: Text
    why: Sentence
    fix: Sentence
    source: Text
    weight: Annotated[int, Field(ge=0, le=100)]


class FirstFiles(Row):
    """Files whose findings come first."""

    path: Text
    weight: Annotated[int, Field(ge=0, le=100)]
    source: Text


class KnownFile(Row):
    """A file that a known tool puts on an import path without a RECORD."""

    path: Text
    lines: list[Text] = Field(default=[])
    code: list[Text] = Field(default=[])
    why: Sentence
    source: Text


class ManagedFolder(Row):
    """A folder that is filled by the system's packages."""

    folder: Annotated[str, Field(pattern=r"^/")]
    by: Text
    source: Text


class FileTable(Row):
    """files.toml."""

    evidence: dict[str, Text]
    kind: list[FileKind]
    first: list[FirstFiles]
    known: list[KnownFile]
    managed: list[ManagedFolder]


@cache
def load_file_table() -> FileTable:
    """Return the kinds of faults of files, and the files that are harmless."""
    return FileTable.model_validate(read("files"))


class RankVariables(Row):
    """The variables by which a launcher numbers the processes of a job."""

    rank: VariableName
    size: VariableName | None = None
    node: VariableName | None = None
    job: list[VariableName] = Field(default=[])
    unnamed: Text | None = None
    instead: list[VariableName] = Field(default=[])
    needs: VariableName | None = None
    restarts: VariableName | None = None
    hosts: bool = False


class ByRank(Row):
    """A fact that always differs between ranks.

    Ranks compare the number of devices instead, or all flags except some.
    """

    path: Annotated[str, Field(pattern=r"^[A-Za-z0-9_*.-]+$")]
    flags: list[Text] = Field(default=[])
    why: Sentence
    source: Text


class Launcher(Row):
    """A launcher or a limit, and the facts that it changes (launchers.toml explains the columns)."""

    name: Text
    kind: Literal["launcher", "pool", "limit"]
    any: Annotated[list[VariableName], Field(min_length=1)]
    all: list[VariableName] = Field(default=[])
    facts: list[Text]
    value: Text | None = None
    value_of: VariableName | None = None
    why: Sentence
    fix: Sentence
    source: Text
    rank: RankVariables | None = None


class LauncherTable(Row):
    """launchers.toml."""

    evidence: dict[str, Text]
    launcher: list[Launcher]
    by_rank: list[ByRank]

    @model_validator(mode="after")
    def _check_rows(self) -> LauncherTable:
        known = {f"environ.{row.name}" for row in load_variables()}
        for row in self.launcher:
            self._check_facts(row, known)
            self._check_source(row)
            if row.value is not None and row.value_of is not None:
                raise ValueError(f"{row.name}: one of `value` and `value_of`")
            if not row.facts and row.rank is None:
                raise ValueError(f"{row.name}: it changes no fact and numbers no process")
        if any(row.source not in self.evidence for row in self.by_rank):
            raise ValueError("by_rank: a source that [evidence] does not have")
        return self

    def _check_facts(self, row: Launcher, known: set[str]) -> None:
        unknown = sorted(
            path for path in row.facts if not path.startswith("cpu.") and path not in known
        )
        if unknown:
            raise ValueError(
                f"{row.name}: neither of the processor nor in environ.toml: {', '.join(unknown)}"
            )

    def _check_source(self, row: Launcher) -> None:
        for source in row.source.split("; "):
            is_evidence = source.partition(":")[0] in self.evidence
            if not is_evidence and not source.startswith("run with "):
                raise ValueError(f"{row.name}: no evidence `{source}`")


@cache
def load_launcher_table() -> LauncherTable:
    """Return the launchers: if several match, the first one is used."""
    return LauncherTable.model_validate(read("launchers"))


class LoadedRole(Row):
    """Libraries that compute, or lie below what does (loaded.toml)."""

    name: Annotated[str, Field(pattern=r"^[a-z]+$")]
    begins: Annotated[list[Text], Field(min_length=1)]
    of_base: bool = False
    source: Text


class LoadedTable(Row):
    """loaded.toml."""

    changed_by_distributors: list[Text]
    changed_source: Text
    role: list[LoadedRole]


@cache
def load_loaded_table() -> LoadedTable:
    """Return the parts that loaded libraries play; the first that fits counts."""
    return LoadedTable.model_validate(read("loaded"))
