"""The tables about base images and containers as typed rows, which only `images` and `build` read."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import Field, model_validator

from envlock.data import Horizon, Minor, Row, Sentence, Text, Version, read
from envlock.runtime.release import minor, parse_release

Release = Annotated[str, Field(pattern=r"^\d\d\.\d\d(\.\d+)?$")]
Ubuntu = Annotated[str, Field(pattern=r"^\d\d\.04$")]
Suite = Annotated[str, Field(pattern=r"^[a-z]+$")]
Tag = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Address = Annotated[str, Field(pattern=r"^https://[a-z0-9./_-]+$")]
TensorflowVersion = Annotated[str, Field(pattern=r"^[12]\.\d+(\.\d+(-?rc\d+)?)?$")]


class Stack(Row):
    """The versions in an image of NVIDIA's; None if no source states them."""

    ubuntu: Ubuntu | None = None
    python: Minor | None = None
    cuda: Version | None = None
    cudnn: Version | None = None
    nccl: Version | None = None
    compute_capability: Minor | None = None


class NgcRelease(Stack):
    """A release of NVIDIA's TensorFlow images (ngc_tensorflow.toml explains the columns)."""

    release: Release
    tags: Annotated[list[Tag], Field(min_length=1)]
    tf1: TensorflowVersion | None = None
    tf2: TensorflowVersion | None = None
    confidence: Literal["high", "medium", "low"] | None = None
    label: Annotated[str, Field(pattern=r"^nv[\d.]*$")] | None = None
    source: Text
    tensorflow_source: Text | None = None

    @model_validator(mode="after")
    def _check_confidence(self) -> NgcRelease:
        if (self.confidence is None) != (self.tf1 is None and self.tf2 is None):
            raise ValueError(f"{self.release}: a TensorFlow has a confidence, and nothing else has")
        return self

    @property
    def labels(self) -> set[str]:
        """The labels that the version of its TensorFlow can have after the plus sign."""
        if self.label is not None:
            return {self.label}
        year, month, *patch = self.release.split(".")
        # PEP 440 normalises nv22.01 to nv22.1.
        return {".".join([f"nv{year}", number, *patch]) for number in (month, str(int(month)))}


class Sibling(Stack):
    """Another product of the same month."""

    release: Release
    product: Annotated[str, Field(pattern=r"^[a-z-]+$")]
    source: Text


class KnownDigest(Row):
    """A published digest of nvcr.io/nvidia/tensorflow."""

    tag: Tag | None = None
    digest: Digest
    earlier: bool = False
    index: bool = False
    source: Text


class NgcTable(Row):
    """ngc_tensorflow.toml."""

    horizon: Horizon
    evidence: dict[str, Text]
    release: list[NgcRelease]
    sibling: list[Sibling]
    digest: list[KnownDigest]


class CudaImage(Row):
    """An image with CUDA and cuDNN (cuda_images.toml explains the columns)."""

    cuda: Version
    ubuntu: Ubuntu
    token: Annotated[str, Field(pattern=r"^cudnn\d*$")]
    cudnn: Version
    nccl: Version | None = None
    arm64: bool = False
    end_of_life: bool = False
    source: Text

    @property
    def tag(self) -> str:
        """Its tag in docker.io/nvidia/cuda."""
        return f"{self.cuda}-{self.token}-runtime-ubuntu{self.ubuntu}"


class DriverFloor(Row):
    """The oldest Linux driver for a CUDA version or a major version."""

    cuda: Version
    driver: Version
    source: Text


class GpuSupport(Row):
    """The first CUDA that generates code for a compute capability.

    Attributes:
        tegra: whether it is that of NVIDIA's Tegra systems (Jetson, DRIVE), whose machine code and
            that of other GPUs are not compatible.
    """

    compute_capability: Minor
    cuda: Minor
    tegra: bool = False
    source: Text


class Card(Row):
    """The names of GPUs with a compute capability; all of one chip where `chip` names it."""

    compute_capability: Minor
    chip: Annotated[str, Field(pattern=r"^G?[A-Z]{1,2}[0-9A-F]{3}$")] | None = None
    names: Annotated[list[Text], Field(min_length=1)]
    source: Text


class CudaImagesTable(Row):
    """cuda_images.toml."""

    horizon: Horizon
    evidence: dict[str, Text]
    image: list[CudaImage]
    driver: list[DriverFloor]
    minor_version: list[DriverFloor]
    gpu: list[GpuSupport]
    card: list[Card]


class SlimImages(Row):
    """The slim images of one Python on one suite of Debian: patch releases `first` to `last`."""

    python: Minor
    suite: Suite
    first: Annotated[int, Field(ge=0)]
    last: Annotated[int, Field(ge=0)]
    source: Text


class BaseSystem(Row):
    """The system under an image (python_images.toml explains the columns)."""

    name: Annotated[str, Field(pattern=r"^(ubuntu\d\d\.04|[a-z]+)$")]
    os: Annotated[str, Field(pattern=r"^(ubuntu \d\d\.04|debian \d+)$")]
    libc: Minor
    python: Minor | None = None
    own: Version | None = None
    compiler: Text | None = None
    image: Annotated[str, Field(pattern=r"^library/[a-z-]+:[a-z0-9.-]+$")] | None = None
    with_python: Annotated[str, Field(pattern=r"^library/[a-z-]+:[a-z0-9.-]+$")] | None = None
    ended: Annotated[str, Field(pattern=r"^20\d\d-\d\d-\d\d$")] | None = None
    source: Text

    @model_validator(mode="after")
    def _check_python(self) -> BaseSystem:
        if self.with_python is not None and None in (self.own, self.compiler, self.python):
            raise ValueError(
                f"{self.name}: an image with a Python needs its version and its compiler"
            )
        return self


