"""The format, `lock_version` 1: the sections other than the facts, and the whole file.

The JSON Schema is generated from these models.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from envlock.lock.fact_models import (
    CONTROLS,
    Count,
    Digest,
    FactPath,
    Facts,
    PackageName,
    PathPattern,
    Sha256,
    Strict,
    Text,
    VariableName,
    Version,
    Word,
)
from envlock.lock.numerics import Numerics
from envlock.lock.route import COMPLETE, Route
from envlock.runtime.lockfile import DATA_LIMIT, MACHINE_LIMIT

WheelName = Annotated[str, Field(max_length=300, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+!-]*\.whl$")]
WebUrl = Annotated[
    str,
    Field(
        max_length=1000, pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~!*'();:&=+,%/@-]*)?$"
    ),
]


class WheelFile(Strict):
    """One file of an index; size in bytes.

    `url` and `index` are without credentials and queries, and null if the file or its index is on a
    disk.
    """

    name: WheelName
    sha256: Sha256
    size: Count
    url: WebUrl | None
    index: WebUrl | None


class WrongRecord(Strict):
    """What a publisher did wrong in the RECORD of a wheel, whose archive has the installed files.

    `what` is a sentence. `files` has the sha256 of each file for which RECORD has another, and null
    for each that it lists and the wheel does not have.
    """

    what: Text
    files: dict[Text, Sha256 | None]


class PackageIdentity(Strict):
    """The file that a distribution was installed from, as far as it is known.

    `content` is the digest of the list of its files and their hashes
    (envlock/runtime/files/record_rows.py), null without such a list. `proof` says how `wheel` is
    known to be that file: its RECORD lists exactly the installed files, and its sha256 was computed
    from all its bytes (`file`) or comes from the index (`record`). The RECORD of a wheel that was
    built here from the package's sources lists other files than, for example, an editable install
    (`built`): then `built` is the digest of its own list. Where the wheel's own RECORD is wrong, the
    files were compared with those in the archive, and `wrong_record` says so. Without a wheel,
    `reason` says why.

    Of a wheel that was built from a folder, `source` is the digest of the source that Python could
    import from there, as `packages.NAME.source` has it, and `tree` that of all files of the build: if
    they are the same, the wheel need not be built again.

    `overwritten` has the files that another package, installed later, has replaced by its own: path
    in `site-packages` -> name of that package.
    """

    version: Version | None
    content: Sha256 | None
    origin: Literal["index", "url", "vcs", "editable", "local", "conda", "unknown"]
    proof: Literal["file", "record", "built"] | None
    wheel: WheelFile | None
    reason: Text | None
    built: Sha256 | None = None
    wrong_record: WrongRecord | None = None
    source: Digest | None = None
    tree: Digest | None = None
    overwritten: dict[Text, PackageName] | None = None

    @model_validator(mode="after")
    def _check_proof(self) -> "PackageIdentity":
        has_wheel = self.wheel is not None
        has_proof = self.proof is not None
        has_reason = self.reason is not None
        if has_wheel != has_proof or has_wheel == has_reason:
            raise ValueError("it must have a wheel and a proof, or a reason")
        if (self.proof == "built") != (self.built is not None):
            raise ValueError("it must have the digest of a wheel that was built, and of no other")
        return self


class Identity(Strict):
    """Every distribution of `facts.packages`, as `envlock capture --hashes` found it."""

    packages: dict[PackageName, PackageIdentity]


Argument = Annotated[str, Field(max_length=1000, pattern=r"^[A-Za-z0-9_.,:=+/@%-]+$")]

ImageDigest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
_NAME = r"([a-zA-Z0-9]+([.-]+[a-zA-Z0-9]+)*|\[[a-fA-F0-9:]+\])(:[0-9]{1,5})?(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+"
ImageName = Annotated[str, Field(max_length=255, pattern=f"^{_NAME}$")]
PushedImage = Annotated[str, Field(max_length=400, pattern=f"^{_NAME}@sha256:[0-9a-f]{{64}}$")]


class BaseConfig(Strict):
    """What an image inherits from the config of its base.

    `environ` has determinism variables only.
    """

    entrypoint: list[Argument]
    command: list[Argument]
    environ: dict[VariableName, Text]


CopiedPath = Annotated[str, Field(max_length=400, pattern=r"^[A-Za-z0-9_.,+=@%/-]+$")]
OwnPath = Annotated[str, Field(max_length=400, pattern=r"^[^\x00-\x1f\x7f\\]+$")]
FolderPath = Annotated[str, Field(max_length=400, pattern=r"^/[A-Za-z0-9_./-]*$")]
UserNumbers = Annotated[str, Field(pattern=r"^[0-9]{1,10}:[0-9]{1,10}$")]
OwnVariable = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
OwnValue = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f\\$`]*$")]


class Container(Strict):
    """What the project added to the image, from `[tool.envlock.container]`.

    `files` are copied below `workdir`: their paths in the project, and SHA-256; of a link, that of
    its target's path. `command` is empty if the base's own is used.
    """

    files: Annotated[dict[OwnPath, Sha256], Field(max_length=10_000)]
    workdir: FolderPath
    user: UserNumbers
    command: Annotated[list[Argument], Field(max_length=1000)]
    environ: Annotated[dict[OwnVariable, OwnValue], Field(max_length=1000)]


class Image(Strict):
    """An image that was built, and found to be the locked environment.

    `id` is the digest of its config. A builder that writes the present time into it gives a
    different one each time; `layers` (uncompressed, the base's first) and `config` (SHA-256 of
    variables, entrypoint, command, folder, user and labels) are the same for every builder.
    `reference` is its name in a registry, with the digest of its manifest there. `lock` is the
    SHA-256 of the lockfile inside, `wheels` are the packages that were installed from wheels, and
    `envlock` is the version that built it.
    """

    id: ImageDigest
    reference: PushedImage | None = None
    lock: Sha256 | None = None
    wheels: Annotated[list[PackageName], Field(max_length=10_000)] | None = None
    envlock: Version | None = None
    layers: list[ImageDigest]
    config: Sha256
    base: ImageDigest
    base_config: BaseConfig | None
    deterministic: bool
    container: Container | None = None
    epoch: Count
    engine: Literal["buildx", "docker", "podman", "buildah"]
    engine_version: Version


ImageTag = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")]
Reason = Annotated[str, Field(max_length=4000, pattern=rf"^[^{CONTROLS}]+$")]


class PinnedImage(Strict):
    """An image in a registry, by its full name, such as nvcr.io/nvidia/tensorflow.

    `digest` is the one that the tag stood for: that of an index, if the image exists for several
    platforms. `manifest` is that of the one platform, null if unknown. `tag` is informative, and
    null if a digest was named; tags move.
    """

    name: ImageName
    tag: ImageTag | None
    digest: ImageDigest
    manifest: ImageDigest | None


class PinnedArchive(Strict):
    """A build of python-build-standalone; the name of the archive contains version and release."""

    file: Annotated[
        str,
        Field(
            pattern=r"^cpython-3\.\d{1,3}\.\d{1,3}\+\d{8}-(x86_64|aarch64)-unknown-linux-gnu-install_only(_stripped)?\.tar\.gz$"
        ),
    ]
    sha256: Sha256


# Source: Debian Policy Manual, sections 5.6.1 (names) and 5.6.12 (versions)
_DEBIAN_NAME = r"[a-z0-9][a-z0-9+.-]{1,127}"
_DEBIAN_VERSION = r"([0-9]{1,9}:)?[0-9][A-Za-z0-9.+~-]{0,127}"
DEBIAN_WISH = rf"{_DEBIAN_NAME}(={_DEBIAN_VERSION})?"
DEBIAN_SOURCE = r"https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~+:%-]*)*( [A-Za-z0-9._~+/-]+)+"
# A lockfile comes from outside; among them is all that the wanted packages need.
MOST_DEBIAN_PACKAGES = 1000


class DebianPackage(Strict):
    """A package from the archive of Debian or Ubuntu, from its signed index; size in bytes."""

    name: Annotated[str, Field(pattern=f"^{_DEBIAN_NAME}$")]
    version: Annotated[str, Field(pattern=f"^{_DEBIAN_VERSION}$")]
    architecture: Literal["amd64", "arm64", "all"]
    size: Count
    sha256: Sha256
    url: WebUrl

    @property
    def file(self) -> str:
        """The file name that apt gives it."""
        return f"{self.name}_{self.version.replace(':', '%3a')}_{self.architecture}.deb"


class DebianPackages(Strict):
    """The packages that apt adds to the base: `wanted`, as the project wrote it, and everything
    that this requires.

    `sources` are the archives that were used instead of the base's own. The base has none of
    `packages`.
    """

    wanted: Annotated[
        list[Annotated[str, Field(pattern=f"^{DEBIAN_WISH}$")]],
        Field(max_length=MOST_DEBIAN_PACKAGES),
    ]
    sources: Annotated[
        list[Annotated[str, Field(max_length=400, pattern=f"^{DEBIAN_SOURCE}$")]],
        Field(max_length=20),
    ]
    packages: Annotated[list[DebianPackage], Field(max_length=MOST_DEBIAN_PACKAGES)]


class BaseImage(PinnedImage):
    """The image that another starts from, and why it was chosen.

    `route` is the source of TensorFlow; `captured` is the image that the facts were collected in. A
    base without a Python gets it from the image `python`, or from `python_archive`. `apt` is
    installed in it first.
    """

    platform: Literal["linux/amd64", "linux/arm64"]
    route: Route
    reason: Reason
    python: PinnedImage | None = None
    python_archive: PinnedArchive | None = None
    apt: DebianPackages | None = None

    @model_validator(mode="after")
    def _check_python(self) -> "BaseImage":
        if self.python is not None and self.python_archive is not None:
            raise ValueError("it must have one Python")
        if self.route in COMPLETE and (self.python is not None or self.python_archive is not None):
            raise ValueError(f"a base of the route {self.route} has a Python of its own")
        return self


SCHEMA_URL = (
    "https://raw.githubusercontent.com/tf-envlock/envlock/main/envlock/data/lockfile.schema.json"
)


class UnavailableFact(Strict):
    """A fact that could not be collected."""

    reason: Text
    code: Text


class LockedPolicy(Strict):
    """How strictly the facts are compared: a policy, and the project's overrides by path pattern."""

    name: Word
    overrides: dict[PathPattern, Word]