class StandaloneBuild(Row):
    """A build of python-build-standalone (standalone_pythons.toml explains the columns)."""

    python: Version
    release: Annotated[str, Field(pattern=r"^\d{8}$")]
    machine: Literal["x86_64", "aarch64"]
    stripped: bool = False
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    compiler: Text | None = None
    source: Text

    @property
    def file(self) -> str:
        """Name of the archive."""
        start = f"cpython-{self.python}+{self.release}-{self.machine}-unknown-linux-gnu"
        if self.stripped:
            return f"{start}-install_only_stripped.tar.gz"
        return f"{start}-install_only.tar.gz"


class StandaloneTable(Row):
    """standalone_pythons.toml."""

    horizon: Horizon
    releases: Address
    latest: Address
    evidence: dict[str, Text]
    build: list[StandaloneBuild]

    def make_url(self, file: str, mirror: str | None = None) -> str:
        """Return the URL of an archive, or that in a mirror if one is given."""
        release = file.partition("+")[2].partition("-")[0]
        return f"{(mirror or self.releases).rstrip('/')}/{release}/{quote(file)}"


class PythonImagesTable(Row):
    """python_images.toml."""

    horizon: Horizon
    evidence: dict[str, Text]
    slim: list[SlimImages]
    system: list[BaseSystem]


class WheelBuild(Row):
    """A wheel of TensorFlow (tensorflow_builds.toml explains the columns)."""

    tensorflow: TensorflowVersion
    python: Annotated[list[Minor], Field(min_length=1)]
    cuda: Minor
    cudnn: Minor
    and_cuda: bool
    source: Text


class AndCuda(Row):
    """The versions that the extra `and-cuda` requires."""

    tensorflow: TensorflowVersion
    exact: bool
    cuda: Version
    cudnn: Version
    nccl: Version
    source: Text


class HeldCode(Row):
    """The GPUs for which wheels of TensorFlow contain code."""

    tensorflow: Annotated[list[Minor], Field(min_length=1)]
    targets: Annotated[list[Text], Field(min_length=1)]
    source: Text


class BuildsTable(Row):
    """tensorflow_builds.toml."""

    horizon: Horizon
    evidence: dict[str, Text]
    build: list[WheelBuild]
    and_cuda: list[AndCuda]
    code: list[HeldCode]


class Tables(Row):
    """All tables about base images."""

    ngc: NgcTable
    cuda: CudaImagesTable
    python: PythonImagesTable
    builds: BuildsTable
    standalone: StandaloneTable


@cache
def load_image_tables() -> Tables:
    """Return everything that is known about base images."""
    return Tables(
        ngc=NgcTable.model_validate(read("ngc_tensorflow")),
        cuda=CudaImagesTable.model_validate(read("cuda_images")),
        python=PythonImagesTable.model_validate(read("python_images")),
        builds=BuildsTable.model_validate(read("tensorflow_builds")),
        standalone=StandaloneTable.model_validate(read("standalone_pythons")),
    )


class HostFact(Row):
    """Facts that belong to the machine that a container runs on, not to its image."""

    path: Annotated[str, Field(pattern=r"^[A-Za-z0-9_*.]+$")]
    why: Sentence


class RouteDefaults(Row):
    """The licences of bases as an SPDX expression, and their settings if no config was read."""

    licenses: Text | None = None
    entrypoint: tuple[Text, ...] = ()
    command: tuple[Text, ...]
    source: Text


class TokenServer(Row):
    """The host that issues a registry's tokens, if it is not the registry itself."""

    registry: Annotated[str, Field(pattern=r"^[a-z0-9.-]+(:[0-9]+)?$")]
    host: Annotated[str, Field(pattern=r"^[a-z0-9.-]+$")]
    source: Text


class SharedMemory(Row):
    """The size of /dev/shm in a deployment; bytes."""

    bytes: Annotated[int, Field(ge=64 * 1024 * 1024)]
    why: Text
    source: Text


class ImageTable(Row):
    """image.toml."""

    evidence: dict[str, Text]
    host: list[HostFact]
    token_server: list[TokenServer]
    shared_memory: SharedMemory
    ngc: RouteDefaults
    cuda: RouteDefaults
    wheels: RouteDefaults
    captured: RouteDefaults


@cache
def load_image_defaults() -> ImageTable:
    """Return the facts that belong to the machine, and the default settings of images."""
    return ImageTable.model_validate(read("image"))


def find_driver_floor(cuda: str, table: CudaImagesTable) -> DriverFloor | None:
    """Return the driver that was released with this CUDA, else the oldest one for its minor
    version.
    """
    rows = [row for row in table.driver if minor(row.cuda) == minor(cuda)]
    exact = [row for row in rows if parse_release(row.cuda) == parse_release(cuda)]
    return min(exact or rows, key=lambda row: parse_release(row.driver), default=None)


def find_oldest_driver(cuda: str, table: CudaImagesTable) -> str | None:
    """Return the oldest driver that runs this CUDA; for its whole major version, if NVIDIA has such
    a rule.
    """
    major = parse_release(cuda)[0]
    drivers = [row.driver for row in table.minor_version if parse_release(row.cuda)[0] == major]
    floor = find_driver_floor(cuda, table)
    if floor is not None:
        drivers.append(floor.driver)
    return min(drivers, key=parse_release, default=None)