class Project(Strict):
    """The project of the lockfile: its own package `name` is not a fact, and no policy compares it.

    If `entry` names its programs, only the packages in `held` (these programs can import them; the
    value says how that is known) and `observed` (runs under `envlock run --observe` have used them)
    are compared; the others may differ. `commit` is that of the project when these facts were first
    captured, and `dirty` is whether files differed from it: no policy compares them. `tooling` are
    the packages that only envlock requires, which may differ.
    """

    name: PackageName | None = None
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")] | None = None
    dirty: bool | None = None
    tooling: list[PackageName] = Field(default_factory=list, max_length=1_000)
    entry: list[Text] = Field(default_factory=list, min_length=1, max_length=100)
    held: dict[PackageName, Text] = Field(default_factory=dict, max_length=10_000)
    observed: dict[PackageName, Literal["imported", "mapped"]] = Field(
        default_factory=dict, max_length=10_000
    )

    @model_validator(mode="after")
    def _check_entry(self) -> "Project":
        if ("entry" in self.model_fields_set) != ("held" in self.model_fields_set):
            raise ValueError("it must have both `entry` and `held`, or neither")
        return self


ContentDigest = Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}(\.dir)?)$")]


class DataEntry(Strict):
    """The input files at a path of the project, which are not part of the environment.

    `bytes` is the size of all files, `listing` the SHA-256 of their names and sizes, and `content`
    that of their contents, or DVC's MD5 of them in an earlier lockfile; null where contents are unknown
    (envlock/runtime/data_contents.py).
    """

    files: Count
    bytes: Count
    listing: Sha256
    content: ContentDigest | None


class Machine(Strict):
    """Another machine that the lockfile accepts, with all facts of the machine, which policy.toml
    lists.
    """

    facts: Facts
    unavailable: dict[FactPath, UnavailableFact]


class Lockfile(Strict):
    """A whole lockfile; `facts` are those of the software and of the first machine."""

    model_config = ConfigDict(
        title="envlock lockfile", populate_by_name=True, serialize_by_alias=True
    )

    schema_url: Annotated[Text, Field(alias="$schema")] = SCHEMA_URL
    lock_version: Literal[1]
    created_by: Text
    facts: Facts
    unavailable: dict[FactPath, UnavailableFact]
    policy: LockedPolicy
    machines: Annotated[list[Machine], Field(min_length=1, max_length=MACHINE_LIMIT)] = Field(
        default_factory=list
    )
    project: Project | None = None
    identity: Identity | None = None
    base_image: BaseImage | None = None
    image: Image | None = None
    numerics: Numerics | None = None
    data: Annotated[dict[CopiedPath, DataEntry], Field(max_length=DATA_LIMIT)] | None = None

    @property
    def own_name(self) -> str | None:
        """The name of the project's own package; None where it has none."""
        return self.project.name if self.project is not None else None

    @property
    def identities(self) -> dict[str, PackageIdentity]:
        """What is proven of each package, by name."""
        return self.identity.packages if self.identity is not None else {}

    def to_document(self) -> dict[str, Any]:
        """Return the JSON values of the file; absent facts are left out, null ones are kept."""
        return {
            "$schema": self.schema_url,
            **self.model_dump(mode="json", exclude_unset=True, by_alias=True),
        }

    def to_bytes(self) -> bytes:
        """Return the canonical bytes: sorted keys, two spaces, one final newline, UTF-8."""
        text = json.dumps(
            self.to_document(), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False
        )
        return (text + "\n").encode("utf-8")


def render_schema() -> str:
    """Return the JSON Schema in its published form."""
    schema = Lockfile.model_json_schema(by_alias=True)
    published = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_URL,
        **schema,
    }
    return json.dumps(published, indent=2, sort_keys=True) + "\n"
